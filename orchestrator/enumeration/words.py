"""The phrases of words.toml, compiled once."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")


@cache
def phrases(name: str) -> str:
    """The alternatives of one list, as the inside of a group; English ones stand between word boundaries."""
    return "|".join(_bounded(phrase) for phrase in sorted(_table()[name], key=len, reverse=True))


@cache
def pattern(name: str) -> re.Pattern[str]:
    """Any phrase of one list."""
    return re.compile(f"(?:{phrases(name)})")


def named(group: str) -> Mapping[str, Sequence[str]]:
    """`kinds` or `facets`: value -> its other names."""
    table: Mapping[str, Sequence[str]] = _table()[group]
    return table


def _bounded(phrase: str) -> str:
    first = phrase.removeprefix("(?:")[0]
    head = r"(?<![a-z0-9])" if first.isascii() and first.isalpha() else ""
    tail = r"(?![a-z0-9])" if phrase[-1].isascii() and phrase[-1] not in "$:=+/b " else ""
    return f"{head}(?:{phrase}){tail}"


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(files("orchestrator.enumeration").joinpath("words.toml").read_text(encoding="utf-8"))


def is_han(text: str) -> bool:
    """True when there is a Chinese character in it."""
    return _HAN.search(text) is not None
