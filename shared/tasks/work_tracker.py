"""Notes which items this process is at, so that the reaper sees what is lost, and retires poison messages."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Thread

from redis.exceptions import RedisError

from shared.connections.heartbeat import alive_workers
from shared.contract import TaskMessage, TaskName
from shared.errors import DamagedError, shown
from shared.jobs import JobStore, State
from shared.jobs.dead_letters import DeadLetterStore
from shared.jobs.work import Attempt, StartedWork, WorkItem, too_many_deaths
from shared.models.status import DeadLetter
from shared.tasks.signatures import Delivery

log = logging.getLogger("ramify.watch")
#: Seconds between two notes about the same queue and priority.
_NOTE_S = 1.0
_RETRY_S = 1.0
#: Node states in which a task has something to do. Not rerank.leaf: a reranked leaf may still have to start others.
_WORKS_ON = {
    TaskName.SEARCH_LEAF.value: {"pending"},
    TaskName.SEARCH_SHARD.value: {"pending"},
    TaskName.RERANK_COLUMNS.value: {"searched"},
    TaskName.PLAN_REFINE.value: {"open"},
    TaskName.INDEX_DOCUMENTS.value: {"pending"},
}
#: The state that a job is in when the message of a task of the whole job is sent, and until it is taken.
_SENT_IN = {
    TaskName.PLAN_JOB.value: State.QUEUED,
    TaskName.MERGE_TREE.value: State.SEARCHING,
    TaskName.RERANK_ROOT.value: State.MERGING,
    TaskName.MERGE_SUMMARISE.value: State.SUMMARISING,
    TaskName.INDEX_FINISH.value: State.INDEXING,
}


def already_done(task: str, node_state: str) -> bool:
    """True when the task of a node is done already: its message came twice, or late."""
    return task in _WORKS_ON and node_state not in _WORKS_ON[task]


def _first_copy(begun: StartedWork, task: str) -> bool:
    """True when the time of sending that the job tells is that of this message.

    Not where the reaper has renewed it, and not for a message that comes twice: its job or node has gone on since, or
    another worker is at it, and the time that stands there is that of a later message.
    """
    if begun.before.again or begun.before.busy is not None or begun.job is None:
        return False
    if task in _SENT_IN:
        return begun.job.state is _SENT_IN[task]
    return begun.node_state in (_WORKS_ON.get(task) or {"searched"})


class WorkTracker:
    """Notes begin and end of the tasks of one process."""

    def __init__(self, jobs: JobStore) -> None:
        self._jobs = jobs
        self._dead = DeadLetterStore(jobs.client, jobs.settings)
        self._noted_at: dict[str, float] = {}
        self._unended: deque[tuple[str, str, Attempt]] = deque()
        self._lock = Lock()
        self._ending: Thread | None = None

    @contextmanager
    def tracked(self, message: TaskMessage, task: str, came: Delivery, claimant: str = "") -> Iterator[StartedWork]:
        """Notes the begin, and the end when the block ends, however it does. `claimant`: the task's id.

        Raises: RedisError before the block, and DamagedError for a job that cannot be read.
        """
        item, attempt = message.node_id or task, self._jobs.work.attempt(task)
        try:
            begun = self._jobs.work.begin(message.job_id, item, task, attempt, claimant)
        except RedisError:  # Redis may have run it, and only the reply was lost
            self._end_when_possible(message.job_id, item, attempt)
            raise
        except Exception:  # noted, but the job cannot be read: nobody is at it
            self._end(message.job_id, item, attempt)
            raise
        if begun.before.again:  # lost, perhaps by a Redis that has lost more of its job
            self._jobs.known.forget(message.job_id)
        try:
            self._note_taken(begun, task, came)
            yield begun
        finally:
            if begun.job is not None and not begun.job.terminal and not begun.ended.is_set():
                self._end(message.job_id, item, attempt)

    def begun_before(self, message: TaskMessage, task: str) -> bool:
        """True for an item that a worker has begun, and not ended: it is still at it, or has died at it.

        Of a redelivered message RabbitMQ knows only that it was not acknowledged. Run at once, it would be done twice
        where only a connection was lost, and go on killing workers without waiting for its turn. The reaper knows
        which it was, and sends it again.
        """
        item = self._jobs.work.items(message.job_id).get(message.node_id or task)
        return item is not None and (item.busy is not None or bool(item.proof))

    def poison(self, begun: StartedWork, message: TaskMessage, task: str) -> DeadLetter | None:
        """The dead letter of an item that is not to be tried any more: too many workers died at it."""
        item, deaths, before = message.node_id or task, begun.before.deaths, begun.before.busy
        if before is not None and before.worker not in alive_workers(self._jobs.client, [before.worker]):
            deaths = max(
                deaths, self._jobs.work.record_death(message.job_id, item, begun.before.busy_raw, overtaken=True)
            )
        if begun.job is None or not too_many_deaths(
            deaths, begun.before.sole_deaths, self._jobs.settings.lanes.max_deaths
        ):
            return None
        dead_letter_id = f"{message.job_id}:{item}"
        reason = f"it killed its worker {deaths} times and is not tried again; `ramify dead show {dead_letter_id}`"
        log.error("%s of job %s, item %s: %s", task, message.job_id, item, reason)
        node = self._jobs.node(message.job_id, item) if message.node_id else None
        request = begun.job.request
        known = self._jobs.work.items(message.job_id).get(item, WorkItem())
        proof = tuple(str(one) for one in known.proof)
        return DeadLetter(
            id=dead_letter_id, kind="work", at=begun.attempt.begun_at, tenant=request.tenant, job_id=message.job_id,
            item=item, task=task, what=shown(node.query if node else request.question), reason=reason, proof=proof,
            namespace=request.filters.namespace,
        )  # fmt: skip

    def retire(self, dead_letter: DeadLetter, content: bytes = b"") -> None:
        """Keep a dead letter, with the document that it is about."""
        self._dead.add(dead_letter, content)

    def _note_taken(self, begun: StartedWork, task: str, came: Delivery) -> None:
        """Once a second per queue and priority: messages older than this one are no longer in its queue.

        Only where it is known when this one was sent (see `_first_copy`).
        """
        if begun.job is None or (came.sent_again is None and not _first_copy(begun, task)):
            return
        sent = came.sent_again or begun.before.sent_at or (begun.job.updated_at if task in _SENT_IN else 0.0)
        queue, rank = TaskName(task).queue.value, begun.job.rank if came.priority is None else came.priority
        name, now = f"{queue}:{rank}", time.monotonic()
        if now - self._noted_at.get(name, -_NOTE_S) < _NOTE_S:
            return
        self._noted_at[name] = now
        try:
            self._jobs.work.note_taken(queue, rank, sent)
        except RedisError as error:  # costs the reaper a hint
            log.warning("the latest message of %s could not be noted: %s", name, type(error).__name__)

    def _end(self, job_id: str, item: str, attempt: Attempt) -> None:
        """While Redis is unreachable the end is noted later: else this process would seem to be at the item still."""
        try:
            self._jobs.work.end(job_id, item, attempt)
        except DamagedError as error:  # then there are no marks either
            log.warning("the end of %s of job %s cannot be noted: %s", item, job_id, error)
        except RedisError:
            self._end_when_possible(job_id, item, attempt)

    def _end_when_possible(self, job_id: str, item: str, attempt: Attempt) -> None:
        with self._lock:
            self._unended.append((job_id, item, attempt))
            if self._ending is None or not self._ending.is_alive():
                self._ending = Thread(target=self._end_later, name="ended-steps", daemon=True)
                self._ending.start()

    def _end_later(self) -> None:
        while True:
            with self._lock:
                if not self._unended:
                    self._ending = None
                    return
                job_id, item, attempt = self._unended[0]
            try:
                with suppress(DamagedError):
                    self._jobs.work.end(job_id, item, attempt)
            except RedisError:
                time.sleep(_RETRY_S)
            else:
                with self._lock:
                    self._unended.popleft()
