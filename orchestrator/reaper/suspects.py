"""Work that has killed workers twice is tried alone: one at a time in each queue, that is, on each pool.

What died beside it may be innocent; alone it either ends, or convicts itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from redis import Redis

from orchestrator.reaper.view import Missing
from shared.contract import Queue, TaskName
from shared.job_store import TERMINAL, JobStore, State
from shared.job_store.codec import text
from shared.job_store.keys import PREFIX, JobKeys

#: A key for each queue, by its name: "<job id> <item>" of the one that is tried now.
SLOTS = {queue: f"{PREFIX}:{{reaper}}:suspect:{queue.value}" for queue in Queue}
#: Seconds after which the next suspect is tried, whatever became of the last one.
_SLOT_S = 20
_ENDED = frozenset({"done", "failed", "grown"})
#: States of a job in which a step of the whole is still to be done.
_OPEN = {
    TaskName.PLAN_JOB.value: {State.QUEUED, State.PLANNING},
    TaskName.MERGE_TREE.value: {State.SEARCHING, State.MERGING},
    TaskName.MERGE_SUMMARISE.value: {State.SUMMARISING},
}


class Suspects:
    """The places for suspects. May raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    def let_go(self, jobs: JobStore) -> None:
        """The next ones may be tried as soon as the last have ended."""
        for (queue, slot), held in zip(SLOTS.items(), self._client.mget(SLOTS.values()), strict=True):
            if held is not None and self._has_left(jobs, queue, text(held)):
                self._client.delete(slot)

    @staticmethod
    def _has_left(jobs: JobStore, queue: Queue, name: str) -> bool:
        job_id, _, item = name.partition(" ")
        keys = JobKeys(job_id)
        with jobs.client.pipeline(transaction=False) as pipe:
            pipe.hget(keys.job, "state")
            pipe.hget(keys.leaves, item)
            state, node = pipe.execute()
        over = state is None or text(state) in TERMINAL
        if over or node is None:
            return over or text(state) not in _OPEN.get(item, ())
        return text(node) in _ENDED or (queue is Queue.SEARCH and text(node) == "searched")

    def one_at_a_time(self, job_id: str, missing: Iterable[Missing]) -> Iterator[Missing]:
        """Everything but the suspects, and of these the one that may be tried now."""
        for one in missing:
            if not one.suspect or self._may(SLOTS[one.task.queue], f"{job_id} {one.item}"):
                yield one

    def _may(self, slot: str, name: str) -> bool:
        """A suspect that is missing again while it holds the place has died again: it may go on, and be convicted."""
        if self._client.set(slot, name, nx=True, ex=_SLOT_S):
            return True
        held = self._client.get(slot)
        if held is not None and text(held) == name:
            self._client.set(slot, name, ex=_SLOT_S)
            return True
        return False
