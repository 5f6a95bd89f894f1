"""What an operator sees of a Qdrant server's collections, and their making by hand."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import Field
from qdrant_client import models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from shared.models.base import Model
from shared.store.base import DENSE, BuiltWith
from shared.store.generations import Generations
from shared.store.layout import OLDEST_SERVER, SettingDifference, update
from shared.store.making import index_missing, make_first
from shared.store.points import without_vector
from shared.store.server_errors import server_errors

#: Telemetry from which the sizes of shards can be read.
_SHARD_DETAILS = 3

#: What is said of a collection that stands beside the one in use.
_BESIDE = {
    "being filled": "{name} is being filled by a migration: `ramify store migrate` goes on with it",
    "replaced": "{name} has been replaced: `ramify store migrate --drop-old` deletes it",
    "not used": "{name} is not used, as what a restore leaves that was cut off: once nothing restores into it, "
    "delete it (`DELETE /collections/{name}` of Qdrant)",
}


class CollectionReport(Model):
    """One collection of a server. Sizes in bytes, of this node alone; None where the server does not tell.

    `shards_elsewhere`: on other nodes; `inactive`: copies of shards that do not answer searches.
    """

    name: str
    use: Literal["in use", "being filled", "replaced", "not used"]
    chunks: int = Field(ge=0)
    segments: int = Field(ge=0)
    indexed_vectors: int = Field(ge=0)
    without_dense: int = Field(default=0, ge=0)
    state: str
    optimizer: str
    shards: int
    replicas: int
    shards_elsewhere: int = 0
    inactive: tuple[str, ...] = ()
    vectors_bytes: int | None = None
    payload_bytes: int | None = None
    built_with: BuiltWith | None = None
    index_version: int = 0
    tenants: int = 0
    differences: tuple[SettingDifference, ...] = ()


class StoreStatus(Model):
    """Where chunks are and how they are kept. `ignored`: settings that the embedded store does not have.

    `done`: what `store init` has done now; `warnings` say what to do.
    """

    kind: Literal["embedded", "server"]
    place: str
    collection: str
    server: str = ""
    bytes: int | None = None
    chunks: int = 0
    built_with: BuiltWith | None = None
    index_version: int = 0
    tenants: int = 0
    collections: tuple[CollectionReport, ...] = ()
    ignored: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def server_status(of: Generations, place: str, done: tuple[str, ...] = ()) -> StoreStatus:
    """All collections of the name. Raises: StoreError, TransientError."""
    current = of.current()
    sizes = _sizes(of)
    found = tuple(_report(of, name, current, sizes.get(name, (None, None))) for name in of.names())
    used = next((one for one in found if one.use == "in use"), None)
    version = _version(of)
    return StoreStatus(
        kind="server",
        place=place,
        collection=of.name,
        server=version,
        chunks=used.chunks if used else 0,
        built_with=used.built_with if used else None,
        index_version=used.index_version if used else 0,
        tenants=used.tenants if used else 0,
        collections=found,
        done=done,
        warnings=tuple(_warnings(version, used, found)),
    )


def init(of: Generations, built_with: BuiltWith, place: str, *, apply: bool) -> StoreStatus:
    """Make what is missing: collection, payload indexes, alias. `apply`: follow the settings where that goes in place.

    Again: does nothing. Raises: StoreError, TransientError.
    """
    done: list[str] = []
    current = of.current()
    if current is None:
        if (current := of.filled()) is not None:
            of.switch(current)
            done.append(f"{current} was in no use, and is used as {of.name} again")
        else:
            current = make_first(of.client, of.name, of.settings, built_with, indexed=of.indexed)
            indexes = len(of.look(current).payload_schema)
            done.append(f"made {current} with {indexes} payload indexes, used as {of.name}")
    if of.indexed and (made := index_missing(of.client, current, of.settings)):
        done.append(f"made the payload indexes {', '.join(made)}")
    if apply and (unlike := [one for one in of.differences(current) if one.change == "in place"]):
        with server_errors("changing the collection"):
            of.client.update_collection(current, **update(of.settings, of.meta(current).built_with))
        done.append(f"changed in place: {', '.join(one.setting for one in unlike)}")
    return server_status(of, place, tuple(done))


def _report(of: Generations, name: str, current: str | None, sizes: tuple[int | None, int | None]) -> CollectionReport:
    found = of.look(name)
    metadata, params = found.config.metadata or {}, found.config.params
    built_with = BuiltWith.model_validate(metadata["built_with"], extra="ignore") if "built_with" in metadata else None
    here, elsewhere, inactive = _shards(of, name)
    return CollectionReport(
        name=name,
        use=_use(name, current, metadata),
        chunks=found.points_count or 0,
        segments=found.segments_count,
        indexed_vectors=found.indexed_vectors_count or 0,
        without_dense=_without_dense(of, name) if built_with and built_with.dense else 0,
        state=found.status.value,
        optimizer="ok" if found.optimizer_status == "ok" else str(getattr(found.optimizer_status, "error", "?")),
        shards=params.shard_number or here,
        replicas=params.replication_factor or 1,
        shards_elsewhere=elsewhere,
        inactive=inactive,
        vectors_bytes=sizes[0],
        payload_bytes=sizes[1],
        built_with=built_with,
        index_version=metadata.get("index_version", 0),
        tenants=sum(1 for key in metadata if key.startswith("tenant:")),
        differences=tuple(of.differences(name)) if name == current else (),
    )


def _use(
    name: str, current: str | None, metadata: dict[str, Any]
) -> Literal["in use", "being filled", "replaced", "not used"]:
    if name == current:
        return "in use"
    if metadata.get("copying"):
        return "being filled"
    return "replaced" if metadata.get("replaced_by") else "not used"


def _without_dense(of: Generations, name: str) -> int:
    with server_errors("counting"):
        return of.client.count(name, without_vector(DENSE), exact=True).count


def _shards(of: Generations, name: str) -> tuple[int, int, tuple[str, ...]]:
    """Shards here, shards that are only elsewhere, and copies that are not active; those of one node without them."""
    if not of.indexed:
        return 1, 0, ()
    with server_errors("reading the shards"):
        found = of.client.collection_cluster_info(name)
    here = {one.shard_id for one in found.local_shards}
    elsewhere = {one.shard_id for one in found.remote_shards} - here
    states = [(f"shard {one.shard_id} here", one.state) for one in found.local_shards]
    states += [(f"shard {one.shard_id} at peer {one.peer_id}", one.state) for one in found.remote_shards]
    inactive = tuple(f"{where}: {state.value}" for where, state in states if state is not models.ReplicaState.ACTIVE)
    return len(here), len(elsewhere), inactive


def _sizes(of: Generations) -> dict[str, tuple[int | None, int | None]]:
    """Bytes of vectors and of payloads by collection, of this node; empty where the server does not tell."""
    if not of.indexed:
        return {}
    try:
        told = of.client.http.service_api.telemetry(details_level=_SHARD_DETAILS).result
    except (UnexpectedResponse, ResponseHandlingException):  # another version's telemetry, or a key that may not
        return {}
    found: dict[str, tuple[int | None, int | None]] = {}
    for one in (told.collections.collections if told else None) or ():
        if isinstance(one, models.CollectionTelemetry):
            local = [shard.local for shard in one.shards or () if shard.local]
            vectors = sum(shard.vectors_size_bytes or 0 for shard in local)
            found[one.id] = (vectors, sum(shard.payloads_size_bytes or 0 for shard in local))
    return found


def _version(of: Generations) -> str:
    if not of.indexed:
        return ""
    with server_errors("asking for its version"):
        return str(of.client.info().version)


def _warnings(version: str, used: CollectionReport | None, found: tuple[CollectionReport, ...]) -> list[str]:
    told: list[str] = []
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers and (int(numbers[1]), int(numbers[2])) < OLDEST_SERVER:
        oldest = ".".join(map(str, OLDEST_SERVER))
        told.append(
            f"Qdrant {version} is older than {oldest}, which filters by path and tenants' word weights need: upgrade it"
        )
    if used is None:
        return [*told, "there is no collection yet: run `ramify store init`, or `ramify ingest PATH` makes it"]
    for change, command in (("in place", "ramify store init --apply"), ("migrate", "ramify store migrate")):
        names = [f"{one.setting} is {one.found}, not {one.wanted}" for one in used.differences if one.change == change]
        if names:
            told.append(f"{'; '.join(names)}: run `{command}`")
    if used.inactive:
        told.append(f"copies of shards are not active ({'; '.join(used.inactive)}): look at the nodes of the cluster")
    if used.without_dense:
        told.append(f"{used.without_dense:,} chunks have no dense vector, and keywords alone find them")
    return told + [_BESIDE[one.use].format(name=one.name) for one in found if one.use in _BESIDE]
