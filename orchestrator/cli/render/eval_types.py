"""Draws what an evaluation says of each type of question: how the arms differ, how sure that is. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from orchestrator.cli.render.text import plain
from orchestrator.evaluation.measures import ALL, NDCG
from orchestrator.evaluation.report import Evaluation, OfType, Pair
from orchestrator.evaluation.wording import p_value, percent, sure

#: What the screen shows of each type; the document and the page have all measures.
SHOWN = (NDCG, "recall@10", ALL)
_ALL_TYPES = "all"


def draw_types(found: Evaluation) -> list[Table]:
    """One table for each pair of arms, all questions first; one table of means where there is a single arm."""
    if not found.pairs:
        return [_means(found.types, found.arms[0].strategy)] if found.types else []
    return [_pair_table(found, a, b) for a, b in dict.fromkeys((pair.a, pair.b) for pair in found.pairs)]


def _pair_table(found: Evaluation, a: str, b: str) -> Table:
    table = _table("type", "n", "measure", a, b, "difference", "95 %", "p")
    groups = [(_ALL_TYPES, found.questions, {arm.strategy: arm.metrics for arm in found.arms}, found.pairs)]
    groups += [(one.type, one.questions, one.metrics, one.pairs) for one in found.types]
    for name, questions, metrics, pairs in groups:
        of_pair = {pair.metric: pair for pair in pairs if (pair.a, pair.b) == (a, b)}
        for measure in SHOWN:
            first = measure == SHOWN[0]
            cells = [
                plain(name if first else ""),
                Text(str(questions) if first else "", justify="right"),
                Text(measure),
            ]
            means = [Text(percent(metrics[arm][measure])) for arm in (a, b)]
            table.add_row(*cells, *means, *_difference(of_pair[measure]))
    return table


def _difference(pair: Pair) -> tuple[Text, Text, Text]:
    """Green and red only where the adjusted p is below 0.05."""
    style = "" if not sure(pair) else "green" if pair.difference > 0 else "red"
    bounds = f"{100 * pair.low:+.1f} to {100 * pair.high:+.1f}"
    return Text(f"{100 * pair.difference:+.1f}", style), Text(bounds, "dim"), Text(p_value(pair)[2:], "dim")


def _means(types: Sequence[OfType], arm: str) -> Table:
    table = _table("type", "n", *SHOWN)
    for one in types:
        table.add_row(plain(one.type), str(one.questions), *(percent(one.metrics[arm][name]) for name in SHOWN))
    return table


def _table(*names: str) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    for name in names:
        table.add_column(plain(name), overflow="fold")
    return table
