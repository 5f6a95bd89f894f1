"""Copies a collection of a Qdrant server into a new one and lets everybody use that, while searches and writes go on.

How far it is stands on the server, in the metadata of the two collections: killed at any point, it is gone on with.

1. The new collection is made as the settings have it; the old one's metadata names it as its mirror, and from then on
   every writer writes to both (`ServerStore`).
2. All points are copied (`Copier`), then all payloads are compared and what differs is copied again.
3. Counts and sampled searches of both are compared; the server has built its indexes.
4. The alias is switched. The old collection stays until it is dropped.

Of a migration to another embedding model each is the mirror of the other from the end of step 2 until the old one is
dropped, so that workers of the old and the new settings search, each with its own model, and miss nothing.
"""

from __future__ import annotations

import time

from pydantic import Field
from qdrant_client import models

from shared.errors import StoreError
from shared.models.base import Model
from shared.providers.encoders.base import DenseEncoder
from shared.store.base import BuiltWith
from shared.store.copying import Copier, MigrationProgress, Tell, patiently
from shared.store.generations import Generations
from shared.store.points import ServerPoints
from shared.store.server_meta import Copying, Mirror, ServerMeta, notes_of
from shared.store.verification import CopyVerification, verified

#: Comparisons of all payloads; the second one finds what a writer left undone that died during the first.
_COMPARISONS = 5
_PAUSE_S = 0.5


class MigrationOptions(Model):
    """`settle_s`: seconds after which no writer is at work that has not read of the mirror.

    `searches` are sampled; at least `least_overlap` of what they find must be found again, or there is no switch.
    """

    batch: int = Field(default=256, ge=1, le=10_000)
    settle_s: float = Field(default=10.0, ge=0)
    searches: int = Field(default=64, ge=0, le=10_000)
    least_overlap: float = Field(default=0.8, ge=0, le=1)
    index_wait_s: float = Field(default=86_400.0, ge=0)


class MigrationReport(Model):
    """What came of it. `fault`: why the new collection is not in use; empty when it is, or was not to be."""

    source: str
    target: str
    copied: int
    mended: int = 0
    embedded: int = 0
    verification: CopyVerification
    switched: bool = False
    fault: str = ""
    seconds: float = 0.0


class Migration:
    """One migration of a collection. `dense`: the embedding model of the new one, if it is another one."""

    def __init__(
        self, generations: Generations, options: MigrationOptions, dense: DenseEncoder | None, tell: Tell
    ) -> None:
        self._of, self._options, self._tell = generations, options, tell
        self._dense = dense

    def run(self, *, switch: bool = True, force: bool = False) -> MigrationReport:
        """Begin, or go on with, the migration. `force`: switch although sampled searches differ too much.

        Raises: StoreError when the copy is not whole, TransientError when the server is away for too long.
        """
        began = time.monotonic()
        source, target = patiently(self._begun)
        old, meta = self._points(source), self._of.meta(target)
        copier = self._copier(source, target, self._encoder(source, target))
        copied = copier.copy_all(meta.copying or Copying(source=source), lambda at: self._note(target, at))
        mended, embedded = self._compare(copier, source, target, copied)
        same = self._of.meta(source).built_with == self._of.meta(target).built_with
        verification = patiently(lambda: verified(old, self._points(target), self._options.searches, same_vectors=same))
        fault = fault_of(verification, self._options.least_overlap, same=same, force=force)
        report = MigrationReport(
            source=source, target=target, copied=copied, mended=mended, embedded=embedded, verification=verification,
            fault=fault,
        )  # fmt: skip
        if switch and not fault:
            wait_for_indexes(self._of, target, self._options.index_wait_s, self._tell)
            self._switch(source, target)
            report = report.model_copy(update={"switched": True})
        return report.model_copy(update={"seconds": round(time.monotonic() - began, 1)})

    def cancel(self) -> str | None:
        """Give the migration up and delete what it has filled; the name of that, None when there was none."""
        source = self._of.needed()
        mirror = self._of.meta(source).mirror
        if mirror is None or self._replaced(mirror.to, source):
            return None
        self._of.record(source, mirror={})
        self._of.drop(mirror.to)
        return mirror.to

    def drop_old(self) -> list[str]:
        """Delete the collections that migrations have replaced. Vectors that old writers left out are made first."""
        current = self._of.needed()
        meta = self._of.meta(current)
        old = [name for name in self._of.names() if self._replaced(name, current)]
        dense = self._dense if self._dense is not None and self._dense.name == meta.built_with.dense else None
        copier = self._copier(current, current, dense)
        if old:
            copier.embed_missing()
        for name in old:
            self._of.drop(name)
        if old and meta.mirror is not None:
            self._of.record(current, mirror={})
            copier.embed_missing()  # of writers that were between the two
        return old

    def _replaced(self, name: str, current: str) -> bool:
        return name != current and bool(self._of.metadata(name).get("replaced_by"))

    def _begun(self) -> tuple[str, str]:
        """Names of the two collections; the new one is made where no migration is under way."""
        source = self._of.needed()
        meta = self._of.meta(source)
        if meta.copying is not None:  # it was switched to, and then this was killed
            self._finished(meta.copying.source, source)
            meta = self._of.meta(source)
        if meta.mirror is not None and self._replaced(meta.mirror.to, source):
            raise StoreError(
                f"{meta.mirror.to} is still written to by workers of its model: restart those with the new settings, "
                "then run `ramify store migrate --drop-old`"
            )
        wanted = self._wanted(meta)
        if meta.mirror is not None:
            found = self._of.meta(meta.mirror.to)
            if found.built_with != wanted:
                raise StoreError(
                    f"a migration to {found.built_with.dense or 'keywords alone'} is under way: finish it with its "
                    "settings, or give it up (`ramify store migrate --cancel`)"
                )
            return source, meta.mirror.to
        self._of.drop_unfinished()
        for name in self._of.names():  # made by a migration that was killed before anybody wrote to it
            if (self._of.metadata(name).get("copying") or {}).get("source") == source:
                self._of.drop(name)
        target = self._of.next_name()
        self._of.make(target, wanted, copying=Copying(source=source).model_dump(), **notes_of(meta))
        mirror = Mirror(to=target, keeps_dense=meta.built_with.dense == wanted.dense, began=time.time())
        self._of.record(source, mirror=mirror.model_dump())
        return source, target

    def _wanted(self, meta: ServerMeta) -> BuiltWith:
        if self._dense is None:
            return meta.built_with
        return meta.built_with.model_copy(update={"dense": self._dense.name, "dim": self._dense.dim})

    def _encoder(self, source: str, target: str) -> DenseEncoder | None:
        same = self._of.meta(source).built_with.dense == self._of.meta(target).built_with.dense
        return None if same else self._dense

    def _copier(self, source: str, target: str, dense: DenseEncoder | None) -> Copier:
        return Copier(self._points(source), self._points(target), dense, self._options.batch, self._tell)

    def _points(self, name: str) -> ServerPoints:
        return ServerPoints(self._of.client, name, self._of.settings)

    def _note(self, target: str, copying: Copying) -> None:
        patiently(lambda: self._of.record(target, copying=copying.model_dump()))

    def _compare(self, copier: Copier, source: str, target: str, copied: int) -> tuple[int, int]:
        """Compare and mend until nothing differed, and no writer was cut off meanwhile. Returns what was mended."""
        mirror = self._of.meta(source).mirror
        if mirror is not None:
            self._pause(mirror.began + self._options.settle_s - time.time())
        mended = embedded = 0
        for _ in range(_COMPARISONS):
            under_way = self._of.meta(source).writing
            found = copier.compare_all()
            embedded += patiently(copier.embed_missing)
            mended += found
            if not found and not self._cut_off(source, under_way):
                break
        if mirror is not None and not mirror.keeps_dense:
            back = Mirror(to=source, keeps_dense=False, began=mirror.began)
            patiently(lambda: self._of.record(target, mirror=back.model_dump(), index_version=time.time_ns()))
        self._note(target, Copying(source=source, phase="ready", copied=copied))
        return mended, embedded

    def _cut_off(self, source: str, before: dict[str, int]) -> bool:
        """Whether a write has begun since `before` and does not come to its end: its worker was killed."""
        end = time.monotonic() + self._options.settle_s
        begun = set(self._of.meta(source).writing.items()) - set(before.items())
        while begun and time.monotonic() < end:
            time.sleep(_PAUSE_S)
            begun &= set(self._of.meta(source).writing.items())
        return bool(begun)

    def _switch(self, source: str, target: str) -> None:
        meta = self._of.meta(source)
        patiently(lambda: self._of.record(target, index_version=time.time_ns(), **notes_of(meta)))
        patiently(lambda: self._of.switch(target))
        self._finished(source, target)

    def _finished(self, source: str, target: str) -> None:
        """After the switch: the old collection says what it is, and nobody writes to both any more.

        Unless it is of another model: then its workers go on with it, and both get all writes until it is dropped.
        """
        meta = self._of.meta(source)
        over: dict[str, object] = {"mirror": {}} if meta.mirror is None or meta.mirror.keeps_dense else {}
        patiently(lambda: self._of.record(source, replaced_by=target, **over))
        patiently(lambda: self._of.record(target, copying={}))

    def _pause(self, seconds: float) -> None:
        if seconds > 0:
            time.sleep(seconds)


def fault_of(found: CopyVerification, least: float, *, same: bool, force: bool) -> str:
    """Why a copy must not be used yet; "" when it may. `same`: its vectors are those of the source."""
    if found.unlike:
        return f"the copy is not whole ({'; '.join(found.unlike[:3])}): run `ramify store migrate` again"
    before, after = found.dense_before, found.dense_overlap
    dense = after / before if same and before and after is not None else None
    shares = [one for one in (found.keyword_overlap, dense) if one is not None]
    if force or not shares or min(shares) >= least:
        return ""
    return (
        f"{found.searches} sampled searches find only {min(shares):.0%} of what they found before (less than "
        f"{least:.0%}): look at store.qdrant (quantization, oversampling), or switch with --force"
    )


def wait_for_indexes(of: Generations, target: str, seconds: float, tell: Tell) -> None:
    """Until the server has built its indexes, so that the first searches are not slow ones."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = patiently(lambda: of.look(target))
        if found.status is models.CollectionStatus.GREEN:
            return
        tell(MigrationProgress(doing="waiting for the server's indexes", total=found.points_count or 0))
        time.sleep(_PAUSE_S)
