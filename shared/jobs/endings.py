"""The ends of jobs, and the links between an ended job and the one that tries it again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from redis import Redis

from shared.connections.clock import ServerClock
from shared.jobs.admission import AdmissionQueues, waited_too_long
from shared.jobs.fields import Fields, damaged, read_fields
from shared.jobs.keys import ACTIVE, BatchKeys, JobKeys
from shared.jobs.scripts import Scripts
from shared.jobs.states import TERMINAL, State
from shared.models import Lane
from shared.settings import Settings

_PAGE = 500
_FIELDS = ("state", "lane", "tenant", "leaves_total")
_RETRY_FIELDS = ("state", "partial", "tenant", "retried_as", "request", "degraded", "stale")
_STATES, _LANES = frozenset(State), frozenset(Lane)


class Endings:
    """Ends jobs, which counts them in their batches, and finalises them: the place in admission, the reaper's list.

    `stop` calls `finalise`, which gives back the place by `AdmissionQueues.leave`, then `on_end`, which admits more
    jobs; `JobStore.finish` does both for a job that is done.

    A process that dies between an end and its finalising leaves the rest to the reaper, which repeats it: that is
    harmless. May raise redis.exceptions.RedisError.
    """

    def __init__(self, client: Redis, settings: Settings, clock: ServerClock, admission: AdmissionQueues) -> None:
        self._client, self._settings, self._clock = client, settings, clock
        self._admission = admission
        self._run = Scripts(client)
        #: Called after jobs have ended here: there is room for waiting ones.
        self.on_end: Callable[[], None] = lambda: None

    def stop(self, job_ids: Iterable[str], state: State, reason: str, *, unknown: bool = False) -> int:
        """Any open state -> failed, cancelled or expired. Returns how many ended by this call.

        `unknown`: also from a state that is missing, or that this release does not know. A job whose hash is no hash
        cannot be ended.
        """
        ended = self._end(job_ids, state, reason, unknown=unknown)
        if ended:
            self.on_end()
        return ended

    def expire(self, overdue: Mapping[str, float]) -> None:
        """End jobs that have waited too long: id -> seconds that it might wait. They leave no room for others."""
        by_reason = defaultdict[str, list[str]](list)
        for job_id, limit_s in overdue.items():
            by_reason[waited_too_long(limit_s)].append(job_id)
        for reason, job_ids in by_reason.items():
            self._end(job_ids, State.EXPIRED, reason)

    def _end(self, job_ids: Iterable[str], state: State, reason: str, *, unknown: bool = False) -> int:
        left, ended, jobs = iter(job_ids), 0, self._settings.jobs
        while page := list(islice(left, _PAGE)):
            with self._client.pipeline(transaction=False) as pipe:
                for job_id in page:
                    keys = JobKeys(job_id)
                    args = [f"{self._clock.now():.3f}", jobs.ttl_s, jobs.max_events, state.value, reason, int(unknown)]
                    self._run("stop", [keys.job, keys.candidates, keys.events], args, client=pipe)
                verdicts = pipe.execute(raise_on_error=False)
            stopped = [
                job_id for job_id, verdict in zip(page, verdicts, strict=True) if not damaged(verdict) and verdict
            ]
            self.finalise(stopped)
            ended += len(stopped)
        return ended

    def finalise(self, job_ids: Sequence[str]) -> None:
        """Give back the places of ended jobs, take them off the reaper's list. Repeatable."""
        if not job_ids:
            return
        rows = read_fields(self._client, job_ids, _FIELDS)
        with self._client.pipeline(transaction=False) as pipe:
            for job_id, (state, lane, tenant, leaves) in zip(job_ids, rows, strict=True):
                if state not in TERMINAL:
                    continue
                if lane in _LANES and tenant:  # else the reaper gives its place back: that says whose it is
                    had = Fields({"leaves": leaves}, []).whole("leaves")
                    self._admission.leave(job_id, Lane(lane), tenant, had, client=pipe)
            pipe.zrem(ACTIVE, *job_ids)
            for reply in pipe.execute(raise_on_error=False):
                damaged(reply)


class Again(StrEnum):
    """What a new job runs of an old one: what has no answer, besides what was degraded, or besides what is stale.

    The value is the field of a batch in which the new batches stand.
    """

    MISSING = "retries"
    DEGRADED = "repairs"
    STALE = "refreshes"

    @property
    def link(self) -> str:
        """The field of the old job that names the new one; "" where only `retried_as` does."""
        return {Again.DEGRADED: "repaired_by", Again.STALE: "refreshed_by"}.get(self, "")


@dataclass(frozen=True)
class EndedJob:
    """What a retry must know of a job.

    `request` is JSON; `retried_as` the job that tried it again last, or empty; `degraded` why it was made without
    something, as it is stored; `stale`: what its answer rests on has changed.
    """

    job_id: str
    state: State
    partial: bool
    tenant: str
    retried_as: str
    request: str
    degraded: str = ""
    stale: bool = False

    @property
    def open(self) -> bool:
        """True while it may still change."""
        return self.state not in TERMINAL

    @property
    def complete(self) -> bool:
        """True when there is nothing to try again."""
        return self.state is State.DONE and not self.partial


class Retries:
    """Reads and writes the links, at both ends of each. May raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings) -> None:
        self._client, self._jobs = client, settings.jobs
        self._run = Scripts(client)

    def read(self, job_ids: Iterable[str]) -> dict[str, EndedJob]:
        """These jobs in one round trip; those that are gone, or are no jobs, are left out."""
        wanted, found = list(job_ids), {}
        for job_id, row in zip(wanted, read_fields(self._client, wanted, _RETRY_FIELDS), strict=True):
            state, partial, tenant, retried_as, request, degraded, stale = row
            if state in _STATES and request and tenant:
                old = (State(state), partial == "1", tenant, retried_as, request, degraded)
                found[job_id] = EndedJob(job_id, *old, stale=stale not in {"", "0"})
        return found

    def claim(self, links: Mapping[str, tuple[str, str]], again: Again = Again.MISSING) -> list[str]:
        """Set the links of old jobs: old id -> (new id, link that was seen). `again`: what the new ones run.

        Returns the old ids whose link was still the one seen.
        """
        with self._client.pipeline(transaction=False) as pipe:
            for old, (new, seen) in links.items():
                self._run("claim_retry", [JobKeys(old).job], [new, seen, again.link], client=pipe)
            won = pipe.execute() if links else []
        return [old for old, mine in zip(links, won, strict=True) if mine]

    def again(self, old: str, new: str) -> Again:
        """What the job `new` runs again of `old`."""
        links = (Again.DEGRADED, Again.STALE)
        found = self._client.hmget(JobKeys(old).job, [one.link for one in links])
        return next((one for one, by in zip(links, found, strict=True) if by == new.encode()), Again.MISSING)

    def announce(self, news: Mapping[str, str]) -> None:
        """Add an event to old jobs with the id of the job that tries each again: new id -> old id."""
        with self._client.pipeline(transaction=False) as pipe:
            for new, old in news.items():
                keys, jobs = JobKeys(old), self._jobs
                self._run("retried", [keys.job, keys.events], [jobs.ttl_s, jobs.max_events, new], client=pipe)
            pipe.execute()

    def link_batch(self, new: str, old: str, again: Again) -> None:
        """Note at batch `old` that `new` tries its jobs again, and which."""
        self._run("link_batch", [BatchKeys(old).batch], [new, again.value])

    def record_resumed(self, job_id: str, old: str, leaves: int, total: int) -> None:
        """Note that a job has taken over `leaves` of the `total` leaves of `old`."""
        keys = JobKeys(job_id)
        args = [self._jobs.ttl_s, self._jobs.max_events, old, leaves, total]
        self._run("record_resumed", [keys.job, keys.events], args)
