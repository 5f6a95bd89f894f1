"""Hierarchical search: from starting points down the directories, the best first.

A round opens a few directories with one call of the store; a hit's score is the mean of its own and its directory's.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from qdrant_client import models

from shared.models import Hit
from shared.models.degraded import Degradation
from shared.models.hits import OpenedDirectory, Via
from shared.providers.fallbacks import note_reason
from shared.providers.rerankers.base import LEXICAL_PART
from shared.providers.rerankers.lexical import lexical_parts
from shared.providers.time_shares import seconds_for
from shared.settings import stages as s
from shared.store import DENSE, SPARSE, ChunkStore, to_filter
from shared.store.directories import directory_of, documents_in, nodes, starts, subdirectories
from workers.search.language import arms_agree
from workers.search.stages.arms import dense, lexical
from workers.search.stages.fusion import DISAGREES
from workers.search.stages.rescoring import similarity
from workers.search.state import Candidate, SearchState, Tools, by_score

NO_NODES = (
    "The corpus has no directories to go through, so all of it was searched at once: ingest it again "
    "(with hierarchy.enabled)."
)
_MAX_ROOTS = 32
#: Characters of a text that count for its score: overviews are long, and rounds must stay cheap.
_SCORED_CHARS = 1200
#: A directory has two chunks, its abstract and its overview.
_CHUNKS_PER_DIRECTORY = 2
#: Parts of a hit that are effects of their own, or their sum.
_SUMS = frozenset({"own", "directory", "fused"})


def hierarchy(state: SearchState, options: s.HierarchyStage, tools: Tools) -> SearchState:
    """Find starting points, descend until the best chunks stay the same, and give what was reached, best first.

    A search whose share of the leaf's time is up says so in `stopped` and gives what it has.
    """
    end = time.monotonic() + seconds_for("directories", tools.left_s)
    state = lexical(state, s.LexicalStage(), tools)
    if tools.dense is not None:
        state = dense(state, s.DenseStage(), tools).but(skipped=None)
    search = _DirectorySearch(state, options, tools)
    chunks, places = search.starting_points()
    if not places and chunks:
        return search.whole_corpus()
    order = DirectoryOrder(options)
    for place in places:
        order.start(place)
    while opened := order.open_next():
        order.take(search.inside(opened))
        if time.monotonic() > end and order.stopped is None:
            order.stopped = "its time was up"
            note_reason(Degradation.OUT_OF_TIME)
    found = by_score([_candidate(reached, options.alpha) for reached in order.reached.values()])
    found = found[: 2 * state.query.wanted]
    return search.state.but(arms=(), candidates=found, trail=tuple(order.trail), stopped=order.stopped)


class DirectoryPlace(NamedTuple):
    """A directory to open: its node, its score, its own score without its parent's, and the parent's."""

    node: Hit
    score: float
    own: float
    parent: float | None = None


class Reached(NamedTuple):
    """A chunk with its own score, the directory in which it was found, and in which round (from 1)."""

    hit: Hit
    own: float
    place: DirectoryPlace
    round: int
    score: float


class Inside(NamedTuple):
    """What was found in an opened directory, each with its own score: subdirectories and chunks of documents."""

    place: DirectoryPlace
    directories: Sequence[tuple[Hit, float]]
    chunks: Sequence[tuple[Hit, float]]


class DirectoryOrder:
    """A heap of directories, best first (ties by path), and the chunks reached so far.

    Every score is a * own + (1 - a) * the score of the directory in which it was found.
    """

    def __init__(self, options: s.HierarchyStage) -> None:
        self._options = options
        self._heap: list[tuple[float, str, int, DirectoryPlace]] = []
        self._opened: set[str] = set()
        self._round = self._unchanged_rounds = self._pushed = 0
        self._best: tuple[str, ...] = ()
        self.reached: dict[str, Reached] = {}
        self.trail: list[OpenedDirectory] = []
        self.stopped: str | None = None

    def start(self, place: DirectoryPlace) -> None:
        """Queue a starting point, whatever its score."""
        self._pushed += 1
        heappush(self._heap, (-place.score, place.node.path, self._pushed, place))

    def open_next(self) -> list[DirectoryPlace]:
        """The best directories to open now, up to `beam`; none when the search is over, and `stopped` says why."""
        if self.stopped is None and self._round >= self._options.rounds:
            self.stopped = f"{self._options.rounds} rounds were made"
        places: list[DirectoryPlace] = []
        while self.stopped is None and self._heap and len(places) < self._options.beam:
            _, path, _, place = heappop(self._heap)
            if path not in self._opened:
                self._opened.add(path)
                places.append(place)
        if self.stopped is None and not places:
            self.stopped = f"no directory is left that scores above {self._options.threshold:g}"
        self._round += bool(places)
        return places

    def take(self, found: Sequence[Inside]) -> None:
        """Score what the opened directories hold; keep their chunks and queue their subdirectories."""
        for inside in found:
            kept = 0
            for hit, own in inside.chunks:
                kept += self._keep(Reached(hit, own, inside.place, self._round, self._score(own, inside.place)))
            for node, own in inside.directories:
                score = self._score(own, inside.place)
                if node.path not in self._opened and score > self._options.threshold:
                    self.start(DirectoryPlace(node, score, own, inside.place.score))
            place = inside.place
            opened = OpenedDirectory(
                round=self._round,
                path=place.node.path,
                score=place.score,
                own=place.own,
                parent=place.parent,
                hits=kept,
            )
            self.trail.append(opened)
        self._stop_when_stable()

    def _score(self, own: float, place: DirectoryPlace) -> float:
        return self._options.alpha * own + (1 - self._options.alpha) * place.score

    def _keep(self, chunk: Reached) -> bool:
        """True when the chunk scores high enough to count; of two ways to it the better one stays."""
        known = self.reached.get(chunk.hit.chunk_id)
        if chunk.score > self._options.threshold and (known is None or chunk.score > known.score):
            self.reached[chunk.hit.chunk_id] = chunk
        return chunk.score > self._options.threshold

    def _stop_when_stable(self) -> None:
        """Stop when the best chunks have stayed the same, in the same order, for `patience` rounds."""
        order = sorted(self.reached, key=lambda chunk_id: (-self.reached[chunk_id].score, chunk_id))
        best = tuple(order[: self._options.top_k])
        self._unchanged_rounds = self._unchanged_rounds + 1 if best and best == self._best else 0
        self._best = best
        if self._unchanged_rounds >= self._options.patience:
            self.stopped = f"the best {len(best)} stayed the same for {self._options.patience} rounds"


class _DirectorySearch:
    """One question's calls of the store. Scores are 0..1 and comparable over rounds: 1 is the best of the corpus."""

    def __init__(self, state: SearchState, options: s.HierarchyStage, tools: Tools) -> None:
        self.state, self._options = state, options
        self._store: ChunkStore = tools.need_store()[0]
        self._vectors = tools.dense is not None
        self._top = 0.0  # the best BM25 score, which the first, global search meets
        self._best_hit: Hit | None = None
        self._made_of: dict[str, dict[str, float]] = {}

    def starting_points(self) -> tuple[list[Hit], list[DirectoryPlace]]:
        """The best chunks of the whole corpus, and where to start: the best directories, those of these chunks, roots.

        The directory of a good chunk starts at the mean of both, if that is more than its own score.
        """
        filters, limit, alpha = self.state.query.filters, self._options.starts, self._options.alpha
        wanted = [(nodes(filters), _CHUNKS_PER_DIRECTORY * limit), (to_filter(filters), limit)]
        found, chunks = self._ask(wanted, first=True)
        homes = [directory_of(hit.path) for hit in chunks]
        known = self._store.lookup(starts(filters, dict.fromkeys(homes)), _MAX_ROOTS + limit, self._vectors)
        roots = [self._with_score(hit, {}) for hit in known]
        own = self._own_scores([*found, *roots, *chunks])
        best = {node.path: (node, score) for node, score in _by_path(found, own)[:limit]}
        for node, score in _by_path(roots, own):
            if node.path not in best or best[node.path][1] < score:
                best[node.path] = (node, score)
        lifted = dict.fromkeys(best, 0.0)
        for home, hit in zip(homes, chunks, strict=True):
            if home in best:
                lifted[home] = max(lifted[home], alpha * best[home][1] + (1 - alpha) * own[hit.chunk_id])
        return chunks, [DirectoryPlace(node, max(score, lifted[path]), score) for path, (node, score) in best.items()]

    def inside(self, places: Sequence[DirectoryPlace]) -> list[Inside]:
        """The subdirectories and chunks of all `places`, in one call of the store, with their own scores."""
        filters, options = self.state.query.filters, self._options
        below = _CHUNKS_PER_DIRECTORY * options.directories
        wanted = [(subdirectories(filters, place.node.path), below) for place in places]
        wanted += [(documents_in(filters, place.node), options.documents) for place in places]
        lists = self._ask(wanted)
        own = self._own_scores([hit for hits in lists for hit in hits])
        return [
            Inside(place, _by_path(found, own)[: options.directories], self._chunks(hits, own))
            for place, found, hits in zip(places, lists[: len(places)], lists[len(places) :], strict=True)
        ]

    def _chunks(self, hits: Sequence[Hit], own: dict[str, float]) -> list[tuple[Hit, float]]:
        return [(self._with_made_of(hit), own[hit.chunk_id]) for hit in hits]

    def _with_made_of(self, hit: Hit) -> Hit:
        """The hit with what its own score was made of when it was scored last."""
        return hit.model_copy(update={"parts": {**hit.parts, **self._made_of.get(hit.chunk_id, {})}})

    def whole_corpus(self) -> SearchState:
        """What a search without directories finds, with a warning: the corpus was ingested without them."""
        (hits,) = self._ask([(to_filter(self.state.query.filters), 2 * self.state.query.wanted)])
        own = self._own_scores(hits)
        found = [
            Candidate(hit, 0.0).plus("hierarchy", own[hit.chunk_id], own=own[hit.chunk_id], **_shown_parts(hit))
            for hit in map(self._with_made_of, hits)
        ]
        return self.state.but(arms=(), candidates=by_score(found)).skip(NO_NODES, warn=True)

    def _ask(self, wanted: Sequence[tuple[models.Filter, int]], *, first: bool = False) -> list[list[Hit]]:
        """The hits of every filter, of all arms together, best first, in one call; `score` is in 0..1."""
        arms = self.state.arms
        answers = self._store.query(
            [arm.request.model_copy(update={"filter": flt, "limit": limit}) for flt, limit in wanted for arm in arms]
        )
        found = [
            {arm.name: hits for arm, hits in zip(arms, answers[at : at + len(arms)], strict=True)}
            for at in range(0, len(answers), len(arms))
        ]
        if first and self.state.language_unknown:
            found = self._without_unread_dense(found)
        self._top = max([self._top, *(hit.score for lists in found for hit in lists.get(SPARSE, ()))])
        merged = []
        for lists in found:
            keyword = {hit.chunk_id: hit.score for hit in lists.get(SPARSE, ())}
            every = {hit.chunk_id: hit for hits in lists.values() for hit in hits}
            scored = [self._with_score(hit, {SPARSE: keyword.get(hit.chunk_id, 0.0)}) for hit in every.values()]
            merged.append(sorted(scored, key=lambda hit: (-hit.score, hit.chunk_id)))
        return merged

    def _without_unread_dense(self, found: list[dict[str, list[Hit]]]) -> list[dict[str, list[Hit]]]:
        """`found` less the dense arm, now and from now on, if it does not read the question's language."""
        keyword = [hit for lists in found for hit in lists.get(SPARSE, ())]
        if arms_agree(keyword, [hit for lists in found for hit in lists.get(DENSE, ())]):
            return found
        arms = tuple(arm for arm in self.state.arms if arm.name != DENSE)
        self.state = self.state.but(arms=arms, vector=(), warnings=(*self.state.warnings, DISAGREES))
        return [{name: hits for name, hits in lists.items() if name != DENSE} for lists in found]

    def _with_score(self, hit: Hit, parts: dict[str, float]) -> Hit:
        """The hit with its search score: BM25 divided by the best; with a vector, the mean of that and the cosine."""
        score = max(0.0, parts.get(SPARSE, 0.0)) / self._top if self._top > 0 else 0.0
        if self.state.vector:
            parts = {**parts, DENSE: similarity(self.state.vector, hit.vector)}
            score = (score + max(0.0, parts[DENSE])) / 2
        scored = hit.model_copy(update={"score": score, "parts": parts})
        if self._best_hit is None or score > self._best_hit.score:
            self._best_hit = scored
        return scored

    def _own_scores(self, hits: Sequence[Hit]) -> dict[str, float]:
        """How well each hit answers the question by itself. The best hit so far is scored too: one scale."""
        if self._options.rerank == "none":
            return {hit.chunk_id: hit.score for hit in hits}
        ranked = {hit.chunk_id: hit for hit in (*hits, *([self._best_hit] if self._best_hit else []))}
        short = [hit.model_copy(update={"text": hit.text[:_SCORED_CHARS]}) for hit in ranked.values()]
        made_of = dict(zip(ranked, lexical_parts(self.state.query.text, short), strict=True))
        self._made_of |= {chunk_id: parts.named() for chunk_id, parts in made_of.items()}
        return {chunk_id: parts.score for chunk_id, parts in made_of.items()}


def _by_path(found: Sequence[Hit], own: dict[str, float]) -> list[tuple[Hit, float]]:
    """One entry a directory, best first: of its abstract and its overview the better one."""
    best: dict[str, Hit] = {}
    for hit in found:
        if hit.path not in best or own[hit.chunk_id] > own[best[hit.path].chunk_id]:
            best[hit.path] = hit
    return sorted(((hit, own[hit.chunk_id]) for hit in best.values()), key=lambda pair: (-pair[1], pair[0].path))


def _candidate(reached: Reached, alpha: float) -> Candidate:
    node, parent = reached.place.node, reached.place.score
    via = Via(chunk_id=node.chunk_id, bridge=node.path, hop=reached.round, how="directory")
    parts = {**reached.hit.parts, "own": reached.own, "directory": parent, "fused": reached.score}
    hit = reached.hit.model_copy(update={"via": via, "parts": parts})
    own = Candidate(hit, 0.0).plus("hierarchy", alpha * reached.own, own=reached.own, weight=alpha, **_shown_parts(hit))
    return own.plus("hierarchy directory", (1 - alpha) * parent, directory=node.path, score=parent, weight=1 - alpha)


def _shown_parts(hit: Hit) -> dict[str, float]:
    """What its own score is made of."""
    return {name.removeprefix(LEXICAL_PART): value for name, value in hit.parts.items() if name not in _SUMS}
