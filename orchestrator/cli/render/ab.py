"""Draws what shadow runs have shown: agreement, times and cost by type; quality where there are judgements. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.cli.render.tables import pairs
from orchestrator.cli.render.text import plain
from orchestrator.cli.wording import counted
from orchestrator.evaluation.ab_report import AbReport, Mean, Quality, Row, Spent

_OFF = "no shadow runs now: set shadow.strategy and shadow.share, then start the stack"


def draw_ab(found: AbReport) -> RenderableType:
    """Percent with 95 % intervals, times in milliseconds (half of the jobs are faster); fits 80 columns."""
    return Group(*_parts(found))


def _parts(found: AbReport) -> Iterator[RenderableType]:
    now = f"{found.strategy}, on {100 * found.share:g} % of the jobs" if found.strategy and found.share else _OFF
    yield pairs({"tried": now, "jobs": _jobs(found)})
    for trial in found.trials:
        yield Text()
        yield plain(f"{trial.shadow} (shadow) against {trial.live} (live)", "bold")
        yield _agreement(trial.rows)
        yield pairs({f"cost {name}": _cost(side) for name, side in _sides(trial.rows[0])})
        if any(row.quality for row in trial.rows):
            yield Text()
            yield _quality(trial.rows)
    yield Text()
    for sentence in found.said if found.trials else ():
        yield plain(sentence)
    method = found.method
    if found.trials:
        yield plain(f"first {method.depth} documents; RBO: {method.rbo}; 95 %: {method.interval}", "dim")


def _jobs(found: AbReport) -> str:
    """What became of the jobs on offer; those that are in no count were dropped when too many waited."""
    offered = found.counts.get("offered", 0)
    rest = {name: count for name, count in sorted(found.counts.items()) if name not in {"offered", "compared"}}
    compared = found.counts.get("compared", 0)
    dropped = offered - compared - sum(rest.values()) - found.waiting - found.open
    said = [f"{offered} on offer", f"{compared} compared", f"{found.waiting} waiting", f"{found.open} running"]
    said += [f"{count} {name}" for name, count in rest.items()]
    return ", ".join((*said, f"{dropped} dropped: too many waited") if dropped > 0 else said)


def _agreement(rows: Sequence[Row]) -> Table:
    table = _columns("type", "n", "same top 10", "RBO", "same 1st", "live ms", "shadow ms")
    for row in rows:
        first = f"{100 * row.same_first:.0f} %" if row.same_first is not None else "-"
        times = (f"{side.ms.p50:.0f}" for _, side in _sides(row))
        table.add_row(plain(row.type), str(row.n), _mean(row.overlap), _mean(row.rbo), first, *times)
    return table


def _mean(found: Mean | None) -> Text:
    if found is None:
        return Text("-", "dim")
    return Text(f"{100 * found.mean:.0f} %").append(f"  {100 * found.low:.0f}-{100 * found.high:.0f}", "dim")


def _sides(row: Row) -> tuple[tuple[str, Spent], tuple[str, Spent]]:
    return ("live", row.live), ("shadow", row.shadow)


def _cost(side: Spent) -> str:
    cost = side.cost
    said = [
        counted(cost.llm_calls, "LLM call"),
        counted(cost.llm_tokens_in + cost.llm_tokens_out, "token"),
        counted(cost.embed_calls, "embedding call"),
        counted(cost.rerank_documents, "reranked document"),
        f"p95 {side.ms.p95:.0f} ms",
    ]
    return ", ".join((*said, f"{side.nothing} x nothing relevant") if side.nothing else said)


def _quality(rows: Sequence[Row]) -> Table:
    table = _columns("type", "judged", "nDCG@10 live", "shadow", "difference", "p", "wins of shadow")
    for row in rows:
        if row.quality is not None:
            table.add_row(plain(row.type), *_judged(row.quality))
    return table


def _judged(found: Quality) -> Iterator[Text]:
    sure = found.p < 0.05
    style = "" if not sure else "green" if found.difference > 0 else "red"
    low, high = found.win_rate_bounds
    yield Text(str(found.n))
    yield Text(f"{100 * found.live:.1f}")
    yield Text(f"{100 * found.shadow:.1f}")
    bounds = f"  {100 * found.low:+.1f} to {100 * found.high:+.1f}"
    yield Text(f"{100 * found.difference:+.1f}", style).append(bounds, "dim")
    yield Text(f"{found.p:.3f}" if found.p >= 0.001 else "<0.001")
    yield Text(f"{100 * found.win_rate:.0f} %").append(f"  {100 * low:.0f}-{100 * high:.0f}", "dim")


def _columns(*names: str) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    for name in names:
        table.add_column(name, overflow="fold")
    return table
