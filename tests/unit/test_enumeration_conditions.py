"""What a document must say for a list, and the sentence that is shown for it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from shared.models.enumeration import Condition, Scan
from workers.enumerate.columns import columns_of
from workers.enumerate.document import ListedDocument, Matcher
from workers.enumerate.scan import folders


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


@pytest.mark.parametrize("text", ["cach" * 200_000, ":" * 400_000, "a: " * 200_000, "cache" + "e" * 500_000])
def test_given_a_hostile_text_when_tested_then_time_stays_linear(text: str) -> None:
    begun = time.process_time()
    fits(Condition(words=("cache",)), text)
    columns_of(document(text), ("owner",))
    assert time.process_time() - begun < 3.0


def test_given_paths_when_asked_for_folders_then_each_above_them_comes_once() -> None:
    assert folders(["a/b/c.md", "a/d.md", "a/e.jsonl#x/y", "f.md"]) == ("a/", "a/b/")
