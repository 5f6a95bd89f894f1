"""Links between what has ended and what tries it again: noted at both, so that either leads to the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from redis import Redis

from shared.job_store.codec import text
from shared.job_store.keys import BatchKeys, JobKeys
from shared.job_store.scripts import Scripts
from shared.job_store.states import TERMINAL, State
from shared.settings import Settings

_FIELDS = ("state", "partial", "tenant", "retried_as", "request")
_STATES = frozenset(State)


@dataclass(frozen=True)
class Ended:
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

    def read(self, job_ids: Iterable[str]) -> dict[str, Ended]:
        """These jobs in one round trip; those that are gone, or are no jobs, are left out."""
        wanted = list(job_ids)
        with self._client.pipeline(transaction=False) as pipe:
            for job_id in wanted:
                pipe.hmget(JobKeys(job_id).job, list(_FIELDS))
            rows = pipe.execute() if wanted else []
        found = {}
        for job_id, values in zip(wanted, rows, strict=True):
            state, partial, tenant, retried_as, request = (text(value) if value is not None else "" for value in values)
            if state in _STATES and request and tenant:
                found[job_id] = Ended(job_id, State(state), partial == "1", tenant, retried_as, request)
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

    def tell(self, news: Mapping[str, str]) -> None:
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

    def took_over(self, job_id: str, old: str, leaves: int, total: int) -> None:
        """Note that a job has taken over `leaves` of the `total` leaves of `old`."""
        keys = JobKeys(job_id)
        args = [self._jobs.ttl_s, self._jobs.max_events, old, leaves, total]
        self._run("took_over", [keys.job, keys.events], args)
