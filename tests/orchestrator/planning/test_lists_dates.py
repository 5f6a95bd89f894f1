"""The spans of time in questions after a list: read to the day, or not at all, and then that is said."""

from __future__ import annotations

import calendar
import random
import tomllib
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from orchestrator.planning.lists.reading import read_question
from shared.models import Filters
from shared.models.enumeration import Values

TODAY = date(2026, 11, 20)
VALUES = Values(kinds={"incident": 9}, tags={"redis": 3})
QUESTIONS = {"en": "which incidents {}", "zh": "{}的事故有哪些"}
PHRASES = tomllib.loads(Path(__file__).with_name("date_phrases.toml").read_text("utf-8"))
MONTHS = calendar.month_name


def days(span: Filters) -> str:
    """`span` as the table writes it, an open end empty."""
    return f"{span.after or ''}..{span.before or ''}"


def read(phrase: str, language: str) -> str:
    """The days, or what became of a question whose time is not read; never without a warning."""
    found = read_question(QUESTIONS[language].format(phrase), Filters(), VALUES, TODAY)
    if found.scan is None:
        return "refused" if found.warnings else "silently refused"
    if found.scan.unread:
        return "unread" if found.warnings else "silently unread"
    if found.scan.conditions or found.scan.order:
        return "read as something else"
    if found.scan.without_dates:
        return f"not {days(found.scan.without_dates[0])}"
    return " | ".join(map(days, found.scan.dates or (found.scan.found,)))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_given_the_ways_to_name_a_time_when_read_then_each_is_exact_or_named_as_not_understood(language: str) -> None:
    assert len(PHRASES[language]) >= 80
    assert {phrase: read(phrase, language) for phrase in PHRASES[language]} == PHRASES[language]


def english(first: date, last: date) -> Iterator[tuple[str, str]]:
    """Ways to say the days from `first` to `last`, and what they are."""
    one, other = (f"{day.day} {MONTHS[day.month]} {day.year}" for day in (first, last))
    span = f"{first}..{last}"
    yield f"from {one} to {other}", span
    yield f"between {one} and {other}", span
    yield f"from {one} until {other}", span
    yield f"from {one} through {other}", span
    yield f"dated {first} to {last}", span
    yield f"since {one} and no later than {other}", span
    yield f"on or after {MONTHS[first.month]} {first.day}, {first.year}", f"{first}.."
    yield f"before {other}", f"..{last - timedelta(days=1)}"
    if first.year == last.year:
        yield f"from {first.day} {MONTHS[first.month]} to {other}", span
        yield (
            f"between {MONTHS[first.month][:3]} {first.day} and {MONTHS[last.month][:3]} {last.day}, {last.year}",
            span,
        )


def chinese(first: date, last: date) -> Iterator[tuple[str, str]]:
    """The same in Chinese."""
    one, other = (f"{day.year}年{day.month}月{day.day}日" for day in (first, last))
    span = f"{first}..{last}"
    yield f"{one}到{other}", span
    yield f"从{one}至{other}", span
    yield f"{one}和{other}之间", span
    yield f"不早于{one}", f"{first}.."
    yield f"{one}以来", f"{first}.."
    yield f"{one}之后", f"{first + timedelta(days=1)}.."
    yield f"截至{other}", f"..{last}"
    yield f"到{other}为止", f"..{last}"
    yield f"{other}前", f"..{last - timedelta(days=1)}"
    if first.year == last.year:
        yield f"{one}到{last.month}月{last.day}日", span


def months(first: date, last: date) -> Iterator[tuple[str, str, str]]:
    """Whole months and halves of them, in both languages."""
    end = last.replace(day=calendar.monthrange(last.year, last.month)[1])
    begin, span = first.replace(day=1), f"{first.replace(day=1)}..{end}"
    one, other = (f"{MONTHS[day.month]} {day.year}" for day in (first, last))
    yield "en", f"from {one} to {other}", span
    yield "en", f"from {first:%Y-%m} to {last:%Y-%m}", span
    yield "en", f"starting in {one} and ending in {other}", span
    yield "en", f"before the end of {other}", f"..{end}"
    yield "en", f"in the first half of {one}", f"{begin}..{begin.replace(day=15)}"
    yield "zh", f"{first.year}年{first.month}月到{last.year}年{last.month}月", span
    yield "zh", f"{last.year}年{last.month}月底前", f"..{end}"
    yield "zh", f"{first.year}年{first.month}月下半月", f"{begin.replace(day=16)}..{_end(begin)}"


def _end(day: date) -> date:
    return day.replace(day=calendar.monthrange(day.year, day.month)[1])


def test_given_random_spans_when_said_in_many_ways_then_read_back_exactly_or_refused() -> None:
    chance, wrong, refused, tried = random.Random(14), [], 0, 0
    for _ in range(16):
        first = date(2019, 1, 1) + timedelta(days=chance.randrange(2500))
        last = first + timedelta(days=chance.randrange(40, 500))
        said = [("en", *way) for way in english(first, last)] + [("zh", *way) for way in chinese(first, last)]
        for language, phrase, span in [*said, *months(first, last)]:
            found, tried = read(phrase, language), tried + 1
            refused += found in {"refused", "unread"}
            if found not in {span, "refused", "unread"}:
                wrong.append((phrase, found, span))
    assert wrong == []
    assert refused <= tried // 20


def test_given_vague_words_of_time_when_read_then_the_answer_says_how() -> None:
    for question, told in {
        "which incidents in early 2026": "How the time in the question was read: “dated 2026-01-01 to 2026-04-30”.",
        "which incidents in March": "How the time in the question was read: “dated 2026-03-01 to 2026-03-31”.",
        "2026年初的事故有哪些": "问题里的时间理解为：“dated 2026-01-01 to 2026-04-30”。",
    }.items():
        assert told in read_question(question, Filters(), VALUES, TODAY).warnings
    assert read_question("which incidents in March 2026", Filters(), VALUES, TODAY).warnings == ()


def test_given_a_word_of_time_that_is_not_read_when_beside_a_span_then_named_with_it() -> None:
    found = read_question("which incidents happened on the first Monday of May 2026", Filters(), VALUES, TODAY)
    assert found.scan is None
    assert "monday of may 2026" in found.warnings[0]


def test_given_words_that_only_begin_like_time_when_read_then_they_bend_no_span() -> None:
    assert read("2026年", "zh") == "2026-01-01..2026-12-31"
    found = read_question("2026年后端相关的事故有哪些", Filters(), VALUES, TODAY).scan
    assert found is not None
    assert days(found.found) == "2026-01-01..2026-12-31"
