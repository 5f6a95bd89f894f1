"""What happened on a day is read as that day, where a page of that title tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

import pytest

from orchestrator.planning.lists.events import with_days
from shared.models.enumeration import TitledPage

TODAY = date(2026, 11, 22)
PAGES = {
    "storm edda": TitledPage(title="Storm Edda", path="n/edda.md", text="It hit the coast on 14 February 2026."),
    "the open day": TitledPage(title="The open day", path="n/open.md", date="2026-05-23", text="Four hundred came."),
    "strike in santos": TitledPage(title="Strike in Santos", path="n/s.md", text="From 2026-05-04 to 2026-05-24."),
    "minutes": TitledPage(title="Minutes", path="n/m.md", text="On 2 May 2026 nothing, on 9 May 2026 little."),
    "march 2026": TitledPage(title="March 2026", path="n/3.md", date="2026-03-31"),
    "开山祭": TitledPage(title="开山祭", path="n/祭.md", text="2026年4月8日，四个村一起办了开山祭。"),
}


def pages(titles: Sequence[str]) -> Mapping[str, TitledPage]:
    return {title: PAGES[title] for title in titles if title in PAGES}


@pytest.mark.parametrize(
    ("question", "read", "path"),
    [
        ("bugs found after Storm Edda?", "bugs found after 2026-02-14?", "n/edda.md"),
        ("bugs from the month before Storm Edda", "bugs from 2026-01-14 to 2026-02-13", "n/edda.md"),
        ("bugs fixed in the two weeks before the open day", "bugs fixed from 2026-05-09 to 2026-05-22", "n/open.md"),
        ("bugs opened after the strike in Santos had ended", "bugs opened after 2026-05-24", "n/s.md"),
        ("bugs opened during the strike in Santos", "bugs opened from 2026-05-04 to 2026-05-24", "n/s.md"),
        ("开山祭之后采的茶", "2026-04-08之后采的茶", "n/祭.md"),
        ("《开山祭》前两周采的茶", "2026-03-25到2026-04-07采的茶", "n/祭.md"),
        ("开山祭那天采的茶", "2026-04-08到2026-04-08采的茶", "n/祭.md"),
    ],
)
def test_given_an_event_in_a_question_when_a_page_tells_its_day_then_that_is_asked_and_told(
    question: str, read: str, path: str
) -> None:
    said, warnings = with_days(question, pages, TODAY)
    assert said == read
    assert [path in warning for warning in warnings] == [True]


@pytest.mark.parametrize(
    "question",
    [
        "bugs from the few weeks after Storm Edda",
        "bugs fixed after minutes",
        "bugs fixed since March 2026",
        "patients that Ada looks after",
        "bugs in Storm Edda",
    ],
)
def test_given_no_event_with_a_day_when_read_then_the_question_stays(question: str) -> None:
    assert with_days(question, pages, TODAY) == (question, ())
