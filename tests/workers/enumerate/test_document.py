"""What a document must say for a list, and the sentence that is shown for it.

The span of time that a question names, in both languages; what only looks like one is none.
"""

from __future__ import annotations

import time
from datetime import date
from typing import Any

import pytest

from orchestrator.planning.lists.dates import spans
from shared.models.enumeration import Condition, Scan
from workers.enumerate.columns import columns_of
from workers.enumerate.document import ListedDocument, Matcher
from workers.enumerate.scan import folders
from workers.index.fields import fields_of


def document(*texts: str, **first: Any) -> ListedDocument:
    made = ListedDocument({"doc_id": "d", "path": "d.md", "title": "A title", "tags": (), **first})
    for ordinal, text in enumerate(texts):
        made.add({"ordinal": ordinal, "text": text, "heading": "", "facet": first.get("facet")})
    return made


def fits(condition: Condition, *texts: str, **first: Any) -> bool:
    return Matcher(Scan(conditions=(condition,))).fits(document(*texts, **first))


@pytest.mark.parametrize(
    ("word", "text", "found"),
    [
        ("cache", "Caches were warmed.", True),
        ("caches", "one cache", True),
        ("queries", "The query is slow.", True),
        ("plan", "planning went well", True),
        ("cat", "concatenate the catalogue", False),
        ("redis", "preredis", False),
        ("redis", "使用redis缓存", True),
        ("队列", "消息队列很长", True),
        ("队列", "列队", False),
        ("緩存", "缓存击穿", True),
        ("ＲＥＤＩＳ", "redis", True),
    ],
)
def test_given_a_word_when_tested_then_its_forms_count_and_parts_of_others_do_not(
    word: str, text: str, found: bool
) -> None:
    assert fits(Condition(words=(word,)), text) is found


@pytest.mark.parametrize(
    ("phrase", "text", "found"),
    [
        ("connection pool", "the Connection\n pool grew", True),
        ("connection pool", "a pool of connections", False),
        ("3.8", "Python 3.8 is old", True),
        ("3.8", "Python 13.85", False),
        ("c++", "written in C++ today", True),
    ],
)
def test_given_an_exact_phrase_when_tested_then_it_stands_letter_by_letter(phrase: str, text: str, found: bool) -> None:
    assert fits(Condition(words=(phrase,), exact=True), text) is found


def test_given_tags_titles_and_later_chunks_when_tested_then_they_count_where_they_may() -> None:
    assert fits(Condition(words=("redis",), tagged=True), "no word", tags=("Redis",))
    assert not fits(Condition(words=("redis",)), "no word", tags=("Redis",))
    assert fits(Condition(words=("title",)), "no word")
    assert fits(Condition(words=("late",)), "first", "it comes late")
    assert not fits(Condition(words=("late",), negated=True), "first", "it comes late")
    assert fits(Condition(words=("a1", "b2")), "only b2 here")


def test_given_a_match_when_its_sentence_is_sought_then_the_first_that_says_it_comes() -> None:
    made = document("# Heading redis\n\nFirst sentence. Then Redis came. Redis again.")
    assert Matcher(Scan(conditions=(Condition(words=("redis",)),))).sentence(made) == "Then Redis came."
    assert Matcher(Scan()).sentence(made) == "First sentence."


def test_given_a_facet_when_tested_then_a_passage_of_it_is_needed() -> None:
    assert Matcher(Scan(facets=("insight",))).fits(document("x", facet="insight"))
    assert not Matcher(Scan(facets=("insight",))).fits(document("x", facet="result"))


@pytest.mark.parametrize(
    "text",
    [
        "cach" * 200_000,
        ":" * 400_000,
        "a: " * 200_000,
        "cache" + "e" * 500_000,
        "|a" * 200_000,
        "- " * 300_000,
        "a:b\n" * 100_000,
    ],
)
def test_given_a_hostile_text_when_tested_then_time_stays_linear(text: str) -> None:
    begun = time.process_time()
    fits(Condition(words=("cache",)), text)
    columns_of(document(text), ("owner",))
    fields_of({"a": text}, text)
    assert time.process_time() - begun < 3.0


def test_given_a_column_that_documents_call_otherwise_when_told_so_then_it_is_filled() -> None:
    assert columns_of(document("责任编辑：林晓"), ("责编",)) == {}
    assert columns_of(document("责任编辑：林晓"), ("责编",), {"责编": ("责任编辑",)}) == {"责编": "林晓"}


def test_given_paths_when_asked_for_folders_then_each_above_them_comes_once() -> None:
    assert folders(["a/b/c.md", "a/d.md", "a/e.jsonl#x/y", "f.md"]) == ("a/", "a/b/")


TODAY = date(2026, 11, 20)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("all decisions from 2025", "2025-01-01", "2025-12-31"),
        ("incidents in march 2026", "2026-03-01", "2026-03-31"),
        ("notes since 2025-03", "2025-03-01", None),
        ("before may 2025", None, "2025-04-30"),
        ("after 18 may 2026", "2026-05-19", None),
        ("until 2025", None, "2025-12-31"),
        ("between 2024-01-01 and 2024-03-31", "2024-01-01", "2024-03-31"),
        ("from may 2025 to july 2025", "2025-05-01", "2025-07-31"),
        ("in 2024 and 2025", "2024-01-01", "2025-12-31"),
        ("q3 2025", "2025-07-01", "2025-09-30"),
        ("last month", "2026-10-01", "2026-10-31"),
        ("the last 30 days", "2026-10-21", "2026-11-20"),
        ("february 2024", "2024-02-01", "2024-02-29"),
        ("2025年的决定", "2025-01-01", "2025-12-31"),
        ("2026年3月有哪些事故", "2026-03-01", "2026-03-31"),
        ("2026年3月8日", "2026-03-08", "2026-03-08"),
        ("2025年下半年", "2025-07-01", "2025-12-31"),
        ("2025年第三季度", "2025-07-01", "2025-09-30"),
        ("去年的笔记", "2025-01-01", "2025-12-31"),
        ("上个月", "2026-10-01", "2026-10-31"),
        ("2025年以来", "2025-01-01", None),
        ("2025年以前", None, "2024-12-31"),
        ("从2025年1月到2025年3月", "2025-01-01", "2025-03-31"),
        ("in early march 2026", "2026-03-01", "2026-03-10"),
        ("mid-march 2026", "2026-03-11", "2026-03-20"),
        ("at the end of february 2024", "2024-02-21", "2024-02-29"),
        ("from march 2026 to today", "2026-03-01", "2026-11-20"),
        ("newer than may 2026", "2026-06-01", None),
        ("older than 2025", None, "2024-12-31"),
        ("up to and including june 2026", None, "2026-06-30"),
        ("until the end of march 2026", None, "2026-03-31"),
        ("late 2025", "2025-09-01", "2025-12-31"),
        ("early last year", "2025-01-01", "2025-04-30"),
        ("2026年3月上旬", "2026-03-01", "2026-03-10"),
        ("2026年3月下旬", "2026-03-21", "2026-03-31"),
        ("2026年年初", "2026-01-01", "2026-04-30"),
        ("2025年底", "2025-09-01", "2025-12-31"),
        ("上个月底", "2026-10-21", "2026-10-31"),
        ("since march 2025 and before may 2026", "2025-03-01", "2026-04-30"),
    ],
)
def test_given_a_span_when_read_then_its_first_and_last_day_come(
    text: str, first: str | None, last: str | None
) -> None:
    found = spans(text, TODAY)
    assert found is not None
    (span,) = found
    days = (span.first and span.first.isoformat(), span.last and span.last.isoformat())
    assert days == (first, last)


@pytest.mark.parametrize("text", ["windows 2000", "adr-2025-03.md", "2026-13-01", "may i see", "8月的"])
def test_given_what_is_no_span_when_read_then_there_is_none(text: str) -> None:
    assert spans(text, TODAY) == ()


def test_given_spans_that_do_not_join_when_read_then_each_comes_beside_the_one_before() -> None:
    found = spans("in 2023 and in 2025", TODAY)
    assert found is not None
    assert [(span.first, span.last, span.beside) for span in found] == [
        (date(2023, 1, 1), date(2023, 12, 31), False),
        (date(2025, 1, 1), date(2025, 12, 31), True),
    ]


def test_given_a_span_that_ends_before_it_begins_when_read_then_nothing_is_made_of_it() -> None:
    assert spans("from may 2026 to march 2026", TODAY) is None
