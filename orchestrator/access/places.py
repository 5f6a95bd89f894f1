"""How many jobs a key may have open: a place is taken before a job is made, so that the limit holds between processes.

An open batch has one place, however many lines it has: its jobs wait in the admission queue of the tenant.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from redis import Redis

from orchestrator.access.keys import AccessKeys
from shared.connections.clock import ServerClock
from shared.errors import TooManyRequestsError
from shared.jobs.keys import ACTIVE, BatchKeys
from shared.jobs.scripts import Scripts
from shared.settings import Settings

_TAKING, _BATCH = "taking:", "batch:"
#: Seconds for which a place is held whose job is not known yet: the process that took it may have died.
_TAKING_S = 60
_RETRY_S = 5.0


class Place:
    """A place that was taken: `job` or `batch` says for what."""

    def __init__(self) -> None:
        self.name = ""

    def job(self, job_id: str) -> None:
        """It is this job's, until that has ended."""
        self.name = job_id

    def batch(self, batch_id: str) -> None:
        """It is this batch's, until all of its lines are read and its jobs have ended."""
        self.name = f"{_BATCH}{batch_id}"


class Places:
    """The open jobs and batches of keys. May raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings) -> None:
        self._client, self._ttl = client, settings.jobs.ttl_s
        self._run = Scripts(client, __package__ or "")
        self._clock = ServerClock(client)

    @contextmanager
    def take(self, key_id: str, most: int) -> Iterator[Place]:
        """A place for a job that the block makes; given back where it makes none.

        Raises: TooManyRequestsError when `most` jobs and batches of the key are open.
        """
        places, now = AccessKeys.places + key_id, self._clock.now()
        taking, place = f"{_TAKING}{secrets.token_hex(8)}", Place()
        around = BatchKeys("|").batch.split("|")
        args = [f"{now:.3f}", self._ttl, most, taking, _TAKING, _TAKING_S, _BATCH, *around]
        if not self._run("take_place", [places, ACTIVE], args):
            raise TooManyRequestsError(f"this key has {most:,} open jobs and batches, its limit: wait", _RETRY_S)
        try:
            yield place
        finally:
            with self._client.pipeline(transaction=True) as pipe:
                pipe.zrem(places, taking)
                if place.name:
                    pipe.zadd(places, {place.name: now})
                pipe.execute()
