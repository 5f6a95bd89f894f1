"""Runs standing questions, in the processes of the ops pool: looks, submits jobs of the batch lane, reads their ends.

What is begun is kept before and behind it so that a worker that dies leaves nothing undone and nothing done twice: a
full run has an idempotency key of its number, a refresh claims its answer, and an end is read until it is kept.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from celery import Celery

from orchestrator.retries.refresh import Refreshing
from orchestrator.standing.questions import StandingQuestions
from orchestrator.standing.rules import StandingStep, StandingView, next_step, wait_after
from orchestrator.submitting import Submitter
from shared.cited_facts import changed, facts_of
from shared.connections.heartbeat import worker_id
from shared.contract import TaskName
from shared.errors import InputError, LaneFullError, NotFoundError, RamifyError
from shared.jobs import JobReader, JobStore, State, new_id
from shared.jobs.endings import EndedJob
from shared.jobs.keys import StandingKeys
from shared.jobs.stale import StaleAnswers
from shared.models import Answer
from shared.models.standing import Notice, RunKind, StandingQuestion, StandingState, StandingStatus

log = logging.getLogger("ramify.standing")
#: Seconds between two looks.
LOOK_EVERY_S = 3.0
#: A look takes milliseconds; one that died holds the others up for so long.
_LOCK_MS = 30_000
_HOUR_S = 3600
#: Seconds between two requests to the index pool to hold answers against changes that came while they were made.
_RECHECK_EVERY_S = 15.0
#: For so long such a request may wait there; a worker whose clock is further ahead than this refuses it.
_EXPIRES_S = 600


@dataclass
class _Room:
    """How many more jobs may be begun now: of all, and of each tenant in this hour."""

    all: int
    hour: dict[str, int]


class StandingRunner:
    """One look at all standing questions after the other; of several workers one looks at a time."""

    def __init__(self, app: Celery, jobs: JobStore) -> None:
        self._app, self._jobs, self._settings = app, jobs, jobs.settings.standing
        self._reader, self._submitter = JobReader(jobs.client), Submitter(app, jobs)
        self._refreshing = Refreshing(jobs, self._submitter)
        self._stale = StaleAnswers(jobs.client, jobs.settings, jobs.clock)
        self._questions = StandingQuestions(jobs.client, jobs.settings)
        self._rechecked_at = -_RECHECK_EVERY_S

    def run(self) -> None:
        """Look once. Raises: RedisError, OperationalError."""
        with self._leading() as leads:
            if leads:
                self._send_rechecks()
                if self._settings.enabled:
                    self._look()

    @contextmanager
    def _leading(self) -> Iterator[bool]:
        me, client = worker_id(), self._jobs.client
        if not client.set(StandingKeys.lock, me, nx=True, px=_LOCK_MS):
            yield False
            return
        try:
            yield True
        finally:
            if client.get(StandingKeys.lock) == me.encode():
                client.delete(StandingKeys.lock)

    def _send_rechecks(self) -> None:
        """Have answers held against documents that changed while they were made, once they have ended."""
        if time.monotonic() - self._rechecked_at < _RECHECK_EVERY_S:
            return
        self._rechecked_at = time.monotonic()
        under_way = self._jobs.admission.under_way()
        for tenant in self._stale.tenants_with_rechecks():
            if any(job_id not in under_way for job_id in self._stale.rechecks(tenant)):
                name = TaskName.INDEX_CHECK
                asked = ({"tenant": tenant},)
                self._app.send_task(name.value, asked, queue=name.queue.value, expires=_EXPIRES_S, ignore_result=True)

    def _look(self) -> None:
        found = self._questions.all()
        if not found:
            return
        running = Counter(one.question.tenant for one in found if one.state.running)
        checks = self._stale.checks(sorted({one.question.tenant for one in found}))
        room = _Room(self._settings.at_once - running.total(), self._left_this_hour(checks))
        views = {one.question.id: self._view(one, checks) for one in found}
        for one in by_turns(found, running):
            question = one.question
            step = next_step(question, one.state, views[question.id], self._settings)
            state = one.state.model_copy(update={"changes": one.state.changes + step.changes})
            try:
                after = self._done(question, state, step, room)
            except LaneFullError as error:
                after = state.model_copy(update={"waits_for": str(error)})
            except RamifyError as error:
                after = self._failed(state, str(error))
            if after != one.state:
                self._questions.save(question.id, after.model_copy(update={"checks": views[question.id].checks}))
        self._questions.keep_alive()

    def _view(self, one: StandingStatus, checks: Mapping[str, int]) -> StandingView:
        state, now = one.state, self._jobs.clock.now()
        known = StandingView(now=now, checks=checks[one.question.tenant])
        if state.running:
            return StandingView(now, ended=self._has_ended(state.running), checks=known.checks)
        if state.answer is None:
            return known
        answer = self._jobs.retries.read([state.answer]).get(state.answer)
        if answer is None:
            return StandingView(now, gone=True, checks=known.checks)
        newest, is_open = self._newest(answer)
        marks = self._stale.marks([state.answer]).get(state.answer, ())
        differs = self._stale.previews([state.answer]).get(state.answer)
        return replace(known, newest=newest, newest_open=is_open, marks=marks, differs=differs)

    def _newest(self, answer: EndedJob) -> tuple[str, bool]:
        """The answer that stands in its place, and whether a job is under way that will."""
        newest = self._refreshing.newest([answer.job_id])[answer.job_id]
        last = self._jobs.retries.read([newest]).get(newest)
        newer = self._jobs.retries.read([last.retried_as]).get(last.retried_as) if last and last.retried_as else None
        return newest, bool(newer and newer.open)

    def _has_ended(self, job_id: str) -> bool:
        found = self._jobs.retries.read([job_id]).get(job_id)
        return found is None or not found.open

    def _done(self, question: StandingQuestion, state: StandingState, step: StandingStep, room: _Room) -> StandingState:
        """The state after the step was done, or why it was not."""
        if step.take is not None:
            return self._taken(question, state, step.take)
        if step.start is None:
            return state.model_copy(update={"waits_for": step.waits})
        if waits := self._no_room(question.tenant, room):
            return state.model_copy(update={"waits_for": waits})
        job_id = self._started(question, state, step.start)
        if job_id is None:
            return state
        self._book(question.tenant, room)
        runs = {**state.runs, step.start.value: state.runs.get(step.start.value, 0) + 1}
        update = {"running": job_id, "kind": step.start, "number": state.number + 1, "runs": runs, "waits_for": ""}
        return state.model_copy(update=update)

    def _started(self, question: StandingQuestion, state: StandingState, kind: RunKind) -> str | None:
        """The job that was begun; None where its answer is refreshed by somebody else just now. Raises: RamifyError."""
        if kind is RunKind.REFRESH and state.answer is not None:
            try:
                return self._refreshing.job(state.answer).job_id
            except InputError:
                return None
        request = question.request.model_copy(update={"idempotency_key": f"standing {question.id} {state.number}"})
        job_ids, full = self._submitter.submit([(new_id(), self._submitter.checked(request))])
        if full:
            raise full
        return job_ids[0]

    def _taken(self, question: StandingQuestion, state: StandingState, job_id: str) -> StandingState:
        """What follows from the end of a job: its answer is the newest, and what it cites may be told of."""
        answer = self._answer(job_id)
        if answer is None:
            return self._failed(state.model_copy(update={"running": None}), self._why(job_id))
        facts, before = facts_of(answer), self._questions.facts(question.id)
        new, gone = changed(before, facts) if state.answer is not None else ([], [])
        differs, kind = bool(new or gone), state.kind or RunKind.REFRESH
        sampled = kind is RunKind.SAMPLE
        now = self._jobs.clock.now()
        after = state.model_copy(update={
            "answer": job_id, "running": None, "kind": None, "failures": 0, "error": "", "waits_for": "",
            "samples": state.samples + sampled, "missed": state.missed + (sampled and differs),
            "notices": state.notices + differs, "next_at": now + question.every_s if question.every_s else None,
        })  # fmt: skip
        notice = Notice(
            id=f"{question.id} {job_id}", standing_id=question.id, question=question.request.question,
            tenant=question.tenant, at=round(now, 3), job_id=job_id, before=state.answer, kind=kind, new=tuple(new),
            gone=tuple(gone),
        )  # fmt: skip
        self._questions.save_answer(question.id, after, facts, notice if differs else None)
        if state.answer is not None:
            self._stale.forget_preview(state.answer)
        return after

    def _answer(self, job_id: str) -> Answer | None:
        found = self._jobs.retries.read([job_id]).get(job_id)
        return self._reader.answer(job_id) if found is not None and found.state is State.DONE else None

    def _why(self, job_id: str) -> str:
        try:
            status = self._reader.status(job_id)
        except NotFoundError:
            return f"job {job_id} is gone"
        return f"job {job_id} ended {status.state}: {status.error or 'no reason'}"

    def _failed(self, state: StandingState, why: str) -> StandingState:
        failures = state.failures + 1
        next_at = self._jobs.clock.now() + wait_after(failures)
        update = {"failures": failures, "failed": state.failed + 1, "error": why, "next_at": next_at, "kind": None}
        return state.model_copy(update=update)

    def _hour(self, tenant: str) -> str:
        return f"{StandingKeys.spent}{tenant}:{int(self._jobs.clock.now()) // _HOUR_S}"

    def _left_this_hour(self, tenants: Mapping[str, int]) -> dict[str, int]:
        spent = self._jobs.client.mget([self._hour(tenant) for tenant in tenants]) if tenants else []
        most = self._settings.jobs_per_hour
        return {tenant: most - int(count or 0) for tenant, count in zip(tenants, spent, strict=True)}

    def _no_room(self, tenant: str, room: _Room) -> str:
        if room.hour[tenant] <= 0:
            return f"its tenant has had {self._settings.jobs_per_hour} jobs this hour (standing.jobs_per_hour)"
        if room.all <= 0:
            return f"{self._settings.at_once} jobs of standing questions are under way (standing.at_once)"
        return ""

    def _book(self, tenant: str, room: _Room) -> None:
        room.all, room.hour[tenant] = room.all - 1, room.hour[tenant] - 1
        with self._jobs.client.pipeline(transaction=True) as pipe:
            pipe.incr(self._hour(tenant))
            pipe.expire(self._hour(tenant), 2 * _HOUR_S)
            pipe.execute()


def by_turns(found: Sequence[StandingStatus], running: Mapping[str, int]) -> list[StandingStatus]:
    """Tenants in turns, the one with the fewest jobs under way first; of each, what has run least often first. Pure."""
    places, turns = Counter(running), dict[str, int]()
    for one in sorted(found, key=lambda one: (one.state.number, one.question.created_at, one.question.id)):
        turns[one.question.id] = places[one.question.tenant]
        places[one.question.tenant] += 1
    return sorted(found, key=lambda one: (turns[one.question.id], one.state.number, one.question.id))
