"""Draws what concerns the machine: settings (never a secret), doctor's checks, the stack, an ingest's counts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from pydantic import AnyUrl, BaseModel, SecretStr
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.cli.text import columns, pairs, plain
from shared.models.base import Model
from shared.settings import Settings
from shared.settings.strategies import defaults

if TYPE_CHECKING:
    from orchestrator.local.checks import Check
    from orchestrator.local.state import StackState

_MARKS = {True: ("ok", "green"), False: ("FAULT", "red"), None: ("-", "dim")}
Shown = str | int | float | bool | dict[str, float] | None


class SettingRow(Model):
    """One setting, named as in `ramify.toml`: `search.strategy`."""

    name: str
    value: Shown
    default: Shown
    description: str


def setting_rows(settings: Settings) -> list[SettingRow]:
    """Every setting, top level first, then section by section."""
    return sorted(_rows("", settings, None), key=lambda row: "." in row.name)


def _rows(prefix: str, model: BaseModel, built_in: Any) -> Iterator[SettingRow]:
    """Of `model`, a table in a table row by row. `built_in` has its defaults, or else its fields have."""
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        default = defaults() if name == "strategies" else field.get_default(call_default_factory=True)
        default = getattr(built_in, name) if built_in else default
        if isinstance(value, BaseModel):
            yield from _rows(f"{prefix}{name}.", value, default)
            continue
        yield SettingRow(
            name=f"{prefix}{name}",
            value=_value_shown(value),
            default=_value_shown(default),
            description=field.description or "",
        )


def _value_shown(value: object) -> Shown:
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
    """A list in one line; strategies as their stages, commands as their words."""
    if isinstance(value, tuple):
        return ", ".join(str(getattr(item, "stage", item)) for item in value)
    if all(isinstance(item, float) for item in value.values()):
        return dict(value)
    if all(isinstance(item, str) for item in value.values()):
        return ", ".join(f"{name} = {item}" for name, item in value.items())
    return "; ".join(f"{name}: {_ordered(parts)}" for name, parts in value.items())


def _ordered(parts: Sequence[Any]) -> str:
    """Words of a command, or stages of a strategy."""
    if all(isinstance(part, str) for part in parts):
        return " ".join(parts)
    return " > ".join(part.stage for part in parts)


def _without_login(url: str) -> str:
    """A URL less its user and password; anything else as it is."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def draw_checks(checks: Sequence[Check]) -> Table:
    """One line a check; what to do about it stands under it."""
    table = columns("", "what", "finding", whole=("", "what"))
    for check in checks:
        finding = plain(check.detail)
        if check.fix:
            finding.append("\n→ ", "yellow").append(plain(check.fix))
        table.add_row(Text(*_MARKS[check.ok]), plain(check.name), finding)
    return table


def draw_stack(state: StackState, logs: Path, login: str = "") -> RenderableType:
    """Where everything of a running stack is. `login`: of Flower, where it is to be shown."""
    return pairs(
        {
            "pools": ", ".join(child.name for child in state.children),
            "Redis": state.redis_url or "the one that redis.url names",
            "HTTP": state.server_url or "switched off (server.enabled), or not installed (ramify[server])",
            "Flower": state.flower_url or "switched off (flower.enabled)",
            "Flower's login": _login(state, login),
            "logs": str(logs),
            "restarts": ", ".join(f"{child.name} {child.restarts}" for child in state.children if child.restarts),
        }
    )


def _login(state: StackState, login: str) -> str:
    if state.flower_login_file:
        return f"{login}, kept in {state.flower_login_file}" if login else f"in {state.flower_login_file}"
    return "flower.basic_auth" if state.flower_url else ""


def draw_settings(rows: Sequence[SettingRow], file: str | None) -> RenderableType:
    """Every setting; a value that differs from its default is bold, and the default stands under it."""
    table = columns("setting", "value", "meaning", whole=("setting",))
    for row in rows:
        changed = row.value != row.default
        value = plain(_shown(row.value), "bold" if changed else "")
        if changed:
            value.append("\ndefault ", "dim").append(plain(_shown(row.default), "dim"))
        table.add_row(plain(row.name), value, plain(row.description, "dim"))
    return Group(table, plain(f"settings file: {file or 'none (./ramify.toml is not there)'}", "dim"))


def _shown(value: object) -> str:
    return "-" if value in (None, "") else str(value)
