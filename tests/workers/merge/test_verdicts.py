"""Contradicting and stale sources: told, shown with both citations, and not seen where there are none."""

from __future__ import annotations

import pytest

from shared.models import MergedHit, Summary
from shared.models.support import Support
from shared.settings.sections import SimpleAggregator
from tests.fakes.findings import found, hit
from workers.merge.aggregators.simple import simple
from workers.merge.support import with_support
from workers.merge.verdicts import verdicts_of, with_verdicts

TODAY = "2026-06-01"


def answered(question: str, hits: list[MergedHit]) -> Summary:
    made = with_support(simple(found(question, [], hits), SimpleAggregator()), hits)
    return with_verdicts(made.summary, hits, question, TODAY)


def codes(question: str, *hits: MergedHit) -> tuple[str, ...]:
    return verdicts_of(answered(question, list(hits)), None)


@pytest.mark.parametrize(
    ("question", "one", "other", "line"),
    [
        (
            "What is the gateway timeout?",
            "The gateway timeout is 30 seconds.",
            "The gateway timeout is 45 seconds.",
            (
                "The sources disagree: “The gateway timeout is 30 seconds.” [1] "
                "but “The gateway timeout is 45 seconds.” [2]"
            ),
        ),
        (
            "网关超时时间是多少？",
            "网关超时时间为30秒。",
            "网关超时时间为45秒。",
            "来源相互矛盾：“网关超时时间为30秒。” [1]；“网关超时时间为45秒。” [2]",
        ),
    ],
)
def test_given_two_values_of_one_thing_then_both_stand_in_the_text_with_their_citations(
    question: str, one: str, other: str, line: str
) -> None:
    hits = [hit(1, one, title="Gateway 网关", start=0), hit(2, other, title="Onboarding", start=0)]
    summary = answered(question, hits)
    assert line in summary.text
    assert {cited.number for cited in summary.citations} == {1, 2}
    assert summary.support is not None
    last = summary.support.spans[-1]
    assert summary.text[last.start : last.end] == line
    assert [hits[q.number - 1].text[q.start : q.end] for q in last.quotes] == [one, other]
    assert verdicts_of(summary, None) == ("contradicting_sources",)


@pytest.mark.parametrize(
    ("question", "one", "other"),
    [
        ("What is the gateway timeout?", "The gateway timeout is 30 s.", "The gateway timeout is 0.5 minutes."),
        ("How long is the gateway timeout?", "The gateway timeout for reads is 5 s.", "The gateway timeout is 9 s."),
        ("What was the revenue of Acme?", "Revenue of Acme was 5 m in 2019.", "Revenue of Acme was 7 m in 2020."),
        ("中继的保留期多长？", "测试环境的中继保留期为7天。", "生产环境的中继保留期为30天。"),
        ("中继的保留期多长？", "如果启用归档，中继的保留期为7天。", "中继的保留期为30天。"),
    ],
)
def test_given_values_of_two_things_then_nothing_is_said_to_disagree(question: str, one: str, other: str) -> None:
    assert codes(question, hit(1, one, title="Gateway"), hit(2, other, title="Acme 中继")) == ()


def test_given_notes_of_two_days_then_they_do_not_disagree() -> None:
    text = "The queue of the relay holds {} jobs."
    hits = [hit(n, text.format(n * 40), title=f"Standup 2026-04-0{n}") for n in (1, 2)]
    assert codes("How many jobs does the queue of the relay hold?", *hits) == ()


def stale_line(question: str, *hits: MergedHit) -> str:
    summary = answered(question, list(hits))
    assert verdicts_of(summary, None) == ("stale_source",), summary.text
    assert summary.support is not None
    last = summary.support.spans[-1]
    assert (last.support, last.kind) == (Support.SUPPORTED, "structure")
    return summary.text[last.start : last.end]


def test_given_a_page_that_says_that_it_is_superseded_then_it_is_told_with_the_newer_one() -> None:
    old = hit(1, "The archive of Kestrel is on disk.", title="KR-004 Archive on disk",
              superseded="Status: superseded by KR-011")  # fmt: skip
    new = hit(2, "Tape is cheap.", title="KR-011 Archive on tape")
    asked = "Where is the archive of Kestrel?"
    assert stale_line(asked, old, new) == "Out of date: [1] (Status: superseded by KR-011). Newer: [2]."
    assert stale_line(asked, old) == "Out of date: [1] (Status: superseded by KR-011)."


def test_given_another_page_that_says_so_then_that_line_is_the_reason() -> None:
    old = hit(1, "数据存放在本地机房。", title="QY-003 数据存本地")
    new = hit(2, "取代：QY-003\n\n迁往省城。", title="QY-009 数据迁往省城")
    assert stale_line("数据存放在哪里？", old, new) == "已过时：[1]（取代：QY-003）。 较新的是 [2]。"


def test_given_a_day_that_is_over_or_a_newer_version_then_it_is_told() -> None:
    old = hit(1, "Travel costs up to 80 euros a day are paid.", title="Travel policy v2", valid_until="2025-12-31")
    new = hit(2, "Travel is by train.", title="Travel policy v3")
    asked = "What travel costs are paid?"
    assert stale_line(asked, old) == "Out of date: [1] (it held until 2025-12-31)."
    assert stale_line(asked, old.but(valid_until=None), new) == (
        "Out of date: [1] (there is a newer version). Newer: [2]."
    )


def test_given_what_only_looks_old_then_nothing_is_said() -> None:
    text = "Travel costs up to 80 euros a day are paid."
    other = hit(2, "MySQL replaces nothing here, and was superseded by nobody.", title="Databases of travel")
    asked = "What travel costs are paid?"
    assert codes(asked, hit(1, text, title="Travel policy v3"), hit(2, "x", title="Travel policy v2")) == ()
    assert codes(asked, hit(1, text, title="Travel", valid_until="2027-01-01"), other) == ()
    assert codes("What does travel policy v2 pay?", hit(1, text, title="Travel policy v2"),
                 hit(2, "Trains.", title="Travel policy v3")) == ()  # fmt: skip


def test_given_a_title_that_only_begins_the_title_of_what_was_replaced_then_its_page_is_not_out_of_date() -> None:
    new = hit(2, "取代：白鹭医院探视规定（2022）\n探视时间为下午3时至7时。", title="白鹭医院探视规定（2025）")
    for title in ("白鹭医院", "白鹭医院探视规定（附件）"):
        assert codes("探视时间是几点？", hit(1, "白鹭医院有探视时间。", title=title), new) == ()
    assert codes("探视时间是几点？", hit(1, "探视时间为下午2时。", title="白鹭医院探视规定（2022）"), new) == (
        "stale_source",
    )
    tariff = hit(2, "Supersedes: Water tariff of 2023.", title="Water tariff of 2025")
    assert codes("What does water cost?", hit(1, "Water costs 2 euros.", title="Water tariff"), tariff) == ()
    old = hit(1, "Water costs 2 euros.", title="Water tariff of 2023")
    assert codes("What does water cost?", old, tariff) == ("stale_source",)


def test_given_the_same_identifier_in_another_folder_then_that_page_is_not_out_of_date() -> None:
    new = hit(2, "Status: accepted, supersedes ADR 007.", title="ADR 014").but(path="a/adr-014.md")
    text = "Orders go over Redis Streams."
    asked = "Where do orders go?"
    assert codes(asked, hit(1, text, title="ADR 007: Orders").but(path="a/adr-007.md"), new) == ("stale_source",)
    assert codes(asked, hit(1, text, title="ADR 007: Orders").but(path="b/adr-007.md"), new) == ()


def test_given_several_passages_of_a_page_that_is_out_of_date_then_it_is_told_once() -> None:
    old = [
        hit(n, f"The archive of Kestrel has hall {n}.", superseded="Superseded by B").but(doc_id="d") for n in (1, 2)
    ]
    assert answered("Which halls does the archive of Kestrel have?", old).text.count("Out of date") == 1


def test_given_nothing_relevant_then_its_code_is_there() -> None:
    assert codes("Who paints the moon violet?", hit(1, "Redis keeps streams in order.")) == ("nothing_relevant",)
    assert verdicts_of(Summary(), "nothing relevant") == ("nothing_relevant",)
    assert verdicts_of(Summary(), "no retrieval needed") == ("no_retrieval",)
