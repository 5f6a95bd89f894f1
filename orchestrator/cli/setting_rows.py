"""All settings as rows for `ramify config`. Pure; a secret is only ever "set" or "not set"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pydantic import AnyUrl, BaseModel, SecretStr

from shared.models.base import Model
from shared.settings import Settings
from shared.settings.strategies import defaults


class SettingRow(Model):
    """One setting, named as in `ramify.toml`: `search.strategy`."""

    name: str
    value: str | int | float | bool | dict[str, float] | None
    default: str | int | float | bool | dict[str, float] | None
    description: str


def setting_rows(settings: Settings) -> list[SettingRow]:
    """Every setting, top level first, then section by section."""
    sections = {name: value for name, value in settings if isinstance(value, BaseModel)}
    rows = list(_rows("", settings, None, [name for name in Settings.model_fields if name not in sections]))
    for name, section in sections.items():
        rows += _rows(f"{name}.", section, Settings.model_fields[name].get_default(call_default_factory=True))
    return rows


def _rows(prefix: str, model: BaseModel, built_in: Any, names: Iterable[str] = ()) -> Iterator[SettingRow]:
    """Of `model`, a table in a table row by row. `built_in` has its defaults, or else its fields have."""
    for name in names or type(model).model_fields:
        field, value = type(model).model_fields[name], getattr(model, name)
        default = defaults() if name == "strategies" else field.get_default(call_default_factory=True)
        default = getattr(built_in, name) if built_in else default
        if isinstance(value, BaseModel):
            yield from _rows(f"{prefix}{name}.", value, default)
            continue
        yield SettingRow(
            name=f"{prefix}{name}",
            value=_shown(value),
            default=_shown(default),
            description=field.description or "",
        )


def _shown(value: object) -> str | int | float | bool | dict[str, float] | None:
    match value:
        case SecretStr():
            return "set" if value.get_secret_value() else "not set"
        case AnyUrl() | Path():
            return _without_login(str(value))
        case Enum():
            return str(value.value)
        case bool() | int() | float() | str() | None:
            return value
        case Mapping() | tuple():
            return _listed(value)
        case _:
            return _without_login(str(value))


def _listed(value: Mapping[str, Any] | tuple[object, ...]) -> str | dict[str, float]:
    """A list in one line; strategies as their stages."""
    if isinstance(value, tuple):
        return ", ".join(str(getattr(item, "stage", item)) for item in value)
    if all(isinstance(item, float) for item in value.values()):
        return dict(value)
    if all(isinstance(item, str) for item in value.values()):
        return ", ".join(f"{name} = {item}" for name, item in value.items())
    return "; ".join(f"{name}: {' > '.join(stage.stage for stage in stages)}" for name, stages in value.items())


def _without_login(url: str) -> str:
    """A URL less its user and password; anything else as it is."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
