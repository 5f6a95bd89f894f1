"""Draws an answer: question, coverage, summary, sources, tree, merged results, cost, times, warnings. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType, group
from rich.table import Table
from rich.text import Text

from orchestrator.cli.render.support import draw_support
from orchestrator.cli.render.tree import draw, state_text
from orchestrator.cli.text import (
    cited,
    columns,
    counted,
    duration,
    heading,
    numbered,
    pair,
    plain,
    read_as,
    score,
    snippet,
    stale_by,
    warnings,
)  # fmt: skip
from orchestrator.diagnosis.wording import degraded_parts
from orchestrator.growth import of_answer
from shared.language import reader_sentence
from shared.models import Answer, Citation, Cost, Hit, MergedHit
from shared.models.answer import Bridge, ReasoningStep
from shared.models.cost import Spending
from shared.models.enumeration import ListRow, ListTable
from shared.models.find import MatchedContext
from shared.models.gaps import SearchedGap
from shared.models.hits import Effect, StageTrace

_BEST_COLUMNS, _SENTENCE_COLUMNS = 100, 120
#: Rows of a complete list that the answer shows.
_MAX_ROWS = 50


@group()
def draw_answer(answer: Answer) -> Iterator[RenderableType]:
    """The whole answer, for any width from about 60 columns."""
    yield plain(answer.question, "bold")
    yield _standing(answer)
    yield from _about(answer)
    yield Text()
    if answer.table:
        yield from _list(answer.job_id, answer.table)
        searched = reader_sentence("list_beside", answer.question)
        if (below := answer.summary.text.find(f"\n{searched}\n")) > 0:
            yield Text()
            yield cited(answer.summary.text[below + 1 :])
    else:
        yield cited(answer.summary.text) if answer.summary.text else Text("There is no summary.", "yellow")
        yield from draw_support(answer.summary)
    if answer.steps:
        yield from heading("Aspects" if answer.steps[0].kind == "aspect" else "Steps")
        yield _steps(answer)
    yield from _gaps(answer.gaps)
    if answer.summary.citations:
        yield from heading("Sources")
        yield _sources(answer)
        first = answer.summary.citations[0].number
        yield plain(f"ramify show {answer.job_id}#{first} shows a source in its text", "dim")
    yield from heading("Tree")
    yield draw(of_answer(answer), notes=_best_hits(answer))
    if answer.results or not answer.table:
        yield from heading(f"Results ({len(answer.results)})")
        yield _results(answer.results) if answer.results else Text("Nothing was found.", "yellow")
    if any(hit.explain for hit in answer.results):
        yield from heading("How the scores came to be")
        yield draw_explained(answer.results)
        for leaf in answer.leaves:
            yield plain(f"\nstages of leaf {leaf.node_id}", "dim")
            yield draw_stages(leaf.stages)
    yield Text()
    yield pair("Cost", cost_line(answer.cost))
    if answer.budget:
        yield pair("Budget", budget_line(answer.budget))
    yield pair("Times", times_line(answer.timings_ms))
    yield from warnings(answer.warnings)


def _about(answer: Answer) -> Iterator[RenderableType]:
    """By what it is stale, what it was made without, how its question was read."""
    if answer.stale:
        yield pair("Stale", stale_by(answer.stale))
    if answer.degraded:
        yield pair("Degraded", degraded_parts(answer.degraded, answer.degraded_at))
    if answer.route:
        yield pair("Read as", read_as(answer.route))


def _standing(answer: Answer) -> Text:
    shown = state_text(answer.state, partial=answer.partial).append(" · ").append(plain(answer.coverage))
    for verdict in answer.verdicts or filter(None, (answer.verdict,)):
        shown.append(" · ").append(plain(verdict.replace("_", " "), "yellow"))
    if answer.reranked_by:
        shown.append(" · reranked by ").append(plain(answer.reranked_by))
    written = {"extractive": "summary from extracts", "llm": "summary by the LLM"}.get(answer.summary.kind)
    return shown.append(f" · {written}") if written else shown


def _gaps(gaps: Sequence[SearchedGap]) -> Iterator[RenderableType]:
    """A line each: found by a second search, or still open."""
    if gaps:
        yield from heading("Gaps")
    for gap in gaps:
        glyph = Text("● ", "green") if gap.closed else Text("○ ", "yellow")
        yield glyph.append(plain(gap.text))


def _sources(answer: Answer) -> Table:
    hits: dict[str, Hit] = {hit.chunk_id: hit for leaf in answer.leaves for hit in leaf.hits}
    hits |= {hit.chunk_id: hit for hit in answer.results}
    grid = numbered()
    for citation in answer.summary.citations:
        grid.add_row(Text(f"[{citation.number}]", "bold cyan"), _source(citation, hits.get(citation.chunk_id)))
    return grid


def _source(citation: Citation, hit: Hit | None) -> Text:
    shown = plain(citation.title, "bold").append("  ").append(plain(citation.path, "dim"))
    if citation.place:
        shown.append(", ").append(plain(citation.place, "cyan"))
    if citation.start is not None:
        shown.append(f", characters {citation.start}–{citation.end}", "dim")
    if hit and hit.date:
        shown.append("  ").append(plain(hit.date, "dim"))
    return shown.append("\n").append(snippet(f"“{citation.quote}”")) if citation.quote else shown


def _best_hits(answer: Answer) -> dict[str, Text]:
    """Node id -> the title of the best hit and its score."""
    best = {}
    for leaf in answer.leaves:
        if leaf.hits:
            hit = leaf.hits[0]
            line = Text("best: ", "dim").append(plain(title(hit))).append(f"  {score(hit.score)}", "dim")
            line.truncate(_BEST_COLUMNS, overflow="ellipsis")
            best[leaf.node_id] = line
    return best


def title(hit: Hit | MatchedContext) -> str:
    """Document and heading, unless the heading only repeats the title."""
    return f"{hit.title} › {hit.heading}" if hit.heading and hit.heading != hit.title else hit.title


def _results(results: tuple[MergedHit, ...]) -> Table:
    table = columns("#", "score", "document", "found by leaf #rank", right=("#", "score"), whole=("#", "score"))
    for place, hit in enumerate(results, 1):
        where = f"{hit.path}  {hit.date}" if hit.date else hit.path
        document = plain(title(hit)).append("\n").append(plain(where, "dim"))
        found = ", ".join(f"{source.node_id} #{source.rank}" for source in hit.sources)
        table.add_row(str(place), score(hit.score), document, plain(found, "dim"))
    return table


def cost_line(cost: Cost) -> str:
    """What was spent, by kind."""
    parts = []
    if cost.llm_calls:
        tokens = f"{cost.llm_tokens_in} tokens in, {cost.llm_tokens_out} out"
        parts.append(f"LLM {counted(cost.llm_calls, 'call')} ({tokens})")
    if cost.embed_calls:
        parts.append(f"embedding {counted(cost.embed_calls, 'call')} ({cost.embed_tokens} tokens)")
    if cost.rerank_calls:
        parts.append(f"rerank {counted(cost.rerank_calls, 'call')} ({cost.rerank_documents} documents)")
    return ", ".join(parts) or "nothing: no call to an LLM, embedding or rerank server"


def budget_line(spent: Spending | None) -> str:
    """What is spent of each limit; empty without limits."""
    if not spent:
        return ""
    parts = {
        "max_calls": f"LLM calls {spent.calls} of {spent.max_calls}",
        "max_tokens": f"tokens {spent.tokens} of {spent.max_tokens}",
        "max_seconds": f"{spent.seconds:.1f} of {spent.max_seconds} s",
        "max_cost": f"money {spent.cost:.6g} of {spent.max_cost}",
    }
    return ", ".join(parts[name] for name in spent.limits())


def times_line(timings_ms: Mapping[str, float]) -> str:
    """Stages in their order, the total last."""
    stages = sorted(timings_ms.items(), key=lambda stage: stage[0] == "total")
    return " · ".join(f"{name} {duration(ms)}" for name, ms in stages) or "not known"


def _list(job_id: str, table: ListTable) -> Iterator[RenderableType]:
    """A complete list: what of it is not certain, the headline, the first rows, and how to get the others."""
    if table.unread:
        yield plain(f"Not certain. Not understood as conditions: {', '.join(table.unread)}.", "yellow")
    head = Text(counted(table.matched, table.unit), "bold")
    if table.kinds:
        head.append(f" ({', '.join(f'{kind} {count}' for kind, count in sorted(table.kinds.items()))})")
    if table.understood:
        head.append(" · ").append(plain(table.understood))
    coverage = table.coverage or f"scanned {table.scanned} of {table.planned} documents"
    yield head.append(" · ").append(plain(coverage, "yellow" if table.partial else "green"))
    for note in _list_notes(table):
        yield plain(note, "yellow")
    if table.groups:
        yield Text()
        yield _groups(table)
    shown = table.rows[:_MAX_ROWS]
    if shown:
        yield Text()
        yield _list_rows(shown, table.columns)
    if table.matched > len(shown):
        how = f": `ramify result {job_id} --rows` shows all of them" if table.pages else ""
        yield plain(f"{table.matched - len(shown)} more{how}", "dim")


def _groups(table: ListTable) -> Table:
    """How many documents there are of each value that the list is counted by."""
    named = (f"{table.unit}s", *([table.total.label] if table.total else []))
    shown = columns(table.grouped_by, *named, right=named)
    for each in table.groups:
        amount = ["" if each.amount is None else f"{each.amount:,g}"] if table.total else []
        shown.add_row(plain(each.value or f"(no {table.grouped_by})"), str(each.documents), *amount)
    return shown


def _list_notes(table: ListTable) -> Iterator[str]:
    if table.fitting > table.matched:
        how = {"most": f"with the highest {table.ordered_by}", "least": f"with the lowest {table.ordered_by}"}
        yield f"{table.fitting} documents fit; these are the {table.matched} {how.get(table.order, table.order)}."
    if total := table.total:
        way = "on average" if total.way == "mean" else "together"
        yield f"{total.label} {way}: {total.amount:,.10g} {total.unit}, of {counted(total.documents, 'document')}."
    if table.partial:
        yield "The list is not complete: the job's time was up, or a part of the corpus was not read."
    if table.changed:
        yield "The corpus was written while it was read."
    if table.unparsed:
        yield f"Of {counted(table.unparsed, 'file')} it is not known what they define."
    if table.copies:
        yield f"{table.copies} of them have the same text as an earlier row."
    if table.dropped:
        yield f"{counted(table.dropped, 'value')} of the model that stand in no document were left out."


def _list_rows(rows: tuple[ListRow, ...], names: tuple[str, ...]) -> Table:
    table = columns("#", "document", *(names or ("says",)), right=("#",), whole=("#",))
    for number, row in enumerate(rows, 1):
        cells = [plain(row.fields.get(name, "")) for name in names] or [snippet(row.sentence, _SENTENCE_COLUMNS)]
        where = f"{row.place} {row.date}" if row.date else row.place
        document = (
            plain(f"{row.kind} {row.title}" if row.line else row.title, "bold").append("\n").append(plain(where, "dim"))
        )
        document.append(f"  as {row.copy_of}" if row.copy_of else "", "dim")
        table.add_row(str(number), document, *cells)
    return table


def _steps(answer: Answer) -> Table:
    """One row a step. Where the summary shows the sentences of an aspect already, only their numbers stand here."""
    grid = numbered()
    for step in answer.steps:
        shown = step.kind == "aspect" and all(line in answer.summary.text for line in step.text.split("\n"))
        lines = Text("\n").join(_step_lines(step, numbers_only=shown))
        grid.add_row(Text(f"{step.number}.", "bold cyan"), lines)
    return grid


def _step_lines(step: ReasoningStep, *, numbers_only: bool) -> Iterator[Text]:
    yield _step_asked(step)
    for bridge in step.bridges:
        yield _step_bridge(bridge)
    if numbers_only:
        if step.passages:
            yield Text("".join(f"[{number}]" for number in step.passages), "bold cyan")
    elif step.text:
        yield cited(step.text)
    if step.found:
        label = "names handed on: " if step.found_by == "names" else "found: "
        yield Text(label, "green").append(plain("; ".join(step.found)))
    if step.gap:
        yield Text("gap: ", "yellow").append(plain(step.gap, "yellow"))


def _step_asked(step: ReasoningStep) -> Text:
    shown = Text(f"{step.facet} ", "cyan") if step.kind == "aspect" else Text()
    shown.append(plain(step.question, "bold"))
    if step.after:
        shown.append(f" · after {', '.join(map(str, step.after))}", "dim")
    if step.planned and step.planned != step.question:
        shown.append(" · planned: ", "dim").append(plain(step.planned, "dim"))
    return shown


def _step_bridge(bridge: Bridge) -> Text:
    start = f"[{bridge.start}]" if bridge.start else "[?]"
    shown = Text(start, "bold cyan").append(" → ", "dim").append(plain(bridge.name))
    return shown.append(" → ", "dim").append(f"[{bridge.end}]", "bold cyan").append(f"  {bridge.how}", "dim")


def draw_explained(hits: Sequence[Hit]) -> RenderableType:
    """A small table per hit."""
    return Group(*(part for place, hit in enumerate(hits, 1) if hit.explain for part in _explained(place, hit)))


def draw_stages(stages: Sequence[StageTrace]) -> RenderableType:
    """The stages in order: time, what was left, what one has to say; then the directories that one opened."""
    table = columns("stage", "ms", "hits", "note", right=("ms", "hits"))
    for trace in stages:
        table.add_row(plain(trace.stage), f"{trace.ms:.1f}", str(trace.hits), plain(trace.skipped or trace.note or ""))
    return Group(table, *(part for trace in stages if trace.trail or trace.stopped for part in _trail(trace)))


def _trail(trace: StageTrace) -> tuple[Text, Table, Text]:
    numbers = ("round", "score", "own", "parent", "hits")
    table = columns("round", "directory", "score", "own", "parent", "hits", right=numbers)
    for step in trace.trail:
        parent = "" if step.parent is None else f"{step.parent:.4f}"
        table.add_row(str(step.round), plain(step.path), f"{step.score:.4f}", f"{step.own:.4f}", parent, str(step.hits))
    return Text(f"\n{trace.stage}: directories in the order of opening"), table, plain(f"stopped: {trace.stopped}")


def _explained(place: int, hit: Hit) -> tuple[Text, Table]:
    head = Text(f"{place}. ", "bold").append(plain(f"{hit.title} · {hit.path}")).append(f" = {hit.score:.4f}", "bold")
    table = columns("effect", "stage", "detail", right=("effect",), whole=("effect", "stage"))
    table.show_header, table.columns[2].style = False, "dim"
    for effect in hit.explain:
        table.add_row(f"{effect.effect:+.6f}", plain(effect.stage), plain(_detail(effect)))
    if hit.via is not None:
        table.add_row("", "via", plain(f"{hit.via.how} {hit.via.bridge}, hop {hit.via.hop}"))
    return head, table


def _detail(effect: Effect) -> str:
    """With more digits than scores have, so that a score worked out from them has all of its own."""
    shown = {name: value if isinstance(value, str) else f"{value:.7g}" for name, value in effect.detail.items()}
    return ", ".join(f"{name} {value}" for name, value in shown.items())
