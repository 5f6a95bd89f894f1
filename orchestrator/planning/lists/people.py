"""Tells which fields hold people: by the field's name, and by the form of its values. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from orchestrator.planning.lists.words import listed
from shared.language import derived
from shared.language.text import is_han, value_key

#: So large a share of a field's values look like names of people where they are.
_PEOPLE = 0.8
#: Of names in Latin letters so many begin with a given name that the languages' lists have.
_GIVEN = 0.4
#: Of so many values one at least begins with a known given name where they are people: "Halden Foods" of a client.
_FEW = 3
_LEAST_HAN, _MOST_HAN, _MOST_VALUES = 2, 4, 60
#: "Ada Lovelace", "J. R. Bell", "Dr. Mei-Lin O'Hara".
_NAME = re.compile(
    r"(?:(?:[A-Z]\.|[^\W\d_a-z][\w'’\-]*\.?) ){1,3}"
    r"(?:(?:van|von|de|der|den|da|di|del|la|le|bin|al|dos) ){0,2}[^\W\d_a-z][\w'’\-]*"
)


def is_person_name(key: str) -> bool:
    """True for a name of a field, or of a kind, that people are called by: "reviewer", 负责人."""
    return any(pattern.search(key) for pattern in _person_fields())


def is_people(name: str) -> bool:
    """True for a kind or folder whose documents are people: "translators", "staff", 人员."""
    key = value_key(name)
    return is_person_name(key) or any(pattern.fullmatch(key) for pattern in _person_kinds())


def holds_people(key: str, values: Collection[str]) -> bool:
    """True where the name of the field, or the form of its values, says that they are people."""
    looked_at = list(values)[:_MOST_VALUES]
    if is_person_name(key):
        firms = len(looked_at) >= _FEW and not any(is_han(value) or _is_given(value) for value in looked_at)
        return not firms and (not looked_at or _share(any(map(str.isdigit, value)) for value in looked_at) < _GIVEN)
    return bool(looked_at) and (
        _share(map(_is_han_name, looked_at)) >= _PEOPLE
        or (_share(map(_is_latin_name, looked_at)) >= _PEOPLE and _share(map(_is_given, looked_at)) >= _GIVEN)
    )


def _share(fits: Iterable[bool]) -> float:
    found = list(fits)
    return sum(found) / len(found)


def _is_han_name(value: str) -> bool:
    return is_han(value) and _LEAST_HAN <= len(value) <= _MOST_HAN and value[0] in _surnames()


def _is_latin_name(value: str) -> bool:
    return _NAME.fullmatch(value) is not None or value.casefold() in _given_names()


def _is_given(value: str) -> bool:
    words = (word for word in value.split() if not word.endswith("."))
    return next(words, "").casefold() in _given_names()


@derived
def _person_fields() -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, listed("person_field")))


@derived
def _person_kinds() -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, listed("person_kind")))


@derived
def _surnames() -> frozenset[str]:
    return frozenset(name for row in listed("surnames") for name in row)


@derived
def _given_names() -> frozenset[str]:
    return frozenset(name for row in listed("given_names") for name in row.split())
