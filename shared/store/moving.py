"""Copies an embedded store to a Qdrant server; killed at any point, it is gone on with."""

from __future__ import annotations

import time

from shared.errors import StoreError
from shared.store.copying import Copier, Tell, patiently
from shared.store.embedded_points import EmbeddedPoints
from shared.store.generations import Generations
from shared.store.migration import MigrationOptions, MigrationReport, fault_of, wait_for_indexes
from shared.store.points import ServerPoints
from shared.store.server_meta import Copying, notes_of
from shared.store.verification import verified

#: What `Copying.source` and reports call an embedded store.
EMBEDDED = "embedded"
#: The metadata key of the index version with which a copy of an embedded store came to its end.
_IMPORTED = "imported"
_COMPARISONS = 3


def move(
    source: EmbeddedPoints, to: Generations, options: MigrationOptions, tell: Tell, *, force: bool = False
) -> MigrationReport:
    """Copy everything, verify it and let the server's alias mean it. Again: copies what has changed since.

    Raises: StoreError when others have written to the server's collection, too; TransientError.
    """
    began = time.monotonic()
    target = patiently(lambda: _target(source, to))
    there = ServerPoints(to.client, target, to.settings)
    copier = Copier(source, there, None, options.batch, tell)
    known = to.meta(target).copying or Copying(source=EMBEDDED, phase="compare")
    copied = copier.copy_all(known, lambda at: patiently(lambda: to.record(target, copying=at.model_dump())))
    mended = 0
    for _ in range(_COMPARISONS):
        found = copier.compare_all()
        mended += found
        if not found:
            break
    verification = patiently(lambda: verified(source, there, options.searches, same_vectors=True))
    fault = fault_of(verification, options.least_overlap, same=True, force=force)
    if not fault:
        wait_for_indexes(to, target, options.index_wait_s, tell)
        patiently(lambda: _use(source, to, target))
    return MigrationReport(
        source=EMBEDDED, target=target, copied=copied, mended=mended, verification=verification, fault=fault,
        switched=not fault, seconds=round(time.monotonic() - began, 1),
    )  # fmt: skip


def _target(source: EmbeddedPoints, to: Generations) -> str:
    """The collection to fill: the one that an earlier run has begun or filled, else a new one."""
    state = source.state()
    if state is None:
        raise StoreError("nothing has been ingested yet: there is nothing to copy")
    if (current := to.current()) is not None:
        metadata, meta = to.metadata(current), to.meta(current)
        if metadata.get(_IMPORTED) != meta.index_version:
            raise StoreError(
                f"the server has a collection {to.name} that others have written to, and it is not overwritten: "
                "name another with --set store.collection=NAME, or delete that one"
            )
        return current
    to.drop_unfinished()
    for name in to.names():
        metadata = to.metadata(name)
        if (metadata.get("copying") or {}).get("source") == EMBEDDED or metadata.get(_IMPORTED):
            return name
    target = to.next_name()
    to.make(target, state.built_with, copying=Copying(source=EMBEDDED).model_dump())
    return target


def _use(source: EmbeddedPoints, to: Generations, target: str) -> None:
    """Let the alias mean the copy. Its index version is noted, so that a later write of others is seen."""
    state, version = source.state(), time.time_ns()
    notes = notes_of(to.meta(target).model_copy(update={"tenants": state.tenants if state else {}}))
    to.record(target, index_version=version, copying={}, **{_IMPORTED: version}, **notes)
    to.switch(target)
