"""`ramify doctor` on the running stack: supervisor, workers, the store, jobs and reaper, the providers' gates."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from celery.exceptions import TimeoutError as NoReplyError
from redis import Redis
from redis.exceptions import RedisError

from orchestrator.diagnosis.settings import RESTART, difference, telling
from orchestrator.diagnosis.wording import remedy, silence
from orchestrator.local.checks import (
    NOT_RUNNING,
    START,
    Check,
    failed,
    how_to_start,
    needs_no_folder,
    passed,
    quick_client,
    size,
    unknown,
)
from orchestrator.local.redis_server import require_redis
from orchestrator.local.state import StackState, read_state
from orchestrator.reaper.reaper import LAST_RUN
from orchestrator.remote import reply_of
from shared.connections import heartbeat
from shared.connections.clock import ServerClock
from shared.connections.heartbeat import BEAT_S, SilentWorker, WorkerBeat
from shared.contract import POOL_QUEUES, Queue, TaskName
from shared.errors import RamifyError
from shared.jobs.codec import text
from shared.jobs.corpus_written import CorpusWritten, older_one, seconds_of
from shared.jobs.damaged import DamagedJobs
from shared.jobs.dead_letters import DeadLetterStore
from shared.jobs.keys import INGEST_ROOTS, AdmissionKeys
from shared.models import Lane
from shared.providers.gates.gate import NAMES, time_of_day
from shared.providers.gates.state import GateState, providers, read_gates
from shared.release import release
from shared.settings import Settings
from shared.settings.fingerprint import fingerprint
from shared.tasks.app import make_app
from shared.tasks.broker import BrokerLostError, reached

_INSPECT_S = 2.0
_STORE_S = 5.0
#: A heartbeat may be late: a worker is reported from the third missing one on.
_LATE_S = 3 * BEAT_S
#: The reaper runs every two seconds; one that has not finished a run for so long does not run.
_REAPER_LATE_S = 20.0
#: Seconds for which a restart counts as a fault; later it is told as over.
_RECENT_S = 900.0


def supervisor(settings: Settings, state: StackState | None) -> Check:
    """Whether `ramify up` lives, and what it had to restart."""
    folder = settings.data_dir.absolute()
    if state is None:
        if needs_no_folder(settings) or (left := read_state(settings)) is None:
            if settings.redis.url.get_secret_value():
                return unknown("stack", f"none in {folder}: redis.url names a Redis with pools of its own")
            return unknown("stack", f"{NOT_RUNNING} in {folder}", START)
        detail = f"its supervisor (process {left.pid}) was killed"
        return failed("stack", detail, "`ramify down` clears what it left, then `ramify up -d`")
    detail = f"process {state.pid}, up since {state.started_at:%Y-%m-%d %H:%M} UTC"
    since = time.time() - _RECENT_S
    if recent := _restarts(state, lambda at: at > since):
        minutes = f"{_RECENT_S / 60:.0f} min"
        return failed("stack", f"{detail}; restarts of the last {minutes}: {recent}", f"see {folder / 'logs'}")
    if over := _restarts(state, lambda at: at <= since):
        detail += f"; restarts that are over: {over}"
    return passed("stack", detail) if state.ready else unknown("stack", f"{detail}, still starting")


def _restarts(state: StackState, wanted: Callable[[float], bool]) -> str:
    """How often each process was started again at the times that are `wanted`, and when it was the last time."""
    found = []
    for child in state.children:
        if times := [at for at in child.restarted_at if wanted(at)]:
            last = datetime.fromtimestamp(times[-1], UTC)
            found.append(f"{child.name} {len(times)} (last {last:%Y-%m-%d %H:%M} UTC)")
    return ", ".join(found)


def workers(settings: Settings, connected: Settings | None) -> Sequence[Check]:
    """Whether every queue has a worker that serves it, and what the search worker says about its store."""
    found, store = _pools_and_store(connected, how_to_start(settings))
    return [*found, *_store_folder(settings), store]


def _pools_and_store(connected: Settings | None, start: str) -> tuple[Sequence[Check], Check]:
    if connected is None:
        no_store = unknown("store", "the search worker, which owns it, is not running", START)
        return [unknown("pools", NOT_RUNNING, START)], no_store
    try:
        require_redis(connected)  # Celery would try for minutes to reach one that is not there
    except RamifyError:
        detail = "cannot be asked: Redis does not answer"
        return [unknown("pools", detail)], unknown("store", detail)
    try:
        answers, count = _served_queues(connected)
    except BrokerLostError as error:
        detail = f"cannot be asked: {error}"
        return [unknown("pools", detail)], unknown("store", detail)
    with quick_client(connected) as client:
        beats = heartbeat.workers(client)
        names = NodeNames(beats)
        ages = names.last_beats(heartbeat.ages(client))
        # One that a signal has stopped did not answer itself: another worker has the same name.
        silent = [one for one in heartbeat.silent_workers(client) if one.stopped or names.of(one.worker) not in answers]
        told = telling(client)
    found = [
        *pools(answers, beats, ages, silent, count, start=start),
        *pool_settings(connected, told),
        *pool_releases(beats),
    ]
    if any(TaskName.SEARCH_INFO.queue.value in queues for queues in answers.values()):
        return found, _store(connected)
    searching = [one for one in silent if TaskName.SEARCH_INFO.queue in POOL_QUEUES.get(one.pool, ())]
    return found, unknown("store", "no search worker answers", f"`{remedy(searching)}`" if searching else start)


def _served_queues(settings: Settings) -> tuple[dict[str, list[str]], Counter[str]]:
    """Queue names by node name, of the workers that answer within 2 s, and how many there are of each name.

    They are asked twice where a queue seems to have none: a worker that is loading a model or writing to the store may
    miss the first question. Several workers may have one name (Celery's own is the same for all of a host), so each
    answer is added to what others said under it.
    Raises: BrokerLostError, and what kombu and Redis raise when Redis is the broker and gone.
    """
    found, count = dict[str, list[str]](), Counter[str]()
    with make_app(settings) as app, reached(settings), app.connection_for_write() as broker:
        for _ in range(2):
            answers = app.control.broadcast("active_queues", reply=True, timeout=_INSPECT_S, connection=broker) or []
            count |= Counter(node for answer in answers for node in answer)
            for node, entries in (one for answer in answers for one in answer.items()):
                served = found.setdefault(node, [])
                served += [entry["name"] for entry in entries if entry["name"] not in served]
            if {name for names in found.values() for name in names} >= {queue.value for queue in Queue}:
                break
    return found, count


def pools(  # noqa: PLR0913 - what is known of workers
    answers: Mapping[str, Sequence[str]],
    beats: Sequence[WorkerBeat],
    ages: Mapping[str, float],
    silent: Sequence[SilentWorker] = (),
    count: Mapping[str, int] | None = None,
    *,
    start: str = START,
) -> Sequence[Check]:
    """What is wrong with which worker, in one line each; one line when all is well.

    `answers`: node name to its queues, of those that answer remote control; `count`: how many have that name. `ages`:
    node name to seconds since its last heartbeat, of those that had one today. `silent`: those of this host that live
    and do not answer. `start`: how missing ones are started.
    """
    faults = [*_unserved(answers, beats, silent, start), *_without_heartbeat(answers, ages)]
    if faults:
        return faults
    number = {node: (count or {}).get(node, 1) for node in sorted(answers)}
    names = ", ".join(f"{node} ({times} of them)" if times > 1 else node for node, times in number.items())
    return [passed("pools", f"{sum(number.values())} workers serve all queues: {names}")]


def pool_settings(settings: Settings, told: Sequence[WorkerBeat]) -> Iterator[Check]:
    """Whether the pools that tell their settings have those of this command, and of each other."""
    name = "pool settings"
    if other := difference(fingerprint(settings), told):
        yield failed(name, other.removesuffix(f": {RESTART}."), RESTART)
    elif told:
        yield passed(name, "all pools have the settings of this command")


def pool_releases(beats: Sequence[WorkerBeat]) -> Iterator[Check]:
    """Which workers run which release, where they run several or another one than this command."""
    of_release = defaultdict[str, set[str]](set)
    for beat in beats:
        of_release[beat.release].add(beat.pool)
    if not beats or set(of_release) == {release()}:
        return
    said = [f"{each or 'not told'}: {', '.join(sorted(names))}" for each, names in sorted(of_release.items())]
    detail = f"{'; '.join(said)}; this command: {release() or 'not told'}"
    yield unknown("releases", detail, "two releases may run side by side for the time of an upgrade; go on with it")


class NodeNames:
    """The names that workers answer to: as their heartbeats tell, whatever the operator called them (`-n merge@h`)."""

    def __init__(self, beats: Iterable[WorkerBeat]) -> None:
        self._told = {beat.worker: beat.node for beat in beats if beat.node}

    def of(self, worker: str) -> str:
        """That of a worker id; the usual one where it has no heartbeat."""
        return self._told.get(worker) or worker.split(":", maxsplit=1)[0]

    def last_beats(self, ages: Mapping[str, float]) -> dict[str, float]:
        """Node name -> seconds since its last heartbeat. `ages`: the same by worker id."""
        found = dict[str, float]()
        for worker, age in ages.items():
            name = self.of(worker)
            found[name] = min(age, found.get(name, age))
        return found


def _unserved(
    answers: Mapping[str, Sequence[str]], beats: Sequence[WorkerBeat], silent: Sequence[SilentWorker], start: str
) -> Iterator[Check]:
    names, served = NodeNames(beats), {queue for queues in answers.values() for queue in queues}
    missing = [queue.value for queue in Queue if queue.value not in served]
    if silent:
        detail = "; ".join(silence(worker) for worker in silent)
        unserved = f"no worker serves {', '.join(missing)}: " if missing else ""
        halted = any(worker.stopped for worker in silent)
        how = "lets it go on" if halted else "ends it if it stays so, and its supervisor starts it anew"
        yield failed("pools", f"{unserved}{detail}", f"`{remedy(silent)}` {how}")
        return
    if not missing:
        return
    detail, fix = f"no worker serves {', '.join(missing)}", start
    if mute := sorted({names.of(beat.worker) for beat in beats if set(beat.queues) & set(missing)} - set(answers)):
        detail += f"; {', '.join(mute)} would, and lives, but does not answer"
        fix = "ask again in half a minute; if it stays so, see its log and start it anew"
    elif answers:
        fix = f"see the pools' logs; {f'`{START}` starts them' if start == START else start}"
    yield failed("pools", detail, fix)


def _without_heartbeat(answers: Mapping[str, Sequence[str]], ages: Mapping[str, float]) -> Iterator[Check]:
    """Workers that answer but count as dead for the reaper, which gives their work to others."""
    for name in sorted(answers):
        age = ages.get(name)
        if age is None or age > _LATE_S:
            late = "had no heartbeat today" if age is None else f"its last heartbeat was {age:.0f} s ago"
            fix = "see its log; its work is given to others meanwhile, so start it anew"
            yield failed("pools", f"{name} answers, but {late}", fix)


def _store_folder(settings: Settings) -> Iterator[Check]:
    """The embedded store's folder, seen from outside: the search worker owns it."""
    if settings.store.kind == "server":
        return
    if ignored := settings.store.ignored():
        yield unknown("store settings", f"{', '.join(ignored)}: not of the embedded store", "leave them out")
    folder = settings.data_dir.absolute() / "store" / settings.store.collection
    if folder.is_dir():
        yield passed("store folder", f"{folder}, {size(sum(_bytes(path) for path in folder.rglob('*')))}")
    else:
        yield unknown("store folder", f"{folder} is not there: nothing ingested", "ramify ingest PATH...")


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:  # the store's owner may delete a file at any time
        return 0


def _store(settings: Settings) -> Check:
    try:
        with make_app(settings) as app, app.connection_for_write() as broker:
            answer = reply_of(app, TaskName.SEARCH_INFO, (), _STORE_S, connection=broker)
    except NoReplyError:
        detail = f"the search worker did not answer within {_STORE_S:.0f} s"
        return failed("store", detail, "it may be busy; else see logs/search.log")
    answer = answer if isinstance(answer, dict) else {}
    return _as_old_as_the_jobs(settings, answer) or read_store_info(answer)


def _as_old_as_the_jobs(settings: Settings, answer: Mapping[str, Any]) -> Check | None:
    """What is wrong where store and Redis are of different backups; None where nothing tells so."""
    written = seconds_of(int((answer.get("collection") or {}).get("index_version", 0)))
    with quick_client(settings) as client:
        known = seconds_of(CorpusWritten(client, settings).known())
        said = older_one(written, known)
        if not said or (known < written and client.hlen(INGEST_ROOTS)):  # an ingest is under way
            return None
    fix = "`ramify store reconcile` says what to do"
    return failed("store", said, fix) if written < known else unknown("store", said, fix)


def read_store_info(answer: dict[str, Any]) -> Check:
    """Read `search.info`: {"ok": true, "collection": CollectionState or null, "without_tenant"} or {"ok", "error"}."""
    if not answer.get("ok"):
        return failed("store", str(answer.get("error", "its answer cannot be read")))
    if not (collection := answer.get("collection")):
        return unknown("store", "empty: nothing is ingested", "ramify ingest PATH...")
    built = collection["built_with"]
    detail = f"{collection['points']} chunks, {built['sparse']}, dense {built['dense'] or 'none'}"
    if (tenants := len(collection.get("tenants", {}))) > 1:
        detail += f", {tenants} tenants"
    if unseen := answer.get("without_tenant"):
        detail += f"; nobody sees {unseen} of them, which an older release wrote without a tenant"
        return failed("store", detail, "restart the search and index pools: they give them to the tenant default")
    return passed("store", detail)


def jobs(connected: Settings | None) -> Sequence[Check]:
    """The reaper, the lanes, the dead letters and the damaged jobs; nothing to judge without Redis."""
    if connected is None:
        return [unknown(name, NOT_RUNNING) for name in ("reaper", "lanes", "dead letters", "damaged jobs")]
    try:
        with quick_client(connected) as client:
            count = DeadLetterStore(client, connected).count()
            retired = failed("dead letters", f"{count} retired", "`ramify dead list` shows them")
            dead_letters = retired if count else passed("dead letters", "none")
            return (_reaper(client), _lanes(client, connected), dead_letters, _damaged(client, connected))
    except RedisError as error:
        return (unknown("reaper", f"cannot be asked: Redis fails ({type(error).__name__})"),)


def _reaper(client: Redis) -> Check:
    raw = client.get(LAST_RUN)
    ago = ServerClock(client).now() - float(text(raw)) if raw is not None else None
    if ago is not None and ago <= _REAPER_LATE_S:
        return passed("reaper", f"looked after the jobs {max(0.0, ago):.0f} s ago")
    last = "never looked" if ago is None else f"last looked {ago:.0f} s ago"
    detail = f"{last}: lost work is not sent again, deadlines are not kept"
    return failed("reaper", detail, "start a worker of the queue ops; see its log")


def _damaged(client: Redis, settings: Settings) -> Check:
    """The jobs that are set aside since they cannot be read."""
    damaged = DamagedJobs(client, settings, ServerClock(client))
    now, so_far = damaged.counts()
    if not now:
        return passed("damaged jobs", f"none now, {so_far} so far" if so_far else "none")
    first = damaged.ids()[0]
    return failed("damaged jobs", f"{now} cannot be read and are set aside, {so_far} so far", f"`ramify why {first}`")


def _lanes(client: Redis, settings: Settings) -> Check:
    lanes, parts, full = settings.lanes, [], False
    for lane, most in ((Lane.INTERACTIVE, lanes.max_waiting_interactive), (Lane.BATCH, lanes.max_waiting_batch)):
        counts = client.hmget(AdmissionKeys(lane.value).counts, ["waiting", "held"])
        waiting, held = (int(value or 0) for value in counts)
        full |= waiting >= most
        parts.append(f"{lane.value} {waiting:,} waiting of {most:,}, {held} under way of {lanes.under_way}")
    detail = "; ".join(parts)
    if full:
        return failed("lanes", detail, "jobs are refused now: wait, or raise lanes.max_waiting_*")
    return passed("lanes", detail)


def gates(settings: Settings, connected: Settings | None) -> Sequence[Check]:
    """One line for each provider that the settings name; none where they name none."""
    if not list(providers(settings)):
        return ()
    if connected is None:
        return (unknown("gates", NOT_RUNNING, START),)
    try:
        with quick_client(connected) as client:
            return [_gate(state) for state in read_gates(client, settings)]
    except RedisError as error:
        return (unknown("gates", f"cannot be read from Redis ({type(error).__name__})"),)


def _gate(state: GateState) -> Check:
    name, server = f"{state.provider} gate", f"{NAMES[state.provider]} at {state.host}"
    limit = ""
    if state.tokens is not None:
        limit = f"; {state.tokens} requests may go at once, of {state.requests_per_minute:g} a minute"
    failures = f"{state.failures} failure{'s' if state.failures != 1 else ''} in a row, the last: it {state.why}"
    fix = "see that server's log; it is tried again by itself"
    if state.state == "open":
        span = f"since {time_of_day(state.since)}, until {time_of_day(state.until)}"
        return failed(name, f"{server} is left alone {span}, after {failures}{limit}", fix)
    if state.state == "half-open":
        past = f"was left alone from {time_of_day(state.since)} to {time_of_day(state.until)}, after {failures}"
        return failed(name, f"{server} {past}; the next call tries it{limit}", fix)
    if state.paused_until is not None:
        detail = f"{server} wants no request before {time_of_day(state.paused_until)}{limit}"
        return unknown(name, detail, f"set providers.{state.provider}.requests_per_minute")
    note = f", {failures}" if state.failures else ""
    return passed(name, f"{server}: calls go{note}{limit}")
