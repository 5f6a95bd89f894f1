"""Stages, strategies, aggregators and readers that other packages add over entry points (docs/plugins.md). Loaded once.

A plugin that cannot be used is a `PluginFault`, logged once and shown by `ramify doctor`; the others work on.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pkgutil import resolve_name
from typing import Any

from pydantic import BaseModel

from shared.models.base import Model

log = logging.getLogger("ramify.plugins")

STAGES, STRATEGIES, AGGREGATORS, READERS = "ramify.stages", "ramify.strategies", "ramify.aggregators", "ramify.readers"
_KINDS = {STAGES: "stage", STRATEGIES: "strategy", AGGREGATORS: "aggregator", READERS: "reader"}
_NAME = re.compile(r"[\w.\-]{1,64}")
_SUFFIX = re.compile(r"\.[a-z0-9_+\-]{1,20}")
_LONGEST = 300


class FoundPlugin(Model):
    """An entry point of ours, and the package that brings it with its version."""

    group: str
    name: str
    package: str

    def __str__(self) -> str:
        return f"{_KINDS[self.group]} {self.name!r}"


class PluginFault(Model):
    """A plugin that cannot be used, and why."""

    found: FoundPlugin
    reason: str

    def __str__(self) -> str:
        return f"The {self.found} of {self.found.package} is left out: {self.reason}; mend or uninstall that package"


@dataclass(slots=True)
class Plugins:
    """What could be loaded, by group and name, and what could not."""

    loaded: dict[str, dict[str, tuple[FoundPlugin, Any]]] = field(
        default_factory=lambda: {group: {} for group in _KINDS}
    )
    faults: list[PluginFault] = field(default_factory=list)

    def refuse(self, found: FoundPlugin, reason: object) -> None:
        """Leave out a plugin that cannot be used."""
        if self.loaded[found.group].get(found.name, (None,))[0] == found:
            del self.loaded[found.group][found.name]
        text = " ".join(str(reason).split()).rstrip(".")
        fault = PluginFault(found=found, reason=text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
        if fault not in self.faults:
            self.faults.append(fault)
            log.warning("%s", fault)

    def left_out(self, group: str, name: str) -> str:
        """The end of a sentence about an unknown name where a plugin of this name was left out, else empty."""
        fault = next((one for one in self.faults if (one.found.group, one.found.name) == (group, name)), None)
        return f". {fault}" if fault else ""


@cache
def plugins() -> Plugins:
    """All plugins of this process. Never raises: an error of a plugin becomes its fault."""
    found = Plugins()
    for group in _KINDS:
        for entry in sorted(entry_points(group=group), key=lambda entry: (entry.name, _package(entry))):
            _load(found, FoundPlugin(group=group, name=entry.name, package=_package(entry)), entry)
    return found


@cache
def suffixes_of_readers() -> Mapping[str, str]:
    """Suffix -> the name of the plugin that reads such files; of two plugins the first one by name."""
    found: dict[str, str] = {}
    for name, (_, plugin) in plugins().loaded[READERS].items():
        for suffix in plugin.suffixes:
            found.setdefault(suffix, name)
    return found


def parse_of(name: str) -> Callable[..., Any]:
    """What a reader of this name parses with. Loads that plugin alone.

    Raises: LookupError for an unknown name, else as `run_of`.
    """
    for entry in entry_points(group=READERS, name=name):
        return _callable(entry.load().parse)
    raise LookupError(f"there is no reader {name!r}")


def run_of(plugin: Any) -> Callable[..., Any]:
    """What a stage or an aggregator does. `run` may be "package.module:name", so that only workers import it.

    Raises: whatever importing it raises; TypeError for what cannot be called.
    """
    return _callable(plugin.run)


def _callable(named: Any) -> Callable[..., Any]:
    run = resolve_name(named) if isinstance(named, str) else named
    if not callable(run):
        raise TypeError(f"{named!r} cannot be called")
    return run  # type: ignore[no-any-return]


def why(error: BaseException) -> str:
    """An error as a reason: its type and its text in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _load(found: Plugins, entry: FoundPlugin, point: EntryPoint) -> None:
    known = found.loaded[entry.group]
    if not _NAME.fullmatch(entry.name):
        return found.refuse(entry, "its name may have 1 to 64 letters, digits, _ . -")
    if entry.name in known:
        return found.refuse(entry, f"{known[entry.name][0].package} brings one of that name")
    try:
        plugin = point.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - any error of a plugin becomes its fault
        return found.refuse(entry, why(error))
    if fault := _misshapen(entry.group, plugin):
        return found.refuse(entry, fault)
    known[entry.name] = (entry, plugin)
    return None


def _misshapen(group: str, plugin: Any) -> str:
    """What is wrong with a loaded object, empty where nothing is."""
    if group == STRATEGIES:
        fits = callable(plugin) or isinstance(plugin, list | tuple | Mapping)
        return "" if fits else "it is no list of stages, no table of such lists and no function that gives one"
    if group == READERS:
        return _misshapen_reader(plugin)
    options, run = getattr(plugin, "options", None), getattr(plugin, "run", None)
    if not (isinstance(options, type) and issubclass(options, BaseModel)):
        return "its `options` is no pydantic model"
    return "" if callable(run) or isinstance(run, str) else 'its `run` is neither a function nor "module:function"'


def _misshapen_reader(plugin: Any) -> str:
    suffixes, parse = getattr(plugin, "suffixes", None), getattr(plugin, "parse", None)
    if not isinstance(suffixes, list | tuple | frozenset) or not suffixes:
        return "its `suffixes` are no list"
    if not all(isinstance(suffix, str) and _SUFFIX.fullmatch(suffix) for suffix in suffixes):
        return 'its `suffixes` are not all such as ".xyz", in small letters'
    return (
        "" if callable(parse) or isinstance(parse, str) else 'its `parse` is neither a function nor "module:function"'
    )


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "a package without metadata"
