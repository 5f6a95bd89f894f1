"""Whether a document says that it is out of date: by a field, or by a line at its head. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from shared.language import alternatives, claim_pattern, derived, languages
from shared.language.document_fields import Entry, entries
from shared.language.sentences import sentences
from shared.language.text import fold, value_key
from shared.language.written_days import parse_date
from workers.display import plain_line

#: Lines at the head of a document that are looked at, and characters of what is kept.
_HEAD, _MOST_CHARS = 30, 160
_HEAD_CHARS = 6_000
#: Marks of a quote, a list item or a heading before it.
_MARKS = "> \t-+#"


def superseded_of(fields: Iterable[str], text: str) -> str:
    """What says that the document is out of date, as it is written; "" where nothing does. `fields`: stored entries."""
    given = entries(fields)
    said = [f"{one.name}: {one.value}" for one in given if _is_obsolete(one)]
    head = text[:_HEAD_CHARS].splitlines()[:_HEAD]
    said += [line for line in head if claim_pattern("superseded").search(fold(line))]
    # The longest one names what stands in its place.
    return max(map(_first_sentence, said), key=len, default="")


def valid_until_of(fields: Iterable[str]) -> str | None:
    """The day (ISO) until which it holds, where a field says one."""
    names = _keys("valid_until")
    days = (parse_date(one.value) for one in entries(fields) if value_key(one.name) in names)
    return next((day.isoformat() for day in days if day), None)


def _first_sentence(line: str) -> str:
    shown = plain_line(line.lstrip(_MARKS))
    return next(iter(sentences(shown)), "").rstrip(".。")[:_MOST_CHARS]


def _is_obsolete(one: Entry) -> bool:
    name = value_key(one.name)
    if name in _keys("superseded_by"):
        return bool(one.value.strip(" -—"))
    return name in _keys("status") and bool(_obsolete().match(fold(one.value)))


@derived
def _keys(field: str) -> frozenset[str]:
    return frozenset(value_key(name) for each in languages() for name in each.words.sections.keys.get(field, ()))


@derived
def _obsolete() -> re.Pattern[str]:
    return re.compile(rf"\W*(?:{alternatives(lambda language: [language.claims.obsolete])})")
