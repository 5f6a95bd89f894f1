"""The canvas of a job: one flat chord that grows (A2, ARCHITECTURE decision 2). Pure: builds signatures, sends nothing.

Header: `search -> rerank` for every leaf, `refine` for every branch. Body: merge -> root rerank -> summarise.
All signatures are immutable and carry ids only; results live in the job store.
"""

from __future__ import annotations

from collections.abc import Iterable

from celery import Celery, Signature, chain, chord

from shared.contract import Message, TaskName, priority
from shared.models import Lane, Node, NodeKind


def step(app: Celery, name: TaskName, message: Message, lane: Lane) -> Signature:
    """One task: its queue and priority come from the contract, nobody waits for its result."""
    return app.signature(
        name.value,
        args=(message.wire(),),
        immutable=True,
        queue=name.queue.value,
        priority=priority(lane),
        ignore_result=True,
    )


def member(app: Celery, job_id: str, lane: Lane, node: Node) -> Signature:
    """A node's member of the chord: a leaf is searched, then reranked on another pool; a branch is refined."""
    message = Message(job_id=job_id, node_id=node.id)
    if node.kind is NodeKind.BRANCH:
        return step(app, TaskName.PLAN_REFINE, message, lane)
    return chain(
        step(app, TaskName.SEARCH_LEAF, message, lane),
        step(app, TaskName.RERANK_LEAF, message, lane),
        app=app,
    )


def body(app: Celery, job_id: str, lane: Lane, *, force: bool = False) -> Signature:
    """What runs when every node is settled: tree merge, root rerank, summary."""
    message = Message(job_id=job_id)
    return chain(
        step(app, TaskName.MERGE_TREE, message.model_copy(update={"force": force}), lane),
        step(app, TaskName.RERANK_ROOT, message, lane),
        step(app, TaskName.MERGE_SUMMARISE, message, lane),
        app=app,
    )


def job_chord(app: Celery, job_id: str, lane: Lane, nodes: Iterable[Node]) -> Signature:
    """The one chord of a job over the nodes known so far; refined nodes add their children to it."""
    return chord(
        [member(app, job_id, lane, node) for node in nodes],
        body(app, job_id, lane),
        app=app,
    )
