"""Builds the members of a job's chord, and adds them to it (ARCHITECTURE decision 2). Carries ids only."""

from __future__ import annotations

from celery import Celery, Signature, chain

from shared.contract import Message, TaskName, priority
from shared.models import Lane, Node, NodeKind
from shared.steps import AnyTask


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


def add(task: AnyTask, signature: Signature) -> None:
    """Into the chord of the running task, or, when the sweep has sent that one again, on its own."""
    if task.request.chord:
        task.add_to_chord(signature)
    else:
        signature.apply_async()
