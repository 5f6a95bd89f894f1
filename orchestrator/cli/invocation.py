"""What all commands of one call share: the settings as the global options left them, and the client.

Both are imported at first use: they take longer than `--help` may.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer

from shared.errors import InputError, encodable

if TYPE_CHECKING:
    from orchestrator.client import Ramify
    from shared.settings import Settings


@dataclass(frozen=True)
class Invocation:
    """One call of `ramify`. `overrides` are nested setting values; `debug` shows tracebacks."""

    overrides: Mapping[str, Any] = field(default_factory=dict)
    debug: bool = False

    def settings(self) -> Settings:
        """The settings. Raises: SettingsError."""
        from shared.settings import load_settings

        return load_settings(**self.overrides)

    def client(self, tenant: str | None = None) -> Ramify:
        """A client of the stack that runs here, or of the Redis that the settings name; bound to `tenant`, if given.

        Raises: NotRunningError, InputError for what is no name of a tenant.
        """
        from orchestrator.client import Ramify

        return Ramify(self.settings(), tenant)


def invocation_of(ctx: typer.Context) -> Invocation:
    """The invocation that a command belongs to."""
    found = ctx.find_root().obj
    return found if isinstance(found, Invocation) else Invocation()


_SET_FORM = "write --set section.name=value, for example --set search.strategy=deep"


def parse_overrides(assignments: Iterable[str]) -> dict[str, Any]:
    """`["search.strategy=deep"]` becomes `{"search": {"strategy": "deep"}}`; later ones win.

    A value that starts with `{` or `[` is JSON; all others stay text, which the settings convert.
    Raises: InputError for what is no assignment.
    """
    found: dict[str, Any] = {}
    for assignment in assignments:
        name, sign, value = assignment.partition("=")
        path = name.strip().split(".")
        if not sign or not all(path):
            raise InputError("--set", name if sign else assignment, _SET_FORM)
        table = found
        for part in path[:-1]:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise InputError("--set", name, f"{part} is given as a value and as a section: give one of them")
        if isinstance(table.get(path[-1]), dict):
            raise InputError("--set", name, "it is a section: name one setting in it")
        table[path[-1]] = _set_value(name, value)
    return found


def _set_value(name: str, text: str) -> Any:
    if not encodable(text):
        raise InputError("--set", name, "its value is no UTF-8: write it anew")
    if text[:1] not in {"{", "["}:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("--set", name, "its value starts like JSON but is none: check its quotes") from None
