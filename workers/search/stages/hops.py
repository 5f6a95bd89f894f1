"""Multi-hop search: names from the best passages are searched together with the question, hop after hop.

One batched store call a hop. What is found over a name competes on one score with what the question found itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log2
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from qdrant_client import models

from shared.language import answer_language
from shared.language.names import bare, names_of
from shared.language.routing import asks, route_by_rules
from shared.language.sentences import sentences
from shared.language.text import flat, terms
from shared.models import Hit, Via
from shared.models.route import Hops
from shared.providers.rerankers.lexical import as_terms, candidate_idf, lexical_scores
from shared.settings import stages as s
from shared.store import DENSE, SPARSE, to_filter, to_sparse
from shared.store.page_keys import is_page_key, title_key
from shared.store.schema import one_of
from workers.search.state import Candidate, SearchState, Tools, by_score

# --- How passages continue one another. Pure: bridges are names in the best passages, a chain is what one adds.

#: What counts in a chain, besides the worth of the passage that brought the name up: how well the name is the page's
#: own title, how much of the rest of the question the page has, how much the sentence with the name is about the
#: question. Taken together on six sets; the optimum is flat (docs/quality.md).
_TITLE, _GAIN, _ASKS, _LEAST = 0.6, 0.6, 0.8, 0.05
#: What a title counts that only holds the name; the power of the number of chunks that share a page key, by which that
#: counts less; the power of 1 / log2(1 + n) for a name that n candidates hold.
_IN_TITLE, _SHARED, _RARITY = 0.5, 1.0, 0.75


class NameBridge(NamedTuple):
    """A name that the passage `parent` brings up; `needle` is the name as `flat` text.

    `worth` is that passage's score, `asks` the share of the question that stands in the sentence with the name: 0..1.
    `keys` lead to the pages of that name.
    """

    name: str
    needle: str
    parent: str
    worth: float
    asks: float
    keys: tuple[str, ...] = ()


class Link(NamedTuple):
    """A candidate's best chain: its score, from 0 and rarely above 1, and over which bridge."""

    score: float
    bridge: NameBridge


@dataclass(frozen=True, slots=True)
class _Reading:
    title: str
    text: str
    words: frozenset[str]


class ChainScorer:
    """A question against a set of candidates: the weights of its terms are those among the candidates."""

    def __init__(self, text: str, hits: Sequence[Hit]) -> None:
        self.flat = flat(text)
        self._readings = {hit.chunk_id: _reading(hit.title, hit.heading, hit.text) for hit in hits}
        self._defines = {hit.chunk_id: hit.defines for hit in hits}
        self._idf = candidate_idf(terms(text), [reading.words for reading in self._readings.values()])
        self._total = sum(self._idf.values()) or 1.0

    def bridges(self, hit: Hit, worth: float) -> list[NameBridge]:
        """The names in a passage (with its score) that the question does not have, the likeliest first."""
        found: dict[str, NameBridge] = {}
        for name, key, asked in self._named(hit):
            needle = flat(name)
            if needle.strip() and needle not in self.flat and not needle.replace(" ", "").isdecimal():
                known = found.get(needle)
                keys = (*known.keys, key) if known else (key,)
                found[needle] = NameBridge(name, needle, hit.chunk_id, worth, asked, tuple(dict.fromkeys(keys)))
        return sorted(found.values(), key=lambda bridge: (-bridge.asks, bridge.needle))

    def links(self, bridges: Sequence[NameBridge]) -> dict[str, Link]:
        """Chunk id -> its best chain over one of these bridges, for every candidate that holds one of the names."""
        best: dict[str, Link] = {}
        for bridge in bridges:
            keys = frozenset(bridge.keys)
            pages = {chunk_id for chunk_id, defines in self._defines.items() if not keys.isdisjoint(defines)}
            holders = {
                c: reading for c, reading in self._readings.items() if c in pages or bridge.needle in reading.text
            }
            rarity = (1 / log2(1 + max(2, len(holders)))) ** _RARITY
            parent = self._readings[bridge.parent].words
            before = self._share(parent)
            for chunk_id, reading in holders.items():
                if chunk_id == bridge.parent:
                    continue
                gain = self._share(parent | reading.words) - before
                titled = len(pages) ** -_SHARED if chunk_id in pages else _titled(bridge.needle, reading.title)
                kind = _TITLE * titled + _GAIN * gain + _ASKS * bridge.asks + _LEAST
                score = bridge.worth * rarity * kind
                if chunk_id not in best or score > best[chunk_id].score:
                    best[chunk_id] = Link(score, bridge)
        return best

    def _named(self, hit: Hit) -> Iterator[tuple[str, str, float]]:
        """Names as written, their keys, and the share of the question in the sentence that has each.

        The page's own title stands for all of it: pages that name this one lead back to it. Links whose text is not
        the title of their page go by that title.
        """
        reading = self._readings[hit.chunk_id]
        whole = self._share(reading.words)
        said = [(flat(sentence), self._share(frozenset(terms(sentence)))) for sentence in sentences(hit.text)]
        linked = [(_called(key), key) for key in (*hit.refs, *hit.mentions) if is_page_key(key)]
        for name, key in (*((name, title_key(name)) for name in names_of(hit.title, hit.text)), *linked):
            needle = flat(bare(name))
            own = needle == reading.title
            yield bare(name), key, whole if own else max((share for text, share in said if needle in text), default=0.0)

    def _share(self, words: frozenset[str]) -> float:
        return sum(weight for term, weight in self._idf.items() if term in words) / self._total


def _called(key: str) -> str:
    """What a page is called by its key: the title, the label, or the file's name."""
    kind, _, name = key.partition(":")
    return PurePosixPath(name).stem if kind == "path" else name


def _titled(needle: str, title: str) -> float:
    if not title or needle not in title:
        return 0.0
    return 1.0 if needle == title else _IN_TITLE


@lru_cache(maxsize=1024)
def _reading(title: str, heading: str, text: str) -> _Reading:
    words = as_terms(title, heading, text).words
    return _Reading(flat(bare(title)) if title else "", flat(f"{title} {text}"), words)


When = Literal["always", "questions", "asked"]
#: The part of a hit's score that it owes to a chain; the stage `chain` adds it again behind a rerank.
CHAIN = "chain"
NAME = "name"


def reason_against(question: str, when: When) -> str | None:
    """Why no hop is made, None when one is.

    asked: where the rules of routing read several hops, and for questions that leave them unsure. questions: for
    questions that they take for lookups too, in languages where that gains: a quarter of hotpotqa's and a seventh of
    musique's look so and gain. Claims lose two points by it (scifact).
    """
    if when == "always":
        return None
    routed = route_by_rules(question)
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
    pool = _Pool(state, options, known)
    for _ in range(options.hops):
        bridges = pool.bridges()
        likely = pool.likely(bridges)
        keys = list(dict.fromkeys(key for bridge in bridges for key in bridge.keys))
        fresh = _search(likely, keys, state, options, tools)
        if not pool.add(bridges, fresh):
            break
    if not pool.chains:
        return state.skip("no name leads on from the best passages")
    return state.but(candidates=pool.ranked(rest))


def chain(state: SearchState, options: s.ChainStage, tools: Tools) -> SearchState:  # noqa: ARG001
    """Behind a rerank, which knows the question alone: give each hit its chain again."""
    if not any(CHAIN in candidate.hit.parts for candidate in state.candidates):
        return state.skip("no chain")
    lifted = [
        candidate.plus("chain", options.weight * candidate.hit.parts.get(CHAIN, 0.0)) for candidate in state.candidates
    ]
    return state.but(candidates=tuple(sorted(lifted, key=lambda candidate: -candidate.score)))


class _Pool:
    """The candidates so far, their scores against the question and their chains."""

    def __init__(self, state: SearchState, options: s.HopsStage, known: Mapping[str, Candidate]) -> None:
        self._text, self._options, self._known = state.query.text, options, known
        self._hits = {chunk_id: candidate.hit.model_copy(update={"score": candidate.score})
                      for chunk_id, candidate in known.items()}  # fmt: skip
        self._best = max((candidate.score for candidate in known.values()), default=0.0)
        self._opened: set[str] = set()
        self._bridges: list[NameBridge] = []
        self._hop: dict[str, int] = {}
        self._hops = 0
        self.chains: dict[str, Link] = {}
        self._score()

    def _score(self) -> None:
        hits = list(self._hits.values())
        self._question = ChainScorer(self._text, hits)
        self.direct = dict(zip(self._hits, lexical_scores(self._text, hits), strict=True))
        self.chains = self._question.links(self._bridges)

    def total(self, chunk_id: str) -> float:
        """What a candidate is worth: by itself, and at the end of its chain."""
        link = self.chains.get(chunk_id)
        return self.direct[chunk_id] + (self._options.weight * link.score if link else 0.0)

    def bridges(self) -> list[NameBridge]:
        """New names in the best passages that were not opened yet; worth 1/(1+hop) of them, as over edges."""
        best = sorted(self._hits, key=lambda chunk_id: (-self.total(chunk_id), chunk_id))
        frontier = [chunk_id for chunk_id in best if chunk_id not in self._opened][: self._options.parents]
        self._opened.update(frontier)
        found = {bridge.needle: bridge for bridge in self._bridges}
        known = set(found)
        for chunk_id in frontier:
            worth = min(1.0, self.total(chunk_id)) / (1 + self._hops)
            for bridge in self._question.bridges(self._hits[chunk_id], worth):
                found.setdefault(bridge.needle, bridge)
        return [bridge for needle, bridge in found.items() if needle not in known]

    def likely(self, bridges: Iterable[NameBridge]) -> list[NameBridge]:
        """The names that are searched: of each passage those whose sentence is most about the question."""
        count = Counter[str]()
        kept = []
        for bridge in bridges:
            count[bridge.parent] += 1
            if count[bridge.parent] <= self._options.names:
                kept.append(bridge)
        return kept

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

    def fused(self, chunk_id: str) -> float:
        """The score on the scale of the arms: what is found over a name has its chain's share of the best one."""
        own = self._known[chunk_id].score if chunk_id in self._known else 0.0
        link = self.chains.get(chunk_id)
        return max(own, self._best * link.score * self._options.share) if link else own

    def ranked(self, rest: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """Best first, with the `rest` that no hop looked at; what no chain and no arm leads to is left out."""
        kept = [chunk_id for chunk_id in self._hits if chunk_id in self._known or chunk_id in self.chains]
        others = [candidate for candidate in rest if candidate.hit.chunk_id not in self._hits]
        return by_score([*map(self._candidate, kept), *others])

    def _candidate(self, chunk_id: str) -> Candidate:
        hit, link, direct = self._hits[chunk_id], self.chains.get(chunk_id), self.direct[chunk_id]
        candidate = self._known.get(chunk_id) or Candidate(hit, 0.0)
        detail: dict[str, float | str] = {"direct": direct}
        if link is not None:
            detail |= {CHAIN: link.score, "over": link.bridge.name, "from": link.bridge.parent}
            update: dict[str, object] = {"parts": {**hit.parts, CHAIN: link.score}}
            if chunk_id not in self._known:
                hop = self._hop[chunk_id]
                update["via"] = Via(chunk_id=link.bridge.parent, bridge=link.bridge.name, hop=hop, how=NAME)
            candidate = candidate._replace(hit=candidate.hit.model_copy(update=update))
        return candidate.plus("hops", self.fused(chunk_id) - candidate.score, **detail)


def _search(
    bridges: Sequence[NameBridge], keys: Sequence[str], state: SearchState, options: s.HopsStage, tools: Tools
) -> list[Hit]:
    """The likeliest names, each with the question, and the pages that the passages name or link to: one round trip."""
    store, sparse = tools.need_store()
    asked = [to_sparse(sparse.encode_query(f"{bridge.name} {state.query.text}")) for bridge in bridges]
    common = {"with_payload": True, "with_vector": [DENSE] if tools.dense is not None else False}
    everywhere = to_filter(state.query.filters)
    requests = [
        models.QueryRequest(query=query, using=SPARSE, filter=everywhere, limit=options.limit, **common)
        for query in asked
    ]
    if keys:
        named = one_of("defines", keys)
        pages = models.Filter(must=[everywhere, named])
        requests.append(models.QueryRequest(filter=pages, limit=options.pages, **common))
    found = store.query(requests) if requests else []
    return list({hit.chunk_id: hit for hits in found for hit in hits}.values())
