"""Hierarchical search: from starting points down the directories, the most promising first.

A round opens a few directories with one call of the store; every hit is scored against the question itself, and its
directory counts for the rest.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from qdrant_client import models

from shared.models import Hit
from shared.models.hits import OpenedDirectory, Via
from shared.providers.rerankers.lexical import lexical_scores
from shared.settings import stages as s
from shared.store import DENSE, SPARSE, ChunkStore, to_filter
from shared.store.directories import directory_of, documents_in, nodes, starts, subdirectories
from workers.search.language import agrees
from workers.search.stages.arms import dense, lexical
from workers.search.stages.fusion import DISAGREES
from workers.search.stages.rescoring import similarity
from workers.search.state import Candidate, SearchState, Tools, by_score

# --- In which order a hierarchical search opens directories, and when it has seen enough. Pure: asks no store.


class DirectoryPlace(NamedTuple):
    """A directory to be opened: its node, its score, how well it fits by itself, and the score that led to it."""

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
        self._round = self._same = self._pushed = 0
        self._best: tuple[str, ...] = ()
        self.reached: dict[str, Reached] = {}
        self.trail: list[OpenedDirectory] = []
        self.stopped: str | None = None

    def start(self, place: DirectoryPlace) -> None:
        """Queue a starting point, whatever its score."""
        self._pushed += 1
        heappush(self._heap, (-place.score, place.node.path, self._pushed, place))

    def _push(self, place: DirectoryPlace) -> None:
        """Queue a directory, unless it was opened or scores too low."""
        if place.node.path not in self._opened and place.score > self._options.threshold:
            self.start(place)

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
                kept += self._reach(Reached(hit, own, inside.place, self._round, self._score(own, inside.place)))
            for node, own in inside.directories:
                self._push(DirectoryPlace(node, self._score(own, inside.place), own, inside.place.score))
            place = inside.place
            self.trail.append(
                OpenedDirectory(
                    round=self._round,
                    path=place.node.path,
                    score=place.score,
                    own=place.own,
                    parent=place.parent,
                    hits=kept,
                )
            )
        self._stop_when_stable()

    def _score(self, own: float, place: DirectoryPlace) -> float:
        return self._options.alpha * own + (1 - self._options.alpha) * place.score

    def _reach(self, chunk: Reached) -> bool:
        """True when the chunk scores high enough to count; of two ways to it the better one stays."""
        known = self.reached.get(chunk.hit.chunk_id)
        if chunk.score > self._options.threshold and (known is None or chunk.score > known.score):
            self.reached[chunk.hit.chunk_id] = chunk
        return chunk.score > self._options.threshold

    def _stop_when_stable(self) -> None:
        """Stop when the best chunks have stayed the same, in the same order, for `patience` rounds."""
        order = sorted(self.reached, key=lambda chunk_id: (-self.reached[chunk_id].score, chunk_id))
        best = tuple(order[: self._options.top_k])
        self._same = self._same + 1 if best and best == self._best else 0
        self._best = best
        if self._same >= self._options.patience:
            self.stopped = f"the best {len(best)} stayed the same for {self._options.patience} rounds"


NO_NODES = (
    "The corpus has no directories to go through, so all of it was searched at once: ingest it again "
    "(with hierarchy.enabled)."
)
_MOST_ROOTS = 32
#: Characters of a text that count for its score: overviews are long, and rounds must stay cheap.
_READ = 1200
#: A directory has two chunks, its abstract and its overview.
_PARTS = 2


def hierarchy(state: SearchState, options: s.HierarchyStage, tools: Tools) -> SearchState:
    """Find starting points, descend until the best chunks stay the same, and give what was reached, best first.

    Half of the stage's time at most; a search that runs out of it says so in `stopped` and gives what it has.
    """
    end = time.monotonic() + tools.timeout_s / 2
    state = lexical(state, s.LexicalStage(), tools)
    if tools.dense is not None:
        state = dense(state, s.DenseStage(), tools).but(skipped=None)
    asked = _Asked(state, options, tools)
    chunks, places = asked.starting_points()
    order = DirectoryOrder(options)
    for place in places:
        order.start(place)
    if not places and chunks:
        return asked.everything()
    while opened := order.open_next():
        order.take(asked.inside(opened))
        if time.monotonic() > end and order.stopped is None:
            order.stopped = "its time was up"
    found = by_score([_candidate(reached, options.alpha) for reached in order.reached.values()])
    return asked.state.but(
        arms=(),
        candidates=found[: 2 * state.query.wanted],
        trail=tuple(order.trail),
        stopped=order.stopped,
    )


class _Asked:
    """One question to the store. Scores lie in 0..1 and are comparable over rounds: 1 is the best of the corpus."""

    def __init__(self, state: SearchState, options: s.HierarchyStage, tools: Tools) -> None:
        self.state, self._options = state, options
        self._store: ChunkStore = tools.need_store()[0]
        self._vectors = tools.dense is not None
        self._top = 0.0  # the best BM25 score, which the first, global search meets
        self._leader: Hit | None = None

    def starting_points(self) -> tuple[list[Hit], list[DirectoryPlace]]:
        """The best chunks of the whole corpus, and where to start: the best directories, those of these chunks, roots.

        The directory of a good chunk starts at the mean of both, if that is more than its own score.
        """
        filters, few = self.state.query.filters, self._options.starts
        found, chunks = self._ask([(nodes(filters), _PARTS * few), (to_filter(filters), few)], first=True)
        homes = [directory_of(hit.path) for hit in chunks]
        known = self._store.lookup(starts(filters, dict.fromkeys(homes)), _MOST_ROOTS + few, self._vectors)
        roots = [self._seen(hit, {}) for hit in known]
        own = self._own([*found, *roots, *chunks])
        best = {node.path: (node, score) for node, score in _by_path(found, own)[:few]}
        for node, score in _by_path(roots, own):
            if node.path not in best or best[node.path][1] < score:
                best[node.path] = (node, score)
        alpha = self._options.alpha
        lifted = dict.fromkeys(best, 0.0)
        for home, hit in zip(homes, chunks, strict=True):
            if home in best:
                mixed = alpha * best[home][1] + (1 - alpha) * own[hit.chunk_id]
                lifted[home] = max(lifted[home], mixed)
        return chunks, [DirectoryPlace(node, max(score, lifted[path]), score) for path, (node, score) in best.items()]

    def inside(self, places: Sequence[DirectoryPlace]) -> list[Inside]:
        """The subdirectories and chunks of all `places`, in one call of the store, with their own scores."""
        filters, few = self.state.query.filters, self._options
        wanted = [(subdirectories(filters, place.node.path), _PARTS * few.directories) for place in places]
        wanted += [(documents_in(filters, place.node), few.documents) for place in places]
        lists = self._ask(wanted)
        own = self._own([hit for hits in lists for hit in hits])
        return [
            Inside(place, _by_path(below, own)[: few.directories], [(hit, own[hit.chunk_id]) for hit in hits])
            for place, below, hits in zip(places, lists[: len(places)], lists[len(places) :], strict=True)
        ]

    def everything(self) -> SearchState:
        """What a search without directories finds, with a warning: the corpus was ingested without them."""
        (hits,) = self._ask([(to_filter(self.state.query.filters), 2 * self.state.query.wanted)])
        own = self._own(hits)
        found = [
            Candidate(hit, 0.0).plus("hierarchy", own[hit.chunk_id], own=own[hit.chunk_id], **hit.parts) for hit in hits
        ]
        warnings = (*self.state.warnings, NO_NODES)
        return self.state.but(arms=(), candidates=by_score(found), warnings=warnings, skipped=NO_NODES)

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
            found = self._agreed(found)
        keyword = [hit.score for lists in found for hit in lists.get(SPARSE, ())]
        self._top = max(self._top, *keyword) if keyword else self._top
        return [self._merged(lists) for lists in found]

    def _agreed(self, found: list[dict[str, list[Hit]]]) -> list[dict[str, list[Hit]]]:
        """`found` less the dense arm, now and from now on, if it does not read the question's language."""
        keyword = [hit for lists in found for hit in lists.get(SPARSE, ())]
        if agrees(keyword, [hit for lists in found for hit in lists.get(DENSE, ())]):
            return found
        arms = tuple(arm for arm in self.state.arms if arm.name != DENSE)
        self.state = self.state.but(arms=arms, vector=(), warnings=(*self.state.warnings, DISAGREES))
        return [{name: hits for name, hits in lists.items() if name != DENSE} for lists in found]

    def _merged(self, lists: dict[str, list[Hit]]) -> list[Hit]:
        keyword = {hit.chunk_id: hit.score for hit in lists.get(SPARSE, ())}
        every = {hit.chunk_id: hit for hits in lists.values() for hit in hits}
        merged = [self._seen(hit, {SPARSE: keyword.get(hit.chunk_id, 0.0)}) for hit in every.values()]
        return sorted(merged, key=lambda hit: (-hit.score, hit.chunk_id))

    def _seen(self, hit: Hit, parts: dict[str, float]) -> Hit:
        """The hit with how well the search found it: BM25 over the best, the mean of that and the cosine."""
        score = max(0.0, parts.get(SPARSE, 0.0)) / self._top if self._top > 0 else 0.0
        if self.state.vector:
            parts = {**parts, DENSE: similarity(self.state.vector, hit.vector)}
            score = (score + max(0.0, parts[DENSE])) / 2
        seen = hit.model_copy(update={"score": score, "parts": parts})
        if self._leader is None or score > self._leader.score:
            self._leader = seen
        return seen

    def _own(self, hits: Sequence[Hit]) -> dict[str, float]:
        """How well each hit answers the question by itself. The best so far is ranked along: it keeps one scale."""
        if self._options.rerank == "none":
            return {hit.chunk_id: hit.score for hit in hits}
        ranked = {hit.chunk_id: hit for hit in (*hits, *([self._leader] if self._leader else []))}
        short = [hit.model_copy(update={"text": hit.text[:_READ]}) for hit in ranked.values()]
        return dict(zip(ranked, lexical_scores(self.state.query.text, short), strict=True))


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
    own = Candidate(hit, 0.0).plus("hierarchy", alpha * reached.own, own=reached.own, **reached.hit.parts)
    return own.plus("hierarchy directory", (1 - alpha) * parent, directory=node.path, score=parent)
