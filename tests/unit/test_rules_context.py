"""Parts that name nothing of their own are told what they are about."""

from __future__ import annotations

import pytest

from orchestrator.planning.decompose import decompose_by_rules


@pytest.mark.parametrize(
    ("question", "last"),
    [
        (
            "Why did checkout slow down in the spring of 2026, and what did we change afterwards?",
            "Regarding “Why did checkout slow down in the spring of 2026”: What did we change afterwards?",
        ),
        (
            "How do we restore the orders database from backup and what are the common mistakes?",
            "Regarding “How do we restore the orders database from backup”: What are the common mistakes?",
        ),
        ("2026 年春天下单为什么变慢，后来做了哪些改动？", "关于“2026 年春天下单为什么变慢”：后来做了哪些改动？"),
        ("缓存穿透、击穿和雪崩有什么区别，各怎么处理？", "关于“缓存穿透、击穿和雪崩有什么区别”：各怎么处理？"),
    ],
)
def test_a_part_without_a_thing_of_its_own_gets_the_part_before_as_context(question: str, last: str) -> None:
    sub = decompose_by_rules(question, 5).subqueries[-1]
    assert sub.query == last
    assert not sub.needs_refinement


@pytest.mark.parametrize(
    ("question", "last"),
    [
        ("How do I set up the test database and then run the migrations?", "How do I run the migrations?"),
        ("Why is Redis fast and where is it used?", "Where is Redis used?"),
    ],
)
def test_a_part_that_names_something_stays_as_it_is(question: str, last: str) -> None:
    assert decompose_by_rules(question, 5).subqueries[-1].query == last
