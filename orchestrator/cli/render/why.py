"""Draws why a job or a batch is not done: the answer, the facts, the command to go on with. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.cli.render.answer import budget_line
from orchestrator.cli.render.tables import retries
from orchestrator.cli.render.tree import state_text
from orchestrator.cli.text import columns, counted, duration, pairs, plain, snippet, warnings
from orchestrator.diagnosis.wording import degraded_parts, worker_name
from shared.models.status import BatchWhy, Turn, Why

_STYLES = {"working": "green", "queued": "cyan", "waits": "dim", "postponed": "yellow", "lost": "red"}


def draw_why(found: Why | BatchWhy) -> RenderableType:
    """The answer in bold, then what it was read from."""
    facts = list(_job_facts(found)) if isinstance(found, Why) else [_batch_facts(found)]
    then = Text("→ ", "yellow").append(plain(found.next))
    settings = (found.settings,) if found.settings else ()
    return Group(plain(found.said, "bold"), *facts, *warnings((*settings, *found.faults)), then)


def _job_facts(why: Why) -> Iterator[RenderableType]:
    yield pairs(_rows(why))
    if why.work:
        table = columns("item", "stands", "queue", "tries", "worker", "since", "subquestion")
        for work in why.work:
            worker = worker_name(work.worker) if work.worker else ", ".join(work.needs)
            since = duration(work.since_s * 1000) if work.since_s is not None else ""
            table.add_row(
                plain(work.item), plain(work.stands, _STYLES[work.stands]), work.queue, str(work.tries), plain(worker),
                since, snippet(work.what, 60),
            )  # fmt: skip
        yield table
    if why.failed:
        failed = columns("failed", "error", "subquestion")
        for failure in why.failed:
            failed.add_row(plain(failure.item), plain(failure.error, "red"), snippet(failure.what, 60))
        yield failed


def _rows(why: Why) -> dict[str, RenderableType | str]:
    last = f", the last: {', '.join(why.redrives[-1].items)} ({why.redrives[-1].why})" if why.redrives else ""
    deaths = "; ".join(f"{worker_name(death.worker)} at {death.item}" for death in why.deaths)
    deadline, left = "", why.deadline_left_s
    if left is not None:
        deadline = f"in {duration(left * 1000)}" if left > 0 else f"{duration(-left * 1000)} ago"
    return {
        "job": why.job_id,
        "question": snippet(why.question),
        "state": state_text(why.state, partial=why.partial),
        "lane": f"{why.lane}, tenant {why.tenant}",
        "turn": _turn(why.turn) if why.turn else "",
        "degraded": plain(degraded_parts(why.degraded, why.degraded_at), "yellow"),
        "sent again": f"{counted(why.redriven, 'time')}{last}" if why.redriven else "",
        "deaths": plain(deaths, "red"),
        "retired": plain(", ".join(why.dead_letters), "red"),
        "providers": plain("; ".join(why.providers), "yellow"),
        "last error": why.last_error or "",
        "may wait": duration(why.wait_left_s * 1000) if why.wait_left_s is not None else "",
        "deadline": deadline,
        "budget": budget_line(why.budget),
        **retries(why),
    }


def _turn(turn: Turn) -> str:
    eta = f", about {duration(turn.eta_s * 1000)} to go" if turn.eta_s is not None else ""
    held = f"{turn.under_way} of {turn.window} under way ({turn.own} of its tenant)"
    return f"{turn.ahead} before it, {counted(turn.tenants, 'tenant')}, {turn.waiting} wait in the lane, {held}{eta}"


def _batch_facts(why: BatchWhy) -> RenderableType:
    expiring = f" ({why.expiring} of them for too long)" if why.expiring else ""
    slowest = ""
    if why.slowest:
        slowest = f"{why.slowest.job_id}, {why.slowest.state} since {duration(why.slowest.for_s * 1000)}"
    return pairs(
        {
            "batch": why.batch_id,
            "jobs": f"{why.waiting} wait{expiring}, {why.under_way} under way, {why.finished} of {why.enqueued} ended",
            "waits": plain(f"{why.postponed:,} for a server" if why.postponed else "", "yellow"),
            "slowest": slowest,
            "reasons": ", ".join(f"{count:,} {reason}" for reason, count in sorted(why.reasons.items())),
            "commonest error": plain(why.error.error if why.error else "", "red"),
            "providers": plain("; ".join(why.providers), "yellow"),
            "budget": budget_line(why.budget),
            **retries(why),
        }
    )
