"""Draws hits by kind: each with its address, what is around it, and, if asked for, the plan. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType, group
from rich.table import Table
from rich.text import Text

from orchestrator.cli.render.answer import cost_line, draw_explained, draw_stages, times_line, title
from orchestrator.cli.text import columns, counted, heading, plain, score, snippet
from shared.models.find import FindResult, MatchedContext, QueryResult, SessionResult
from shared.models.request import TypedQuery

_SNIPPET_COLUMNS, _ABSTRACT_COLUMNS = 160, 120
#: Hits of one query that are listed in the plan.
_SHOWN = 3


def draw_session(found: SessionResult) -> RenderableType:
    """The same for a search in a conversation; where nothing needs to be looked up, that alone."""
    if not found.retrieval:
        return Group(plain(found.question, "bold"), plain(found.reason, "green"))
    head = [plain(found.question, "bold")]
    if found.standalone != found.question:
        head.append(Text("understood as ", "dim").append(plain(found.standalone)))
    standing = f"{found.coverage} · planned by {'the LLM' if found.planned_by == 'llm' else 'rules'}"
    return Group(*head, plain(standing, "yellow" if found.partial else "dim"), draw_found(found))


@group()
def draw_found(found: FindResult) -> Iterator[RenderableType]:
    """The groups that have hits, then the plan, how the scores came to be, and what it took."""
    groups = {
        "Memories": found.memories, "Resources": found.resources, "Skills": found.skills, "Others": found.others,
    }  # fmt: skip
    places = {hit.chunk_id: place for place, hit in enumerate(found.hits, 1)}
    if not found.total:
        yield Text("Nothing was found.", "yellow")
    if found.verdict:
        yield plain(found.verdict, "yellow")
    for name, hits in groups.items():
        if hits:
            yield from heading(f"{name} ({len(hits)})")
            yield _matches(hits, places)
    if found.query_plan:
        yield from heading("Plan")
        yield _plan(found.query_plan, found.query_results or ())
    if any(hit.explain for hit in found.hits):
        yield from heading("How the scores came to be")
        yield draw_explained(found.hits)
        yield draw_stages(found.stages)
    yield Text()
    yield plain(f"{found.mode} · {found.candidates} candidates · {times_line(found.timings_ms)}", "dim")
    if found.cost:
        yield plain(cost_line(found.cost), "dim")


def _matches(hits: Sequence[MatchedContext], places: dict[str, int]) -> Table:
    """One block a hit: rank among all hits, score, title, address, abstract, related contexts."""
    table = columns("rank", "score", "hit", right=("rank", "score"), whole=("rank", "score"))
    table.show_header, table.columns[1].style = False, "dim"
    shown: set[str] = set()
    for hit in hits:
        table.add_row(str(places.get(hit.chunk_id, "")), score(hit.score), _match(hit, shown))
    return table


def _match(hit: MatchedContext, abstracts: set[str]) -> Text:
    """`abstracts`: those that were shown before; a directory's stands with its first hit only."""
    text = plain(title(hit), "bold")
    if not hit.leaf:
        text.append("  directory", "cyan")
    where = f"{hit.uri}  {hit.date}" if hit.date else hit.uri
    text.append("\n").append(plain(where, "dim"))
    if hit.via:
        text.append(f"\nreached ({hit.via.how}): ", "cyan").append(plain(hit.via.bridge, "dim"))
    if hit.snippet:
        text.append("\n").append(snippet(hit.snippet, _SNIPPET_COLUMNS))
    if hit.abstract not in {"", hit.snippet, *abstracts}:
        abstracts.add(hit.abstract)
        text.append("\nits directory: ", "cyan").append(snippet(hit.abstract, _ABSTRACT_COLUMNS))
    by_how: dict[str, list[str]] = {}
    for related in hit.related:
        by_how.setdefault(related.how, []).append(related.title)
    for how, titles in by_how.items():
        text.append(f"\n{how}: ", "cyan").append(plain(" · ".join(titles), "dim"))
    return text


def _plan(plan: Sequence[TypedQuery], results: Sequence[QueryResult]) -> Table:
    """The queries in order, and the best hits of each."""
    own = {(result.query, result.context_type): result for result in results}
    table = columns("priority", "type", "query and what it found", right=("priority",))
    for query in plan:
        result = own.get((query.query, query.context_type))
        shown = plain(query.query, "bold").append("  ").append(plain(query.intent, "dim"))
        shown.append("\n").append(_found(result))
        table.add_row(str(query.priority), query.context_type or "all", shown)
    return table


def _found(result: QueryResult | None) -> Text:
    if result is None:
        return Text("not searched", "yellow")
    if result.error:
        return plain(f"failed: {result.error}", "red")
    if not result.hits:
        return Text("nothing", "dim")
    lines = [f"{score(hit.score)}  {hit.title}" for hit in result.hits[:_SHOWN]]
    more = len(result.hits) - len(lines)
    return Text("\n").join([plain(line) for line in (*lines, *([f"and {counted(more, 'hit')} more"] if more else []))])
