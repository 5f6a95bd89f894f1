"""Multi-hop search: names from the best passages are searched together with the question, hop after hop.

One batched store call a hop. What is found over a name competes on one score with what the question found itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log2
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from qdrant_client import models

from shared.language import answer_language
from shared.language.names import bare, names_of
from shared.language.page_keys import is_page_key, title_key
from shared.language.routing import asks
from shared.language.sentences import sentences
from shared.language.text import flat, terms
from shared.models import Hit, Via
from shared.models.route import Hops
from shared.providers.rerankers.lexical import as_terms, candidate_idf, lexical_scores
from shared.settings import stages as s
from shared.store import SPARSE, to_filter, to_sparse
from shared.store.schema import one_of
from workers.search.language import question_route
from workers.search.state import Candidate, SearchState, Tools, by_score

#: Weights in a chain's score, besides the score of the passage with the name: how well the name is the page's own
#: title, how much of the rest of the question the page has, how much the sentence with the name is about the question,
#: and a constant. Tuned together on six sets; the optimum is flat (docs/quality.md).
_TITLE, _GAIN, _ASKS, _BASE = 0.6, 0.6, 0.8, 0.05
#: The share of a title that only contains the name; the power of 1 / log2(1 + n) for a name that n candidates have.
_IN_TITLE, _RARITY = 0.5, 0.75
#: Key in `Hit.parts`: score contributed by a chain; the stage `chain` adds it again behind a rerank.
CHAIN = "chain"
NAME = "name"
When = Literal["always", "questions", "asked"]


class NameBridge(NamedTuple):
    """A name in the passage `parent`; `needle` is the name as `flat` text.

    `score` is that passage's, `asks` the share of the question that the sentence with the name has: 0..1. `keys` lead
    to the pages of that name.
    """

    name: str
    needle: str
    parent: str
    score: float
    asks: float
    keys: tuple[str, ...] = ()


class ChainEnd(NamedTuple):
    """A candidate's best chain: its score, from 0 and rarely above 1, over which bridge, and what it is made of."""

    score: float
    bridge: NameBridge
    rarity: float
    titled: float
    gain: float


@dataclass(frozen=True, slots=True)
class _FlatPage:
    title: str
    text: str
    words: frozenset[str]


class ChainScorer:
    """Scores chains for one question; its terms are weighted by their IDF among the candidates."""

    def __init__(self, text: str, hits: Sequence[Hit]) -> None:
        self.flat = flat(text)
        self._pages = {hit.chunk_id: _flat_page(hit.title, hit.heading, hit.text) for hit in hits}
        self._defines = {hit.chunk_id: hit.defines for hit in hits}
        self._idf = candidate_idf(terms(text), [reading.words for reading in self._pages.values()])
        self._total = sum(self._idf.values()) or 1.0

    def bridges(self, hit: Hit, score: float) -> list[NameBridge]:
        """The names in a passage (with its score) that the question does not have, the likeliest first."""
        found: dict[str, NameBridge] = {}
        for name, key, share in self._names(hit):
            needle = flat(name)
            if needle.strip() and needle not in self.flat and not needle.replace(" ", "").isdecimal():
                known = found.get(needle)
                keys = (*known.keys, key) if known else (key,)
                found[needle] = NameBridge(name, needle, hit.chunk_id, score, share, tuple(dict.fromkeys(keys)))
        return sorted(found.values(), key=lambda bridge: (-bridge.asks, bridge.needle))

    def links(self, bridges: Sequence[NameBridge]) -> dict[str, ChainEnd]:
        """Chunk id -> its best chain over one of these bridges, for every candidate that holds one of the names."""
        best: dict[str, ChainEnd] = {}
        for bridge in bridges:
            keys = frozenset(bridge.keys)
            pages = {chunk_id for chunk_id, defines in self._defines.items() if not keys.isdisjoint(defines)}
            holders = {c: page for c, page in self._pages.items() if c in pages or bridge.needle in page.text}
            rarity = (1 / log2(1 + max(2, len(holders)))) ** _RARITY
            parent = self._pages[bridge.parent].words
            before = self._share(parent)
            for chunk_id, page in holders.items():
                if chunk_id == bridge.parent:
                    continue
                gain = self._share(parent | page.words) - before
                titled = 1 / len(pages) if chunk_id in pages else _title_share(bridge.needle, page.title)
                score = bridge.score * rarity * (_TITLE * titled + _GAIN * gain + _ASKS * bridge.asks + _BASE)
                if chunk_id not in best or score > best[chunk_id].score:
                    best[chunk_id] = ChainEnd(score, bridge, rarity, titled, gain)
        return best

    def _names(self, hit: Hit) -> Iterator[tuple[str, str, float]]:
        """Names as written, their keys, and the share of the question that the sentence with the name has.

        For the page's own title it is the share of the whole page: pages that name this one lead back to it. Links are
        named by the title of their page.
        """
        page = self._pages[hit.chunk_id]
        whole = self._share(page.words)
        shares = [(flat(sentence), self._share(frozenset(terms(sentence)))) for sentence in sentences(hit.text)]
        linked = [(_page_name(key), key) for key in (*hit.refs, *hit.mentions) if is_page_key(key)]
        for name, key in (*((name, title_key(name)) for name in names_of(hit.title, hit.text)), *linked):
            needle = flat(bare(name))
            share = max((share for text, share in shares if needle in text), default=0.0)
            yield bare(name), key, whole if needle == page.title else share

    def _share(self, words: frozenset[str]) -> float:
        return sum(weight for term, weight in self._idf.items() if term in words) / self._total


def _page_name(key: str) -> str:
    """The name of a page by its key: the title, the label, or the file's name."""
    kind, _, name = key.partition(":")
    return PurePosixPath(name).stem if kind == "path" else name


def _title_share(needle: str, title: str) -> float:
    if not title or needle not in title:
        return 0.0
    return 1.0 if needle == title else _IN_TITLE


@lru_cache(maxsize=1024)
def _flat_page(title: str, heading: str, text: str) -> _FlatPage:
    words = as_terms(title, heading, text).words
    return _FlatPage(flat(bare(title)) if title else "", flat(f"{title} {text}"), words)


def reason_against(question: str, when: When) -> str | None:
    """Why no hop is made; None when one is.

    asked: where the rules of routing read several hops, and for questions that leave them unsure. questions: for
    questions that they take for lookups too, in languages where that gains: a quarter of hotpotqa's and a seventh of
    musique's look so and gain. Claims lose two points by it (scifact).
    """
    if when == "always":
        return None
    routed = question_route(question)
    if routed.hops is Hops.MULTI_HOP and not routed.unsure:
        return None
    if not asks(question):
        return "it asks nothing and names no relation"
    lookup = not routed.unsure and (when == "asked" or not answer_language(question).hops_on_lookups)
    return "the question asks for one thing" if lookup else None


def hops(state: SearchState, options: s.HopsStage, tools: Tools) -> SearchState:
    """Add what the names in the best passages lead to; stops when a hop adds nothing.

    What is found over a name scores its chain's share of the best score that the arms gave; what they found themselves
    keeps its own where that is higher. Which passages to open is decided by `lexical_scores` plus `weight` x chain.
    """
    wanted, rest = state.candidates[: state.query.wanted], state.candidates[state.query.wanted :]
    known = {candidate.hit.chunk_id: candidate for candidate in wanted}
    if not known:
        return state.skip("nothing to start from")
    if reason := reason_against(state.query.text, options.when):
        return state.skip(reason)
    pool = _CandidatePool(state, options, known)
    for _ in range(options.hops):
        bridges = pool.bridges()
        keys = list(dict.fromkeys(key for bridge in bridges for key in bridge.keys))
        if not pool.add(bridges, _search(pool.likely(bridges), keys, state, options, tools)):
            break
    if not pool.chains:
        return state.skip("no name leads on from the best passages")
    return state.but(candidates=pool.ranked(rest))


def chain(state: SearchState, options: s.ChainStage, tools: Tools) -> SearchState:  # noqa: ARG001
    """Behind a rerank, which knows the question alone: give each hit its chain again."""
    if not any(CHAIN in candidate.hit.parts for candidate in state.candidates):
        return state.skip("no chain")
    lifted = []
    for candidate in state.candidates:
        owed = candidate.hit.parts.get(CHAIN, 0.0)
        lifted.append(candidate.plus("chain", options.weight * owed, chain=owed, weight=options.weight))
    return state.but(candidates=tuple(sorted(lifted, key=lambda one: (one.hit.precedence, -one.score))))


class _CandidatePool:
    """The candidates so far, their scores against the question and their chains."""

    def __init__(self, state: SearchState, options: s.HopsStage, known: Mapping[str, Candidate]) -> None:
        self._text, self._options, self._known = state.query.text, options, known
        self._hits = {c: one.hit.model_copy(update={"score": one.score}) for c, one in known.items()}
        self._best = max((candidate.score for candidate in known.values()), default=0.0)
        self._opened: set[str] = set()
        self._bridges: list[NameBridge] = []
        self._hop: dict[str, int] = {}
        self._hops = 0
        self.chains: dict[str, ChainEnd] = {}
        self._score()

    def _score(self) -> None:
        hits = list(self._hits.values())
        self._scorer = ChainScorer(self._text, hits)
        self.direct = dict(zip(self._hits, lexical_scores(self._text, hits), strict=True))
        self.chains = self._scorer.links(self._bridges)

    def _total(self, chunk_id: str) -> float:
        """A candidate's score by itself and at the end of its chain."""
        end = self.chains.get(chunk_id)
        return self.direct[chunk_id] + (self._options.weight * end.score if end else 0.0)

    def bridges(self) -> list[NameBridge]:
        """New names in the best passages that were not opened yet; with 1/(1+hop) of their score, as over edges."""
        best = sorted(self._hits, key=lambda chunk_id: (-self._total(chunk_id), chunk_id))
        frontier = [chunk_id for chunk_id in best if chunk_id not in self._opened][: self._options.parents]
        self._opened.update(frontier)
        found = {bridge.needle: bridge for bridge in self._bridges}
        known = len(found)
        for chunk_id in frontier:
            score = min(1.0, self._total(chunk_id)) / (1 + self._hops)
            for bridge in self._scorer.bridges(self._hits[chunk_id], score):
                found.setdefault(bridge.needle, bridge)
        return list(found.values())[known:]

    def likely(self, bridges: Iterable[NameBridge]) -> list[NameBridge]:
        """The names that are searched: of each passage those whose sentence is most about the question."""
        by_parent: dict[str, list[NameBridge]] = {}
        for bridge in bridges:
            by_parent.setdefault(bridge.parent, []).append(bridge)
        return [bridge for found in by_parent.values() for bridge in found[: self._options.names]]

    def add(self, bridges: Sequence[NameBridge], fresh: Sequence[Hit]) -> bool:
        """Take in what a hop found. False when it adds no candidate."""
        self._hops += 1
        before = len(self._hits)
        for hit in fresh:
            if self._hits.setdefault(hit.chunk_id, hit) is hit:
                self._hop[hit.chunk_id] = self._hops
        self._bridges += bridges
        self._score()
        return len(self._hits) > before

    def ranked(self, rest: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """Best first, with the `rest` that no hop looked at; what no chain and no arm leads to is left out."""
        kept = [chunk_id for chunk_id in self._hits if chunk_id in self._known or chunk_id in self.chains]
        others = [candidate for candidate in rest if candidate.hit.chunk_id not in self._hits]
        return by_score([*map(self._candidate, kept), *others])

    def _candidate(self, chunk_id: str) -> Candidate:
        """Scored on the arms' scale: what is found over a name has its chain's share of the best score."""
        hit, end = self._hits[chunk_id], self.chains.get(chunk_id)
        candidate = self._known.get(chunk_id) or Candidate(hit, 0.0)
        detail: dict[str, float | str] = {"direct": self.direct[chunk_id]}
        score = candidate.score
        if end is not None:
            name, parent = end.bridge.name, end.bridge.parent
            score = max(score, self._best * end.score * self._options.share)
            detail |= {CHAIN: end.score, "best": self._best, "share": self._options.share, "over": name, "from": parent}
            detail |= {"parent": end.bridge.score, "rarity": end.rarity, "titled": end.titled, "gain": end.gain}
            detail["asks"] = end.bridge.asks
            update: dict[str, object] = {"parts": {**hit.parts, CHAIN: end.score}}
            if chunk_id not in self._known:
                update["via"] = Via(chunk_id=parent, bridge=name, hop=self._hop[chunk_id], how=NAME)
            candidate = candidate._replace(hit=candidate.hit.model_copy(update=update))
        return candidate.plus("hops", score - candidate.score, **detail)


def _search(
    bridges: Sequence[NameBridge], keys: Sequence[str], state: SearchState, options: s.HopsStage, tools: Tools
) -> list[Hit]:
    """The likeliest names, each with the question, and the pages that the passages name or link to: one round trip."""
    store, sparse = tools.need_store()
    texts = [f"{bridge.name} {state.query.text}" for bridge in bridges]
    allowed = to_filter(state.query.filters)
    common = tools.request(allowed, options.limit).model_copy(update={"using": SPARSE})
    requests = [common.model_copy(update={"query": to_sparse(sparse.encode_query(text))}) for text in texts]
    if keys:
        requests.append(tools.request(models.Filter(must=[allowed, one_of("defines", keys)]), options.pages))
    found = store.query(requests) if requests else []
    return list({hit.chunk_id: hit for hits in found for hit in hits}.values())
