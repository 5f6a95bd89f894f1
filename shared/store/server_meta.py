"""What a collection of a Qdrant server says of itself in its metadata: written by us, merged key by key. Pure.

A key is taken away by an empty value: what `update_collection` is not given stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from shared.models.base import Model
from shared.store.base import BuiltWith, CollectionState, TenantNote
from shared.tenants import DEFAULT_TENANT

#: Keys that hold a note of a tenant begin so: each is replaced alone, so two workers lose nothing.
NOTE = "tenant:"
#: Keys of writes that are under way while a migration copies begin so, one for each thread of each worker.
WRITING = "writing:"

Phase = Literal["copy", "compare", "ready"]


class Mirror(Model):
    """Another collection that gets every write, too, while a migration copies into it.

    `keeps_dense` False: it was made for another embedding model, and its vectors are made by the migration.
    """

    to: str
    keeps_dense: bool = True
    began: float


class Copying(Model):
    """How far a migration is, in the collection that it fills. All before the id `cursor` is copied."""

    source: str
    phase: Phase = "copy"
    cursor: str = ""
    copied: int = Field(default=0, ge=0)


class ServerMeta(Model):
    """The metadata of a collection. `moved_to`: it has been replaced, and there was no alias to switch.

    `replaced_by`: the collection that a migration has put in its place.
    """

    built_with: BuiltWith
    index_version: int = Field(ge=0)
    tenants: dict[str, TenantNote] = Field(default_factory=dict)
    mirror: Mirror | None = None
    copying: Copying | None = None
    moved_to: str = ""
    replaced_by: str = ""
    writing: dict[str, int] = Field(default_factory=dict)

    def state(self, points: int) -> CollectionState:
        """What users of the collection see."""
        return CollectionState(
            built_with=self.built_with, points=points, index_version=self.index_version, tenants=self.tenants
        )


def read_meta(metadata: Mapping[str, Any]) -> ServerMeta:
    """The metadata of a collection of ours. Raises: KeyError or ValidationError when it is none, or not finished."""
    said = {
        "built_with": metadata["built_with"],
        "index_version": metadata["index_version"],
        "tenants": _notes(metadata),
        "writing": {name: at for name, at in metadata.items() if name.startswith(WRITING) and at},
        **{name: metadata[name] for name in ("mirror", "copying", "moved_to", "replaced_by") if metadata.get(name)},
    }
    return ServerMeta.model_validate(said, extra="ignore")  # of another release, which may say more


def notes_of(meta: ServerMeta) -> dict[str, Any]:
    """The notes of tenants as they stand in metadata."""
    return {f"{NOTE}{tenant}": note.model_dump() for tenant, note in meta.tenants.items()}


def _notes(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What is noted of each tenant. A `finished` without a tenant (older releases) belongs to the tenant `default`."""
    old = {DEFAULT_TENANT: {"finished": metadata["finished"]}} if "finished" in metadata else {}
    return {**old, **{name.removeprefix(NOTE): note for name, note in metadata.items() if name.startswith(NOTE)}}
