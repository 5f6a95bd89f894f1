"""Makes the collections of a Qdrant server: each step may be done twice, so that what was cut off is gone on with."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from qdrant_client import QdrantClient, models

from shared.errors import StoreError
from shared.settings.store import QdrantSettings
from shared.store import layout, schema
from shared.store.base import BuiltWith
from shared.store.server_errors import server_errors
from shared.store.server_meta import ServerMeta, read_meta


def meta_of(name: str, metadata: Mapping[str, Any]) -> ServerMeta:
    """The metadata of the collection `name`. Raises: StoreError when it is none of ours."""
    try:
        return read_meta(metadata)
    except (KeyError, ValidationError):
        raise StoreError(
            f"the Qdrant collection {name} was not made by Ramify or not finished: "
            "choose another store.collection, or delete it"
        ) from None


def numbered(client: QdrantClient, alias: str) -> list[str]:
    """All collections of a name, oldest first: that of the name itself, NAME-1, NAME-2 and so on."""
    with server_errors("listing the collections"):
        found = [one.name for one in client.get_collections().collections]
    own = [one for one in found if one == alias or re.fullmatch(rf"{re.escape(alias)}-\d+", one)]
    return sorted(own, key=lambda one: number_of(alias, one))


def number_of(alias: str, name: str) -> int:
    """N of NAME-N; 0 for NAME itself."""
    return 0 if name == alias else int(name.rpartition("-")[2])


def unused(client: QdrantClient, alias: str) -> str | None:
    """The empty collection that is there while no alias is: another process makes it, or has died at that.

    Raises: StoreError when the last one of the name has chunks, or gets them from a migration.
    """
    names = numbered(client, alias)
    if not names:
        return None
    with server_errors("reading the collection"):
        found = client.get_collection(names[-1])
    known = found.config.metadata or {}
    if found.points_count or any(known.get(mark) for mark in ("copying", "moved_to", "replaced_by")):
        raise StoreError(
            f"the Qdrant collection {names[-1]} has chunks, or gets them from a migration, and is not in use as "
            f"{alias}: finish the migration, let `ramify store init` use it, or delete it"
        )
    return names[-1]


def make_first(
    client: QdrantClient, alias: str, settings: QdrantSettings, built_with: BuiltWith, *, indexed: bool
) -> str:
    """Make the collection of a name that is not in use, or go on with an unused one; its name. Raises: StoreError."""
    name = unused(client, alias)
    if name is not None:
        with server_errors("reading the collection"):
            found = client.get_collection(name)
        if layout.has_vectors_of(found, built_with):
            finish_collection(client, name, settings, built_with, indexed=indexed)
        else:
            with server_errors(f"deleting {name}"):  # empty, and of other encoders
                client.delete_collection(name)
            name = None
    if name is None:
        name = f"{alias}-1"
        make_collection(client, name, settings, built_with, indexed=indexed)
    with server_errors("naming the collection"):
        # last: what has no alias was not finished
        point_alias(client, alias, name)
    return name


def make_collection(
    client: QdrantClient, name: str, settings: QdrantSettings, built_with: BuiltWith, *, indexed: bool, **more: object
) -> None:
    """Make an empty collection with its indexes; `more` is put into its metadata. Raises: StoreError."""
    with server_errors("creating the collection"):
        client.create_collection(name, **layout.creation(settings, built_with))
    finish_collection(client, name, settings, built_with, indexed=indexed, **more)


def finish_collection(
    client: QdrantClient, name: str, settings: QdrantSettings, built_with: BuiltWith, *, indexed: bool, **more: object
) -> None:
    """Give a new collection the indexes that it lacks, and say what it is. Raises: StoreError."""
    if indexed:
        index_missing(client, name, settings)
    with server_errors("creating the collection"):
        # last: a collection without it was not finished
        known = {"index_version": time.time_ns(), "built_with": built_with.model_dump(), **more}
        client.update_collection(name, metadata=known)


def index_missing(client: QdrantClient, name: str, settings: QdrantSettings) -> list[str]:
    """Make the payload indexes that a collection lacks; their fields."""
    with server_errors("making payload indexes"):
        present = client.get_collection(name).payload_schema
        missing = [field for field in schema.INDEXED if field.name not in present]
        for field in missing:
            client.create_payload_index(name, field.name, layout.payload_index(field, settings), wait=True)
    return [field.name for field in missing]


def point_alias(client: QdrantClient, alias: str, collection: str) -> None:
    """Let the alias mean this collection from now on, in one step for whoever searches."""
    made = models.CreateAlias(alias_name=alias, collection_name=collection)
    client.update_collection_aliases([models.CreateAliasOperation(create_alias=made)])
