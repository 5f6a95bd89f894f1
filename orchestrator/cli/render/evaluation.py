"""Draws an evaluation: strategies, differences, types of questions, and how the figures came to be. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType, group
from rich.table import Table
from rich.text import Text

from orchestrator.cli.text import columns, counted, plain
from orchestrator.evaluation.report import ArmFigures, Calls, Evaluation, Method, OfType, Pair, RelevanceMark
from orchestrator.evaluation.statistics import ALL, MEASURES, NDCG

if TYPE_CHECKING:  # it brings the client with it, which a run without the stack does without
    from orchestrator.evaluation.from_jobs import JobsEvaluation, Rerun

#: The measures that the screen shows of each type; the JSON document and the page have all.
SHOWN = (NDCG, "recall@10", ALL)
_SURE = 0.05
#: Characters of a question that are shown.
QUESTION = 300


@group()
def draw_evaluation(found: Evaluation, measures: Sequence[str] = SHOWN) -> Iterator[RenderableType]:
    """Figures in percent with their intervals, times in milliseconds; `measures`: those shown of each type."""
    yield plain(title(found), "bold")
    yield _strategies(found.arms)
    yield from (_mark(arm.strategy, arm.relevance) for arm in found.arms if arm.relevance)
    tables = [_differences(found.pairs)] if found.pairs else []
    for table in (*tables, *_types(found, measures)):
        yield Text()
        yield table
    yield Text()
    yield plain(_method_line(found.method), "dim")


def title(found: Evaluation) -> str:
    """What was evaluated, in a line."""
    return f"{found.dataset}: {counted(found.questions, 'question')}"


def _strategies(arms: Sequence[ArmFigures]) -> Table:
    table = columns("", *(arm.strategy for arm in arms))
    for name in MEASURES:
        table.add_row(Text(name), *(_figure(arm, name) for arm in arms))
    _add_costs(table, arms)
    jobs = [arm.job_ms for arm in arms if arm.job_ms]
    if len(jobs) == len(arms):
        table.add_row("whole job p50", *(f"{job.p50:.1f} ms" for job in jobs))
    return table


def _mark(strategy: str, found: RelevanceMark) -> Text:
    """What to write into ramify.toml, and what it does to questions by which it was not chosen."""
    return plain(
        f"rerank.min_relevance = {found.mark:g} ({strategy}) says “nothing relevant” to {percent(found.refused)} % of "
        f"such questions, and to {percent(found.caught)} % of them with their relevant documents taken out",
        "dim",
    )


def _add_costs(table: Table, arms: Sequence[ArmFigures] | Sequence[Rerun]) -> None:
    """Rows of times, calls and failures."""
    table.add_row("latency p50", *(f"{arm.latency_ms.p50:.1f} ms" for arm in arms))
    table.add_row("latency p95", *(f"{arm.latency_ms.p95:.1f} ms" for arm in arms))
    table.add_row("calls", *(calls(arm.calls) for arm in arms))
    if any(arm.failed for arm in arms):
        table.add_row("failed", *(Text(str(arm.failed), "red" if arm.failed else "") for arm in arms))


def _figure(arm: ArmFigures, name: str) -> Text:
    low, high = arm.intervals[name]
    return Text(percent(arm.metrics[name])).append(f"  {percent(low)}-{percent(high)}", "dim")


def calls(made: Calls) -> str:
    """Calls by kind of server; those that were not made are left out."""
    counts = {"LLM": made.llm, "embed": made.embed, "rerank": made.rerank}
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count) or "none"


def _differences(pairs: Sequence[Pair]) -> Table:
    by_arms: dict[tuple[str, str], dict[str, Pair]] = {}
    for pair in pairs:
        by_arms.setdefault((pair.a, pair.b), {})[pair.metric] = pair
    table = columns("points of 100", *(f"{b} minus {a}" for a, b in by_arms))
    for name in MEASURES:
        cells = (_cells(found[name]) for found in by_arms.values())
        differences = (points.append(f"  p {p}", "dim").append("\n").append(bounds) for points, bounds, p in cells)
        table.add_row(Text(name), *differences)
    return table


def _cells(pair: Pair) -> tuple[Text, Text, Text]:
    """Difference, interval and p; green and red only where the adjusted p is below 0.05."""
    style = "" if pair.p >= _SURE else "green" if pair.difference > 0 else "red"
    p = f"{pair.p:.3f}" if pair.p >= 0.001 else "<0.001"
    bounds = f"{100 * pair.low:+.1f} to {100 * pair.high:+.1f}"
    return Text(f"{100 * pair.difference:+.1f}", style), Text(bounds, "dim"), Text(p, "dim")


def _types(found: Evaluation, measures: Sequence[str]) -> list[Table]:
    """One table for each pair of arms, all questions first; one table of means where there is a single arm."""
    if not found.pairs:
        return [_means(found.types, found.arms[0].strategy, measures)] if found.types else []
    arms = dict.fromkeys((pair.a, pair.b) for pair in found.pairs)
    return [_pair_table(found, a, b, measures) for a, b in arms]


def _pair_table(found: Evaluation, a: str, b: str, measures: Sequence[str]) -> Table:
    table = columns("type", "n", "measure", a, b, "difference", "95 %", "p")
    metrics: Mapping[str, Mapping[str, float]] = {arm.strategy: arm.metrics for arm in found.arms}
    groups = [("all", found.questions, metrics, found.pairs)]
    groups += [(one.type, one.questions, one.metrics, one.pairs) for one in found.types]
    for name, questions, metrics, pairs in groups:
        of_pair = {pair.metric: pair for pair in pairs if (pair.a, pair.b) == (a, b)}
        for measure in measures:
            first = (plain(name), Text(str(questions))) if measure == measures[0] else (Text(), Text())
            means = [percent(metrics[arm][measure]) for arm in (a, b)]
            table.add_row(*first, Text(measure), *means, *_cells(of_pair[measure]))
    return table


def _means(types: Sequence[OfType], arm: str, measures: Sequence[str]) -> Table:
    table = columns("type", "n", *measures)
    for one in types:
        table.add_row(plain(one.type), str(one.questions), *(percent(one.metrics[arm][name]) for name in measures))
    return table


@group()
def draw_jobs(found: JobsEvaluation, most: int = 10) -> Iterator[RenderableType]:
    """How far the answers agree, what each strategy took, and the `most` questions that differ most (0: none)."""
    yield plain(f"{counted(found.questions, 'question')} of kept jobs, asked again", "bold")
    if found.left_out:
        yield plain("left out: " + ", ".join(f"{number} {reason}" for reason, number in found.left_out.items()), "dim")
    yield _columns_of(found)
    yield Text()
    yield _agreements(found)
    if found.differences and most:
        yield Text()
        yield _job_differences(found, most)
    if len(found.differences) > most > 0:
        yield plain(f"and {len(found.differences) - most} more: --json and --report have all", "dim")
    yield Text()
    yield plain(f"first {found.depth} documents; 95 % intervals: percentile bootstrap over questions", "dim")
    yield plain("Agreement is not quality: which answers are better, a labelled set says.", "dim")


def _columns_of(found: JobsEvaluation) -> Table:
    table = columns("", *(one.strategy for one in found.columns))
    _add_costs(table, found.columns)
    if any(one.calls.rerank_documents for one in found.columns):
        table.add_row("reranked", *(str(one.calls.rerank_documents) for one in found.columns))
    if any(one.llm_tokens for one in found.columns):
        table.add_row("LLM tokens", *(str(one.llm_tokens) for one in found.columns))
    return table


def _agreements(found: JobsEvaluation) -> Table:
    table = columns("first ten documents", "n", "overlap@10", "same first", "differ")
    for one in found.agreements:
        share = Text(f"{percent(one.overlap)}").append(f"  {percent(one.low)}-{percent(one.high)}", "dim")
        table.add_row(plain(f"{one.a} / {one.b}"), str(one.n), share, percent(one.same_first), str(one.differ))
    return table


def _job_differences(found: JobsEvaluation, most: int) -> Table:
    arms = [one.strategy for one in found.columns[1:]]
    table = columns("job", "question", *arms)
    for one in found.differences[:most]:
        shares = (percent(one.overlap[arm]) if arm in one.overlap else "-" for arm in arms)
        table.add_row(plain(one.job_id), plain(one.question[:QUESTION]), *shares)
    return table


def percent(value: float) -> str:
    """A fraction of 1 as percent, one decimal."""
    return f"{100 * value:.1f}"


def _method_line(method: Method) -> str:
    """One paragraph that says how the figures came to be."""
    plan = f", with the plan in {method.plan}" if method.plan else ""
    types = f"; types: {method.types}" if method.types else ""
    return (
        f"{method.mode}{plan}; nDCG gain {method.gain}, relevant from grade {method.relevant_from}; "
        f"{100 * method.level:.0f} % intervals: {method.interval}; p: {method.test}, {method.correction}; "
        f"{method.resamples} resamples, seed {method.seed}{types}"
    )
