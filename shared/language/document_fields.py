r"""Fields of documents as entries, which their first chunks hold. Pure.

An entry is "<key of the name>\x1f<key of the value>\x1f<name>\x1f<value>": its beginning is what a filter asks for,
whatever case and width it is spelt in, its end is what people read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from shared.language.text import plain, value_key

#: The first entry of every document whose fields were looked for; one of an older release has none.
LOOKED_FOR = "\x1f"


class Entry(NamedTuple):
    """A field of a document: its name and one of its values, as they are written."""

    name: str
    value: str


def entry(name: str, value: str) -> str:
    """A field as it is stored."""
    return "\x1f".join((value_key(name), value_key(value), name, value))


def entries(stored: Iterable[str]) -> list[Entry]:
    """The fields among stored entries, in order."""
    parts = (each.split("\x1f") for each in stored)
    return [Entry(part[2], part[3]) for part in parts if len(part) == 4 and part[0]]


def counted(stored: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Key of a name -> value -> documents, from entries with the number of documents that have them."""
    found: dict[str, dict[str, int]] = {}
    for each, documents in stored.items():
        for name, value in entries([each]):
            values = found.setdefault(value_key(name), {})
            values[value] = values.get(value, 0) + documents
    return found


def spellings(stored: Mapping[str, int]) -> dict[str, str]:
    """Key of a name -> the name as most documents write it, folded."""
    found: dict[str, dict[str, int]] = {}
    for each, documents in stored.items():
        for name, _ in entries([each]):
            spelt = found.setdefault(value_key(name), {})
            spelt[plain(name)] = spelt.get(plain(name), 0) + documents
    return {key: max(spelt, key=lambda name: (spelt[name], name)) for key, spelt in found.items()}
