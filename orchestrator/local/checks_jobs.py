"""Doctor's look at the jobs: does the reaper look after them, how many wait, what was retired as a dead letter."""

from __future__ import annotations

from collections.abc import Sequence

from redis import Redis
from redis.exceptions import RedisError

from orchestrator.local.checks import Check
from orchestrator.reaper.leader import LOOKED
from shared.clock import ServerClock
from shared.job_store import connect
from shared.job_store.codec import text
from shared.job_store.dead import DeadLetterStore
from shared.job_store.keys import LineKeys
from shared.models import Lane
from shared.settings import Settings

#: The reaper looks every two seconds; one that pauses for so long does not run.
_PAUSE_S = 20.0
_TIMEOUT_S = 3.0


def examine(connected: Settings | None) -> Sequence[Check]:
    """The reaper, the lanes and the dead letters; nothing to judge without Redis."""
    if connected is None:
        return tuple(Check(name=name, ok=None, detail="not running") for name in ("reaper", "lanes", "dead letters"))
    try:
        with connect(connected, retries=0, timeout_s=min(connected.redis.timeout_s, _TIMEOUT_S)) as client:
            return (_reaper(client), _lanes(client, connected), _dead(client, connected))
    except RedisError as error:
        return (Check(name="reaper", ok=None, detail=f"cannot be asked: Redis fails ({type(error).__name__})"),)


def _reaper(client: Redis) -> Check:
    raw = client.get(LOOKED)
    ago = ServerClock(client).now() - float(text(raw)) if raw is not None else None
    if ago is not None and ago <= _PAUSE_S:
        return Check(name="reaper", ok=True, detail=f"looked after the jobs {max(0.0, ago):.0f} s ago")
    last = "never looked" if ago is None else f"last looked {ago:.0f} s ago"
    fix = "start a worker of the queue ops; see its log"
    return Check(
        name="reaper", ok=False, detail=f"{last}: lost work is not sent again, deadlines are not kept", fix=fix
    )


def _lanes(client: Redis, settings: Settings) -> Check:
    parts, full = [], False
    for lane in Lane:
        waiting, held = (int(value or 0) for value in client.hmget(LineKeys(lane.value).counts, ["waiting", "held"]))
        lanes = settings.lanes
        most = lanes.max_waiting_interactive if lane is Lane.INTERACTIVE else lanes.max_waiting_batch
        full |= waiting >= most
        parts.append(f"{lane.value} {waiting:,} waiting of {most:,}, {held} under way of {lanes.under_way}")
    fix = "jobs are refused now: wait, or raise lanes.max_waiting_*" if full else ""
    return Check(name="lanes", ok=not full, detail="; ".join(parts), fix=fix)


def _dead(client: Redis, settings: Settings) -> Check:
    if not (count := DeadLetterStore(client, settings).count()):
        return Check(name="dead letters", ok=True, detail="none")
    return Check(name="dead letters", ok=False, detail=f"{count} retired", fix="`ramify dead list` shows them")
