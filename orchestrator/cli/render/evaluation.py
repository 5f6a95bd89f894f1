"""Draws an evaluation: a table of strategies, a table of differences, and how they came to be. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.cli.render.eval_types import draw_types
from orchestrator.cli.render.text import plain
from orchestrator.cli.wording import counted
from orchestrator.evaluation.measures import MEASURES
from orchestrator.evaluation.report import Arm, Evaluation, Pair
from orchestrator.evaluation.wording import method_line, p_value, percent, sure


def draw_evaluation(found: Evaluation) -> RenderableType:
    """Figures in percent with their intervals, times in milliseconds; a column for each strategy and each pair."""
    return Group(*_parts(found))


def _parts(found: Evaluation) -> Iterator[RenderableType]:
    yield plain(f"{found.dataset}: {counted(found.questions, 'question')}", "bold")
    yield _strategies(found.arms)
    if found.pairs:
        yield Text()
        yield _differences(found.pairs)
    for table in draw_types(found):
        yield Text()
        yield table
    yield Text()
    yield plain(method_line(found.method), "dim")


def _strategies(arms: Sequence[Arm]) -> Table:
    table = _columns("", [arm.strategy for arm in arms])
    for name in MEASURES:
        table.add_row(Text(name), *(_figure(arm, name) for arm in arms))
    table.add_row(Text("latency p50"), *(f"{arm.latency_ms.p50:.1f} ms" for arm in arms))
    table.add_row(Text("latency p95"), *(f"{arm.latency_ms.p95:.1f} ms" for arm in arms))
    jobs = [arm.job_ms for arm in arms if arm.job_ms]
    if len(jobs) == len(arms):
        table.add_row(Text("whole job p50"), *(f"{job.p50:.1f} ms" for job in jobs))
    table.add_row(Text("calls"), *(_calls(arm) for arm in arms))
    if any(arm.failed for arm in arms):
        table.add_row(Text("failed"), *(Text(str(arm.failed), "red" if arm.failed else "") for arm in arms))
    return table


def _figure(arm: Arm, name: str) -> Text:
    low, high = arm.intervals[name]
    return Text(percent(arm.metrics[name])).append(f"  {percent(low)}-{percent(high)}", "dim")


def _calls(arm: Arm) -> str:
    counts = {"LLM": arm.calls.llm, "embed": arm.calls.embed, "rerank": arm.calls.rerank}
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count) or "none"


def _differences(pairs: Sequence[Pair]) -> Table:
    by_arms: dict[tuple[str, str], dict[str, Pair]] = {}
    for pair in pairs:
        by_arms.setdefault((pair.a, pair.b), {})[pair.metric] = pair
    table = _columns("points of 100", [f"{b} minus {a}" for a, b in by_arms])
    for name in MEASURES:
        table.add_row(Text(name), *(_difference(found[name]) for found in by_arms.values()))
    return table


def _difference(pair: Pair) -> Text:
    """Green and red only where p is below 0.05."""
    style = "" if not sure(pair) else "green" if pair.difference > 0 else "red"
    shown = Text(f"{100 * pair.difference:+.1f}", style).append(f"  {p_value(pair)}", "dim")
    return shown.append(f"\n{100 * pair.low:+.1f} to {100 * pair.high:+.1f}", "dim")


def _columns(first: str, others: Sequence[str]) -> Table:
    table = Table(box=None, padding=(0, 2), pad_edge=False, header_style="dim")
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(plain(name), overflow="fold")
    return table
