"""Draws batches: the accounts of one, a list of them, and what became of each line. Pure."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.cli.line_reports import tokens
from orchestrator.cli.render.answer import budget_line
from orchestrator.cli.render.tables import retries
from orchestrator.cli.render.tree import STATE_STYLES
from orchestrator.cli.text import columns, duration, pairs, plain, snippet
from orchestrator.diagnosis.wording import waiting_for
from orchestrator.out_formats import AnsweredLine
from shared.models import BatchStatus
from shared.models.batch import LineReport

_PAGE = 500
#: Of the report, with their widths in characters.
_COLUMNS = {
    "line": 8, "id": 12, "key": 12, "job": 21, "state": 16, "leaves": 6, "waited": 7, "ran": 7, "calls": 5, "tokens": 7,
    "estimated": 11, "spent": 8, "error": 30,
}  # fmt: skip
#: The columns by their worth: the first three are there however narrow the report is, of the others those that fit.
_BY_WORTH = (
    "line", "job", "state", "id", "error", "ran", "leaves", "spent", "waited", "calls", "tokens", "key", "estimated",
)  # fmt: skip
_ALWAYS = 3
#: Between two columns.
_GAP = 2
_WHOLE = frozenset({"line", "job", "id", "key"})
_RIGHT = frozenset({"line", "leaves", "waited", "ran", "calls", "tokens", "estimated", "spent"})


def draw_batch(batch: BatchStatus, rate: float | None = None, elapsed_s: float | None = None) -> RenderableType:
    """Its accounts, as sums; with `rate` (jobs a second) how long the rest may take."""
    waits = f"{batch.known_open:,} of the known jobs" if batch.known_open else ""
    return pairs(
        {
            "batch": batch.batch_id,
            "lines": _sum(batch.lines, batch.kinds()),
            "read": _unread(batch),
            "jobs": _sum(batch.enqueued, batch.outcomes()),
            "finished": f"{batch.finished:,} of {batch.enqueued:,}",
            "also open": waits,
            "waits": _waits(batch),
            **retries(batch),
            "reasons": _listed(dict(sorted(batch.reasons.items()))),
            "verdicts": _listed(dict(sorted(batch.verdicts.items()))),
            "budget": budget_line(batch.budget),
            "pace": "" if elapsed_s is None else _pace(batch, rate, elapsed_s),
        }
    )


def _unread(batch: BatchStatus) -> str:
    if batch.read_whole:
        return ""
    later = "it was cancelled" if batch.cancelled_early else f"`ramify batch --resume {batch.batch_id}` goes on"
    return f"not to its end: {later}"


def _waits(batch: BatchStatus) -> Text:
    """How many of its jobs wait for a server, and for which."""
    if batch.waits_for is None:
        return Text()
    return plain(f"{batch.postponed:,} for a server: {waiting_for(batch.waits_for, time.time())}", "yellow")


def _sum(total: int, parts: Mapping[str, int]) -> Text:
    """6,000 = 200 enqueued + 5,800 known."""
    shown = Text(f"{total:,}")
    for place, (name, count) in enumerate(parts.items()):
        shown.append(" + " if place else " = ", "dim").append(f"{count:,} ", STATE_STYLES.get(name, "cyan")).append(
            name
        )
    return shown


def draw_batches(batches: Sequence[BatchStatus], now: float) -> Table:
    """One line a batch; `now` is Unix seconds."""
    table = columns("id", "age", "open", "source", "accounts", right=("open",), whole=("id", "age", "open"))
    for batch in batches:
        age = duration(max(0.0, now - batch.created_at) * 1000)
        left = f"{batch.open + batch.known_open:,}"
        unread = Text("" if batch.read_whole else " (not read to its end)", "yellow")
        table.add_row(plain(batch.batch_id), age, left, plain(batch.source).append(unread), accounts_line(batch))
    return table


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


def accounts_line(batch: BatchStatus) -> str:
    """Its accounts in one line: 6,000 lines = 200 enqueued + 5,800 known; 200 jobs = 150 done + 50 open."""
    return f"lines {_sum(batch.lines, batch.kinds()).plain}; jobs {_sum(batch.enqueued, batch.outcomes()).plain}"


def _pace(batch: BatchStatus, rate: float | None, elapsed_s: float) -> str:
    elapsed = f"after {duration(elapsed_s * 1000)}"
    if not rate:
        return elapsed
    left = (batch.open + batch.known_open) / rate
    return f"{rate:.1f} jobs/s {elapsed}" + (f", about {duration(left * 1000)} left" if left else "")


def report_columns(room: int | None) -> tuple[str, ...]:
    """The columns of a report that fit into `room` characters (None: all), in their order."""
    chosen, used = set[str](), -_GAP
    for place, name in enumerate(_BY_WORTH):
        needs = _COLUMNS[name] + _GAP
        if place < _ALWAYS or room is None or used + needs <= room:
            chosen.add(name)
            used += needs
    return tuple(name for name in _COLUMNS if name in chosen)


def left_out(names: Collection[str]) -> str:
    """Which columns a report with these ones lacks, as a sentence; empty for none."""
    missing = ", ".join(name for name in _COLUMNS if name not in names)
    return f"no room for {missing}: a wider terminal, --csv and --json show all" if missing else ""


def report_width(names: Collection[str]) -> int:
    """Characters of a line of the report with these columns."""
    return sum(_COLUMNS[name] + _GAP for name in names) - _GAP


def draw_lines(lines: Iterable[LineReport], names: Sequence[str]) -> Iterator[Table]:
    """A table for each 500 lines, the columns of all of one width, so that a large batch is shown while it is read."""
    stream = iter(lines)
    while page := list(islice(stream, _PAGE)):
        table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="dim")
        for name in names:
            whole = name in _WHOLE
            table.add_column(
                name,
                width=_COLUMNS[name],
                no_wrap=whole,
                overflow="ellipsis" if whole else "fold",
                justify="right" if name in _RIGHT else "left",
            )
        for line in page:
            cells = _report_cells(line)
            table.add_row(*(cells[name] for name in names))
        yield table


def _report_cells(line: LineReport) -> dict[str, Text]:
    ended = line.leaves_done + line.leaves_failed
    cost = "" if line.cost_estimated is None else f"{line.cost_estimated[0]:.4g}-{line.cost_estimated[1]:.4g}"
    return {
        "line": Text(str(line.line)),
        "id": plain("" if line.id is None else str(line.id)),
        "key": plain(line.key or ""),
        "job": plain(line.job_id or ""),
        "state": _ended(line),
        "leaves": Text(f"{ended}/{line.leaves_total}" if line.job_id else ""),
        "waited": _seconds(line.waited_s),
        "ran": _seconds(line.ran_s),
        "calls": Text(str(line.spent.llm_calls or "")),
        "tokens": Text(str(tokens(line) or "")),
        "estimated": Text(cost),
        "spent": Text("" if line.cost_spent is None else f"{line.cost_spent:.4g}"),
        "error": plain(line.error or "", "red"),
    }


def _seconds(value: float | None) -> Text:
    return Text("" if value is None else f"{value:.1f}")


def answer_cells(found: AnsweredLine) -> tuple[Text, ...]:
    """Line, id, job, how it ended, and the question with the beginning of the answer, or why there is none."""
    said = found.answer.summary.text if found.answer else found.error or ""
    answer = plain(found.question, "bold").append("\n").append(snippet(said))
    own_id = found.id if found.id is not None else found.key or ""
    return Text(str(found.line)), plain(str(own_id)), plain(found.job_id or ""), _ended(found), answer


def _ended(found: LineReport) -> Text:
    """The outcome, or the state of what is open; then why the answer is degraded, whether stale; an unusual kind."""
    name = found.outcome or found.state or found.kind
    shown = plain(name, STATE_STYLES.get(name, "cyan"))
    if found.reasons:
        shown.append(f" ({', '.join(found.reasons)})", "dim")
    if found.stale:
        shown.append(" stale", "yellow")
    return shown.append(f" {found.kind}", "dim") if found.kind not in {"enqueued", name} else shown
