"""Reading jobs for people and programs: status, events, answer. Changes nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from redis import Redis

from shared.errors import RamifyError
from shared.jobs import codec
from shared.jobs.budget import spending
from shared.jobs.codec import text
from shared.jobs.keys import RECENT, JobKeys
from shared.jobs.states import TERMINAL
from shared.jobs.tenant_scope import no_such_job
from shared.models import Answer, Cost, JobEvent, JobStatus
from shared.models.degraded import codes
from shared.models.route import Route

_STAGES = ("planning_at", "searching_at", "merging_at", "summarising_at", "finished_at")
_BLOCK_MS = 1000
_PAGE = 500
#: Seconds past a job's time after which nobody waits for its end any more: the reaper has ended it before that.
PAST_TIME_S = 90.0


class JobReader:
    """What a plain Redis client could read, as models."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    def status(self, job_id: str) -> JobStatus:
        """How far a job is. Raises: NotFoundError."""
        found = self.statuses([job_id])
        if not found:
            raise no_such_job(job_id)
        return found[0]

    def statuses(self, job_ids: list[str]) -> list[JobStatus]:
        """How far these jobs are, in one round trip; unknown ones are left out."""
        with self._client.pipeline(transaction=False) as pipe:
            for job_id in job_ids:
                pipe.hgetall(JobKeys(job_id).job)
                pipe.lrange(JobKeys(job_id).warnings, 0, -1)
            rows = pipe.execute()
        found = []
        for raw, warnings in zip(rows[::2], rows[1::2], strict=True):
            fields = {text(k): text(v) for k, v in raw.items()}
            if "state" in fields:
                found.append(_status(fields, tuple(text(w) for w in warnings)))
        return found

    def recent(self, limit: int = 20, tenant: str | None = None) -> list[JobStatus]:
        """The newest jobs, newest first; of all tenants or of one."""
        found, page = list[JobStatus](), max(limit, _PAGE)
        for start in range(0, sys.maxsize, page):
            ids = [text(job_id) for job_id in self._client.zrevrange(RECENT, start, start + page - 1)]
            own = ids if tenant is None else self._of_tenant(ids, tenant)
            found += self.statuses(own[: max(0, limit - len(found))])
            if len(found) >= limit or len(ids) < page:
                break
        return found

    def _of_tenant(self, job_ids: list[str], tenant: str) -> list[str]:
        with self._client.pipeline(transaction=False) as pipe:
            for job_id in job_ids:
                pipe.hget(JobKeys(job_id).job, "tenant")
            owners = pipe.execute()
        return [job_id for job_id, owner in zip(job_ids, owners, strict=True) if owner and text(owner) == tenant]

    def answer(self, job_id: str) -> Answer | None:
        """The answer, or None while there is none (see `status` for why). Raises: RamifyError for a damaged one."""
        try:
            return codec.unpack_or_none(self._client.get(JobKeys(job_id).answer), Answer)
        except ValueError as error:
            kind = type(error).__name__
            raise RamifyError(f"the answer of job {job_id} cannot be read ({kind}): ask the question again") from None

    def events(self, job_id: str, timeout_s: float | None, after: str = "0") -> Iterator[JobEvent]:
        """Events from the beginning (or after an id) until the job ends or `timeout_s` is over (None: its own time)."""
        key, status = JobKeys(job_id).events, self.status(job_id)
        end = None if timeout_s is None else time.monotonic() + timeout_s
        if after == "0" and status.state == "queued" and not self._client.exists(key):
            after = f"{max(1, int(status.created_at * 1000))}-0"  # as the scripts begin the stream later
            yield JobEvent(id=after, type="state", data={"state": "queued"})
        while (left := status.ends_by + PAST_TIME_S - time.time() if end is None else end - time.monotonic()) > 0:
            block = max(1, min(_BLOCK_MS, int(left * 1000)))
            reply: Any = self._client.xread({key: after}, count=200, block=block)
            if not reply and end is None:
                status = self.status(job_id)  # its turn may have come
            for _, entries in reply or []:
                for entry_id, fields in entries:
                    after, data = text(entry_id), {text(k): text(v) for k, v in fields.items()}
                    event = JobEvent(id=after, type=data.pop("type", "unknown"), data=data)
                    yield event
                    if event.type == "state" and event.data.get("state") in TERMINAL:
                        return


def _status(fields: dict[str, str], warnings: tuple[str, ...]) -> JobStatus:
    plain = ("state", "question", "lane", "tenant", "leaves_total", "leaves_done", "leaves_failed", "created_at")
    times = ("finished_at", "waits_until", "deadline_s", "deadline_at")
    optional = (*times, "batch_id", "error", "retry_of", "retried_as")
    found: dict[str, object] = {name: fields[name] for name in (*plain, "updated_at")}
    found |= {name: fields[name] for name in optional if fields.get(name)}
    at = {name.partition(":")[2]: codes(value) for name, value in fields.items() if name.startswith("degraded:")}
    costs = {name.removeprefix("cost:"): int(value) for name, value in fields.items() if name.startswith("cost:")}
    return JobStatus.model_validate(
        found
        | {
            "job_id": fields["id"],
            "partial": fields.get("partial") == "1",
            "route": Route.model_validate_json(fields["route"]) if fields.get("route") else None,
            "warnings": warnings,
            "degraded": codes(fields.get("degraded", "")),
            "degraded_at": at,
            "cost": Cost(**costs),
            "budget": spending(fields, time.time()),
            "timings_ms": stage_timings(fields),
        }
    )


def stage_timings(fields: dict[str, str]) -> dict[str, float]:
    """Milliseconds spent waiting (queued) and in each stage that has ended, and in total."""
    begun = [("queued", float(fields["created_at"]))]
    begun += [(name.removesuffix("_at"), float(fields[name])) for name in _STAGES if fields.get(name)]
    spans = {name: round((end - start) * 1000, 1) for (name, start), (_, end) in pairwise(begun)}
    spans["total"] = round((begun[-1][1] - begun[0][1]) * 1000, 1)
    return spans
