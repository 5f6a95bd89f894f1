"""The jobs that are set aside because what is stored of them cannot be read: which, why and since when.

A job is set aside by whoever finds the damage, a task or the reaper. It keeps all that it has, and runs no further
until it can be read again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import NamedTuple

from redis import Redis

from shared.connections.clock import ServerClock
from shared.connections.key_types import declare
from shared.errors import DamagedError
from shared.jobs.codec import text
from shared.jobs.keys import PREFIX, JobKeys
from shared.jobs.scripts import Scripts
from shared.settings import Settings

#: Jobs that are remembered; each entry has less than a kilobyte.
MOST = 1000
_LONGEST = 500


class DamagedKeys:
    """Their keys. They share a hash tag."""

    tag = f"{PREFIX}:{{damaged}}"
    since = f"{tag}:since"  # sorted set: job id -> since when it is set aside
    jobs = f"{tag}:jobs"  # hash: job id -> why, as JSON
    count = f"{tag}:count"  # how many jobs have been set aside so far


declare({DamagedKeys.since: "zset", DamagedKeys.jobs: "hash", DamagedKeys.count: "string"})


class SetAside(NamedTuple):
    """Why a job is set aside, and since when (Unix seconds). `newer`: a newer release may own it.

    `news`: it was not set aside before.
    """

    reason: str
    newer: bool
    since: float
    news: bool = False


class DamagedJobs:
    """Reads and writes them. May raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings, clock: ServerClock) -> None:
        self._client, self._ttl, self._clock = client, settings.jobs.ttl_s, clock
        self._run = Scripts(client)

    def add(self, job_id: str, error: DamagedError) -> SetAside:
        """Set a job aside; again changes the reason alone."""
        reason = f"{error}{self._wrong_keys(job_id)}"[:_LONGEST]
        entry = json.dumps({"reason": reason, "newer": error.newer}, ensure_ascii=False)
        args = [f"{self._clock.now():.3f}", self._ttl, job_id, entry, MOST]
        since, news = self._run("set_aside", [DamagedKeys.since, DamagedKeys.jobs, DamagedKeys.count], args)
        return SetAside(reason, error.newer, float(text(since)), bool(news))

    def _wrong_keys(self, job_id: str) -> str:
        """The keys of the job whose type is another than theirs, as the end of a clause."""
        expected = JobKeys.types(job_id)
        with self._client.pipeline(transaction=False) as pipe:
            for key in expected:
                pipe.type(key)
            found = [text(kind) for kind in pipe.execute()]
        wrong = [
            f"{key.rpartition(':')[2]} is a {kind}, not a {right}"
            for (key, right), kind in zip(expected.items(), found, strict=True)
            if kind not in {right, "none"}
        ]
        return f" ({'; '.join(wrong)})" if wrong else ""

    def remove(self, job_ids: Iterable[str]) -> None:
        """These can be read again, have ended, or are gone."""
        ids = list(job_ids)
        if ids:
            with self._client.pipeline(transaction=True) as pipe:
                pipe.zrem(DamagedKeys.since, *ids)
                pipe.hdel(DamagedKeys.jobs, *ids)
                pipe.execute()

    def ids(self) -> list[str]:
        """All that are remembered, the one that is set aside for longest first."""
        return [text(job_id) for job_id in self._client.zrange(DamagedKeys.since, 0, -1)]

    def get(self, job_id: str) -> SetAside | None:
        """None for a job that is not set aside."""
        with self._client.pipeline(transaction=True) as pipe:
            pipe.zscore(DamagedKeys.since, job_id)
            pipe.hget(DamagedKeys.jobs, job_id)
            since, raw = pipe.execute()
        if since is None or raw is None:
            return None
        try:
            entry = json.loads(text(raw))
            return SetAside(str(entry["reason"]), bool(entry["newer"]), float(since))
        except (ValueError, TypeError, KeyError, RecursionError):  # written by somebody else
            return SetAside("nobody noted why", newer=False, since=float(since))

    def counts(self) -> tuple[int, int]:
        """How many are set aside now, and how many have been so far."""
        so_far = text(self._client.get(DamagedKeys.count) or 0)
        return int(self._client.zcard(DamagedKeys.since)), int(so_far) if re.fullmatch("[0-9]{1,18}", so_far) else 0
