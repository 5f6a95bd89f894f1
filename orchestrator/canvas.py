"""The canvas of a job: one flat chord that grows (A2, ARCHITECTURE decision 2). Pure: builds signatures, sends nothing.

Header: `search -> rerank` for every leaf, `refine` for every branch. Body: merge -> root rerank -> summarise. A leaf
that waits for others (G13) is no member yet: the last of these adds it.
All signatures are immutable and carry ids only; results live in the job store.
"""

from __future__ import annotations

from collections.abc import Iterable

from celery import Celery, Signature, chord

from shared.job_store.nodes import grown_branches
from shared.models import Node
from shared.signatures import body, member


def job_chord(app: Celery, job_id: str, priority: int, nodes: Iterable[Node]) -> Signature:
    """The one chord of a job over the nodes that can start; refined nodes add children, leaves those that waited."""
    nodes = tuple(nodes)
    settled = grown_branches(nodes)
    return chord(
        [member(app, job_id, priority, node) for node in nodes if not node.depends_on and node.id not in settled],
        body(app, job_id, priority),
        app=app,
    )
