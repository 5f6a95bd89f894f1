"""A bare Celery graph of the shape of a job, of tasks that do nothing: what the pipeline is measured against.

Runs as Celery workers of this module; BARE_GRAPH_REDIS names the Redis. The same graph as `shared/tasks/signatures.py`:
plan, a chord of search and rerank, then merge, rerank and summary.
"""

from __future__ import annotations

import os
from typing import Any

from celery import Celery, Signature, chain, chord

#: List of the jobs that have ended.
ENDED = "bare:ended"
POOLS = ("plan", "search", "rerank", "merge")

app = Celery("bare", broker=os.environ["BARE_GRAPH_REDIS"], backend=os.environ["BARE_GRAPH_REDIS"])
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    worker_send_task_events=False,
    broker_connection_retry_on_startup=True,
    task_default_queue="bare.merge",
)


def _task(name: str, job: int, *more: object) -> Signature:
    pool, _, _ = name.partition("_")
    return app.signature(f"bare.{name}", args=(job, *more), immutable=True, queue=f"bare.{pool}", ignore_result=True)


def start(job: int, leaves: int) -> None:
    """Send the first task of a job."""
    _task("plan_job", job, leaves).apply_async()


@app.task(name="bare.plan_job")
def plan_job(job: int, leaves: int) -> None:
    """Sends the chord."""
    header = [chain(_task("search_leaf", job), _task("rerank_leaf", job), app=app) for _ in range(leaves)]
    body = chain(_task("merge_tree", job), _task("rerank_root", job), _task("merge_summarise", job), app=app)
    chord(header, body, app=app).apply_async()


@app.task(name="bare.merge_summarise")
def merge_summarise(job: int) -> None:
    """Says that the job has ended."""
    client: Any = app.backend.client  # type: ignore[attr-defined]
    client.rpush(ENDED, job)


def _nothing(job: int) -> int:
    return job


for _name in ("search_leaf", "rerank_leaf", "merge_tree", "rerank_root"):
    app.task(name=f"bare.{_name}")(_nothing)
