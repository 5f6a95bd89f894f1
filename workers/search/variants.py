"""One leaf that is searched in several wordings: a bound subquestion with each of the names found for it.

All arms of all wordings go to the store in one call. Between search and rerank a chunk stands once for each wording
that found it, so that the reranker can judge it against that one; `merge_variants` makes one list of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from shared.errors import RamifyError
from shared.models import Cost, Hit, SearchResult
from shared.models.hits import StageTrace
from shared.providers.encoders.base import Embedded
from shared.settings.strategies import Strategy
from workers.search.engine import continue_search, continued, run, search_result
from workers.search.state import VARIANT, Query, SearchState, Tools

#: Fewest candidates of a wording, however many wordings share the leaf's.
_MIN_CANDIDATES = 10


def search_variants(query: Query, name: str, stages: Strategy, tools: Tools, *, explain: bool = False) -> SearchResult:
    """Run `stages` for every wording; together they give about as many candidates as one question would."""
    wanted = max(_MIN_CANDIDATES, query.wanted // len(query.variants))
    if tools.embed is not None:
        tools = replace(tools, embed=_EmbedTogether(tools.embed, list(dict.fromkeys(query.variants))))
    fusion = next((at for at, stage in enumerate(stages) if stage.stage == "fusion"), 0)
    queries = [replace(query, text=text, wanted=wanted, variants=()) for text in query.variants]
    states = _with_hits([run(stages[:fusion], SearchState(one), tools) for one in queries], tools)
    return _combined([search_result(run(stages[fusion:], one, tools), name, explain=explain) for one in states])


def continue_variants(
    found: SearchResult, query: Query, stages: Strategy, tools: Tools, *, explain: bool = False
) -> SearchResult:
    """Run further `stages` on the candidates of each wording against that wording, and make one list of them."""
    results = []
    for number, text in enumerate(query.variants):
        own = tuple(hit for hit in found.hits if int(hit.parts.get(VARIANT, 0)) == number)
        bare = SearchResult(hits=own, mode=found.mode)
        results.append(continue_search(bare, replace(query, text=text, variants=()), stages, tools, explain=explain))
    after = _combined(results)
    return continued(found, after.model_copy(update={"hits": merge_variants(after.hits)}))


def merge_variants(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    """Every chunk once, with the best score that a wording gave it; best first, ties by chunk id.

    By best score, not by turns: with names for answers All@10 on musique is 64.7 against 59.6.
    """
    best: dict[str, Hit] = {}
    for hit in hits:
        if hit.chunk_id not in best or _place(hit) < _place(best[hit.chunk_id]):
            best[hit.chunk_id] = hit
    return tuple(sorted(best.values(), key=_place))


def _place(hit: Hit) -> tuple[float, float, str]:
    return hit.precedence, -hit.score, hit.chunk_id


def _combined(results: Sequence[SearchResult]) -> SearchResult:
    """One result: each hit with the number of its wording, costs summed, each warning once."""
    verdicts = {one.verdict for one in results if one.hits} or {one.verdict for one in results}
    rerankers = {one.reranked_by for one in results if one.hits}
    return results[0].model_copy(
        update={
            "hits": tuple(
                hit.model_copy(update={"parts": {**hit.parts, VARIANT: float(number)}})
                for number, one in enumerate(results)
                for hit in one.hits
            ),
            "candidates": sum(one.candidates for one in results),
            "rewrites": tuple(dict.fromkeys(text for one in results for text in one.rewrites)),
            "strong_signal": all(one.strong_signal for one in results),
            "reranked_by": rerankers.pop() if len(rerankers) == 1 else None,
            "verdict": verdicts.pop() if len(verdicts) == 1 else None,
            "stages": _traces(results),
            "warnings": tuple(dict.fromkeys(warning for one in results for warning in one.warnings)),
            "cost": sum((one.cost for one in results), Cost()),
        }
    )


def _traces(results: Sequence[SearchResult]) -> tuple[StageTrace, ...]:
    """Stage by stage over all wordings; a stage counts as skipped where every wording skipped it."""
    return tuple(
        row[0].model_copy(
            update={
                "ms": round(sum(trace.ms for trace in row), 3),
                "hits": sum(trace.hits for trace in row),
                "skipped": row[0].skipped if all(trace.skipped for trace in row) else None,
            }
        )
        for row in zip(*(one.stages for one in results), strict=True)
    )


def _with_hits(states: Sequence[SearchState], tools: Tools) -> list[SearchState]:
    """The states with what the store finds for the arms of all of them, asked in one call."""
    requests = [arm.request for state in states for arm in state.arms]
    if not requests:
        return list(states)
    store, _ = tools.need_store()
    found = iter(store.query(requests))
    return [state.but(arms=tuple(arm._replace(hits=next(found)) for arm in state.arms)) for state in states]


class _EmbedTogether:
    """Embeds known texts together at the first call, which counts the cost; its failure is raised again for each."""

    def __init__(self, embed: Callable[[list[str], str], Embedded], texts: list[str]) -> None:
        self._embed, self._texts = embed, texts
        self._vectors: dict[str, tuple[float, ...]] = {}
        self._failure: RamifyError | None = None

    def __call__(self, texts: list[str], tenant: str) -> Embedded:
        """As the embedder given. Raises: what it raises."""
        if any(text not in self._texts for text in texts):
            return self._embed(texts, tenant)
        if self._failure is not None:
            raise self._failure
        spent = Embedded(vectors=())
        if not self._vectors:
            try:
                spent = self._embed(self._texts, tenant)
            except RamifyError as error:
                self._failure = error
                raise
            self._vectors = dict(zip(self._texts, spent.vectors, strict=True))
        return spent.model_copy(update={"vectors": tuple(self._vectors[text] for text in texts)})
