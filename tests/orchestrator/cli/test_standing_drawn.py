"""What `watch list` and `watch why` draw, and the times and ways that `watch add` reads."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from orchestrator.cli.render.standing import draw_standing, draw_why
from orchestrator.cli.watch import _notify, seconds
from shared.errors import InputError
from shared.models import JobRequest
from shared.models.standing import (
    CitedFact,
    Notice,
    Notify,
    NotifyBy,
    RunKind,
    StandingQuestion,
    StandingState,
    StandingStatus,
)


def drawn(what: object) -> str:
    console = Console(width=120, file=io.StringIO())
    console.print(what)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_a_question_is_drawn_with_what_its_rule_has_missed_and_its_notices() -> None:
    notify = Notify(by=NotifyBy.COMMAND, target="told")
    question = StandingQuestion(id="sq_1", request=JobRequest(question="why [red]?"), created_at=1.0, notify=notify)
    state = StandingState(answer="j1", runs={"first": 1, "refresh": 3}, samples=4, missed=1, notices=2, failed=1)
    found = StandingStatus(question=question, state=state, miss_rate=state.miss_rate)
    assert "1 of 4 samples (25%)" in drawn(draw_standing([found]))
    facts = tuple(CitedFact(path=f"{n}.md", text=f"fact {n}") for n in range(5))
    notice = Notice(
        id="sq_1 j1", standing_id="sq_1", question="why?", tenant="default", at=1.0, job_id="j1", kind=RunKind.REFRESH,
        new=facts, gone=facts[:1],
    )  # fmt: skip
    shown = drawn(draw_why(found, [notice]))
    for part in (
        "why [red]?",
        "command told",
        "1 first, 3 refresh; 1 failed",
        "+ fact 0  0.md",
        "+ 2 more",
        "- fact 0",
    ):
        assert part in shown, part


@pytest.mark.parametrize(("given", "expected"), [("90s", 90.0), ("30m", 1800.0), ("1.5h", 5400.0), ("2d", 172_800.0)])
def test_times_are_read(given: str, expected: float) -> None:
    assert seconds(given) == expected


@pytest.mark.parametrize("given", ["1", "h", "-1h", "1w", "1h30m"])
def test_what_is_no_time_is_refused(given: str) -> None:
    with pytest.raises(InputError):
        seconds(given)


def test_ways_to_tell_are_read() -> None:
    assert _notify("https://example.org/x?a:b") == {"by": "webhook", "target": "https://example.org/x?a:b"}
    assert _notify("file:/home/me/a:b") == {"by": "file", "target": "/home/me/a:b"}
    for wrong in ("mail:me", "file:", "told"):
        with pytest.raises(InputError):
            _notify(wrong)
