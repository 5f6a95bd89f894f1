"""What jobs take of Redis' memory: measured on those that have ended last, and foreseen for those that are open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from redis import Redis

from shared.jobs.codec import text
from shared.jobs.keys import RECENT, JobKeys

_LOOKED_AT, _MEASURED = 60, 10
#: Bytes of a job of eight leaves, where none has ended yet.
_USUAL = 60_000


@dataclass(frozen=True)
class Footprint:
    """`job_bytes`: of a job that has ended, on average over `measured` of them; `limit`: 0 where Redis has none."""

    job_bytes: int
    measured: int
    used: int
    limit: int

    def too_much(self, jobs: int) -> bool:
        """Whether so many more answers do not fit."""
        return bool(self.limit) and self.used + jobs * self.job_bytes > self.limit

    @property
    def room(self) -> int:
        """How many more answers fit."""
        return max(0, self.limit - self.used) // max(1, self.job_bytes)


def footprint(client: Redis) -> Footprint:
    """Raises: redis.exceptions.RedisError."""
    newest: Any = client.zrevrange(RECENT, 0, _LOOKED_AT - 1)
    with client.pipeline(transaction=False) as pipe:
        for job_id in newest:
            pipe.hget(JobKeys(text(job_id)).job, "finished_at")
        pipe.info("memory")
        *ends, memory = pipe.execute()
    ended = [text(job_id) for job_id, end in zip(newest, ends, strict=True) if end][:_MEASURED]
    with client.pipeline(transaction=False) as pipe:
        for job_id in ended:
            for key in vars(JobKeys(job_id)).values():
                pipe.memory_usage(key, samples=0)
        total = sum(size or 0 for size in pipe.execute()) if ended else 0
    average = total // len(ended) if ended else _USUAL
    return Footprint(average, len(ended), int(memory["used_memory"]), int(memory.get("maxmemory", 0)))
