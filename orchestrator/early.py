"""The answer of a job before its end, or without one: of what its leaves have recorded. The merge pool makes it."""

from __future__ import annotations

from celery import Celery

from orchestrator.remote import call_pool
from shared.contract import TaskName
from shared.errors import NoAnswerError, RamifyError
from shared.models import Answer, JobStatus
from shared.models.answer import EarlyReply, EarlyRequest
from shared.settings import Settings

_EARLY_S = 15.0


def early_answer(app: Celery, settings: Settings, status: JobStatus) -> Answer:
    """Raises: RamifyError while no leaf has answered, NotRunningError when no merge worker answers in 15 s."""
    if status.ingest is not None:
        raise no_answer(status)
    if not status.leaves_done:
        raise _nothing_yet(status)
    request = EarlyRequest(job_id=status.job_id, tenant=status.tenant)
    reply = EarlyReply.of_record(call_pool(app, settings, TaskName.MERGE_EARLY, request, _EARLY_S))
    if reply.answer is None:
        raise RamifyError(reply.error or f"the merge pool gave no answer of job {status.job_id}, and no reason")
    return reply.answer


def no_answer(status: JobStatus) -> NoAnswerError:
    """The error for a job without an answer, and what there is instead."""
    job_id, early = status.job_id, ""
    if status.ingest is not None:
        told = f"job {job_id} puts documents in and answers nothing: `ramify result {job_id}` says what became of them"
        return NoAnswerError(told, terminal=True, of_ingest=True)
    if status.leaves_done:
        early = f"; `ramify result {status.job_id} --partial` shows what {status.leaves_done} of its leaves found"
    if not status.terminal:
        told = f"job {job_id} is {status.state}: wait for it with `ramify status {job_id} --watch`{early}"
        return NoAnswerError(told, terminal=False)
    reason = (status.error or "it has expired").rstrip(".")
    return NoAnswerError(f"job {job_id} ended {status.state} without an answer: {reason}{early}", terminal=True)


def no_list(status: JobStatus) -> NoAnswerError:
    """For a job without rows: what to ask instead."""
    fix = 'ask for one, as in `ramify ask "List all notes"`'
    return NoAnswerError(f"job {status.job_id} ({status.state}) has no list: {fix}", terminal=status.terminal)


def _nothing_yet(status: JobStatus) -> NoAnswerError:
    leaves = f"none of its {status.leaves_total} leaves has answered" if status.leaves_total else "nothing was searched"
    if not status.terminal:
        fix = f"`ramify status {status.job_id} --watch` follows it"
        return NoAnswerError(f"job {status.job_id} is {status.state} and {leaves} yet: {fix}", terminal=False)
    fix = f"`ramify retry {status.job_id}` tries it again"
    return NoAnswerError(f"job {status.job_id} ended {status.state} and {leaves}: {fix}", terminal=True)
