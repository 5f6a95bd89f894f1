"""Doctor's look at the running stack: supervisor, workers, the store, the jobs and reaper, the gates of servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from celery.exceptions import TimeoutError as NoReplyError
from redis import Redis
from redis.exceptions import RedisError

from orchestrator.local import reach
from orchestrator.local.checks import Check, size
from orchestrator.local.state import StackState, read_state
from orchestrator.reaper.leader import LOOKED
from shared.connections import heartbeat
from shared.connections.clock import ServerClock
from shared.connections.heartbeat import BEAT_S, WorkerBeat
from shared.contract import Queue, TaskName
from shared.errors import RamifyError
from shared.jobs import connect
from shared.jobs.codec import text
from shared.jobs.dead_letters import DeadLetterStore
from shared.jobs.keys import AdmissionKeys
from shared.models import Lane
from shared.providers.gates.gate import NAMES, time_of_day
from shared.providers.gates.state import GateState, providers, read_gates
from shared.settings import Settings

_START = "ramify up -d"
_NOT_RUNNING = "not running"
_TIMEOUT_S = 3.0
_INSPECT_S = 2.0
_INFO_S = 5.0
#: A heartbeat may be late; from the third that is missing on, something holds it.
_LATE_S = 3 * BEAT_S
#: The reaper looks every two seconds; one that pauses for so long does not run.
_PAUSE_S = 20.0


def supervisor(settings: Settings, state: StackState | None) -> Sequence[Check]:
    """Whether `ramify up` lives, and what it had to restart."""
    if state is None:
        left = read_state(settings)
        if left is None:
            return (
                Check(name="stack", ok=None, detail=f"{_NOT_RUNNING} in {settings.data_dir.absolute()}", fix=_START),
            )
        detail = f"its supervisor (process {left.pid}) was killed"
        return (
            Check(name="stack", ok=False, detail=detail, fix="`ramify down` clears what it left, then `ramify up -d`"),
        )
    restarts = [f"{child.name} {child.restarts}" for child in state.children if child.restarts]
    detail = f"process {state.pid}, up since {state.started_at:%Y-%m-%d %H:%M} UTC"
    if restarts:
        fix = f"see {settings.data_dir.absolute() / 'logs'}"
        return (Check(name="stack", ok=False, detail=f"{detail}; restarts: {', '.join(restarts)}", fix=fix),)
    return (Check(name="stack", ok=state.ready or None, detail=detail if state.ready else f"{detail}, still starting"),)


def workers(settings: Settings, connected: Settings | None) -> Sequence[Check]:
    """Whether every queue has a worker that serves it, and what the search worker says about its store."""
    if connected is None:
        gone = "the search worker, which owns it, is not running"
        found = Check(name="pools", ok=None, detail=_NOT_RUNNING, fix=_START)
        return (found, *_folder(settings), Check(name="store", ok=None, detail=gone, fix=_START))
    try:
        reach.require_redis(connected)  # Celery would try for minutes to reach one that is not there
    except RamifyError:
        detail = "cannot be asked: Redis does not answer"
        found = Check(name="pools", ok=None, detail=detail)
        return (found, *_folder(settings), Check(name="store", ok=None, detail=detail))
    answers = reach.served(connected, _INSPECT_S)
    with connect(connected, retries=0, timeout_s=min(connected.redis.timeout_s, _TIMEOUT_S)) as client:
        beats, last = heartbeat.workers(client), dict[str, float]()
        for worker, age in heartbeat.ages(client).items():
            name = node_name(worker)
            last[name] = min(age, last.get(name, age))
    served = pools(answers, beats, last)
    searched = any(TaskName.SEARCH_INFO.queue.value in queues for queues in answers.values())
    return (*served, *_folder(settings), _store(connected, searched))


def _folder(settings: Settings) -> Sequence[Check]:
    """The embedded store's folder, looked at from outside: the search worker owns it."""
    if settings.store.kind == "server":
        return ()
    folder = settings.data_dir.absolute() / "store" / settings.store.collection
    if not folder.is_dir():
        fix = "ramify ingest PATH..."
        return (Check(name="store folder", ok=None, detail=f"{folder} is not there: nothing ingested", fix=fix),)
    used = sum(_bytes(path) for path in folder.rglob("*"))
    return (Check(name="store folder", ok=True, detail=f"{folder}, {size(used)}"),)


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:  # the store's owner works on: a file may go while we look
        return 0


def _store(settings: Settings, searched: bool) -> Check:
    if not searched:
        return Check(name="store", ok=None, detail="no search worker answers", fix=_START)
    try:
        answer = reach.ask_store(settings, _INFO_S)
    except NoReplyError:
        detail = f"the search worker did not answer within {_INFO_S:.0f} s"
        return Check(name="store", ok=False, detail=detail, fix="it may be busy; else see logs/search.log")
    return store_said(answer if isinstance(answer, dict) else {})


def store_said(answer: dict[str, Any]) -> Check:
    """Read `search.info`: {"ok": true, "collection": CollectionState or null, "without_tenant"} or {"ok", "error"}."""
    if not answer.get("ok"):
        return Check(name="store", ok=False, detail=str(answer.get("error", "its answer cannot be read")))
    if not (collection := answer.get("collection")):
        return Check(name="store", ok=None, detail="empty: nothing is ingested", fix="ramify ingest PATH...")
    built = collection["built_with"]
    detail = f"{collection['points']} chunks, {built['sparse']}, dense {built['dense'] or 'none'}"
    if (tenants := len(collection.get("tenants", {}))) > 1:
        detail = f"{detail}, {tenants} tenants"
    if unseen := answer.get("without_tenant"):
        said = f"{detail}; nobody sees {unseen} of them, which an older release wrote without a tenant"
        fix = "restart the search and index pools: they give them to the tenant default"
        return Check(name="store", ok=False, detail=said, fix=fix)
    return Check(name="store", ok=True, detail=detail)


# -- workers -----------------------------------------------------------------------------------------------------------


def pools(
    answers: Mapping[str, Sequence[str]], beats: Sequence[WorkerBeat], last: Mapping[str, float]
) -> Sequence[Check]:
    """What is wrong with which worker, in one line each; one line when all is well.

    `answers`: node name to its queues, of those that answer remote control. `last`: node name to seconds since its last
    heartbeat, of those that had one today.
    """
    faults = [*_unserved(answers, beats), *_silent(answers, last)]
    if faults:
        return faults
    names = ", ".join(sorted(answers))
    return (Check(name="pools", ok=True, detail=f"{len(answers)} workers serve all queues: {names}"),)


def node_name(worker: str) -> str:
    """The node name in a worker's id."""
    return worker.split(":", maxsplit=1)[0]


def _unserved(answers: Mapping[str, Sequence[str]], beats: Sequence[WorkerBeat]) -> Sequence[Check]:
    served = {queue for names in answers.values() for queue in names}
    missing = [queue.value for queue in Queue if queue.value not in served]
    if not missing:
        return ()
    mute = sorted({node_name(beat.worker) for beat in beats if set(beat.queues) & set(missing)} - set(answers))
    detail, fix = f"no worker serves {', '.join(missing)}", _START
    if mute:
        detail += f"; {', '.join(mute)} would, and lives, but does not answer"
        fix = "ask again in half a minute; if it stays so, see its log and start it anew"
    elif answers:
        fix = "see the pools' logs; `ramify up -d` starts them"
    return (Check(name="pools", ok=False, detail=detail, fix=fix),)


def _silent(answers: Mapping[str, Sequence[str]], last: Mapping[str, float]) -> Sequence[Check]:
    """Its work would be taken for that of a dead worker, and be given to others."""
    found = []
    for name in sorted(answers):
        age = last.get(name)
        if age is None or age > _LATE_S:
            said = "had no heartbeat today" if age is None else f"its last heartbeat was {age:.0f} s ago"
            fix = "see its log; its work is given to others meanwhile, so start it anew"
            found.append(Check(name="pools", ok=False, detail=f"{name} answers, but {said}", fix=fix))
    return found


# -- jobs --------------------------------------------------------------------------------------------------------------


def jobs(connected: Settings | None) -> Sequence[Check]:
    """The reaper, the lanes and the dead letters; nothing to judge without Redis."""
    if connected is None:
        return tuple(Check(name=name, ok=None, detail="not running") for name in ("reaper", "lanes", "dead letters"))
    try:
        with connect(connected, retries=0, timeout_s=min(connected.redis.timeout_s, _TIMEOUT_S)) as client:
            return (_reaper(client), _lanes(client, connected), _dead_letters(client, connected))
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
        waiting, held = (
            int(value or 0) for value in client.hmget(AdmissionKeys(lane.value).counts, ["waiting", "held"])
        )
        lanes = settings.lanes
        most = lanes.max_waiting_interactive if lane is Lane.INTERACTIVE else lanes.max_waiting_batch
        full |= waiting >= most
        parts.append(f"{lane.value} {waiting:,} waiting of {most:,}, {held} under way of {lanes.under_way}")
    fix = "jobs are refused now: wait, or raise lanes.max_waiting_*" if full else ""
    return Check(name="lanes", ok=not full, detail="; ".join(parts), fix=fix)


def _dead_letters(client: Redis, settings: Settings) -> Check:
    if not (count := DeadLetterStore(client, settings).count()):
        return Check(name="dead letters", ok=True, detail="none")
    return Check(name="dead letters", ok=False, detail=f"{count} retired", fix="`ramify dead list` shows them")


# -- gates -------------------------------------------------------------------------------------------------------------


def gates(settings: Settings, connected: Settings | None) -> Sequence[Check]:
    """One line for each provider that the settings name; none where they name none."""
    if not list(providers(settings)):
        return ()
    if connected is None:
        return (Check(name="gates", ok=None, detail=_NOT_RUNNING, fix=_START),)
    try:
        with connect(connected, retries=0, timeout_s=min(connected.redis.timeout_s, _TIMEOUT_S)) as client:
            return [_gate(state) for state in read_gates(client, settings)]
    except RedisError as error:
        return (Check(name="gates", ok=None, detail=f"cannot be read from Redis ({type(error).__name__})"),)


def _gate(state: GateState) -> Check:
    name, where = f"{state.provider} gate", f"{NAMES[state.provider]} at {state.host}"
    limit = ""
    if state.tokens is not None:
        limit = f"; {state.tokens} requests may go at once, of {state.requests_per_minute:g} a minute"
    failures = f"{state.failures} failure{'s' if state.failures != 1 else ''} in a row, the last: it {state.why}"
    fix = "see that server's log; it is tried again by itself"
    if state.state == "open":
        span = f"since {time_of_day(state.since)}, until {time_of_day(state.until)}"
        detail = f"{where} is left alone {span}, after {failures}{limit}"
        return Check(name=name, ok=False, detail=detail, fix=fix)
    if state.state == "half-open":
        past = f"was left alone from {time_of_day(state.since)} to {time_of_day(state.until)}, after {failures}"
        return Check(name=name, ok=False, detail=f"{where} {past}; the next call tries it{limit}", fix=fix)
    if state.paused_until is not None:
        detail = f"{where} wants no request before {time_of_day(state.paused_until)}{limit}"
        return Check(name=name, ok=None, detail=detail, fix=f"set providers.{state.provider}.requests_per_minute")
    note = f", {failures}" if state.failures else ""
    return Check(name=name, ok=True, detail=f"{where}: calls go{note}{limit}")
