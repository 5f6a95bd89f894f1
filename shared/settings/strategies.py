"""Strategies as data: the built-in ones, those of the settings file, and the rules that hold for any."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import Any

from pydantic import TypeAdapter, ValidationError

from shared.errors import InputError
from shared.models.find import FindRequest
from shared.models.request import JobRequest
from shared.plugins import AGGREGATORS, STAGES, STRATEGIES, Plugins, plugins, run_of, why
from shared.settings.plugged import AnyStage, aggregator_names, needs_store, stage_models
from shared.settings.stages import ARMS, Blend, Chain, Expansion, Fusion, Hierarchy, Linked, Rerank, StrongSignal

Strategy = tuple[AnyStage, ...]
#: Stands for no strategy at all: the routing table decides, as it does for a job that names none.
ADAPTIVE = "adaptive"
#: The strategy that follows edges.
FOLLOWS_EDGES = "two_pass"


@cache
def built_in() -> dict[str, list[dict[str, Any]]]:
    """The tables of strategies.toml, as written."""
    text = resources.files("shared.settings").joinpath("strategies.toml").read_text(encoding="utf-8")
    tables: dict[str, list[dict[str, Any]]] = tomllib.loads(text)["strategies"]
    return tables


def defaults() -> dict[str, Strategy]:
    """The built-in strategies, read."""
    return TypeAdapter(dict[str, Strategy]).validate_python(built_in())


@cache
def of_plugins() -> dict[str, list[dict[str, Any]]]:
    """The strategies that plugins bring, as tables, each known to work; a faulty one is left out."""
    good: dict[str, list[dict[str, Any]]] = {}
    for name, (found, plugin) in list(plugins().loaded[STRATEGIES].items()):
        try:
            given = plugin() if callable(plugin) else plugin
            tables = given if isinstance(given, Mapping) else {name: given}
            if taken := next((one for one in tables if one in built_in() or one in good), None):
                raise ValueError(f"there is a strategy {taken!r} already; choose another name")  # noqa: TRY301
            for one, stages in TypeAdapter(dict[str, Strategy]).validate_python(tables).items():
                checked(one, stages)
        except ValidationError as error:
            fault = error.errors()[0]
            plugins().refuse(found, f"{' '.join(str(part) for part in fault['loc'])}: {fault['msg']}")
        except (Exception, SystemExit) as error:  # noqa: BLE001 - any fault of a plugin is its own
            plugins().refuse(found, error if isinstance(error, ValueError) else why(error))
        else:
            good |= {one: list(stages) for one, stages in tables.items()}
    return good


def examined() -> Plugins:
    """All plugins, each loaded and looked at as far as can be without running it."""
    found = plugins()
    stage_models()
    aggregator_names()
    of_plugins()
    for group in (STAGES, AGGREGATORS):
        for entry, plugin in list(found.loaded[group].values()):
            try:
                run_of(plugin)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - any fault of a plugin is its own
                found.refuse(entry, why(error))
    return found


def checked(name: str, stages: Strategy) -> Strategy:
    """The same stages. Raises: ValueError, one sentence, when they cannot work in this order."""
    kinds = [type(stage) for stage in stages]
    where = f"strategy {name!r}"
    if name == ADAPTIVE:
        raise ValueError(f"{where} is the name of the routing table's way: choose another name")
    _check_search(where, stages)
    if kinds.count(Rerank) > 1:
        raise ValueError(f"{where} has more than one stage rerank")
    if Blend in kinds and (Rerank not in kinds or kinds.index(Blend) < kinds.index(Rerank)):
        raise ValueError(f"{where}: blend must stand after rerank")
    for late in (Linked, Chain):
        if late in kinds and Rerank in kinds and kinds.index(late) < kinds.index(Rerank):
            name = late.model_fields["stage"].default
            raise ValueError(f"{where}: {name} must stand after rerank, which would bury what it lifts")
    after = stages[kinds.index(Rerank) :] if Rerank in kinds else ()
    if lost := next((one.stage for one in after if one.stage in _NEEDS_STORE or needs_store(one.stage)), None):
        raise ValueError(f"{where}: {lost} needs the store and must stand before rerank")
    return stages


def _check_search(where: str, stages: Strategy) -> None:
    """Either a hierarchy that comes first, or arms and after them one fusion."""
    kinds = [type(stage) for stage in stages]
    if Hierarchy in kinds:
        if other := next((s.stage for s in stages if isinstance(s, (*ARMS, *_BEFORE, Fusion))), None):
            raise ValueError(f"{where}: hierarchy searches by itself: leave out {other}")
        if kinds[0] is not Hierarchy or kinds.count(Hierarchy) > 1:
            raise ValueError(f"{where}: hierarchy must stand first, and once")
        return
    if not any(isinstance(stage, ARMS) for stage in stages):
        raise ValueError(f"{where} searches nothing: add a stage lexical, dense or trigram")
    if kinds.count(Fusion) != 1:
        raise ValueError(f"{where} needs exactly one stage fusion: it makes one list of the arms")
    fusion = kinds.index(Fusion)
    if late := next((s.stage for s in stages[fusion:] if isinstance(s, ARMS)), None):
        raise ValueError(f"{where}: {late} must stand before fusion")
    if early := next((s.stage for s in stages[:fusion] if not isinstance(s, (*ARMS, *_BEFORE))), None):
        raise ValueError(f"{where}: {early} must stand after fusion")


def asked_strategy(request: JobRequest | FindRequest) -> str | None:
    """The strategy that a request itself asks for: the one it names, a mode's, or two_pass where edges are wanted."""
    if request.strategy or request.mode:
        return request.strategy or str(request.mode)
    return FOLLOWS_EDGES if request.near_symbol or request.depth else None


def named(strategies: Mapping[str, Strategy], name: str, field: str = "strategy") -> Strategy:
    """The strategy of that name. Raises: InputError with the known names and the nearest one."""
    if name in strategies:
        return strategies[name]
    raise InputError(field, name, hint(strategies, name))


def hint(strategies: Mapping[str, Strategy], name: str) -> str:
    """The known names, and the nearest one to a name that is not known."""
    near = get_close_matches(name, strategies, n=1)
    first = f"did you mean {near[0]!r}? " if near else ""
    return f"{first}known strategies: {', '.join(sorted(strategies))}{plugins().left_out(STRATEGIES, name)}"


def split(stages: Strategy) -> tuple[Strategy, Strategy]:
    """What the search pool runs, and what the rerank pool runs: from the stage rerank on."""
    place = next((n for n, stage in enumerate(stages) if isinstance(stage, Rerank)), len(stages))
    return stages[:place], stages[place:]


def with_post(stages: Strategy, post: Strategy) -> Strategy:
    """`stages` up to the rerank, then `post` in place of what stands behind it."""
    searched, reranked = split(stages)
    return (*searched, *reranked[:1], *post)


_BEFORE = (StrongSignal, Expansion)
_NEEDS_STORE = frozenset({"edges", "hops", "neighbours", "strong_signal", "expansion"})
