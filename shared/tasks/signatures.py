"""Builds a job's chord, and adds members to it while it runs. Sends nothing by itself.

Header: `search -> rerank` for every leaf, `shard` for every part of a list, `refine` for every branch. Body: merge ->
root rerank -> summarise. A leaf that waits for others is no member yet: the last of these adds it.
All signatures are immutable and carry ids only; results live in the job store.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from celery import Celery, Signature, Task, chain, chord
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from shared.contract import TaskMessage, TaskName
from shared.jobs import JobStore
from shared.jobs.scripts import grown_branches
from shared.models import Node, NodeKind

if TYPE_CHECKING:
    AnyTask = Task[..., Any]
else:
    AnyTask = Task


#: Header of a message that the reaper has sent again: when (Unix seconds, text).
_SENT_AGAIN = "ramify_sent_again"


@dataclass(frozen=True)
class Delivery:
    """How a message came: by which priority of its queue, and when the reaper had sent it again, if it did."""

    priority: int | None = None
    sent_again: float | None = None


def delivery(request: Any) -> Delivery:
    """That of a task's request."""
    again, by = getattr(request, _SENT_AGAIN, None), (getattr(request, "delivery_info", None) or {}).get("priority")
    try:
        return Delivery(by if isinstance(by, int) else None, None if again is None else float(again))
    except (TypeError, ValueError):
        return Delivery()


def sent_again(signature: Signature, at: float) -> Signature:
    """The same, to be sent by the reaper at that time (Unix seconds): its first task says so."""
    first = signature.tasks[0] if isinstance(signature, chain) else signature
    first.set(headers={_SENT_AGAIN: f"{at:.3f}"})
    return signature


def task_signature(app: Celery, name: TaskName, message: TaskMessage, priority: int) -> Signature:
    """One task: its queue comes from the contract, its priority from its job, nobody waits for its result."""
    return app.signature(
        name.value,
        args=(message.wire(),),
        immutable=True,
        queue=name.queue.value,
        priority=priority,
        ignore_result=True,
    )


def node_signature(app: Celery, job_id: str, priority: int, node: Node) -> Signature:
    """A node's member of the chord: a leaf is searched, then reranked; a list's shard is read; a branch is refined."""
    message = TaskMessage(job_id=job_id, node_id=node.id)
    if node.kind is NodeKind.BRANCH:
        return task_signature(app, TaskName.PLAN_REFINE, message, priority)
    if node.shard is not None:
        return task_signature(app, TaskName.SEARCH_SHARD, message, priority)
    return chain(
        task_signature(app, TaskName.SEARCH_LEAF, message, priority),
        task_signature(app, TaskName.RERANK_LEAF, message, priority),
        app=app,
    )


def merge_signature(app: Celery, job_id: str, priority: int, *, force: bool = False) -> Signature:
    """What runs when every node is settled: tree merge, root rerank, summary.

    The merge takes the root rerank out where only the question's own leaf has found something (see `skip_next`).
    """
    message = TaskMessage(job_id=job_id)
    return chain(
        task_signature(app, TaskName.MERGE_TREE, message.model_copy(update={"force": force}), priority),
        task_signature(app, TaskName.RERANK_ROOT, message, priority),
        task_signature(app, TaskName.MERGE_SUMMARISE, message, priority),
        app=app,
    )


def job_chord(app: Celery, job_id: str, priority: int, nodes: Iterable[Node]) -> Signature:
    """The one chord of a job over the nodes that can start; refined nodes add children, leaves those that waited."""
    nodes = tuple(nodes)
    settled = grown_branches(nodes)
    return chord(
        [
            node_signature(app, job_id, priority, node)
            for node in nodes
            if not node.depends_on and node.id not in settled
        ],
        merge_signature(app, job_id, priority),
        app=app,
    )


def skip_next(task: AnyTask, name: TaskName) -> None:
    """Take the next task out of the running chain if it is `name`: there is nothing for it to do.

    Celery sends the last of `request.chain` when the running task returns.
    """
    rest: Any = task.request.chain  # celery-types says str; it is a list of signatures, the next one last
    if rest and rest[-1]["task"] == name.value:
        rest.pop()


def add_to_chord(task: AnyTask, signature: Signature) -> None:
    """Into the chord of the running task, or, when the reaper has sent that one again, on its own."""
    if task.request.chord:
        task.add_to_chord(signature)
    else:
        signature.apply_async()


# --- Lets waiting jobs in, and sends the message that starts each. Harmless to repeat.

log = logging.getLogger("ramify.dispatch")


class Dispatcher:
    """Serves the lines of one job store. The reaper sends what got lost after a job was let in."""

    def __init__(self, app: Celery, jobs: JobStore) -> None:
        self._app, self._jobs = app, jobs

    def run(self) -> int:
        """Let in what there is room for; returns how many jobs. Raises: RedisError, OperationalError."""
        sent = 0
        while admitted := dict(self._jobs.admission.admit()):
            for job_id in self._jobs.admitted(list(admitted.items())):
                task_signature(self._app, TaskName.PLAN_JOB, TaskMessage(job_id=job_id), admitted[job_id]).apply_async()
                sent += 1
        return sent

    def try_run(self) -> None:
        """The same, where something else has just succeeded that this must not spoil: a failure is logged."""
        try:
            self.run()
        except (RedisError, OperationalError) as error:
            log.warning("waiting jobs could not be let in (%s): the reaper does it", type(error).__name__)
