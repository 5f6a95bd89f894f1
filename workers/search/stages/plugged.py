"""Stages that plugins bring: run like our own, but one that fails is left out with a warning, never the whole leaf."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from shared.errors import RamifyError
from shared.plugins import STAGES, plugins, run_of, why
from shared.settings.strategies import PluginStage
from workers.search.state import SearchState, Tools


def plugged(state: SearchState, options: PluginStage, tools: Tools) -> SearchState:
    """What the plugin makes of the state; the state as it was, and a warning, where it fails.

    Raises: RamifyError of the plugin's own making (a store that does not answer, say), as our own stages do.
    """
    try:
        after = _run(options.stage)(state, options, tools)
    except RamifyError:
        raise
    except Exception as error:  # noqa: BLE001 - any fault of a plugin is its own
        return state.skip(
            f"The stage {options.stage} of {options.plugin} failed, so it did nothing ({why(error)}).", warn=True
        )
    if isinstance(after, SearchState):
        return after
    given = type(after).__name__
    return state.skip(f"The stage {options.stage} of {options.plugin} gave a {given}, so it did nothing.", warn=True)


@cache
def _run(name: str) -> Callable[..., Any]:
    _, plugin = plugins().loaded[STAGES][name]
    return run_of(plugin)
