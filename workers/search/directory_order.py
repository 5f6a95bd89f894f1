"""In which order a hierarchical search opens directories, and when it has seen enough. Pure: asks no store."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from shared.models import Hit
from shared.models.explain import Opened
from shared.settings import stages as s


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

    def __init__(self, options: s.Hierarchy) -> None:
        self._options = options
        self._heap: list[tuple[float, str, int, DirectoryPlace]] = []
        self._opened: set[str] = set()
        self._round = self._same = self._pushed = 0
        self._best: tuple[str, ...] = ()
        self.reached: dict[str, Reached] = {}
        self.trail: list[Opened] = []
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
                Opened(
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
