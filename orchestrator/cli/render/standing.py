"""Draws standing questions and their notices. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.cli.text import columns, duration, pairs, plain, snippet, when
from shared.models.standing import Notice, StandingQuestion, StandingStatus

_MOST_FACTS = 3


def draw_standing(found: Sequence[StandingStatus]) -> Table:
    """One line a question."""
    table = columns("id", "asked", "runs", "notices", "missed", "question", whole=("id", "asked"))
    for one in found:
        state = one.state
        table.add_row(
            one.question.id, _asked(one.question), str(sum(state.runs.values())), str(state.notices),
            _missed(one) or "", plain(one.question.request.question),
        )  # fmt: skip
    return table


def draw_why(found: StandingStatus, notices: Sequence[Notice]) -> RenderableType:
    """Everything that is known of one question, and its last notices."""
    question, state = found.question, found.state
    notify = question.notify
    runs = ", ".join(f"{count} {kind}" for kind, count in state.runs.items())
    rows: dict[str, RenderableType | str] = {
        "standing question": question.id,
        "question": plain(question.request.question, "bold"),
        "asked": _asked(question),
        "tenant": question.tenant,
        "told by": plain(f"{notify.by} {notify.target}") if notify else "the list of notices alone",
        "answer": state.answer or "",
        "under way": state.running or "",
        "waits": plain(state.waits_for, "yellow"),
        "error": plain(state.error, "red"),
        "next time": when(state.next_at) if state.next_at else "",
        "changes": f"{state.changes} of its corpus",
        "runs": f"{runs}; {state.failed} failed" if state.failed else runs,
        "missed": _missed(found),
        "notices": str(state.notices),
    }
    return Group(pairs(rows), *(line for notice in notices for line in _notice(notice)))


def _asked(question: StandingQuestion) -> str:
    return f"every {duration(question.every_s * 1000)}" if question.every_s else "on change"


def _missed(one: StandingStatus) -> str:
    """How often a look at a change that seemed to touch nothing has found that it did."""
    state = one.state
    if one.miss_rate is None:
        return ""
    return f"{state.missed} of {state.samples} samples ({one.miss_rate:.0%})"


def _notice(notice: Notice) -> Iterator[RenderableType]:
    yield plain(f"\n{when(notice.at)}  job {notice.job_id}, {notice.kind}", "dim")
    for mark, facts, style in (("+", notice.new, "green"), ("-", notice.gone, "red")):
        for fact in facts[:_MOST_FACTS]:
            line = Text(f"{mark} ", style).append(snippet(fact.text, 160))
            yield line.append("  ").append(plain(fact.path, "dim"))
        if (more := len(facts) - _MOST_FACTS) > 0:
            yield plain(f"{mark} {more} more", style)
