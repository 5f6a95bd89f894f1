"""Reads `--set section.name=value` into the nested values that `load_settings` takes. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from shared.errors import InputError, encodable

_FORM = "write --set section.name=value, for example --set search.strategy=deep"


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
            raise InputError("--set", name if sign else assignment, _FORM)
        table = found
        for part in path[:-1]:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise InputError("--set", name, f"{part} is given as a value and as a section: give one of them")
        if isinstance(table.get(path[-1]), dict):
            raise InputError("--set", name, "it is a section: name one setting in it")
        table[path[-1]] = _value(name, value)
    return found


def _value(name: str, text: str) -> Any:
    if not encodable(text):
        raise InputError("--set", name, "its value is no UTF-8: write it anew")
    if text[:1] not in {"{", "["}:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("--set", name, "its value starts like JSON but is none: check its quotes") from None
