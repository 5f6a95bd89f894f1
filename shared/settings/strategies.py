"""Strategies as data: the built-in ones, those of the settings file, and the rules that hold for any."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Annotated, Any, Literal, cast, get_args

import pydantic
from pydantic import BaseModel, BeforeValidator, Discriminator, SerializeAsAny, Tag, TypeAdapter, ValidationError

from shared.errors import InputError
from shared.models.find import FindRequest
from shared.models.request import JobRequest
from shared.plugins import AGGREGATORS, STAGES, STRATEGIES, Plugins, plugins, run_of, why
from shared.settings.sections import AggregatorSettings, SettingsSection, nearest
from shared.settings.stages import Stage, StageOptions

_ARMS = frozenset({"lexical", "dense", "trigram"})
_BEFORE_ARMS = frozenset({"strong_signal", "expansion"})
#: They raise scores, which a rerank replaces.
_AFTER_RERANK = frozenset({"linked", "chain"})
#: Stands for no strategy at all: the routing table decides, as it does for a job that names none.
ADAPTIVE = "adaptive"
#: The strategy of leaves that are added for gaps: it reads a query as it is, names and words, without a further hop.
AGAIN = "hybrid"
#: Stands for the strategy of a result for which no search was run.
NO_STRATEGY = "none"
#: The strategy that follows edges.
FOLLOWS_EDGES = "two_pass"
#: Our own stages by name.
BUILT_IN: dict[str, type[StageOptions]] = {
    model.model_fields["stage"].default: model for model in get_args(get_args(Stage)[0])
}
#: Parts of the place of a fault that no reader of a settings file knows.
TAGS = (_OWN, _PLUGIN) = ("<our own>", "<plugin>")


class PluginStage(SettingsSection):
    """Options of a plugin's stage. `plugin` is the package and its version: results of another are not reused."""

    stage: str
    plugin: str


@cache
def stage_models() -> dict[str, type[PluginStage]]:
    """The options of every plugin's stage, by its name, made as strict as our own."""
    models: dict[str, type[PluginStage]] = {}
    for name, (found, plugin) in list(plugins().loaded[STAGES].items()):
        if name in BUILT_IN:
            plugins().refuse(found, "Ramify has a stage of that name; choose another")
            continue
        try:
            models[name] = _strict(name, found.package, plugin.options)
        except Exception as error:  # noqa: BLE001 - any fault of a plugin is its own
            plugins().refuse(found, why(error))
    return models


@cache
def aggregator_names() -> tuple[str, ...]:
    """The names that a table may give as aggregator: our own, then those of plugins."""
    own, found = tuple(AggregatorSettings.model_fields), plugins()
    for entry, _ in list(found.loaded[AGGREGATORS].values()):
        if entry.name in own:
            found.refuse(entry, "Ramify has an aggregator of that name; choose another")
    return (*own, *sorted(found.loaded[AGGREGATORS]))


def needs_store(name: str) -> bool:
    """Whether a stage, ours or a plugin's, asks the store, and so has to stand before the rerank."""
    if name in BUILT_IN:
        return BUILT_IN[name].needs_store
    _, plugin = plugins().loaded[STAGES].get(name, (None, None))
    return bool(getattr(plugin, "needs_store", False))


def _strict(name: str, package: str, options: type[BaseModel]) -> type[PluginStage]:
    """The plugin's options under its name. Raises: ValidationError when one of them has no default."""
    fixed: dict[str, Any] = {"stage": (Literal[name], name), "plugin": (Literal[package], package)}
    bases: Any = (options, PluginStage)
    made: Any = pydantic.create_model(name, __base__=bases, **fixed)
    made.model_validate({})
    return cast("type[PluginStage]", made)


def _tag(value: Any) -> str:
    name = value.get("stage") if isinstance(value, Mapping) else getattr(value, "stage", None)
    return _PLUGIN if isinstance(name, str) and name not in BUILT_IN and name in stage_models() else _OWN


def _read(value: Any) -> PluginStage:
    if isinstance(value, PluginStage):
        return value
    model = stage_models()[value["stage"]]
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise ValueError(_sentence(error, model)) from None


def _sentence(error: ValidationError, model: type[PluginStage]) -> str:
    """The first fault of a stage's options."""
    fault = error.errors()[0]
    name, message = ".".join(str(part) for part in fault["loc"]), fault["msg"].removeprefix("Value error, ")
    if fault["type"] != "extra_forbidden":
        return f"{name}: {message}" if name else message
    options = [key for key in model.model_fields if key not in PluginStage.model_fields]
    known = f"its options: {', '.join(options)}" if options else "it has none"
    return f"there is no such option as {name!r}{nearest(name, options)}; {known}"


#: A stage of ours or of a plugin.
AnyStage = Annotated[
    Annotated[Stage, Tag(_OWN)] | Annotated[SerializeAsAny[PluginStage], BeforeValidator(_read), Tag(_PLUGIN)],
    Discriminator(_tag),
]
Strategy = tuple[AnyStage, ...]


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
def plugin_strategies() -> dict[str, list[dict[str, Any]]]:
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


def checked_plugins() -> Plugins:
    """All plugins, each loaded and looked at as far as can be without running it."""
    found = plugins()
    stage_models()
    aggregator_names()
    plugin_strategies()
    for group in (STAGES, AGGREGATORS):
        for entry, plugin in list(found.loaded[group].values()):
            try:
                run_of(plugin)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - any fault of a plugin is its own
                found.refuse(entry, why(error))
    return found


def checked(name: str, stages: Strategy) -> Strategy:
    """The same stages. Raises: ValueError, one sentence, when they cannot work in this order."""
    names = [stage.stage for stage in stages]
    where = f"strategy {name!r}"
    if name == ADAPTIVE:
        raise ValueError(f"{where} is reserved: it means that the routing table decides; choose another name")
    if name == NO_STRATEGY:
        raise ValueError(f"{where} is reserved: results without a search have it; choose another name")
    _check_search(where, names)
    if names.count("rerank") > 1:
        raise ValueError(f"{where} has more than one stage rerank")
    rerank = names.index("rerank") if "rerank" in names else len(names)
    if "blend" in names[:rerank]:
        raise ValueError(f"{where}: blend must stand after rerank")
    raising = (one for one in names[:rerank] if one in _AFTER_RERANK)
    if "rerank" in names and (misplaced := next(raising, None)):
        raise ValueError(f"{where}: {misplaced} must stand after rerank, which would discard the scores that it raises")
    if misplaced := next((one for one in names[rerank:] if needs_store(one)), None):
        raise ValueError(f"{where}: {misplaced} needs the store and must stand before rerank")
    return stages


def _check_search(where: str, names: list[str]) -> None:
    """Either a hierarchy that comes first, or arms and after them one fusion."""
    if "hierarchy" in names:
        if other := next((one for one in names if one in _ARMS | _BEFORE_ARMS | {"fusion"}), None):
            raise ValueError(f"{where}: hierarchy searches by itself: leave out {other}")
        if names[0] != "hierarchy" or names.count("hierarchy") > 1:
            raise ValueError(f"{where}: hierarchy must stand first, and once")
        return
    if not _ARMS.intersection(names):
        raise ValueError(f"{where} searches nothing: add a stage lexical, dense or trigram")
    if names.count("fusion") != 1:
        raise ValueError(f"{where} needs exactly one stage fusion: it makes one list of the arms")
    fusion = names.index("fusion")
    if misplaced := next((one for one in names[fusion:] if one in _ARMS), None):
        raise ValueError(f"{where}: {misplaced} must stand before fusion")
    if misplaced := next((one for one in names[:fusion] if one not in _ARMS | _BEFORE_ARMS), None):
        raise ValueError(f"{where}: {misplaced} must stand after fusion")


def asked_strategy(request: JobRequest | FindRequest) -> str | None:
    """The strategy that a request itself asks for: the one it names, a mode's, or two_pass where edges are wanted."""
    if request.strategy or request.mode:
        return request.strategy or str(request.mode)
    return FOLLOWS_EDGES if request.near_symbol or request.depth else None


def named(strategies: Mapping[str, Strategy], name: str, field: str = "strategy") -> Strategy:
    """The strategy of that name. Raises: InputError with the known names and the nearest one."""
    if name in strategies:
        return strategies[name]
    raise InputError(field, name, known_names(strategies, name))


def known_names(strategies: Mapping[str, Strategy], name: str) -> str:
    """The known names, and the nearest one to a name that is not known."""
    near = nearest(name, strategies).removeprefix(", ")
    first = f"{near}? " if near else ""
    return f"{first}known strategies: {', '.join(sorted(strategies))}{plugins().left_out(STRATEGIES, name)}"


def split(stages: Strategy) -> tuple[Strategy, Strategy]:
    """What the search pool runs, and what the rerank pool runs: from the stage rerank on.

    Snippets that are made just before it are made there, for what is kept: they need no store.
    """
    place = _rerank_at(stages)
    while place and stages[place - 1].stage == "enrich":
        place -= 1
    return stages[:place], stages[place:]


def _rerank_at(stages: Strategy) -> int:
    return next((n for n, stage in enumerate(stages) if stage.stage == "rerank"), len(stages))


def with_post(stages: Strategy, post: Strategy) -> Strategy:
    """`stages` up to the rerank, then `post` in place of what stands behind it."""
    return (*stages[: _rerank_at(stages) + 1], *post)
