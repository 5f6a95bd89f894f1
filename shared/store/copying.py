"""Copies points from one collection into another while both are written to, so that the copy misses nothing.

Writers write to the source, then to the target (`ServerStore`). A copy that reads a point, is overtaken by a writer
and then puts the old point into the target would undo that write: so each page is read from the source again after it
was put into the target, and what differs is put there anew. A write that comes after the second reading reaches the
target after the copy did.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from pydantic import Field
from qdrant_client import models

from shared.errors import TransientError
from shared.models.base import Model
from shared.providers.encoders.base import DenseEncoder
from shared.store.base import DENSE
from shared.store.points import Points, ServerPoints, without_vector
from shared.store.schema import hit_of
from shared.store.server_meta import Copying

#: Readings of points that change all the time, after which the copy is given up for now.
_ROUNDS = 20
#: Pages between two notes of how far the copy is: after a kill so many are copied twice at most.
_NOTED_PAGES = 10
#: Seconds for which a server that does not answer is asked again, and between two tries.
_PATIENCE_S, _PAUSE_S = 120.0, 1.0
T = TypeVar("T")


class MigrationProgress(Model):
    """What is being done, and how many of `total` chunks are behind it; 0 where that is not known."""

    doing: str
    done: int = Field(default=0, ge=0)
    total: int = Field(default=0, ge=0)


Tell = Callable[[MigrationProgress], None]


class Copier:
    """Copies page by page of `size` points, in the order of ids.

    `dense` makes the dense vectors anew; None: they are copied.
    """

    def __init__(self, source: Points, target: ServerPoints, dense: DenseEncoder | None, size: int, tell: Tell) -> None:
        self._source, self._target, self._dense = source, target, dense
        self._size, self._tell = size, tell

    def copy_all(self, known: Copying, note: Callable[[Copying], None]) -> int:
        """Copy what is not copied yet by `known`; `note` keeps how far it is. Returns how many are copied in all."""
        if known.phase != "copy":
            return known.copied
        total = patiently(self._source.count)
        copied, start, pages = known.copied, known.cursor, 0
        while True:
            found, start = patiently(partial(self.copy, start))
            copied, pages = copied + found, pages + 1
            doing = f"copying, with vectors of {self._dense.name}" if self._dense else "copying"
            self._tell(MigrationProgress(doing=doing, done=copied, total=total))
            if not start:
                break
            if pages % _NOTED_PAGES == 0:
                note(known.model_copy(update={"cursor": start, "copied": copied}))
        note(known.model_copy(update={"phase": "compare", "cursor": "", "copied": copied}))
        return copied

    def compare_all(self) -> int:
        """Compare all payloads and mend what differs. Returns how many differed."""
        total = patiently(self._source.count)
        unlike, start, done = 0, "", 0
        while True:
            found, start = patiently(partial(self.compare, start))
            unlike, done = unlike + found, done + self._size
            self._tell(MigrationProgress(doing="comparing", done=min(done, total), total=total))
            if not start:
                return unlike

    def copy(self, start: str) -> tuple[int, str]:
        """Copy a page from the id `start` on. Returns how many points it had, and the next start; "" at the end."""
        points, following = self._source.page(start, self._size)
        self._settle({str(point.id): point for point in points})
        return len(points), following

    def compare(self, start: str) -> tuple[int, str]:
        """Compare the payloads of a page and mend what differs. Returns how many differed, and the next start."""
        points, following = self._source.page(start, self._size, vectors=False)
        here = {str(point.id): point.payload for point in points}
        there = self._payloads_there(start, following)
        unlike = [one for one in {**here, **there} if here.get(one) != there.get(one)]
        if unlike and (lasting := self._still_unlike(unlike)):
            self._settle(lasting)
            return len(lasting), following
        return 0, following

    def embed_missing(self) -> int:
        """Make the dense vectors that writers left out, since theirs are another model's. Returns how many."""
        if self._dense is None:
            return 0
        made, start = 0, ""
        while True:
            points, start = self._target.page(start, self._size, vectors=False, flt=without_vector(DENSE))
            made += len(points)
            if points:
                self._embed(points)
            if not start:
                return made

    def _still_unlike(self, ids: Sequence[str]) -> dict[str, models.PointStruct | None]:
        """Those of these points that differ when they are looked at again: no writer is between the two any more."""
        there, here = self._target.of(ids), self._source.of(ids)
        return {one: here.get(one) for one in ids if _payload(here.get(one)) != _payload(there.get(one))}

    def _embed(self, points: Sequence[models.PointStruct]) -> None:
        """Put vectors to points of the target; one whose text has changed meanwhile loses it again."""
        texts = [_text(point) for point in points]
        self._target.put_dense(dict(zip((str(one.id) for one in points), self._vectors(texts), strict=True)))
        now = self._target.of([str(point.id) for point in points])
        known = {str(point.id): text for point, text in zip(points, texts, strict=True)}
        changed = [one for one, point in now.items() if _text(point) != known[one]]
        if changed:
            self._target.put_dense(dict.fromkeys(changed, ()))

    def _payloads_there(self, start: str, stop: str) -> dict[str, object]:
        """The payloads of the target's points with ids from `start` on and before `stop`."""
        found: dict[str, object] = {}
        following = start
        while True:
            points, following = self._target.page(following, self._size, vectors=False)
            found |= {str(one.id): one.payload for one in points if not stop or str(one.id) < stop}
            if not following or (stop and following >= stop):
                return found

    def _settle(self, wanted: Mapping[str, models.PointStruct | None]) -> None:
        """Put these points into the target, and take away those that are None, until the source has them so."""
        for _ in range(_ROUNDS):
            self._put([point for point in wanted.values() if point is not None])
            if gone := [one for one, point in wanted.items() if point is None]:
                self._target.remove(gone)
            if not self._source.live or not wanted:
                return
            now = self._source.of(list(wanted))
            wanted = {one: now.get(one) for one in wanted if now.get(one) != wanted[one]}
            if not wanted:
                return
        raise TransientError("chunks are written faster than they can be copied: run `ramify store migrate` again")

    def _put(self, points: Sequence[models.PointStruct]) -> None:
        if self._dense is not None and points:
            vectors = self._vectors([_text(point) for point in points])
            points = [
                point.model_copy(update={"vector": {**_others(point), DENSE: list(vector)}})
                for point, vector in zip(points, vectors, strict=True)
            ]
        if points:
            self._target.put(points)

    def _vectors(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return self._dense.embed_passages(list(texts)).vectors if self._dense else ()


def _payload(point: models.PointStruct | None) -> object:
    return point.payload if point else None


def _text(point: models.PointStruct) -> str:
    """What an encoder is given of a chunk. Raises: StoreError when it is none of ours."""
    return hit_of(models.Record(id=point.id, payload=point.payload)).full_text


def _others(point: models.PointStruct) -> dict[str, object]:
    vectors = point.vector if isinstance(point.vector, dict) else {}
    return {name: given for name, given in vectors.items() if name != DENSE}


def patiently(call: Callable[[], T]) -> T:
    """`call`, again while the server does not answer: it may be starting anew. Raises: what it raised last."""
    end = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return call()
        except TransientError:
            if time.monotonic() >= end:
                raise
            time.sleep(_PAUSE_S)
