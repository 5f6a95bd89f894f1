"""Statements of several days about one thing: the latest first, the earlier ones named as such."""

from __future__ import annotations

import pytest

from shared.models import MergedHit
from tests.workers.merge.test_extract import hit, pool, tree
from workers.merge.extract import extract


def page(number: int, text: str, date: str | None, title: str = "Notes", heading: str = "") -> MergedHit:
    one = hit(number, text, title=title, score=1 - number / 10)
    return one.model_copy(update={"date": date, "doc_id": f"d{number}" if date else "d", "heading": heading})


def lines(question: str, *hits: MergedHit) -> list[str]:
    return extract(question, pool(*hits), tree(question)).text.split("\n")


@pytest.mark.parametrize(
    ("question", "old", "new", "first"),
    [
        (
            "Is the billing queue still on RabbitMQ?",
            "The billing queue runs on RabbitMQ with three nodes.",
            "The billing queue was moved from RabbitMQ to Redis Streams.",
            "The billing queue was moved",
        ),
        (
            "Who owns the billing queue now?",
            "Ada Lind is the owner of the billing queue.",
            "Bo Ek took over the billing queue from Ada Lind.",
            "Bo Ek took over",
        ),
        (
            "开票队列现在还用 RabbitMQ 吗？",
            "开票队列使用 RabbitMQ，部署在上海机房。",
            "开票队列从 RabbitMQ 迁到了 Redis Streams。",
            "开票队列从",
        ),
    ],
)
def test_given_a_question_for_how_something_is_now_then_the_latest_page_first(
    question: str, old: str, new: str, first: str
) -> None:
    found = lines(question, page(1, old, "2025-05-12"), page(2, new, "2026-02-16"))
    assert found[0].startswith(first)
    assert f"{old} [1]" in found[1]
    assert found[1].startswith(("Earlier (2025-05-12): ", "此前（2025-05-12）："))


def test_given_a_log_then_its_last_line_about_the_thing_first() -> None:
    log = "- 2026-02-10 Lift planned.\n- 2026-07-15 Lift on hold.\n- 2026-10-03 Lift under construction.\n"
    found = lines("Is the lift still on hold?", page(1, f"{log}- 2026-11-01 The stair was painted red.", None))
    assert found[0] == "2026-10-03 Lift under construction. [1]"
    assert "2026-07-15 Lift on hold. [1]" in found


def test_given_one_page_then_what_was_changed_comes_before_what_was_so() -> None:
    was = page(1, "The key table was created as UNLOGGED to save load.", None, "INC-7 Duplicates", "Root cause")
    done = page(2, "Made the key table a logged one.", None, "INC-7 Duplicates", "What we changed")
    assert lines("Is the key table still UNLOGGED?", was, done)[0] == "Made the key table a logged one. [2]"


def test_given_versions_of_one_row_then_the_later_page_s_first_unless_a_year_is_asked_for() -> None:
    head = "| category | house |\n| --- | --- |\n"
    old = page(1, f"{head}| Adult ticket | 24 EUR |\n", "2025-01-10", "Prices 2025")
    new = page(2, f"{head}| Adult ticket | 27 EUR |\n", "2026-01-08", "Prices 2026")
    found = lines("How much does an adult ticket cost?", old, new)
    assert found[0] == "Adult ticket – house: 27 EUR [2]"
    assert found[1] == "Earlier (2025-01-10): Adult ticket – house: 24 EUR [1]"
    assert lines("How much did an adult ticket cost in 2025?", old, new)[0].endswith("24 EUR [1]")


def test_given_sections_headed_by_days_then_the_last_one_first_and_each_with_its_day() -> None:
    was = page(1, "The linkspan is out of order: a ram leaks.", None, "Log of the linkspan", "2026-02-14")
    last = page(2, "The hinge has cracked. Lorries wait.", None, "Log of the linkspan", "2026-08-22")
    assert lines("Is the linkspan still out of order?", was, last) == [
        "2026-08-22: The hinge has cracked. [2]",
        "2026-08-22: Lorries wait. [2]",
        "Earlier (2026-02-14): The linkspan is out of order: a ram leaks. [1]",
    ]


@pytest.mark.parametrize(
    ("question", "old", "new", "mark"),
    [
        (
            "Do dogs travel on the car deck?",
            page(1, "Status: superseded by SL-34\n\nDogs travel on the car deck only.", "2023-04-02", "SL-21: Pets"),
            page(2, "Dogs on a lead may travel in the saloon, too.", "2026-01-12", "SL-34: Pets in the saloon"),
            "No longer in force (Status: superseded by SL-34): Dogs travel",
        ),
        (
            "现在鲜叶还用竹筐运吗？",
            page(1, "状态：已被 YL-11 取代\n\n鲜叶装竹筐，由三轮车运下山。", "2022-02-10", "YL-05：鲜叶用竹筐运输"),
            page(2, "鲜叶装周转箱，由索道运下山。", "2025-01-08", "YL-11：鲜叶改用索道运输"),
            "已不再有效（状态：已被 YL-11 取代）：鲜叶装竹筐",
        ),
    ],
)
def test_given_a_page_that_holds_no_longer_then_its_successor_first_and_it_is_marked(
    question: str, old: MergedHit, new: MergedHit, mark: str
) -> None:
    old = old.model_copy(update={"superseded": old.text.partition("\n")[0]})
    found = lines(question, old, new)
    assert found[0].endswith("[2]")
    assert found[-1].startswith(mark)


def test_given_pages_of_a_series_when_the_day_of_the_last_is_asked_then_the_latest_page_by_title_and_day() -> None:
    question = "When was the last restore drill?"
    pages = [
        hit(number, text, title=title).model_copy(update={"doc_id": title, "date": date})
        for number, (title, date, text) in enumerate(
            [
                ("Restore drill, November 2025", "2025-11-18", "It took 3 hours."),
                ("Restore drill, May 2026", "2026-05-21", "Rafael typed, and Jonas kept the log."),
                ("Restore the database", "2026-06-01", "Each drill of a restore has a log."),
            ],
            start=1,
        )
    ]
    text = extract(question, pool(*pages), tree(question)).text
    assert text == "Restore drill, May 2026 (2026-05-21): Rafael typed, and Jonas kept the log. [2]"
