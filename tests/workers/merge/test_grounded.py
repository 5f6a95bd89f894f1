"""What becomes of the sentences of a summary: kept, given another source, cut, removed, each with its place."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared.models import MergedHit
from workers.merge.grounded import cited_in, grounded, held_sentence

_TEXTS = (
    "The Beacon relay was designed by Ada Byrne in 2019. It stores up to 5 million events for 30 days.",
    "Ada Byrne handed the relay over to Tom Reyes in March 2021, after the audit.",
    "更换之后，误报减少了40%。探头由沈若溪更换。",
)
SOURCES = tuple(
    MergedHit(chunk_id=f"c{n}", doc_id="d", path=f"{n}.md", title=f"Page {n}", text=text, score=1)
    for n, text in enumerate(_TEXTS, start=1)
)


def _removed(text: str) -> list[tuple[str, str]]:
    return [(one.text, one.kind) for one in grounded(text, SOURCES).report.removed]


def test_given_supported_sentences_then_the_text_stays_as_it_is() -> None:
    text = "# Beacon\n\nIt was designed by Ada Byrne [1].\n- It stores events for 30 days. [1]\n\n误报减少了40%[3]。"
    found = grounded(text, SOURCES)
    assert found.text == text
    assert (found.report.sentences, found.report.supported, found.report.repaired) == (3, 3, 0)


def test_given_a_small_lie_then_the_sentence_goes_and_its_reason_stays() -> None:
    text = (
        "It was designed in 2018 [1]. Tom Reyes handed the relay over to Ada Byrne in March 2021, after the audit [2]. "
        "误报增加了40%[3]。 It stores at least 5 million events [1]. The relay was handed over before the audit [2]. "
        "It stores events for 30 hours [1]. 误报减少到40%[3]。 探头不是由沈若溪更换的[3]。"
    )
    kinds = ["number", "name", "opposed", "quantity", "opposed", "number", "number", "negation"]
    assert [kind for _, kind in _removed(text)] == kinds
    assert grounded(text, SOURCES).text == ""


def test_given_another_source_that_says_it_then_the_citation_moves() -> None:
    found = grounded("Ada Byrne handed the relay over to Tom Reyes [1].", SOURCES)
    assert found.text == "Ada Byrne handed the relay over to Tom Reyes [2]."
    assert (found.report.supported, found.report.repaired) == (0, 1)


def test_given_a_sentence_that_its_source_contradicts_then_no_source_that_says_it_less_exactly_stands_in() -> None:
    texts = (
        "The audit of the Beacon relay ended in May 2021.",
        "In May 2022 there was an audit. It ended; Beacon is a relay.",
    )
    sources = [hit.model_copy(update={"text": text}) for hit, text in zip(SOURCES, texts, strict=False)]
    lie = "The audit of the Beacon relay ended in May 2022 [1]."
    assert grounded(lie, sources).text == ""
    assert grounded(lie, [sources[0], sources[1].model_copy(update={"text": lie[:-5]})]).report.repaired == 1


def test_given_a_part_that_no_source_says_then_it_is_cut_and_told() -> None:
    found = grounded("It stores up to 5 million events for 30 days, and it won three prizes in Oslo [1].", SOURCES)
    assert found.text == "It stores up to 5 million events for 30 days [1]."
    assert "three prizes" in found.report.spans[0].cut


def test_given_a_part_that_no_source_says_then_nothing_is_cut_within_brackets_or_behind_an_if() -> None:
    texts = ("The pump failed (see the log, page 3).", "如果从库一直慢，问题多半在索引。")
    sources = [hit.model_copy(update={"text": text}) for hit, text in zip(SOURCES, texts, strict=False)]
    for lie in ("The pump failed (see the log, page 4) twice [1].", "如果从库一直慢，请供应商更换三块万兆网卡[2]。"):
        assert grounded(lie, sources).text == ""


def test_given_a_sentence_without_a_source_then_it_is_given_one_or_goes() -> None:
    found = grounded("Tom Reyes was handed the relay. Cats fly at night.", SOURCES)
    assert found.text == "Tom Reyes was handed the relay [2]."
    assert [(one.text, one.kind) for one in found.report.removed] == [("Cats fly at night.", "coverage")]


def test_given_what_the_sources_lack_then_that_is_no_claim() -> None:
    text = "The memories do not say who pays. 资料中没有提到费用。"
    found = grounded(text, SOURCES)
    assert (found.text, found.report.sentences) == (text, 0)


def test_given_another_language_than_its_source_then_it_stays_and_is_counted_as_not_checked() -> None:
    found = grounded("False alarms fell by 40 % [3].", SOURCES)
    assert (found.report.sentences, found.report.unchecked, found.report.supported) == (1, 1, 0)
    assert found.report.spans[0].kind == "other language"


def test_given_list_items_when_one_goes_then_its_marker_goes_too() -> None:
    text = "- The relay was designed in 2019 [1].\n- It was sold in 2020 [1].\n- It stores events for 30 days [1].\n"
    found = grounded(text, SOURCES)
    assert found.text == "- The relay was designed in 2019 [1].\n- It stores events for 30 days [1]."
    assert [found.text[one.start : one.end] for one in found.report.spans] == [
        "The relay was designed in 2019 [1].",
        "It stores events for 30 days [1].",
    ]


@example("b。-")
@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab 1.,[]`\n-。，不", max_size=80))
def test_given_any_text_then_spans_are_slices_in_order_and_counts_add_up(text: str) -> None:
    found = grounded("The relay [1]. " + text.replace("[", "("), SOURCES)
    report = found.report
    assert report.sentences == report.supported + report.repaired + report.unchecked + len(report.removed)
    places = [(one.start, one.end) for one in report.spans]
    assert places == sorted(places)
    assert all(found.text[start:end].strip() for start, end in places)


@pytest.mark.parametrize(
    ("body", "numbers"),
    [("`lampctl --status` prints `FLASH_TABLE[2]`. [1]", [1]), ("It says so [7]. [1]", [7, 1])],
)
def test_given_a_number_in_brackets_that_is_no_source_when_held_then_nothing_fails(
    body: str, numbers: list[int]
) -> None:
    assert cited_in(body) == numbers
    assert held_sentence(body, ["`lampctl --status` prints the state of `FLASH_TABLE[2]`."]) is not None
