"""Hits by kind, with what stands around them (C5). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shared.models import Answer, Hit, LeafResult, SearchResult
from shared.models.find import Anchor, Context, FindResult, MatchedContext, QueryResult, Ranked, SessionResult
from shared.models.session import Intent, TypedQuery
from shared.uri import is_directory, uri_of

#: Kind of a document -> its group; all other kinds stand under `others`.
_GROUPS = {"memory": "memories", "resource": "resources", "skill": "skills"}


def grouped(
    found: SearchResult,
    contexts: Mapping[str, Context],
    plan: Sequence[TypedQuery] | None = None,
    results: Sequence[QueryResult] | None = None,
) -> FindResult:
    """The result with its hits by kind, each group in the order of the hits."""
    groups: dict[str, list[MatchedContext]] = {name: [] for name in (*_GROUPS.values(), "others")}
    for hit in found.hits:
        groups[_GROUPS.get(hit.kind, "others")].append(_matched(hit, contexts.get(hit.chunk_id, Context())))
    return FindResult(
        **{name: getattr(found, name) for name in SearchResult.model_fields},
        **groups,
        total=len(found.hits),
        query_plan=tuple(plan) if plan is not None else None,
        query_results=tuple(results) if results is not None else None,
    )


def anchors(hits: Iterable[Hit], most: int) -> tuple[Anchor, ...]:
    """What the search pool must know of the first `most` hits."""
    names = set(Anchor.model_fields)
    return tuple(Anchor(**hit.model_dump(include=names)) for hit, _ in zip(hits, range(most), strict=False))


def ranking(query: TypedQuery, hits: Iterable[Hit], error: str | None = None) -> QueryResult:
    """What one query found by itself."""
    found = tuple(Ranked(uri=uri_of(hit), title=hit.symbol or hit.title, score=hit.score) for hit in hits)
    return QueryResult(query=query.query, context_type=query.context_type, hits=found, error=error)


def of_job(intent: Intent, answer: Answer, mode: str, contexts: Mapping[str, Context], *, plan: bool) -> SessionResult:
    """The result of a search in a conversation, from its job's answer."""
    first = answer.leaves[0] if answer.leaves else None
    found = SearchResult(
        hits=tuple(Hit(**{name: getattr(hit, name) for name in Hit.model_fields}) for hit in answer.results),
        mode=mode,
        candidates=sum(leaf.candidates for leaf in answer.leaves),
        reranked_by=answer.reranked_by,
        verdict=answer.verdict,
        stages=first.stages if first else (),
        timings_ms=answer.timings_ms,
        warnings=tuple(dict.fromkeys((*intent.warnings, *answer.warnings))),
        cost=intent.cost + answer.cost,
    )
    results = _per_query(answer, {leaf.node_id: leaf for leaf in answer.leaves}, intent) if plan else None
    whole = grouped(found, contexts, intent.queries if plan else None, results)
    return SessionResult(
        **{name: getattr(whole, name) for name in FindResult.model_fields},
        question=intent.queries[0].query,
        retrieval=True,
        reason=intent.reason,
        standalone=intent.standalone,
        planned_by=intent.by,
        job_id=answer.job_id,
        partial=answer.partial,
        coverage=answer.coverage,
    )


def nothing_needed(question: str, intent: Intent) -> SessionResult:
    """The result where nothing needs to be looked up: no job, no hits, and why."""
    return SessionResult(
        question=question,
        retrieval=False,
        reason=intent.reason,
        standalone=intent.standalone,
        planned_by=intent.by,
        mode="none",
        warnings=intent.warnings,
        cost=intent.cost,
        query_plan=(),
    )


def _per_query(answer: Answer, leaves: Mapping[str, LeafResult], intent: Intent) -> list[QueryResult]:
    """In the order of the tree; a leaf's query and kinds name the typed query that it is of."""
    typed = {(query.query, query.kinds): query for query in intent.queries}
    found = []
    for node in answer.tree:
        query = typed.get((node.query, node.kinds))
        leaf = leaves.get(node.id)
        if query and leaf:
            found.append(ranking(query, leaf.hits, leaf.error))
    return found


def _matched(hit: Hit, context: Context) -> MatchedContext:
    leaf = not is_directory(hit)
    return MatchedContext(
        uri=uri_of(hit),
        chunk_id=hit.chunk_id,
        kind=hit.kind,
        leaf=leaf,
        title=hit.symbol or hit.title,
        heading=hit.heading,
        path=hit.path,
        date=hit.date,
        abstract=(context.abstract if leaf else hit.text) or hit.snippet,
        snippet=hit.snippet,
        score=hit.score,
        related=context.related,
        via=hit.via,
    )
