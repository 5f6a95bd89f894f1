"""What shadow runs keep in Redis (E7): jobs on offer, open runs, comparisons, counts. Bounded, and with a TTL."""

from __future__ import annotations

import hashlib
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any, cast

from pydantic import ValidationError
from redis import Redis

from shared.job_store import codec
from shared.job_store.codec import text
from shared.job_store.keys import ACTIVE, PREFIX, RECENT, JobKeys, is_shadow
from shared.job_store.scripts import Scripts
from shared.models.ab import Comparison, OpenRun
from shared.settings import Settings

#: Jobs that wait to be tried; beyond that the oldest are dropped.
MOST_OFFERED = 1000
_PAGE = 500
_MINUTE_S = 60
_LOCK_S = 30


class AbKeys:
    """The keys of shadow runs. They share a hash tag: one script touches several."""

    def __init__(self) -> None:
        tag = f"{PREFIX}:{{ab}}"
        self.offered = f"{tag}:offered"  # list of ids of ended jobs, the newest first
        self.open = f"{tag}:open"  # hash: shadow id -> run as JSON
        self.runs = f"{tag}:runs"  # list of blobs, the newest comparison first
        self.counts = f"{tag}:counts"  # hash: what became of the jobs on offer -> how many
        self.minute = f"{tag}:minute"  # string: runs started in this minute
        self.now = f"{tag}:now"  # hash: strategy and share, while somebody looks after the runs
        self.lock = f"{tag}:lock"  # string: who looks after the runs now


def sampled(job_id: str, share: float) -> bool:
    """True for `share` (0..1) of all ids, and always for the same ones."""
    return int.from_bytes(hashlib.sha256(job_id.encode()).digest()[:8]) < share * 2**64


class AbStore:
    """All methods may raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings) -> None:
        self._client, self._settings = client, settings
        self._ttl, self._keys = settings.jobs.ttl_s, AbKeys()
        self._run = Scripts(client)

    # -- jobs on offer -----------------------------------------------------------------------------------------

    def offer(self, job_id: str) -> bool:
        """A live job has its answer: it is put on offer if shadow runs are on and it is one of their share."""
        shadow = self._settings.shadow
        if not shadow.on or is_shadow(job_id) or not sampled(job_id, shadow.share):
            return False
        with self._client.pipeline(transaction=True) as pipe:
            pipe.lpush(self._keys.offered, job_id)
            pipe.ltrim(self._keys.offered, 0, MOST_OFFERED - 1)
            pipe.expire(self._keys.offered, self._ttl)
            pipe.hincrby(self._keys.counts, "offered", 1)
            pipe.expire(self._keys.counts, self._ttl)
            pipe.execute()
        return True

    def take(self) -> str | None:
        """The job that has been on offer for longest, or None."""
        raw = cast("bytes | None", self._client.rpop(self._keys.offered))
        return text(raw) if raw is not None else None

    def waiting(self) -> int:
        """Jobs on offer."""
        return int(self._client.llen(self._keys.offered))

    # -- runs --------------------------------------------------------------------------------------------------

    def only_one(self) -> Any:
        """The lock under which runs are looked after."""
        return self._client.lock(self._keys.lock, timeout=_LOCK_S, blocking=False)

    def announce(self) -> None:
        """Say what is tried now; forgotten a minute after the last look."""
        shadow = self._settings.shadow
        with self._client.pipeline(transaction=True) as pipe:
            pipe.hset(self._keys.now, mapping={"strategy": shadow.strategy, "share": shadow.share})
            pipe.expire(self._keys.now, _MINUTE_S)
            pipe.execute()

    def announced(self) -> dict[str, str]:
        """What `announce` said: `strategy` and `share`, or nothing."""
        return {text(k): text(v) for k, v in self._client.hgetall(self._keys.now).items()}

    def open_runs(self) -> dict[str, OpenRun]:
        """Shadow id -> run."""
        rows = self._client.hgetall(self._keys.open)
        return {text(name): OpenRun.model_validate_json(raw) for name, raw in rows.items()}

    def live_jobs(self, open_runs: int) -> int:
        """Open jobs that are no shadow runs."""
        return max(0, int(self._client.zcard(ACTIVE)) - open_runs)

    def quiet_for(self) -> float:
        """Seconds since the newest live job came."""
        newest = self._client.zrevrange(RECENT, 0, 0, withscores=True)
        return max(0.0, time.time() - float(newest[0][1])) if newest else float("inf")

    def may_start(self) -> bool:
        """Counts one more run of this minute. False when the minute is full."""
        with self._client.pipeline(transaction=True) as pipe:
            pipe.set(self._keys.minute, 0, nx=True, ex=_MINUTE_S)
            pipe.incr(self._keys.minute)
            _, started = pipe.execute()
        return int(started) <= self._settings.shadow.per_minute

    def minute_is_full(self) -> bool:
        """True when no more run may start in this minute. Counts nothing."""
        raw = self._client.get(self._keys.minute)
        return raw is not None and int(text(raw)) >= self._settings.shadow.per_minute

    def begin(self, run_id: str, run: OpenRun) -> None:
        """Note a run before it starts, so that none is forgotten."""
        with self._client.pipeline(transaction=True) as pipe:
            pipe.hset(self._keys.open, run_id, run.model_dump_json())
            pipe.expire(self._keys.open, self._ttl)
            pipe.execute()

    def settle(self, run_id: str, name: str, comparison: Comparison | None = None) -> bool:
        """A run is over: count it under `name`, keep what came of it. False when that was done before."""
        blob = codec.pack(comparison) if comparison is not None else b""
        args = [run_id, self._ttl, name, self._settings.shadow.keep, blob]
        done = bool(self._run("ab_settle", [self._keys.open, self._keys.runs, self._keys.counts], args))
        self._client.delete(*vars(JobKeys(run_id)).values())
        return done

    def count(self, name: str) -> None:
        """Count a job on offer that was not tried, under the reason."""
        self._client.hincrby(self._keys.counts, name, 1)

    # -- what came of them -------------------------------------------------------------------------------------

    def counts(self) -> Counter[str]:
        """What became of the jobs on offer -> how many."""
        return Counter({text(k): int(text(v)) for k, v in self._client.hgetall(self._keys.counts).items()})

    def comparisons(self) -> Iterator[Comparison | None]:
        """The newest first; None for one that another release wrote, or that is damaged."""
        for start in count(0, _PAGE):
            page = self._client.lrange(self._keys.runs, start, start + _PAGE - 1)
            for blob in page:
                try:
                    yield codec.unpack(blob, Comparison)
                except (ValidationError, ValueError, TypeError, zlib.error):
                    yield None
            if len(page) < _PAGE:
                return

    def clear(self) -> None:
        """Forget comparisons, counts and what is on offer. Open runs are settled by whoever started them."""
        self._client.delete(self._keys.runs, self._keys.counts, self._keys.offered)
