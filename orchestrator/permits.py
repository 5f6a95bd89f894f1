"""How many jobs a caller may have open: a permit is taken before a job is made, so the limit holds between processes.

An open batch has one permit, however many lines it has: its jobs wait in the admission queue of the tenant.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from shared.connections.key_types import declare
from shared.errors import TooManyRequestsError
from shared.jobs import JobStore
from shared.jobs.keys import ACTIVE, PREFIX, BatchKeys
from shared.jobs.scripts import Scripts

#: + key id: sorted set: its open jobs and batches -> since when.
PERMITS = f"{PREFIX}:key_jobs:"
declare({f"{PERMITS}*": "zset"})
_TAKING, _BATCH = "taking:", "batch:"
#: Seconds for which a permit is held whose job is not known yet: the process that took it may have died.
_TAKING_S = 60
_RETRY_S = 5.0


class JobOrBatch(Protocol):
    """What names a job or a batch that was made."""

    @property
    def job_id(self) -> str | None: ...
    @property
    def batch_id(self) -> str | None: ...


Made = TypeVar("Made", bound=JobOrBatch)


class Permit:
    """A permit that was taken: `job` or `batch` says for what."""

    def __init__(self) -> None:
        self.name = ""

    def job(self, job_id: str) -> None:
        """It is this job's, until that has ended."""
        self.name = job_id

    def batch(self, batch_id: str) -> None:
        """It is this batch's, until all of its lines are read and its jobs have ended."""
        self.name = f"{_BATCH}{batch_id}"

    def of(self, made: Made) -> Made:
        """It is that of the job or batch that was made again. Returns `made`."""
        if made.batch_id or made.job_id:
            self.name = f"{_BATCH}{made.batch_id}" if made.batch_id else made.job_id or ""
        return made


class Permits:
    """As many as one likes: those of a caller without a key."""

    @contextmanager
    def take(self) -> Iterator[Permit]:
        """A permit for a job or batch that the block makes."""
        yield Permit()


class KeyPermits(Permits):
    """`most` permits, of the API key `key_id`. May raise redis.exceptions.RedisError."""

    def __init__(self, jobs: JobStore, key_id: str, most: int) -> None:
        self._jobs, self._key, self._most = jobs, PERMITS + key_id, most

    @contextmanager
    def take(self) -> Iterator[Permit]:
        """A permit for a job or batch that the block makes; given back where it makes none.

        Raises: TooManyRequestsError when all are taken.
        """
        now, taking, permit = self._jobs.clock.now(), f"{_TAKING}{secrets.token_hex(8)}", Permit()
        around = BatchKeys("|").batch.split("|")
        ttl = self._jobs.settings.jobs.ttl_s
        args = [f"{now:.3f}", ttl, self._most, taking, _TAKING, _TAKING_S, _BATCH, *around]
        if not Scripts(self._jobs.client)("take_permit", [self._key, ACTIVE], args):
            raise TooManyRequestsError(f"this key has {self._most:,} open jobs and batches, its limit: wait", _RETRY_S)
        try:
            yield permit
        finally:
            with self._jobs.client.pipeline(transaction=True) as pipe:
                pipe.zrem(self._key, taking)
                if permit.name:
                    pipe.zadd(self._key, {permit.name: now})
                    pipe.expire(self._key, ttl)
                pipe.execute()
