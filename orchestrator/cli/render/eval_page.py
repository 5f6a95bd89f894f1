"""An evaluation as one HTML page that loads nothing and runs no script: rich's export of tables and plots. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from io import StringIO
from itertools import zip_longest
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.cli.render.evaluation import QUESTION, draw_evaluation, draw_jobs, percent, title
from orchestrator.cli.text import columns, plain
from orchestrator.evaluation.from_jobs import KEPT, Difference, JobsEvaluation
from orchestrator.evaluation.report import Evaluation
from orchestrator.evaluation.statistics import MEASURES
from orchestrator.text_lines import one_line

_WIDTH, _PLOT = 120, 64
_BLOCKS = " ▁▂▃▄▅▆▇█"
_COLOURS = ("blue", "dark_orange3", "dark_green", "purple", "dark_goldenrod", "deep_pink4")
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"/><title>{heading}</title>
<style>body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem }}
pre {{ font: 13px/1.3 'DejaVu Sans Mono', Menlo, Consolas, monospace; overflow-x: auto }}</style></head>
<body><h1>{heading}</h1>
{body}
</body></html>
"""


class Whisker(NamedTuple):
    """A value with its interval, fractions of 1; `colour` counts the arms from 0."""

    label: str
    value: float
    low: float
    high: float
    colour: int = 0


def evaluation_page(found: Evaluation) -> str:
    """Everything that the screen has, all measures of each type, plots, and the questions that differ most."""
    sections: dict[str, RenderableType] = {"Figures": draw_evaluation(found, MEASURES)}
    for name in MEASURES:
        rows = [
            Whisker(arm.strategy, arm.metrics[name], *arm.intervals[name], colour=place)
            for place, arm in enumerate(found.arms)
        ]
        sections[name] = whiskers(rows)
    for a, b in dict.fromkeys((pair.a, pair.b) for pair in found.pairs):
        pairs = [pair for pair in found.pairs if (pair.a, pair.b) == (a, b)]
        rows = [Whisker(pair.metric, pair.difference, pair.low, pair.high) for pair in pairs]
        sections[f"{b} minus {a}, points of 100"] = whiskers(rows, zero=True)
    sections["Latency"] = curves(found.latencies)
    if found.cases:
        sections["Where the first two differ most: nDCG@10"] = _cases(found)
    return page(title(found), sections, found.warnings)


def jobs_page(found: JobsEvaluation) -> str:
    """What the screen has, plots, and of every question that differs the documents of each side."""
    overlaps = [Whisker(f"{one.a} / {one.b}", one.overlap, one.low, one.high) for one in found.agreements]
    sections = {
        "Figures": draw_jobs(found, most=0),
        f"Overlap of the first {found.depth} documents": whiskers(overlaps),
        "Latency": curves(found.latencies),
    }
    if found.differences:
        sections["Questions that differ"] = Group(*(_sides(one) for one in found.differences))
    return page(f"{found.questions} questions of kept jobs", sections, found.warnings)


def _sides(one: Difference) -> Table:
    """The documents that each side found, best first; those that the kept answer has not are marked."""
    table = Table(title=plain(f"{one.job_id}  {one.question[:QUESTION]}", "bold"), title_justify="left", box=None)
    for name in one.documents:
        overlap = f" {percent(one.overlap[name])}" if name in one.overlap else ""
        table.add_column(plain(f"{name}{overlap}", "dim"), overflow="fold")
    kept = one.documents[KEPT]
    for row in zip_longest(*one.documents.values(), fillvalue=""):
        table.add_row(*(plain(path, "" if path in kept else "bold dark_green") for path in row))
    return table


def page(heading: str, sections: Mapping[str, RenderableType], warnings: Sequence[str] = ()) -> str:
    """The whole page. What people, documents and models wrote is escaped."""
    if warnings:
        listed = Group(*(plain(f"- {warning[: 2 * QUESTION]}") for warning in warnings))
        sections = {"Warnings": listed, **sections}
    return _PAGE.format(heading=escape(one_line(heading)), body="\n".join(_exported(sections)))


def _exported(sections: Mapping[str, RenderableType]) -> Iterator[str]:
    console = Console(record=True, width=_WIDTH, file=StringIO(), markup=False, highlight=False, emoji=False)
    for name, drawn in sections.items():
        console.print(drawn)
        text = console.export_html(code_format="<pre>{code}</pre>", inline_styles=True)
        yield f"<h2>{escape(one_line(name))}</h2>\n{text}"


def whiskers(rows: Sequence[Whisker], *, zero: bool = False) -> RenderableType:
    """Points with intervals, one a row, in points of 100. With `zero`: on an axis that has 0 in it, which is marked."""
    least, most = min(row.low for row in rows), max(row.high for row in rows)
    if zero:
        least, most = min(least, 0.0), max(most, 0.0)
    span = max(most - least, 0.01)
    table = _plot_table(f"{100 * least:.1f}", f"{100 * (least + span):.1f}")

    def at(value: float) -> int:
        return round((_PLOT - 1) * (value - least) / span)

    for row in rows:
        low, high = at(row.low), at(row.high)
        line = [" "] * low + ["─"] * (high - low + 1) + [" "] * (_PLOT - high - 1)
        line[low], line[high] = "├", "┤"
        if zero:
            line[at(0.0)] = "┼" if low < at(0.0) < high else "┊"
        line[at(row.value)] = "●"
        style = _COLOURS[row.colour % len(_COLOURS)]
        value = f"{100 * row.value:+.1f}" if zero else percent(row.value)
        table.add_row(plain(row.label), Text("".join(line), style), value)
    return table


def curves(latencies: Mapping[str, Sequence[float]]) -> RenderableType:
    """The share of questions (height) that were searched and merged within so many milliseconds (to the right)."""
    slowest = max((max(values) for values in latencies.values() if values), default=0.0) or 1.0
    table = _plot_table("0 ms", f"{slowest:.1f} ms")
    for place, (name, values) in enumerate(latencies.items()):
        ordered = sorted(values)
        shares = (bisect_right(ordered, slowest * n / _PLOT) / max(len(ordered), 1) for n in range(1, _PLOT + 1))
        line = "".join(_BLOCKS[round(share * (len(_BLOCKS) - 1))] for share in shares)
        table.add_row(plain(name), Text(line, _COLOURS[place % len(_COLOURS)]), "")
    return table


def _plot_table(least: str, most: str) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    table.add_column(max_width=32, overflow="fold")
    table.add_column(f"{least}{most:>{_PLOT - len(least)}}", width=_PLOT, no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    return table


def _cases(found: Evaluation) -> Table:
    table = columns("id", "question", *(arm.strategy for arm in found.arms[:2]))
    for case in found.cases:
        question = plain(case.question[:QUESTION])
        table.add_row(plain(case.question_id, "dim"), question, percent(case.a), percent(case.b))
    return table
