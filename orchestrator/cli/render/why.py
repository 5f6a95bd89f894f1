"""Draws why a job or a batch is not done: the answer, the facts, the command to go on with. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.cli.render.answer import budget_line
from orchestrator.cli.render.tables import columns, pairs, retries
from orchestrator.cli.render.text import plain, snippet
from orchestrator.cli.render.tree import state_text
from orchestrator.cli.wording import counted, duration
from orchestrator.explain.wording import worker_name
from shared.models.status import BatchWhy, PendingWork, Turn, Why

_STYLES = {"working": "green", "queued": "cyan", "waits": "dim", "lost": "red"}


def draw_why(found: Why | BatchWhy) -> RenderableType:
    """The answer in bold, then what it was read from."""
    facts = list(_of_job(found) if isinstance(found, Why) else _of_batch(found))
    faults = [Text("Warning: ", "yellow").append(plain(fault)) for fault in found.faults]
    then = Text("→ ", "yellow").append(plain(found.next))
    return Group(plain(found.said, "bold"), *facts, *faults, then)


def _of_job(why: Why) -> Iterator[RenderableType]:
    yield pairs(_rows(why))
    if why.work:
        table = columns("item", "stands", "queue", "tries", "worker", "since", "subquestion")
        for piece in why.work:
            _row(table, piece)
        yield table
    if why.failed:
        failed = columns("failed", "error", "subquestion")
        for failure in why.failed:
            failed.add_row(plain(failure.item), plain(failure.error, "red"), snippet(failure.what, 60))
        yield failed


def _row(table: Table, piece: PendingWork) -> None:
    who = worker_name(piece.worker) if piece.worker else ", ".join(piece.needs)
    since = duration(piece.since_s * 1000) if piece.since_s is not None else ""
    table.add_row(
        plain(piece.item), plain(piece.stands, _STYLES[piece.stands]), piece.queue, str(piece.tries), plain(who), since,
        snippet(piece.what, 60),
    )  # fmt: skip


def _rows(why: Why) -> dict[str, RenderableType | str]:
    rows: dict[str, RenderableType | str] = {
        "job": why.job_id,
        "question": snippet(why.question),
        "state": state_text(why.state, partial=why.partial),
        "lane": f"{why.lane}, tenant {why.tenant}",
    }
    if why.turn:
        rows["turn"] = _turn(why.turn)
    if why.redriven:
        last = f", the last: {', '.join(why.redrives[-1].items)} ({why.redrives[-1].why})" if why.redrives else ""
        rows["sent again"] = f"{counted(why.redriven, 'time')}{last}"
    if why.deaths:
        died = "; ".join(f"{worker_name(death.worker)} at {death.item}" for death in why.deaths)
        rows["deaths"] = plain(died, "red")
    if why.dead_letters:
        rows["retired"] = plain(", ".join(why.dead_letters), "red")
    if why.providers:
        rows["providers"] = plain("; ".join(why.providers), "yellow")
    if why.last_error:
        rows["last error"] = plain(why.last_error)
    if why.deadline_left_s is not None:
        left = why.deadline_left_s
        rows["deadline"] = f"in {duration(left * 1000)}" if left > 0 else f"{duration(-left * 1000)} ago"
    if why.budget:
        rows["budget"] = budget_line(why.budget)
    return rows | retries(why)


def _turn(turn: Turn) -> str:
    eta = f", about {duration(turn.eta_s * 1000)} to go" if turn.eta_s is not None else ""
    held = f"{turn.under_way} of {turn.window} under way ({turn.own} of its tenant)"
    return f"{turn.ahead} before it, {counted(turn.tenants, 'tenant')}, {turn.waiting} wait in the lane, {held}{eta}"


def _of_batch(why: BatchWhy) -> Iterator[RenderableType]:
    rows: dict[str, RenderableType | str] = {
        "batch": why.batch_id,
        "jobs": f"{why.waiting} wait, {why.under_way} under way, {why.finished} of {why.total} ended",
    }
    if why.slowest:
        rows["slowest"] = f"{why.slowest.job_id}, {why.slowest.state} since {duration(why.slowest.for_s * 1000)}"
    if why.error:
        rows["commonest error"] = plain(why.error.error, "red")
    if why.providers:
        rows["providers"] = plain("; ".join(why.providers), "yellow")
    if why.budget:
        rows["budget"] = budget_line(why.budget)
    yield pairs(rows | retries(why))
