"""Runs a strategy: stage after stage, each timed. The search pool runs them up to rerank, the rerank pool the rest.

Stages are in `stages`, strategies in the settings; a new way to search is a list of stages, not code here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

from shared.errors import InputError, RamifyError
from shared.models import SearchResult
from shared.models.degraded import Degradation
from shared.models.hits import StageTrace
from shared.plugins import STAGES as PLUGIN_STAGES
from shared.plugins import plugins, run_of, why
from shared.providers.fallbacks import fell_back, note_reason
from shared.settings.strategies import PluginStage, Strategy
from workers.search.stages import STAGES
from workers.search.state import Query, SearchState, Tools, as_candidates, as_hits

EMPTY_COLLECTION = "The collection is empty: ingest documents with `ramify ingest PATH`."


def search(query: Query, name: str, stages: Strategy, tools: Tools, *, explain: bool = False) -> SearchResult:
    """Run stages from nothing. Raises: InputError, TransientError and PermanentError of the store or an only arm."""
    return search_result(run(stages, SearchState(query), tools), name, explain=explain)


def continue_search(
    found: SearchResult, query: Query, stages: Strategy, tools: Tools, *, explain: bool = False
) -> SearchResult:
    """Run further stages on what another pool found. Costs are those of these stages alone."""
    state = run(stages, SearchState(query, candidates=as_candidates(found.hits)), tools)
    return continued(found, search_result(state, found.mode, explain=explain))


def continued(found: SearchResult, after: SearchResult) -> SearchResult:
    """`after`, the result of later stages, with the traces and warnings of the search that they went on from."""
    return after.model_copy(
        update={
            **found.model_dump(include={"mode", "candidates", "rewrites", "strong_signal", "index_version"}),
            "stages": (*found.stages, *after.stages),
            "warnings": tuple(dict.fromkeys((*found.warnings, *after.warnings))),
        }
    )


def run(stages: Strategy, state: SearchState, tools: Tools) -> SearchState:
    """Every stage in order, with its time, what it left, and why it did nothing if so. Raises: as `search`."""
    for options in stages:
        begun = time.perf_counter()
        stage, before = (
            STAGES.get(options.stage, plugin_stage),
            state.but(skipped=None, trail=(), stopped=None, note=None),
        )
        try:
            state = stage(before, options, tools)
        except RamifyError as error:
            state = _left_out(before, options.stage, error)
        ms = round((time.perf_counter() - begun) * 1000, 3)
        trace = StageTrace(
            stage=options.stage, ms=ms, hits=len(state.candidates), skipped=state.skipped, trail=state.trail,
            stopped=state.stopped, note=state.note,
        )  # fmt: skip
        state = state.but(trace=(*state.trace, trace))
    return state


def _left_out(state: SearchState, stage: str, error: RamifyError) -> SearchState:
    """The state without a stage that failed, with a warning. Raises: `error` where there are no candidates yet."""
    if not state.candidates or isinstance(error, InputError):
        raise error
    fell_back("store", error)
    return state.skip(f"The stage {stage} failed, so it did nothing: {error}", warn=True)


def plugin_stage(state: SearchState, options: PluginStage, tools: Tools) -> SearchState:
    """The state that a plugin's stage returns; where it fails, the state as it was with a warning.

    Raises: RamifyError that the plugin raises (a store that does not answer, say), as our own stages do.
    """
    try:
        after = _plugin_run(options.stage)(state, options, tools)
    except RamifyError:
        raise
    except Exception as error:  # noqa: BLE001 - any fault of a plugin is its own
        note_reason(Degradation.PLUGIN_FAILED)
        fault = f"The stage {options.stage} of {options.plugin} failed, so it did nothing ({why(error)})."
        return state.skip(fault, warn=True)
    if isinstance(after, SearchState):
        return after
    note_reason(Degradation.PLUGIN_FAILED)
    given = type(after).__name__
    return state.skip(f"The stage {options.stage} of {options.plugin} gave a {given}, so it did nothing.", warn=True)


@cache
def _plugin_run(name: str) -> Callable[..., Any]:
    _, plugin = plugins().loaded[PLUGIN_STAGES][name]
    return run_of(plugin)


def search_result(state: SearchState, name: str, *, explain: bool) -> SearchResult:
    """What a search of strategy `name` gives back."""
    fused = next((trace.hits for trace in state.trace if trace.stage in {"fusion", "hierarchy"}), len(state.candidates))
    return SearchResult(
        hits=as_hits(state.candidates, explain=explain),
        mode=name,
        candidates=fused,
        rewrites=state.query.rewrites,
        strong_signal=state.strong_signal,
        reranked_by=state.reranked_by,
        verdict=state.verdict,
        stages=state.trace,
        warnings=tuple(dict.fromkeys(state.warnings)),
        cost=state.cost,
    )
