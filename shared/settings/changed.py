"""Settings of one job that are other than those of the pools that run it: only what a process does not hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from shared.errors import InputError
from shared.settings import Settings, load_settings
from shared.settings.strategies import Strategy

#: Sections, and settings of the top level, that decide what a job does and that every task reads anew.
CHANGEABLE = (
    "decomposition", "multi_query", "binding", "gaps", "routing", "aggregators", "enumeration", "search", "strategies",
    "summary", "enable_summary",
)  # fmt: skip
_NAMES = ", ".join(CHANGEABLE)
#: Of these what an ingest or `find` reads.
_NOT_OF_A_JOB = {"search": frozenset({"trigrams", "candidate_multiplier"})}


_STRATEGIES: TypeAdapter[dict[str, Strategy]] = TypeAdapter(dict[str, Strategy])
#: The last ones that were made: each task of a job asks for them. With the settings that they were made of.
_MOST = 16
_changed: dict[tuple[int, str], tuple[Settings, Settings]] = {}


def checked_changes(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a replay changes, as JSON with checked values. Raises: InputError for what pools hold, SettingsError."""
    for name, value in given.items():
        inner = sorted(_NOT_OF_A_JOB.get(name, frozenset()).intersection(value if isinstance(value, Mapping) else ()))
        if name not in CHANGEABLE or inner:
            asked = f"{name}.{inner[0]}" if inner else name
            fix = f"the pools hold it: start them with it, then replay without it; a replay can change {_NAMES}"
            raise InputError("--set", asked, fix)
    checked = load_settings(**given).model_dump(mode="json", include=set(given))
    return {name: _chosen(value, given[name]) for name, value in checked.items()}


def _chosen(checked: Any, given: Any) -> Any:
    """Of a table what was given, with its values as they were read."""
    if isinstance(checked, Mapping) and isinstance(given, Mapping):
        return {name: _chosen(checked[name], value) for name, value in given.items() if name in checked}
    return checked


def changed(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """`settings` with the checked `changes` of a job."""
    if not changes:
        return settings
    written = json.dumps(changes, sort_keys=True)
    known = _changed.get((id(settings), written))
    if known is None or known[0] is not settings:
        _changed[id(settings), written] = known = (settings, _with(settings, changes))
        while len(_changed) > _MOST:
            _changed.pop(next(iter(_changed)), None)
    return known[1]


def _with(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    made = dict[str, Any]()
    for name, value in changes.items():
        old = getattr(settings, name)
        if name == "strategies":
            made[name] = {**old, **_STRATEGIES.validate_python(value)}
        elif isinstance(value, Mapping):
            made[name] = type(old).model_validate(_merged(old.model_dump(mode="json"), value))
        else:
            made[name] = value
    return settings.model_copy(update=made)


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    both = {
        name: _merged(old[name], value) if isinstance(value, Mapping) and isinstance(old.get(name), Mapping) else value
        for name, value in new.items()
    }
    return {**old, **both}
