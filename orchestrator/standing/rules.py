"""What is to be done next for a standing question. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from shared.models.stale import StaleMark
from shared.models.standing import RunKind, StandingQuestion, StandingState
from shared.settings.standing import StandingSettings

#: Seconds until a question whose job failed is asked again: doubled with each failure in a row.
_FIRST_WAIT_S, _LONGEST_WAIT_S = 60.0, 3600.0


@dataclass(frozen=True)
class StandingView:
    """What is to be known of a standing question.

    `ended`: the running job has; `gone`: its answer has expired; `newest`: the answer that stands in its place by now,
    `newest_open`: a job is under way that will; `checks`: how often the tenant's answers were held against a change;
    `differs`: whether its answer would cite other words now, None where nobody can tell without a job.
    """

    now: float
    ended: bool = False
    gone: bool = False
    newest: str | None = None
    newest_open: bool = False
    marks: tuple[StaleMark, ...] = ()
    checks: int = 0
    differs: bool | None = None


@dataclass(frozen=True)
class StandingStep:
    """`take`: the job whose end is to be read; `start`: a job that is to run; `waits`: why nothing is done.

    `changes`: how often the corpus has changed since the last look.
    """

    take: str | None = None
    start: RunKind | None = None
    waits: str = ""
    changes: int = 0


def next_step(
    question: StandingQuestion, state: StandingState, view: StandingView, settings: StandingSettings
) -> StandingStep:
    """The one thing that is to be done now."""
    changes = max(0, view.checks - state.checks) if state.answer is not None else 0
    return replace(_next(question, state, view, settings, changed=changes > 0), changes=changes)


def _next(
    question: StandingQuestion,
    state: StandingState,
    view: StandingView,
    settings: StandingSettings,
    *,
    changed: bool,
) -> StandingStep:
    if state.running:
        return (
            StandingStep(take=state.running) if view.ended else StandingStep(waits=f"job {state.running} is under way")
        )
    if state.failures and view.now < (state.next_at or 0.0):
        return StandingStep(waits=f"its last job failed: {state.error}")
    if state.answer is None or view.gone:
        return StandingStep(start=RunKind.FIRST if state.answer is None else RunKind.FULL)
    if view.newest_open or view.newest not in {None, state.answer}:
        return (
            StandingStep(waits="its answer is refreshed by a command")
            if view.newest_open
            else StandingStep(take=view.newest)
        )
    if question.every_s is None:
        return _on_change(question, view, settings, changed=changed)
    due = state.next_at is None or view.now >= state.next_at
    return StandingStep(start=RunKind.FULL) if due else StandingStep(waits="its next time has not come")


def _on_change(
    question: StandingQuestion, view: StandingView, settings: StandingSettings, *, changed: bool
) -> StandingStep:
    if view.differs if view.differs is not None else touches(view.marks, settings.ranks):
        return StandingStep(start=RunKind.REFRESH)
    if changed and lot(question.id, view.checks) < settings.sample:
        return StandingStep(start=RunKind.SAMPLE)
    return StandingStep(waits="nothing has changed that its answer is written from")


def touches(marks: Sequence[StaleMark], ranks: int) -> bool:
    """Whether a change is among the first passages of a leaf: an answer is written from those."""
    return any(mark.rank <= ranks for mark in marks)


def lot(standing_id: str, check: int) -> float:
    """A number from 0 to 1 that is drawn for a question and a change, the same each time."""
    digest = hashlib.sha256(f"{standing_id} {check}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def wait_after(failures: int) -> float:
    """Seconds until the next try."""
    return min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0 ** min(max(0, failures - 1), 10))
