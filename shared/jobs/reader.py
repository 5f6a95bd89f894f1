"""Reading jobs for people and programs: status, events, answer. Changes nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from redis import Redis

from shared.connections.clock import ServerClock
from shared.errors import DamagedError, RamifyError
from shared.jobs.budget import spending
from shared.jobs.codec import text, unpack_or_none
from shared.jobs.events import events_of
from shared.jobs.fields import Fields, damage_named, damaged, stored
from shared.jobs.hit_blobs import unpack_answer
from shared.jobs.ingests import ingest_counts
from shared.jobs.keys import JobKeys, id_time
from shared.jobs.stale import MARK, marks_in
from shared.jobs.states import TERMINAL
from shared.jobs.tenant_scope import no_such_job
from shared.jobs.work import read_work
from shared.models import Answer, Cost, JobEvent, JobStatus
from shared.models.cost import Spending
from shared.models.degraded import codes
from shared.models.manifest import Manifest
from shared.models.route import Route
from shared.models.status import Postponement

_STAGES = (
    "planning_at", "searching_at", "merging_at", "summarising_at", "indexing_at", "finishing_at", "finished_at"
)  # fmt: skip
_BLOCK_MS = 1000
#: Stands for the state of a job that cannot be read.
UNREADABLE = "unreadable"
#: Seconds past a job's time after which nobody waits for its end any more: the reaper has ended it before that.
PAST_TIME_S = 90.0


class JobReader:
    """What a plain Redis client could read, as models."""

    def __init__(self, client: Redis) -> None:
        self._client, self._clock = client, ServerClock(client)

    def patience_s(self, status: JobStatus) -> float:
        """Seconds until a job's own time and 90 s more are over, by Redis' clock. Raises: RedisError."""
        return status.ends_by + PAST_TIME_S - self._clock.now()

    def status(self, job_id: str, tenant: str | None = None) -> JobStatus:
        """How far a job is, in one round trip. `tenant`: whose it has to be; None: anybody's.

        Raises: NotFoundError, RamifyError for one that cannot be read.
        """
        keys = JobKeys(job_id)
        with readable(job_id), self._client.pipeline(transaction=False) as pipe:
            pipe.hgetall(keys.job)
            pipe.lrange(keys.warnings, 0, -1)
            pipe.hgetall(keys.work)
            raw, warnings, work = pipe.execute(raise_on_error=False)
            if tenant is not None and (damaged(raw) or raw.get(b"tenant") != tenant.encode()):
                raise no_such_job(job_id)
            found = _of_reply(job_id, raw, warnings)
            if isinstance(found, DamagedError):
                raise found
        if found is None:
            raise no_such_job(job_id)
        return found if found.terminal else found.model_copy(update={"postponed": _postponed(work)})

    def statuses(self, job_ids: list[str]) -> list[JobStatus]:
        """How far these jobs are, in one round trip; unknown ones are left out.

        One that cannot be read is `UNREADABLE`. What can be read in part says in its warnings what cannot.
        """
        found = list[JobStatus]()
        for job_id, status in zip(job_ids, self._statuses(job_ids), strict=True):
            if isinstance(status, DamagedError):
                found.append(unreadable_status(job_id, str(status)))
            elif status is not None:
                found.append(status)
        return found

    def _statuses(self, job_ids: list[str]) -> list[JobStatus | DamagedError | None]:
        with self._client.pipeline(transaction=False) as pipe:
            for job_id in job_ids:
                pipe.hgetall(JobKeys(job_id).job)
                pipe.lrange(JobKeys(job_id).warnings, 0, -1)
            rows = pipe.execute(raise_on_error=False)
        replies = zip(job_ids, rows[::2], rows[1::2], strict=True)
        return [_of_reply(job_id, raw, warnings) for job_id, raw, warnings in replies]

    def answer(self, job_id: str) -> Answer | None:
        """The answer, or None while there is none (see `status` for why). Raises: RamifyError for a damaged one."""
        try:
            with damage_named():
                blob = self._client.get(JobKeys(job_id).answer)
                return None if blob is None else unpack_answer(blob)
        except (ValueError, DamagedError) as error:
            kind = type(error).__name__
            raise RamifyError(f"the answer of job {job_id} cannot be read ({kind}): ask the question again") from None

    def manifest(self, job_id: str) -> Manifest | None:
        """What the answer rests on; None where there is none. Raises: RamifyError for a damaged one."""
        try:
            with damage_named():
                return unpack_or_none(self._client.get(JobKeys(job_id).manifest), Manifest)
        except (ValueError, TypeError, DamagedError) as error:
            kind = type(error).__name__
            raise RamifyError(f"the manifest of job {job_id} cannot be read ({kind}): ask the question again") from None

    def past_events(self, job_id: str) -> Iterator[JobEvent]:
        """The events so far, as many as are kept."""
        with readable(job_id):
            entries: Any = self._client.xrange(JobKeys(job_id).events)
        for entry_id, fields in entries:
            for data in events_of(fields):
                yield _event(text(entry_id), data)

    def events(self, job_id: str, timeout_s: float | None, after: str = "0") -> Iterator[JobEvent]:
        """Events from the beginning (or after an id) until the job ends or `timeout_s` is over (None: its own time)."""
        key, status = JobKeys(job_id).events, self.status(job_id)
        end = None if timeout_s is None else time.monotonic() + timeout_s
        if after == "0" and status.state == "queued" and not self._client.exists(key):
            after = f"{max(1, int(status.created_at * 1000))}-0"  # as the scripts begin the stream later
            yield JobEvent(id=after, type="state", data={"state": "queued"})
        while (left := self.patience_s(status) if end is None else end - time.monotonic()) > 0:
            block = max(1, min(_BLOCK_MS, int(left * 1000)))
            reply: Any
            with readable(job_id):
                reply = self._client.xread({key: after}, count=200, block=block)
            if not reply and end is None:
                status = self.status(job_id)  # its turn may have come
            for _, entries in reply or []:
                for entry_id, fields in entries:
                    *told, last = events_of(fields) or [{}]
                    for data in told:  # whoever goes on behind one of them is told all again
                        yield _event(after, data)
                    after = text(entry_id)
                    event = _event(after, last)
                    yield event
                    if event.type == "state" and event.data.get("state") in TERMINAL:
                        return


def _event(entry_id: str, data: dict[str, str]) -> JobEvent:
    return JobEvent(id=entry_id, type=data.pop("type", "unknown"), data=data)


@contextmanager
def readable(found_id: str, what: str = "job") -> Iterator[None]:
    """An error in the block that says that stored data of the job, or other `what`, cannot be read: a RamifyError."""
    try:
        with damage_named():
            yield
    except DamagedError as error:
        raise RamifyError(f"{what} {found_id} cannot be read: {error}; `ramify why {found_id}` says more") from error


def _of_reply(job_id: str, raw: Any, warnings: Any) -> JobStatus | DamagedError | None:
    said = () if damaged(warnings) else tuple(map(text, warnings))
    return damaged(raw) or (_status(job_id, {text(k): v for k, v in raw.items()}, said) if raw else None)


def _postponed(work: Any) -> dict[str, Postponement]:
    """The items of a job's work that wait for a server; none where the work cannot be read."""
    items = {} if isinstance(work, Exception) else read_work(work)
    return {name: item.postponed for name, item in sorted(items.items()) if item.postponed is not None}


def unreadable_status(job_id: str, why: str) -> JobStatus:
    """Stands for a job of which nothing can be read."""
    made = id_time(job_id)
    return JobStatus(
        job_id=job_id, state=UNREADABLE, question="", lane="", tenant="", created_at=made, updated_at=made,
        warnings=(f"This job cannot be read: {why}.",),
    )  # fmt: skip


def _status(job_id: str, raw: Mapping[str, object], warnings: tuple[str, ...]) -> JobStatus:
    faults = list[str]()
    fields = Fields(raw, faults)
    optional = {
        name: fields.text(name) or None for name in ("batch_id", "error", "retry_of", "retried_as", "replay_of")
    }
    status = JobStatus(
        job_id=job_id,
        state=fields.needed("state", UNREADABLE),
        question=fields.needed("question"),
        lane=fields.needed("lane"),
        tenant=fields.needed("tenant"),
        **optional,
        **{name: fields.whole(name) for name in ("leaves_total", "leaves_done", "leaves_failed")},
        **{name: fields.number(name, id_time(job_id)) for name in ("created_at", "updated_at")},
        deadline_s=fields.number("deadline_s", 0.0),
        **{name: fields.number(name, 0.0) or None for name in ("waits_until", "deadline_at", "finished_at")},
        partial=fields.text("partial") == "1",
        route=_route(fields, faults),
        degraded=codes(fields.text("degraded")),
        degraded_at=degraded_at({name: fields.text(name) for name in raw}),
        verdicts=codes(fields.text("verdicts")),
        stale=marks_in({name: fields.text(name) for name in raw if name.startswith(MARK)}),
        cost=Cost(**{name: max(0, fields.whole(f"cost:{name}")) for name in Cost.model_fields}),
        budget=_budget(raw, faults),
        ingest=ingest_counts(fields, raw) if "ingest:files" in raw else None,
        timings_ms=stage_timings(fields),
    )
    unread = tuple(f"Something of this job cannot be read: {fault}." for fault in dict.fromkeys(faults))
    return status.model_copy(update={"warnings": (*warnings, *unread)})


def _route(fields: Fields, faults: list[str]) -> Route | None:
    try:
        return stored(Route, raw, "its route") if (raw := fields.text("route")) else None
    except DamagedError as error:
        faults.append(str(error))
        return None


def _budget(raw: Mapping[str, object], faults: list[str]) -> Spending | None:
    try:
        return spending({name: text(value) for name, value in raw.items()}, time.time())
    except (ValueError, KeyError):
        faults.append("its budget cannot be read")
        return None


def degraded_at(fields: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The reasons in a job's hash by item of its work."""
    return {name.partition(":")[2]: codes(value) for name, value in fields.items() if name.startswith("degraded:")}


def stage_timings(fields: Fields) -> dict[str, float]:
    """Milliseconds spent waiting (queued) and in each stage that has ended, and in total."""
    times = {"queued": fields.number("created_at", 0.0)}
    times |= {name.removesuffix("_at"): fields.number(name, 0.0) for name in _STAGES}
    begun = [(name, at) for name, at in times.items() if at]
    if not begun:
        return {}
    spans = {name: round((end - start) * 1000, 1) for (name, start), (_, end) in pairwise(begun)}
    spans["total"] = round((begun[-1][1] - begun[0][1]) * 1000, 1)
    return spans
