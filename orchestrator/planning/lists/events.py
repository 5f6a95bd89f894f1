"""Puts days for what happened on them: "after Storm Edda" of a page with that title and a day in it. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from orchestrator.planning.lists.dates import spans, with_years
from orchestrator.planning.lists.numerals import in_digits
from orchestrator.planning.lists.words import compiled, listed
from shared.language import reader_sentence
from shared.language.page_keys import folded
from shared.language.text import HAN, plain
from shared.models.enumeration import TitledPage

#: Titles under which pages may be -> those pages.
AskTitles = Callable[[Sequence[str]], Mapping[str, TitledPage]]
#: A title has at most so many words, and at least so many Han characters; so many may be asked for.
_MOST_WORDS, _LEAST_HAN, _MOST_ASKED = 8, 2, 60
#: What lasted longer is no event: a page that names the years it is about.
_LONGEST, _ONE_DAY = timedelta(days=62), timedelta(days=1)
_WAYS = ("before", "after", "since", "during")
_LENGTHS = ("days", "weeks", "months")


def _ways(behind: str) -> str:
    return "|".join(f"(?P<{way}><event_{way}{behind}>)" for way in _WAYS)


def _lengths(behind: str) -> str:
    return "|".join(f"(?P<{unit}><event_{unit}{behind}>)" for unit in _LENGTHS)


_AHEAD = (
    rf"(?i:(?:(?:<event_in>\s+)?(?:(?P<number>[a-z]+|\d{{1,3}})\s+)?(?:{_lengths('')})\s+)?"
    rf"(?:{_ways('')})\s+(?P<article>(?:<article_words>)\s+)?)"
)
_BEHIND = (
    rf"(?i:(?:{_ways('_behind')})"
    rf"(?:(?:<value_end!>)?(?P<number>[\d{HAN}]{{1,3}}?)(?:{_lengths('_behind')})(?:<event_within>)?)?)"
)
_TITLE = re.compile(r"[\"“'‘]?(\w[^\s,;?!]*(?:\s[^\s,;?!]+){0,7})")
_HAN_TITLE = re.compile(rf"(?:《([^《》]{{2,40}})》|([\w{HAN}]{{2,14}}))$")
_TIDY = " \"“”'‘’.《》"


class _Named(NamedTuple):
    """What may be a title, where it begins and ends with the words of time beside it, and what these say."""

    title: str
    start: int
    end: int
    said: re.Match[str]


def with_days(question: str, ask: AskTitles, today: date) -> tuple[str, tuple[str, ...]]:
    """The question with days for the events in it, and how each was read. `ask` is called where one may be named."""
    named = [each for each in _named(question) if _number(each.said) and not _is_time(each.title, today)][:_MOST_ASKED]
    pages = ask(tuple(dict.fromkeys(each.title for each in named))) if named else {}
    found = ((each, pages[each.title]) for each in named if each.title in pages)
    days = ((each, page, when) for each, page in found if (when := _days_of(page, today)))
    best = max(days, key=lambda found: len(found[0].title), default=None)
    if best is None:
        return question, ()
    each, page, (first, last) = best
    said = f"{question[: each.start]}{_said(each.said, first, last)}{question[each.end :]}"
    told = f"{first}" if first == last else f"{first} – {last}"
    return said, (reader_sentence("list_event_read", question, page.title, told, page.path),)


def _named(question: str) -> Iterator[_Named]:
    for said in compiled(_AHEAD).finditer(question):
        behind = _TITLE.match(question, said.end())
        words = [*re.finditer(r"\S+", behind[0])][:_MOST_WORDS] if behind else []
        for word in reversed(words):
            stop = said.end() + word.end()
            name = question[said.end() : stop]
            ends = compiled(r"(?i:\s+<event_over>)").match(question, stop)
            for title in (name, f"{said['article'] or ''}{name}"):
                yield _Named(folded(title.strip(_TIDY)), said.start(), ends.end() if ends else stop, said)
    for said in compiled(_BEHIND).finditer(question):
        before = _HAN_TITLE.search(question[: said.start()])
        if before and before[1]:
            yield _Named(folded(before[1]), before.start(), said.end(), said)
        name = (before and before[2]) or ""
        for length in range(len(name), _LEAST_HAN - 1, -1):
            yield _Named(folded(name[-length:]), said.start() - length, said.end(), said)


def _is_time(title: str, today: date) -> bool:
    """True for a title that is a time itself: what is said of March 2026 is not meant of a page about it."""
    found = spans(plain(title), today) or ()
    return len(title) - sum(span.end - span.start for span in found) < _LEAST_HAN


def _days_of(page: TitledPage, today: date) -> tuple[date, date] | None:
    """The first and the last day of what a page tells of; None where it tells of several, or none."""
    found = spans(with_years(plain(page.text), today), today) or ()
    days = {(span.first, span.last) for span in found}
    first, last = days.pop() if len(days) == 1 else (None, None)
    if first and last and last - first <= _LONGEST:
        return first, last
    own = date.fromisoformat(page.date) if page.date else None
    return (own, own) if own else None


def _said(said: re.Match[str], first: date, last: date) -> str:
    """The time as it is read by anybody: since when, until when, or both."""
    behind = said.re is compiled(_BEHIND)
    way = next(way for way in _WAYS if said[way])
    unit = next((unit for unit in _LENGTHS if said[unit]), "")
    if unit and way != "during":
        number = _number(said)
        ahead = (_moved(first, unit, -number), first - _ONE_DAY)
        first, last = ahead if way == "before" else (last + _ONE_DAY, _moved(last, unit, number))
        way = "during"
    if way == "during":
        return listed("event_range_behind" if behind else "event_range")[0].format(first, last)
    edge = {"before": first, "after": last, "since": first}[way]
    return f"{edge}{said[way]}" if behind else f"{said[way]} {edge}"


def _number(said: re.Match[str]) -> int:
    """How many days, weeks or months; 0 for a word that does not say it: "the few weeks before"."""
    spelt = in_digits((said["number"] or "1").lower())
    return int(spelt) if spelt.isdigit() else int(compiled("<article_words>").fullmatch(spelt) is not None)


def _moved(day: date, unit: str, number: int) -> date:
    if unit != "months":
        return day + timedelta(days=number * (7 if unit == "weeks" else 1))
    months = day.year * 12 + day.month - 1 + number
    for shorter in range(4):
        try:
            return date(months // 12, months % 12 + 1, day.day - shorter)
        except ValueError:
            continue
    return day
