"""The ends of jobs: what follows from one is done once, by whoever comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from redis import Redis

from shared.connections.clock import Clock
from shared.jobs.admission import AdmissionQueues
from shared.jobs.batches import Batches
from shared.jobs.codec import text
from shared.jobs.keys import ACTIVE, BatchKeys, JobKeys
from shared.jobs.scripts import Scripts
from shared.jobs.states import TERMINAL, State
from shared.models import Lane
from shared.settings import Settings

_PAGE = 500
_FIELDS = ["state", "partial", "batch_id", "lane", "tenant", "leaves_total"]


class Endings:
    """Ends jobs, and settles what ended jobs leave: the count in the batch, the place in the line, the reaper's list.

    A process that dies between an end and its settling leaves the rest to the reaper, which settles again: that is
    harmless. May raise redis.exceptions.RedisError.
    """

    def __init__(
        self, client: Redis, settings: Settings, clock: Clock, batches: Batches, lines: AdmissionQueues
    ) -> None:
        self._client, self._settings, self._clock = client, settings, clock
        self._batches, self._lines = batches, lines
        self._run = Scripts(client)
        #: Called after jobs have ended here: their places in the lines are free.
        self.on_end: Callable[[], None] = lambda: None

    def stop(self, job_ids: Iterable[str], state: State, reason: str) -> int:
        """Any open state -> failed, cancelled or expired. Returns how many ended by this call."""
        left, ended = iter(job_ids), 0
        while page := list(islice(left, _PAGE)):
            with self._client.pipeline(transaction=False) as pipe:
                for job_id in page:
                    self._stop(pipe, job_id, state, reason)
                verdicts = pipe.execute()
            stopped = [job_id for job_id, verdict in zip(page, verdicts, strict=True) if verdict]
            self.finalise(stopped)
            ended += len(stopped)
        if ended:
            self.on_end()
        return ended

    def _stop(self, pipe: Any, job_id: str, state: State, reason: str) -> None:
        keys, jobs = JobKeys(job_id), self._settings.jobs
        args = [f"{self._clock.now():.3f}", jobs.ttl_s, jobs.max_events, state.value, reason]
        self._run("stop", [keys.job, keys.candidates, keys.events], args, client=pipe)

    def finalise(self, job_ids: Sequence[str]) -> None:
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


# --- Links between what has ended and what tries it again: noted at both, so that either leads to the other.

_RETRY_FIELDS = ("state", "partial", "tenant", "retried_as", "request")
_STATES = frozenset(State)


@dataclass(frozen=True)
class EndedJob:
    """What a retry must know of a job. `request` is JSON; `retried_as` the job that tried it again last, or empty."""

    job_id: str
    state: State
    partial: bool
    tenant: str
    retried_as: str
    request: str

    @property
    def open(self) -> bool:
        """True while it may still change."""
        return self.state not in TERMINAL

    @property
    def complete(self) -> bool:
        """True when there is nothing to try again."""
        return self.state is State.DONE and not self.partial


class Retries:
    """Reads and writes the links. May raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings) -> None:
        self._client, self._jobs = client, settings.jobs
        self._run = Scripts(client)

    def read(self, job_ids: Iterable[str]) -> dict[str, EndedJob]:
        """These jobs in one round trip; those that are gone, or are no jobs, are left out."""
        wanted = list(job_ids)
        with self._client.pipeline(transaction=False) as pipe:
            for job_id in wanted:
                pipe.hmget(JobKeys(job_id).job, list(_RETRY_FIELDS))
            rows = pipe.execute() if wanted else []
        found = {}
        for job_id, values in zip(wanted, rows, strict=True):
            state, partial, tenant, retried_as, request = (text(value) if value is not None else "" for value in values)
            if state in _STATES and request and tenant:
                found[job_id] = EndedJob(job_id, State(state), partial == "1", tenant, retried_as, request)
        return found

    def claim(self, links: Mapping[str, tuple[str, str]]) -> list[str]:
        """Set the links of old jobs: old id -> (new id, link that was seen).

        Returns the old ids for which nobody was quicker.
        """
        with self._client.pipeline(transaction=False) as pipe:
            for old, (new, seen) in links.items():
                self._run("claim_retry", [JobKeys(old).job], [new, seen], client=pipe)
            won = pipe.execute() if links else []
        return [old for old, mine in zip(links, won, strict=True) if mine]

    def announce(self, news: Mapping[str, str]) -> None:
        """Say in the events of old jobs as what they are tried again: new id -> old id."""
        with self._client.pipeline(transaction=False) as pipe:
            for new, old in news.items():
                keys, jobs = JobKeys(old), self._jobs
                self._run("retried", [keys.job, keys.events], [jobs.ttl_s, jobs.max_events, new], client=pipe)
            pipe.execute()

    def link_batch(self, new: str, old: str, seen: str) -> None:
        """Note both ways that batch `new` tries the jobs of batch `old` again."""
        with self._client.pipeline(transaction=False) as pipe:
            pipe.hset(BatchKeys(new).batch, "retry_of", old)
            self._run("claim_retry", [BatchKeys(old).batch], [new, seen], client=pipe)
            pipe.execute()

    def record_resumed(self, job_id: str, old: str, leaves: int, total: int) -> None:
        """Note that a job has taken over `leaves` of the `total` leaves of `old`."""
        keys = JobKeys(job_id)
        args = [self._jobs.ttl_s, self._jobs.max_events, old, leaves, total]
        self._run("took_over", [keys.job, keys.events], args)
