"""Runs a strategy: stage after stage, each timed. The search pool runs them up to rerank, the rerank pool the rest.

Stages are in `stages`, strategies in the settings; a new way to search is a list of stages, not code here.
"""

from __future__ import annotations

import time

from shared.models import SearchResult
from shared.models.hits import StageTrace
from shared.settings.strategies import Strategy
from workers.search.stages import STAGES
from workers.search.stages.plugged import plugged
from workers.search.state import Query, SearchState, Tools, as_candidates, as_hits

EMPTY = "The collection is empty: ingest documents with `ramify ingest PATH`."


def search(query: Query, name: str, stages: Strategy, tools: Tools, *, explain: bool = False) -> SearchResult:
    """Run stages from nothing. Raises: InputError, TransientError and PermanentError of the store or an only arm."""
    return result(run(stages, SearchState(query), tools), name, explain=explain)


def go_on(found: SearchResult, query: Query, stages: Strategy, tools: Tools, *, explain: bool = False) -> SearchResult:
    """Run further stages on what another pool found. Costs are those of these stages alone."""
    state = run(stages, SearchState(query, candidates=as_candidates(found.hits)), tools)
    after = result(state, found.mode, explain=explain)
    return after.model_copy(
        update={
            "candidates": found.candidates,
            "rewrites": found.rewrites,
            "strong_signal": found.strong_signal,
            "stages": (*found.stages, *after.stages),
            "timings_ms": {**found.timings_ms, **after.timings_ms},
            "warnings": (*found.warnings, *after.warnings),
        }
    )


def run(stages: Strategy, state: SearchState, tools: Tools) -> SearchState:
    """Every stage in order, with its time, what it left, and why it did nothing if so."""
    for options in stages:
        begun = time.perf_counter()
        stage = STAGES.get(options.stage, plugged)
        state = stage(state.but(skipped=None, trail=(), stopped=None, note=None), options, tools)
        spent = round((time.perf_counter() - begun) * 1000, 3)
        trace = StageTrace(
            stage=options.stage, ms=spent, hits=len(state.candidates), skipped=state.skipped, trail=state.trail,
            stopped=state.stopped, note=state.note,
        )  # fmt: skip
        state = state.but(trace=(*state.trace, trace))
    return state


def result(state: SearchState, name: str, *, explain: bool) -> SearchResult:
    """What a search gives back."""
    timings: dict[str, float] = {}
    for trace in state.trace:
        timings[trace.stage] = round(timings.get(trace.stage, 0.0) + trace.ms, 3)
    fused = next((trace.hits for trace in state.trace if trace.stage in {"fusion", "hierarchy"}), len(state.candidates))
    return SearchResult(
        hits=as_hits(state.candidates, explain=explain),
        mode=name,
        candidates=fused,
        rewrites=state.query.rewrites,
        strong_signal=state.sure,
        reranked_by=state.reranked_by,
        verdict=state.verdict,
        stages=state.trace,
        timings_ms=timings,
        warnings=tuple(dict.fromkeys(state.warnings)),
        cost=state.cost,
    )
