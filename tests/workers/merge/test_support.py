"""What each sentence of an answer rests on: the source's own characters, whoever wrote the sentence."""

from __future__ import annotations

import pytest

from shared.models import MergedHit, Summary
from shared.models.answer import ReasoningStep
from shared.models.enumeration import ListRow, ListTable
from shared.models.support import Support
from shared.settings.sections import EnumerationAggregator, SimpleAggregator
from tests.fakes.findings import Scripted, found, hit
from workers.merge.aggregators.simple import enumeration, simple
from workers.merge.citations import citation
from workers.merge.findings import Aggregated
from workers.merge.support import with_support
from workers.merge.verdicts import with_verdicts

HITS = [
    hit(
        1,
        "# Relay\n\nThe relay was built in **2019** by Ada Byrne. It keeps events for 30 days.",
        title="Relay",
        start=0,
    ),
    hit(2, "```sh\nrelay drain --all\nrelay stop\n```\n\nDrain the relay before it stops.", title="Draining"),
    hit(3, "中继由沈若溪在2019年设计。事件保留30天。", title="中继", start=0),
]


def _held(text: str, *, hits: list[MergedHit] = HITS) -> list[tuple[str, Support, str]]:
    made = with_support(Aggregated(summary=Summary(text=text, kind="extractive")), hits)
    report = made.summary.support
    assert report is not None
    return [(text[one.start : one.end], one.support, one.kind) for one in report.spans]


@pytest.mark.parametrize("question", ["When was the relay built?", "中继是哪一年设计的？"])
def test_given_an_extract_then_each_quote_equals_the_characters_at_its_place(question: str) -> None:
    made = simple(found(question, [], HITS), SimpleAggregator())
    whole = with_support(made, HITS)
    report = whole.summary.support
    assert report is not None
    assert report.supported == report.sentences > 0
    for sentence in report.spans:
        for quote in sentence.quotes:
            assert HITS[quote.number - 1].text[quote.start : quote.end] == quote.text
    for cited in whole.summary.citations:
        source = HITS[cited.number - 1]
        assert source.text[cited.start : cited.end] == cited.quote
        assert (cited.doc_id, cited.score) == (source.doc_id, source.score)


def test_given_markup_in_the_source_then_the_quote_is_the_source_and_not_what_is_shown() -> None:
    hits = [HITS[0].but(start=100)]
    made = with_support(Aggregated(summary=Summary(text="The relay was built in 2019 by Ada Byrne. [1]")), hits)
    assert made.summary.support is not None
    quote = made.summary.support.spans[0].quotes[0]
    assert (quote.text, quote.start, quote.end) == ("The relay was built in **2019** by Ada Byrne.", 109, 154)


def test_given_a_block_of_code_then_it_is_one_sentence_with_the_citation_below_it() -> None:
    text = "```sh\nrelay drain --all\nrelay stop\n```\n[2]\nDrain the relay before it stops. [2]"
    first, second = _held(text)
    assert first == (text.partition("\nDrain")[0], Support.SUPPORTED, "quote")
    assert second[1:] == (Support.SUPPORTED, "quote")


def test_given_a_text_of_a_plugin_then_what_its_sources_do_not_say_is_told() -> None:
    text = "### Relay\nAda Byrne built the relay in 2019. [1]\nIt keeps events for 90 days. [1]\n中继由王伟设计。[3]"
    assert [state for _, state, _ in _held(text)] == [
        Support.NOTHING, Support.SUPPORTED, Support.UNSUPPORTED, Support.UNSUPPORTED
    ]  # fmt: skip
    assert _held(text)[2][2] == "number"


def test_given_steps_then_their_sentences_have_quotes_too() -> None:
    step = ReasoningStep(
        number=1, kind="fact", node_id="0.1", facet="core", question="?", text="It keeps events for 30 days. [1]"
    )
    made = with_support(Aggregated(summary=Summary(), steps=(step,)), HITS)
    assert [one.quotes[0].text for one in made.steps[0].spans] == ["It keeps events for 30 days."]


def test_given_a_list_then_each_row_has_the_sentence_of_its_document() -> None:
    rows = tuple(
        ListRow(doc_id=f"d{n}", title=f"T{n}", path=f"{n}.md", uri="", sentence=f"Row {n} says so.") for n in (1, 2)
    )
    table = ListTable(understood="notes", matched=2, scanned=2, planned=2, rows=rows)
    made = with_support(enumeration(found("List all notes", [], HITS, table=table), EnumerationAggregator()), HITS)
    report = made.summary.support
    assert report is not None
    assert [(q.number, q.text) for one in report.spans for q in one.quotes] == [
        (1, "Row 1 says so."),
        (2, "Row 2 says so."),
    ]
    assert report.supported == report.sentences == 3


def test_given_a_list_with_unread_words_then_no_count_is_a_claim_and_what_was_searched_stands_below() -> None:
    rows = tuple(ListRow(doc_id=f"d{n}", title=f"T{n}", path=f"{n}.md", uri="", sentence=f"Row {n}.") for n in range(9))
    table = ListTable(understood="notes", unread=("grumpy",), matched=9, scanned=9, planned=9, rows=rows)
    asked = "When was the relay built?"
    made = with_support(enumeration(found(asked, [], HITS, table=table), EnumerationAggregator()), HITS)
    report, text = made.summary.support, made.summary.text
    assert report is not None
    assert text.startswith("This list is not certain. Not understood, so no condition of it: grumpy.")
    assert {q.number for one in report.spans for q in one.quotes} <= {one.number for one in made.summary.citations}
    assert with_verdicts(made.summary, HITS, asked, "2026-11-24").text == text
    assert text.index("A search for the whole question") < text.index("built in 2019") < text.index("[1]")
    assert report.spans[0].support is Support.NOTHING
    assert report.spans[-1].quotes[0].number == made.summary.citations[0].number == 1


def _summary(reply: str, **fields: object) -> tuple[Summary, tuple[str, ...]]:
    made = with_support(
        simple(found("When was the relay built?", [], HITS, llm=Scripted(reply), timeout_s=10, **fields),
               SimpleAggregator()), HITS,
    )  # fmt: skip
    return made.summary, made.warnings


def test_given_an_llm_then_each_of_its_sentences_has_the_passage_that_says_it() -> None:
    summary, _ = _summary("The relay was built in 2019 [1]. It keeps events for 30 days [1].")
    assert summary.support is not None
    assert [one.quotes[0].text for one in summary.support.spans] == [
        "The relay was built in **2019** by Ada Byrne.",
        "It keeps events for 30 days.",
    ]


def test_given_mark_then_what_no_source_says_stays_with_words_that_say_so() -> None:
    lie = "It was built on Mars [1]. The relay was built in 2019 [1]. 中继由王伟设计[3]。"
    removed, _ = _summary(lie)
    assert (removed.text, removed.kind) == ("The relay was built in 2019 [1].", "llm")
    marked, warnings = _summary(lie, mark_unsupported=True)
    assert marked.text == (
        "It was built on Mars [1]. (not in its sources) The relay was built in 2019 [1]. "
        "中继由王伟设计[3]。（来源中没有）"
    )
    assert marked.support is not None
    assert (marked.support.supported, marked.support.unsupported, marked.support.removed) == (1, 2, ())
    assert [one.quotes for one in marked.support.spans if one.support is Support.UNSUPPORTED] == [(), ()]
    assert warnings == ("2 sentence(s) of the summary are marked: their sources do not say them.",)


@pytest.mark.parametrize(
    ("path", "fields", "place"),
    [
        ("r/a.docx", {"heading": "Care > Oil"}, "Care > Oil"),
        ("r/a.docx", {}, ""),
        ("r/a.docx", {"heading": "Care", "places": ((0, "p. 3"),)}, "p. 3"),
        ("r/a.eml", {}, 'message "Pumps"'),
        ("r/a.mbox#1@b", {}, 'message "Pumps"'),
        ("r/a.md", {"heading": "Care"}, ""),
    ],
)
def test_given_a_source_without_pages_when_cited_then_its_heading_or_its_subject_is_the_place(
    path: str, fields: dict[str, object], place: str
) -> None:
    source = hit(1, "Oil the pump.", title="Pumps").but(path=path, **fields)
    found = citation(1, source, "Oil the pump.")
    assert (found.place, found.where and found.where.page) == (place, 3 if place == "p. 3" else None)
