"""What operators look at and clear: lanes, pools, gates, counts, the cache, dead letters, what was set aside."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from orchestrator.access.caller import Scope
from orchestrator.client import Ramify
from orchestrator.operating import CacheState, LaneLoad, PoolState, Stats
from orchestrator.operations.jobs import Limit, Nothing
from orchestrator.operations.operation import HttpRoute, Operation
from orchestrator.retries.dead_letters import Replayed
from shared.errors import NotFoundError
from shared.models.base import Model
from shared.models.status import DeadLetter, Quarantined
from shared.providers.gates.state import GateState

DeadLetterName = Annotated[str, Field(min_length=1, max_length=400)]


class Lanes(Model):
    """All lanes."""

    lanes: tuple[LaneLoad, ...]


class Pools(Model):
    """All pools of workers."""

    pools: tuple[PoolState, ...]


class Gates(Model):
    """The gates of all servers that are called."""

    gates: tuple[GateState, ...]


class CacheCleared(Model):
    """How many entries are gone."""

    deleted: int


class DeadLettersInput(Model):
    """How many dead letters are listed."""

    limit: Limit = Field(default=20, description="how many")


class DeadLetterList(Model):
    """Dead letters, newest first, of `total`."""

    total: int
    dead_letters: tuple[DeadLetter, ...]


class DeadLetterId(Model):
    """One dead letter."""

    dead_letter_id: DeadLetterName = Field(description="as the list has it")


class DeadLetterDropped(Model):
    """A dead letter that is forgotten."""

    dead_letter_id: str


class QuarantineList(Model):
    """What stood in Redis and is not Ramify's, newest first."""

    quarantined: tuple[Quarantined, ...]


def _lanes(client: Ramify, _: Nothing) -> Lanes:
    return Lanes(lanes=client.operator.lanes())


def _pools(client: Ramify, _: Nothing) -> Pools:
    return Pools(pools=client.operator.pools())


def _gates(client: Ramify, _: Nothing) -> Gates:
    return Gates(gates=client.operator.gates())


def _stats(client: Ramify, _: Nothing) -> Stats:
    return client.operator.stats()


def _cache(client: Ramify, _: Nothing) -> CacheState:
    return client.operator.cache()


def _clear(client: Ramify, _: Nothing) -> CacheCleared:
    return CacheCleared(deleted=client.operator.clear_cache())


def _dead(client: Ramify, given: DeadLettersInput) -> DeadLetterList:
    return DeadLetterList(total=client.dead.count(), dead_letters=tuple(client.dead.list(given.limit)))


def _dead_one(client: Ramify, given: DeadLetterId) -> DeadLetter:
    return client.dead.get(given.dead_letter_id)


def _replay(client: Ramify, given: DeadLetterId) -> Replayed:
    return client.dead.replay(given.dead_letter_id)


def _drop(client: Ramify, given: DeadLetterId) -> DeadLetterDropped:
    if not client.dead.drop(given.dead_letter_id):
        fix = "there is no such dead letter; `ramify dead list` shows them"
        raise NotFoundError("dead letter id", given.dead_letter_id, fix)
    return DeadLetterDropped(dead_letter_id=given.dead_letter_id)


def _quarantine(client: Ramify, _: Nothing) -> QuarantineList:
    return QuarantineList(quarantined=client.dead.quarantined())


def _clear_quarantine(client: Ramify, _: Nothing) -> QuarantineList:
    return QuarantineList(quarantined=client.dead.quarantined(drop=True))


OPERATIONS: tuple[Operation[Any], ...] = (
    Operation("lanes", Nothing, Lanes, _lanes, Scope.ADMIN, command="pools", routes=(HttpRoute("GET", "/v1/lanes"),)),
    Operation("pools", Nothing, Pools, _pools, Scope.ADMIN, command="pools", routes=(HttpRoute("GET", "/v1/pools"),)),
    Operation("gates", Nothing, Gates, _gates, Scope.ADMIN, command="pools", routes=(HttpRoute("GET", "/v1/gates"),)),
    Operation("stats", Nothing, Stats, _stats, Scope.ADMIN, command="pools", routes=(HttpRoute("GET", "/v1/stats"),)),
    Operation(
        "cache_show", Nothing, CacheState, _cache, Scope.ADMIN, command="cache show",
        routes=(HttpRoute("GET", "/v1/cache"),),
    ),
    Operation(
        "cache_clear", Nothing, CacheCleared, _clear, Scope.ADMIN, command="cache clear",
        routes=(HttpRoute("DELETE", "/v1/cache"),),
    ),
    Operation(
        "dead_list", DeadLettersInput, DeadLetterList, _dead, command="dead list",
        routes=(HttpRoute("GET", "/v1/dead-letters"),),
    ),
    Operation(
        "dead_show", DeadLetterId, DeadLetter, _dead_one, command="dead show",
        routes=(HttpRoute("GET", "/v1/dead-letters/{dead_letter_id}"),),
    ),
    Operation(
        "dead_replay", DeadLetterId, Replayed, _replay, Scope.WRITE, command="dead replay", idempotent=False,
        waits=True, routes=(HttpRoute("POST", "/v1/dead-letters/{dead_letter_id}/replay"),),
    ),
    Operation(
        "dead_drop", DeadLetterId, DeadLetterDropped, _drop, Scope.WRITE, command="dead drop",
        routes=(HttpRoute("DELETE", "/v1/dead-letters/{dead_letter_id}"),),
    ),
    Operation(
        "dead_quarantine", Nothing, QuarantineList, _quarantine, Scope.ADMIN, command="dead quarantine",
        routes=(HttpRoute("GET", "/v1/quarantine"),),
    ),
    Operation(
        "quarantine_clear", Nothing, QuarantineList, _clear_quarantine, Scope.ADMIN, command="dead quarantine",
        routes=(HttpRoute("DELETE", "/v1/quarantine"),),
    ),
)  # fmt: skip
