"""Writes the page of one evaluation: tables, plots, method, warnings, and the questions that differ most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from importlib import resources

from orchestrator.evaluation.html.svg import Whisker, curves, text, whiskers
from orchestrator.evaluation.measures import MEASURES
from orchestrator.evaluation.report import Evaluation, Pair
from orchestrator.evaluation.wording import method_line, p_value, percent, sure

_LONGEST = 300


def page(found: Evaluation) -> str:
    """The whole page. What people, documents and models wrote is escaped."""
    css = resources.files("orchestrator.evaluation.html").joinpath("page.css").read_text(encoding="utf-8")
    title = f"{text(found.dataset, 80)}: {found.questions} questions"
    body = "\n".join(part for section in _SECTIONS for part in section(found))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title>\n<style>\n{css}</style></head>\n<body>\n<h1>{title}</h1>\n{body}\n</body></html>\n"
    )


def _method(found: Evaluation) -> Iterator[str]:
    yield f'<p class="method">{escape(method_line(found.method))}</p>'


def _warnings(found: Evaluation) -> Iterator[str]:
    if found.warnings:
        items = "".join(f"<li>{text(warning, _LONGEST * 2)}</li>" for warning in found.warnings)
        yield f'<h2>Warnings</h2><ul class="warnings">{items}</ul>'


def _figures(found: Evaluation) -> Iterator[str]:
    yield "<h2>Figures</h2><p>Percent, with 95 % intervals; times in ms; calls over all questions.</p>"
    head = ("strategy", *MEASURES, "p50", "p95", "LLM", "embed", "rerank", "failed")
    rows = []
    for arm in found.arms:
        cells = [f"<td>{text(arm.strategy, 64)}</td>"]
        for name in MEASURES:
            low, high = arm.intervals[name]
            cells.append(f"<td>{percent(arm.metrics[name])}<small>{percent(low)} to {percent(high)}</small></td>")
        times = (f"{arm.latency_ms.p50:.1f}", f"{arm.latency_ms.p95:.1f}")
        counts = (arm.calls.llm, arm.calls.embed, arm.calls.rerank, arm.failed)
        cells += [f"<td>{value}</td>" for value in (*times, *counts)]
        rows.append("".join(cells))
    yield _table(head, rows)


def _plots(found: Evaluation) -> Iterator[str]:
    yield "<h2>Strategies</h2>"
    for name in MEASURES:
        bars = [
            Whisker(arm.strategy, arm.metrics[name], *arm.intervals[name], colour=place)
            for place, arm in enumerate(found.arms)
        ]
        yield f"<h3>{name}</h3>{whiskers(name, bars)}"


def _pairs(found: Evaluation) -> Iterator[str]:
    if not found.pairs:
        return
    yield "<h2>Differences</h2><p>Points of 100, the second strategy minus the first; bold: p below 0.05.</p>"
    by_arms: dict[tuple[str, str], list[Pair]] = {}
    for pair in found.pairs:
        by_arms.setdefault((pair.a, pair.b), []).append(pair)
    for (a, b), pairs in by_arms.items():
        title = f"{text(b, 64)} minus {text(a, 64)}"
        bars = [Whisker(pair.metric, pair.difference, pair.low, pair.high) for pair in pairs]
        yield f"<h3>{title}</h3>{whiskers(f'{b} minus {a}', bars, zero=True)}"
        yield _table(("measure", "difference", "interval", ""), [_pair_row(pair) for pair in pairs])


def _pair_row(pair: Pair) -> str:
    bold = ' class="sure"' if sure(pair) else ""
    return (
        f"<td>{pair.metric}</td><td{bold}>{100 * pair.difference:+.1f}</td>"
        f"<td>{100 * pair.low:+.1f} to {100 * pair.high:+.1f}</td><td>{escape(p_value(pair))}</td>"
    )


def _types(found: Evaluation) -> Iterator[str]:
    """Every measure of every type; the arms' means, then the pairs."""
    if not found.types:
        return
    yield "<h2>By type of question</h2><p>Percent; differences in points of 100, bold: p below 0.05.</p>"
    for one in found.types:
        yield f"<h3>{text(one.type, 64)}: {one.questions} questions</h3>"
        means = [
            f"<td>{text(arm, 64)}</td>" + "".join(f"<td>{percent(metrics[name])}</td>" for name in MEASURES)
            for arm, metrics in one.metrics.items()
        ]
        yield _table(("strategy", *MEASURES), means)
        if one.pairs:
            rows = [f"<td>{text(f'{pair.b} minus {pair.a}', 80)}</td>{_pair_row(pair)}" for pair in one.pairs]
            yield _table(("strategies", "measure", "difference", "interval", ""), rows)


def _latency(found: Evaluation) -> Iterator[str]:
    yield "<h2>Latency</h2><p>Share of questions that were searched and merged within so many milliseconds.</p>"
    yield curves("latency", [(arm.strategy, found.latencies.get(arm.strategy, ())) for arm in found.arms])


def _cases(found: Evaluation) -> Iterator[str]:
    if not found.cases:
        return
    a, b = found.arms[0].strategy, found.arms[1].strategy
    yield "<h2>Where the first two differ most</h2><p>nDCG@10 of single questions.</p>"
    rows = [
        f'<td class="soft">{text(case.question_id, 40)}</td><td class="text">{text(case.question, _LONGEST)}</td>'
        f"<td>{percent(case.a)}</td><td>{percent(case.b)}</td>"
        for case in found.cases
    ]
    yield _table(("id", "question", text(a, 40), text(b, 40)), rows)


def _table(head: Sequence[str], rows: Sequence[str]) -> str:
    """`head` is safe already; `rows` are their cells."""
    names = "".join(f"<th>{name}</th>" for name in head)
    lines = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table></div>'


_SECTIONS = (_method, _warnings, _figures, _plots, _pairs, _types, _latency, _cases)
