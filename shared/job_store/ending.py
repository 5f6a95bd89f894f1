"""The ends of jobs: what follows from one is done once, by whoever comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from redis import Redis

from shared.clock import Clock
from shared.job_store.batches import Batches
from shared.job_store.codec import text
from shared.job_store.keys import ACTIVE, JobKeys
from shared.job_store.line import Lines
from shared.job_store.scripts import Scripts
from shared.job_store.states import TERMINAL, State
from shared.models import Lane
from shared.settings import Settings

_PAGE = 500
_FIELDS = ["state", "partial", "batch_id", "lane", "tenant", "leaves_total"]


class Endings:
    """Ends jobs, and settles what ended jobs leave: the count in the batch, the place in the line, the reaper's list.

    A process that dies between an end and its settling leaves the rest to the reaper, which settles again: that is
    harmless. May raise redis.exceptions.RedisError.
    """

    def __init__(self, client: Redis, settings: Settings, clock: Clock, batches: Batches, lines: Lines) -> None:
        self._client, self._settings, self._clock = client, settings, clock
        self._batches, self._lines = batches, lines
        self._run = Scripts(client)
        #: Called after jobs have ended here: their places in the lines are free.
        self.freed: Callable[[], None] = lambda: None

    def stop(self, job_ids: Iterable[str], state: State, reason: str) -> int:
        """Any open state -> failed, cancelled or expired. Returns how many ended by this call."""
        left, ended = iter(job_ids), 0
        while page := list(islice(left, _PAGE)):
            with self._client.pipeline(transaction=False) as pipe:
                for job_id in page:
                    self._stop(pipe, job_id, state, reason)
                verdicts = pipe.execute()
            stopped = [job_id for job_id, verdict in zip(page, verdicts, strict=True) if verdict]
            self.settle(stopped)
            ended += len(stopped)
        if ended:
            self.freed()
        return ended

    def _stop(self, pipe: Any, job_id: str, state: State, reason: str) -> None:
        keys, jobs = JobKeys(job_id), self._settings.jobs
        args = [f"{self._clock.now():.3f}", jobs.ttl_s, jobs.max_events, state.value, reason]
        self._run("stop", [keys.job, keys.candidates, keys.events], args, client=pipe)

    def settle(self, job_ids: Sequence[str]) -> None:
        """Count ended jobs in their batches, give back their places, take them off the reaper's list. Repeatable."""
        if not job_ids:
            return
        with self._client.pipeline(transaction=False) as pipe:
            for job_id in job_ids:
                pipe.hmget(JobKeys(job_id).job, _FIELDS)
            rows = pipe.execute()
        with self._client.pipeline(transaction=False) as pipe:
            for job_id, row in zip(job_ids, rows, strict=True):
                self._settle(pipe, job_id, [text(value) if value is not None else "" for value in row])
            pipe.zrem(ACTIVE, *job_ids)
            pipe.execute()

    def _settle(self, pipe: Any, job_id: str, row: Sequence[str]) -> None:
        state, partial, batch_id, lane, tenant, leaves = row
        if state not in TERMINAL:
            return
        if batch_id:
            self._batches.count(batch_id, job_id, State(state), partial=partial == "1", client=pipe)
        had = int(leaves) if leaves.isdecimal() else 0
        self._lines.leave(job_id, Lane(lane), tenant, had, client=pipe)
