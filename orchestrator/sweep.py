"""The sweep (A4, ARCHITECTURE decision 4): finds jobs without progress from the job store alone and re-drives them.

Runs on the ops pool, sent by beat every few seconds. A chord's counter may be lost; the store's count is the truth.
What it sends again is harmless when the first copy still comes: leaves are recorded once, bodies run by a claim.
"""

from __future__ import annotations

import time
from typing import Any

from celery import Celery

from orchestrator.app import app
from orchestrator.canvas import body
from shared.contract import Message, Queue, TaskName
from shared.job_store import Job, JobStore, State, connect
from shared.job_store.keys import PREFIX
from shared.models import Node, NodeKind
from shared.settings import Settings
from shared.signatures import member, step
from shared.steps import remote

_LOCK = f"{PREFIX}:sweep"
_LOCK_S = 30
#: Seconds past the deadline before a partial answer is forced, and before the job is given up.
_GRACE_S = 5.0
_GIVE_UP_S = 60.0
_WAITS_ON = {
    State.QUEUED: (Queue.PLAN,),
    State.PLANNING: (Queue.PLAN,),
    State.SEARCHING: (Queue.PLAN, Queue.SEARCH, Queue.RERANK),
    State.MERGING: (Queue.MERGE, Queue.RERANK),
    State.SUMMARISING: (Queue.MERGE,),
}


class Sweep:
    """One pass over the jobs that are due."""

    def __init__(self, app: Celery, jobs: JobStore) -> None:
        self._app = app
        self._jobs = jobs
        self._settings: Settings = jobs.settings

    def run(self) -> int:
        """Look at every job that is due; returns how many. Only one sweep runs at a time."""
        lock = self._jobs.client.lock(_LOCK, timeout=_LOCK_S, blocking=False)
        if not lock.acquire():
            return 0
        try:
            due = self._jobs.due()
            lengths = self._queue_lengths() if due else {}
            self._jobs.next_check({job_id: when for job_id in due if (when := self._look(job_id, lengths))})
            return len(due)
        finally:
            if lock.owned():
                lock.release()

    def _look(self, job_id: str, lengths: dict[Queue, int]) -> float:
        """Re-drive one job if it is silent; returns when to look again, 0 when never."""
        job = self._jobs.job(job_id)
        if job is None or job.terminal:
            self._jobs.forget(job_id)
            return 0.0
        now, patience = time.time(), self._settings.jobs.redrive_after_s
        if now > job.deadline_at + _GRACE_S:
            return self._overdue(job, now)
        silent = now - job.updated_at
        waits = any(lengths.get(queue) for queue in _WAITS_ON[job.state])
        if silent >= self._patience(job) and not waits:
            self._redrive(job)
        return min(now + patience, job.deadline_at + _GRACE_S + 0.1)

    def _patience(self, job: Job) -> float:
        """Silence that is normal: an LLM may think for its whole time-out, twice."""
        llm = job.state in {State.PLANNING, State.SEARCHING, State.SUMMARISING} and self._settings.has_llm
        return self._settings.jobs.redrive_after_s + (2 * self._settings.llm_timeout_s if llm else 0)

    def _overdue(self, job: Job, now: float) -> float:
        """Past the deadline: force the partial answer; if that does not come either, say so and end."""
        if job.state in {State.QUEUED, State.PLANNING} or now > job.deadline_at + _GIVE_UP_S:
            self._jobs.stop(job, State.EXPIRED, f"the deadline passed while the job was {job.state.value}")
            return 0.0
        if job.state is State.SEARCHING:
            body(self._app, job.id, job.lane, force=True).apply_async()
        return now + _GRACE_S

    def _redrive(self, job: Job) -> None:
        """Send again exactly what is missing."""
        message = Message(job_id=job.id)
        if job.state in {State.QUEUED, State.PLANNING}:
            step(self._app, TaskName.PLAN_JOB, message, job.lane).apply_async()
        elif job.state is State.SEARCHING:
            self._redrive_nodes(job)
        elif job.state is State.MERGING:
            body(self._app, job.id, job.lane).apply_async()
        else:
            step(self._app, TaskName.MERGE_SUMMARISE, message, job.lane).apply_async()

    def _redrive_nodes(self, job: Job) -> None:
        nodes, states = self._jobs.nodes(job.id), self._jobs.leaf_states(job.id)
        missing = [nodes[node_id] for node_id, state in states.items() if state in {"pending", "searched", "open"}]
        for node in missing:
            kind = NodeKind.BRANCH if states[node.id] == "open" else NodeKind.LEAF
            member(self._app, job.id, job.lane, node.model_copy(update={"kind": kind})).apply_async()
        unbound = [nodes[node_id] for node_id, state in states.items() if state == "waiting"]
        self._redrive_binding(job, unbound, states)
        if not missing and not unbound:
            body(self._app, job.id, job.lane).apply_async()

    def _redrive_binding(self, job: Job, unbound: list[Node], states: dict[str, str]) -> None:
        """Leaves whose dependencies are settled but that nobody bound: one of these is told again that it has ended."""
        ready = [node for node in unbound if all(states.get(other) in {"done", "failed"} for other in node.depends_on)]
        for ended in sorted({node.depends_on[-1] for node in ready}):
            message = Message(job_id=job.id, node_id=ended)
            step(self._app, TaskName.RERANK_LEAF, message, job.lane).apply_async()

    def _queue_lengths(self) -> dict[Queue, int]:
        """Messages that wait in each queue, on any broker; a queue that nobody has declared yet is empty."""
        lengths = {}
        with self._app.connection_for_read() as connection:
            for queue in Queue:
                try:
                    channel: Any
                    with connection.channel() as channel:
                        lengths[queue] = int(channel.queue_declare(queue.value, passive=True).message_count)
                except connection.channel_errors:
                    lengths[queue] = 0
        return lengths


@remote(app, TaskName.OPS_SWEEP)
def sweep() -> None:
    """Beat's task; its schedule is in `shared.celery_app`."""
    settings: Settings = app.conf.ramify
    Sweep(app, JobStore(connect(settings), settings)).run()
