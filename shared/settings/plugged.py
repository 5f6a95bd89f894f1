"""Stages of plugins beside our own: one list of stages in the settings may hold both, each checked alike."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import BaseModel, BeforeValidator, Discriminator, SerializeAsAny, Tag, ValidationError, create_model

from shared.plugins import AGGREGATORS, STAGES, plugins, why
from shared.settings.aggregators import Aggregators
from shared.settings.section import Section
from shared.settings.spelling import nearest
from shared.settings.stages import Stage

#: Our own stages by name.
BUILT_IN: dict[str, type[Section]] = {
    model.model_fields["stage"].default: model for model in get_args(get_args(Stage)[0])
}
#: Parts of the place of a fault that no reader of a settings file knows.
TAGS = (_OWN, _PLUGIN) = ("<our own>", "<plugin>")


class PluginStage(Section):
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
    own, found = tuple(Aggregators.model_fields), plugins()
    for entry, _ in list(found.loaded[AGGREGATORS].values()):
        if entry.name in own:
            found.refuse(entry, "Ramify has an aggregator of that name; choose another")
    return (*own, *sorted(found.loaded[AGGREGATORS]))


def needs_store(name: str) -> bool:
    """Whether a plugin's stage asks the store, and so has to stand before the rerank."""
    _, plugin = plugins().loaded[STAGES].get(name, (None, None))
    return bool(getattr(plugin, "needs_store", False))


def _strict(name: str, package: str, options: type[BaseModel]) -> type[PluginStage]:
    """The plugin's options under its name. Raises: ValidationError when one of them has no default."""
    fixed: dict[str, Any] = {"stage": (Literal[name], name), "plugin": (Literal[package], package)}
    bases: Any = (options, PluginStage)
    made: Any = create_model(name, __base__=bases, **fixed)
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
    name, said = ".".join(str(part) for part in fault["loc"]), fault["msg"].removeprefix("Value error, ")
    if fault["type"] != "extra_forbidden":
        return f"{name}: {said}" if name else said
    options = [key for key in model.model_fields if key not in PluginStage.model_fields]
    known = f"its options: {', '.join(options)}" if options else "it has none"
    return f"there is no such option as {name!r}{nearest(name, options)}; {known}"


#: A stage of ours or of a plugin.
AnyStage = Annotated[
    Annotated[Stage, Tag(_OWN)] | Annotated[SerializeAsAny[PluginStage], BeforeValidator(_read), Tag(_PLUGIN)],
    Discriminator(_tag),
]
