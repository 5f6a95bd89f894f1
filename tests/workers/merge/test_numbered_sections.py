"""A page whose numbered sections are the steps that a question asks for."""

from __future__ import annotations

import pytest

from shared.models import MergedHit
from tests.workers.merge.test_extract import hit, pool, tree
from workers.merge.extract import extract


def section(place: int, ordinal: int, heading: str, text: str, title: str = "Drain the dead-letter queue") -> MergedHit:
    return hit(place, text, title=title).model_copy(update={"doc_id": title, "heading": heading, "ordinal": ordinal})


LEAD = section(1, 0, "", "For the alert on dead letters. Usually 20 minutes.")
LIST = section(2, 1, "1. Which queue?", "```bash\nlanternctl dlq list\n```\n\nThe reason says why.")
LOOK = section(3, 2, "2. Look at five", "Sort what you see into three heaps.")
WAIT = section(4, 3, "3. Is the cause over", "Check the provider's status first.")
DEEPER = section(5, 4, "3. Is the cause over > Errors", "The error rate has its own page.")
OTHER = section(6, 1, "1. Announce", "Tell the others.", title="Queue days")
QUESTION = "How do I drain a dead-letter queue?"


def test_given_a_page_of_numbered_sections_when_its_way_is_asked_for_then_they_are_the_steps_in_order() -> None:
    summary = extract(QUESTION, pool(LEAD, WAIT, DEEPER, OTHER, LOOK, LIST), tree(QUESTION))
    assert summary.text.splitlines() == [
        "1. Which queue? `lanternctl dlq list` [6]",
        "2. Look at five: Sort what you see into three heaps. [5]",
        "3. Is the cause over: Check the provider's status first. [2]",
    ]
    assert summary.missing == ()


def test_given_a_step_that_was_not_found_then_it_is_missing_by_its_number() -> None:
    summary = extract(QUESTION, pool(LEAD, LIST, WAIT), tree(QUESTION))
    assert summary.text.splitlines()[-1] == "Not found: step 2"
    assert [one.asked for one in summary.missing] == ["step 2"]


@pytest.mark.parametrize(
    "hits",
    [(LEAD, LOOK, WAIT), (LEAD, LIST), (LIST, section(2, 9, "9. Close", "Close the ticket."))],
    ids=["not the first", "one alone", "most are missing"],
)
def test_given_too_few_of_its_sections_then_they_are_no_steps(hits: tuple[MergedHit, ...]) -> None:
    text = extract(QUESTION, pool(*hits), tree(QUESTION)).text
    assert "Look at five:" not in text
    assert "Which queue?" not in text


def test_given_chinese_numerals_then_they_number_the_steps() -> None:
    question = "怎么处理消息积压？"
    title = "处理消息积压"
    hits = (
        section(1, 2, "二、扩容", "临时加八个消费者。", title),
        section(2, 1, "一、看原因", "先看消费速度是不是变慢。", title),
    )
    assert extract(question, pool(*hits), tree(question)).text.splitlines() == [
        "1. 看原因: 先看消费速度是不是变慢。 [2]",
        "2. 扩容: 临时加八个消费者。 [1]",
    ]
