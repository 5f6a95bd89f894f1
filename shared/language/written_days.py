"""Days as documents write them, in all languages. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from shared.language import languages
from shared.language.text import month_number

_NUMBERS = (
    re.compile(r"(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d)"),
    re.compile(r"(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})(?!\d)"),
)


def parse_date(text: str) -> date | None:
    """A day written as 2026-05-18 (a time may follow), 2026/5/18, 20260518, 2026年5月18日, 18 May 2026, May 18, 2026.

    05/06/2026 is None: it is May to some and June to others.
    """
    found = next((found for form in _forms() if (found := form.match(text.strip()))), None)
    if found is None:
        return None
    month = found["month"]
    number = int(month) if month.isdecimal() else month_number(month.lower())
    try:
        return date(int(found["year"]), number, int(found["day"]))
    except ValueError:
        return None


def is_date(text: str) -> bool:
    """True for a day and nothing else."""
    return any(form.fullmatch(text) for form in _forms()) and parse_date(text) is not None


def _forms() -> Iterator[re.Pattern[str]]:
    yield from _NUMBERS
    for language in languages():
        yield from language.dates.days
