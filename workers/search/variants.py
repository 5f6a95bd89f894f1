"""One leaf that is searched in several wordings: a bound subquestion with each of the names found for it.

All arms of all wordings go to the store in one call. Between search and rerank a chunk stands once for each wording
that found it, so that the reranker can judge it against that one; `united` makes one list of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from qdrant_client import models

from shared.errors import RamifyError
from shared.models import Cost, Hit, SearchResult
from shared.models.hits import StageTrace
from shared.providers.encoders.base import Embedded
from shared.settings.strategies import Strategy
from workers.search.engine import go_on, result, run
from workers.search.state import Query, SearchState, Tools

if TYPE_CHECKING:
    from shared.store import ChunkStore

#: `parts` of a hit: the number of the wording that found it, from 0.
VARIANT = "variant"
#: Fewest candidates of a wording, however many wordings share the leaf's.
_LEAST = 10


def search_variants(query: Query, name: str, stages: Strategy, tools: Tools, *, explain: bool = False) -> SearchResult:
    """Run `stages` for every wording; together they give about as many candidates as one question would."""
    wanted = max(_LEAST, query.wanted // len(query.variants))
    tools = _embedding_at_once(tools, query.variants)
    place = next((at for at, stage in enumerate(stages) if stage.stage == "fusion"), 0)
    own = [replace(query, text=text, wanted=wanted, variants=()) for text in query.variants]
    states = [run(stages[:place], SearchState(one), tools) for one in own]
    lists = _asked_at_once([[arm.request for arm in state.arms] for state in states], tools)
    ended = [
        run(stages[place:], state, _prepared(tools, state, found)) for state, found in zip(states, lists, strict=True)
    ]
    return _together([result(state, name, explain=explain) for state in ended])


def go_on_variants(
    found: SearchResult, query: Query, stages: Strategy, tools: Tools, *, explain: bool = False
) -> SearchResult:
    """Run further `stages` on the candidates of each wording against that wording, and make one list of them."""
    groups: dict[int, list[Hit]] = {number: [] for number in range(len(query.variants))}
    for hit in found.hits:
        groups[int(hit.parts[VARIANT])].append(hit)
    before = found.model_copy(update={"stages": (), "timings_ms": {}, "warnings": ()})
    after = _together(
        [
            go_on(
                before.model_copy(update={"hits": tuple(groups[number])}),
                replace(query, text=text, variants=()),
                stages,
                tools,
                explain=explain,
            )
            for number, text in enumerate(query.variants)
        ]
    )
    return after.model_copy(
        update={
            "hits": united(after.hits),
            "candidates": found.candidates,
            "stages": (*found.stages, *after.stages),
            "timings_ms": {**found.timings_ms, **after.timings_ms},
            "warnings": tuple(dict.fromkeys((*found.warnings, *after.warnings))),
        }
    )


def united(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    """Every chunk once, with the best score that a wording gave it; best first, ties by chunk id.

    By best score, not by turns: with names for answers All@10 on musique is 64.7 against 59.6.
    """
    best: dict[str, Hit] = {}
    for hit in hits:
        if hit.chunk_id not in best or hit.score > best[hit.chunk_id].score:
            best[hit.chunk_id] = hit
    return tuple(sorted(best.values(), key=lambda hit: (-hit.score, hit.chunk_id)))


def _together(results: Sequence[SearchResult]) -> SearchResult:
    """One result: each hit with the number of its wording, times and costs summed, each warning once."""
    verdicts = {one.verdict for one in results if one.hits} or {one.verdict for one in results}
    rerankers = {one.reranked_by for one in results if one.hits}
    timings: Counter[str] = Counter()
    for one in results:
        timings.update(one.timings_ms)
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
            "timings_ms": {name: round(ms, 3) for name, ms in timings.items()},
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


def _asked_at_once(requests: Sequence[Sequence[models.QueryRequest]], tools: Tools) -> list[list[list[Hit]]]:
    """What the store finds for the arms of every wording, in one call."""
    flat = [request for own in requests for request in own]
    if not flat:
        return [[] for _ in requests]
    store, _ = tools.need_store()
    found = iter(store.query(flat))
    return [[list(next(found)) for _ in own] for own in requests]


class _Prepared:
    """The store, with the answer to one call that was asked before."""

    def __init__(self, store: ChunkStore, requests: list[models.QueryRequest], answer: list[list[Hit]]) -> None:
        self._store, self._requests, self._answer = store, requests, answer

    def query(self, requests: Sequence[models.QueryRequest]) -> list[list[Hit]]:
        """As the store, without asking it where these very requests were asked."""
        if list(map(id, requests)) == list(map(id, self._requests)):
            return self._answer
        return list(self._store.query(requests))

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


def _prepared(tools: Tools, state: SearchState, answer: list[list[Hit]]) -> Tools:
    if tools.store is None or not state.arms:
        return tools
    store = _Prepared(tools.store, [arm.request for arm in state.arms], answer)
    return replace(tools, store=cast("ChunkStore", store))


def _embedding_at_once(tools: Tools, variants: Sequence[str]) -> Tools:
    """The tools with all wordings embedded in one call, when the first of them asks for it."""
    if tools.embed is None:
        return tools
    return replace(tools, embed=_AtOnce(tools.embed, list(dict.fromkeys(variants))))


class _AtOnce:
    """Embeds known texts together at the first question; what that cost is told once, its failure to all."""

    def __init__(self, embed: Callable[[list[str], str], Embedded], texts: list[str]) -> None:
        self._embed, self._texts = embed, texts
        self._vectors: dict[str, tuple[float, ...]] = {}
        self._failure: RamifyError | None = None

    def __call__(self, texts: list[str], tenant: str) -> Embedded:
        """As the embedder given. Raises: what it raises."""
        if any(text not in self._texts for text in texts):
            return self._embed(texts, tenant)
        spent = Embedded(vectors=())
        if not self._vectors:
            spent = self._first(tenant)
        return spent.model_copy(update={"vectors": tuple(self._vectors[text] for text in texts)})

    def _first(self, tenant: str) -> Embedded:
        if self._failure is not None:
            raise self._failure
        try:
            found = self._embed(self._texts, tenant)
        except RamifyError as error:
            self._failure = error
            raise
        self._vectors = dict(zip(self._texts, found.vectors, strict=True))
        return found
