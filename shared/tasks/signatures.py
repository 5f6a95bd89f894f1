"""Builds a job's chord, adds to it while it runs, and dispatches admitted jobs.

Header: `search -> rerank` for every leaf, `shard` for every part of a list, `refine` for every branch. Body: merge ->
root rerank -> summarise. A leaf that waits for others is not in the header: the last of these adds it.
All signatures are immutable and carry ids only; results live in the job store.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from celery import Celery, Signature, Task, chain, chord
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from shared.connections.addresses import Address
from shared.connections.redis_errors import redis_fault, unforeseen_fault
from shared.contract import PRIORITY_STEPS, TaskMessage, TaskName
from shared.errors import NotRunningError
from shared.jobs import JobStore
from shared.jobs.ingests import NextItems
from shared.jobs.scripts import grown_branches
from shared.models import Node, NodeKind
from shared.tasks.app import settings_of
from shared.tasks.broker import reached
from shared.tasks.together import sent_together
from shared.tracing import spans

if TYPE_CHECKING:
    AnyTask = Task[..., Any]
else:
    AnyTask = Task

log = logging.getLogger("ramify.dispatch")
#: Header of a message that the reaper has sent again: when (Unix seconds, text).
_SENT_AGAIN = "ramify_sent_again"


@dataclass(frozen=True)
class Delivery:
    """How a message came: its priority, and when the reaper had sent it again, if it did (Unix seconds).

    `redelivered`: another worker had it before, as RabbitMQ says; it may have begun.
    """

    priority: int | None = None
    sent_again: float | None = None
    redelivered: bool = False


def delivery(request: Any) -> Delivery:
    """The delivery of a task's request."""
    again, info = getattr(request, _SENT_AGAIN, None), getattr(request, "delivery_info", None) or {}
    by = info.get("priority")
    try:
        at = None if again is None else float(again)
    except (TypeError, ValueError, OverflowError):
        at = None
    at = at if at is None or math.isfinite(at) else None
    return Delivery(by if by in PRIORITY_STEPS else None, at, info.get("redelivered") is True)


def sent_again(signature: Signature, at: float) -> Signature:
    """`signature` with a header in its first message: sent again by the reaper at `at` (Unix seconds)."""
    first = signature.tasks[0] if isinstance(signature, chain) else signature
    first.set(headers={_SENT_AGAIN: f"{at:.3f}"})
    return signature


def task_signature(app: Celery, name: TaskName, message: TaskMessage, priority: int) -> Signature:
    """One task: its queue comes from the contract, its priority from its job, nobody waits for its result."""
    if (traceparent := spans.carried(message.job_id)) is not None:
        message = message.but(traceparent=traceparent)
    return app.signature(
        name.value,
        args=(message.wire(),),
        immutable=True,
        queue=name.queue.value,
        priority=priority,
        ignore_result=True,
    )


def node_signature(app: Celery, job_id: str, priority: int, node: Node) -> Signature:
    """A node's part of the chord: a leaf is searched, then reranked; a list's shard is read; a branch is refined."""
    message = TaskMessage(job_id=job_id, node_id=node.id)
    if node.kind is NodeKind.BRANCH:
        return task_signature(app, TaskName.PLAN_REFINE, message, priority)
    if node.shard is not None:
        return task_signature(app, TaskName.SEARCH_SHARD, message, priority)
    both = (task_signature(app, name, message, priority) for name in (TaskName.SEARCH_LEAF, TaskName.RERANK_LEAF))
    return chain(*both, app=app)


def merge_signature(app: Celery, job_id: str, priority: int, *, force: bool = False) -> Signature:
    """What runs when every node has ended: tree merge, root rerank, summary.

    The merge takes the root rerank out where only the question's own leaf has found something (see `skip_next`).
    """
    message = TaskMessage(job_id=job_id)
    return chain(
        task_signature(app, TaskName.MERGE_TREE, message.model_copy(update={"force": force}), priority),
        task_signature(app, TaskName.RERANK_ROOT, message, priority),
        task_signature(app, TaskName.MERGE_SUMMARISE, message, priority),
        app=app,
    )


def send_turn(app: Celery, job_id: str, priority: int, turn: NextItems) -> None:
    """Send what follows from a change of an ingest: its next items, or its end where none is open any more."""
    for item in turn.send:
        message = TaskMessage(job_id=job_id, node_id=item)
        task_signature(app, TaskName.INDEX_DOCUMENTS, message, priority).apply_async()
    if turn.taken and turn.open == 0:
        task_signature(app, TaskName.INDEX_FINISH, TaskMessage(job_id=job_id), priority).apply_async()


def job_chord(app: Celery, job_id: str, priority: int, nodes: Iterable[Node]) -> Signature:
    """The one chord of a job over the nodes that can start; refined nodes add children, leaves those that waited."""
    nodes = tuple(nodes)
    grown = grown_branches(nodes)
    ready = (node for node in nodes if not node.depends_on and node.id not in grown)
    header = [node_signature(app, job_id, priority, node) for node in ready]
    return chord(header, merge_signature(app, job_id, priority), app=app)


def send_chord(app: Celery, work: Signature) -> None:
    """Send the members of a chord, together; or `work` that is none. Raises: RedisError, OperationalError.

    The messages are those of Celery, which clones and freezes each signature before: nobody waits for their results.
    """
    if not isinstance(work, chord):
        work.apply_async(ignore_result=True)
        return
    untyped: Any = work
    with reached(settings_of(app)), app.producer_or_acquire(), sent_together():
        for member in untyped.tasks:
            first, *rest = getattr(member, "tasks", [member])  # the chains of a chord are no instances of `chain`
            (rest or [first])[-1].set(chord=untyped.body)
            first.apply_async(chain=rest[::-1])


def skip_next(task: AnyTask, name: TaskName) -> None:
    """Take the next task out of the running chain if it is `name`: there is nothing for it to do.

    Celery sends the last of `request.chain` when the running task returns.
    """
    rest: Any = task.request.chain  # celery-types says str; it is a list of signatures, the next one last
    if rest and rest[-1]["task"] == name.value:
        rest.pop()


def skip_rest(task: AnyTask) -> None:
    """Take all that follows out of the running chain, as `skip_next` does with one task."""
    rest: Any = task.request.chain
    if rest:
        rest.clear()


def add_to_chord(task: AnyTask, signature: Signature) -> None:
    """Add to the chord of the running task; send it on its own when the reaper has sent that task again."""
    if task.request.chord:
        task.add_to_chord(signature)
    else:
        signature.apply_async()


class Dispatcher:
    """Admits waiting jobs and sends the first message of each. Repeatable; the reaper sends again what gets lost."""

    def __init__(self, app: Celery, jobs: JobStore) -> None:
        self._app, self._jobs = app, jobs

    def run(self) -> int:
        """Admit jobs while there is room; returns how many. Raises: RedisError, OperationalError."""
        sent = 0
        for job_id, priority in self._jobs.admit():
            task_signature(self._app, TaskName.PLAN_JOB, TaskMessage(job_id=job_id), priority).apply_async()
            sent += 1
        return sent

    def try_run(self) -> None:
        """As `run`, after something else has succeeded: a failure is logged, not raised."""
        try:
            self.run()
        except (RedisError, OperationalError) as error:
            log.warning("%s; jobs that wait are let in when it answers again", self._said(error))

    def _said(self, error: Exception) -> str:
        """Of RabbitMQ the error is a sentence already."""
        if isinstance(error, NotRunningError):
            return str(error)
        fault = redis_fault(error) or unforeseen_fault(error)
        return f"Redis at {Address(self._jobs.settings.redis).label} {fault}"
