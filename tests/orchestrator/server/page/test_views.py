"""What pages are made of: sentences and citations of a text, marks in a passage, rows of a tree, two texts."""

from __future__ import annotations

import pytest

from orchestrator.answer_text import Piece, blocks, pieces
from orchestrator.growth import replay
from orchestrator.server.page.comparing import differing
from orchestrator.server.page.forms import form_of, request_fields
from orchestrator.server.page.passages import marked
from orchestrator.server.page.tree_rows import rows_of
from shared.models import Facet, JobEvent, JobRequest, Node
from shared.models.corpus import PassageMark
from shared.models.support import AnswerSentence, Quotation, Support


def test_a_text_is_parted_into_blocks_sentences_and_citations() -> None:
    text = "### Head\nOne says so. [1] Two does not. [2]\n- item [9]"
    first, second = text.index("One"), text.index("Two")
    spans = (
        AnswerSentence(start=first, end=second - 1, support=Support.SUPPORTED),
        AnswerSentence(start=second, end=text.index("\n-"), support=Support.UNSUPPORTED, reason="no source"),
    )
    head, line, item = blocks(text, spans, frozenset({1, 2}))
    assert [head.kind, line.kind, item.kind] == ["heading", "paragraph", "item"]
    assert [sentence.support for sentence in line.sentences] == ["supported", "", "unsupported"]
    assert line.sentences[0].pieces == (Piece("One says so. "), Piece("[1]", 1))
    assert item.sentences[0].pieces == (Piece("item [9]"),), "a number that no citation has is text"
    shown = "".join(piece.text for block in (head, line, item) for one in block.sentences for piece in one.pieces)
    assert shown == "HeadOne says so. [1] Two does not. [2]item [9]"


def test_spans_beyond_the_text_and_over_each_other_lose_no_character() -> None:
    spans = tuple(AnswerSentence(start=start, end=end) for start, end in ((0, 6), (3, 9), (20, 99)))
    (block,) = blocks("one two three four", spans, frozenset())
    assert "".join(piece.text for one in block.sentences for piece in one.pieces) == "one two three four"


def test_pieces_keep_marks_that_are_no_citations() -> None:
    assert pieces("a[1][2]b", frozenset({2})) == (Piece("a[1]"), Piece("[2]", 2), Piece("b"))


def test_a_citation_names_its_sentence_where_that_has_a_quote_of_it() -> None:
    quotes = (Quotation(number=1, text="so"),)
    spans = (AnswerSentence(start=0, end=12, quotes=quotes), AnswerSentence(start=13, end=29, quotes=quotes))
    (line,) = blocks("One [1] [2]. Two and more [1].", spans, frozenset({1, 2}))
    found = [(one.number, one.sentence) for sentence in line.sentences for one in sentence.pieces if one.number]
    assert found == [(1, 0), (2, None), (1, 13)]


def test_marks_are_those_of_the_document() -> None:
    marks = (PassageMark(start=14, end=17), PassageMark(start=10, end=12), PassageMark(start=16, end=99))
    assert list(marked("0123456789", 10, marks)) == [("01", True), ("23", False), ("456", True), ("789", True)]
    assert list(marked("", 0, marks)) == []


def told(number: int, kind: str, **data: str) -> JobEvent:
    return JobEvent(id=f"{1000 + number}-0", type=kind, data=data)


def test_rows_stand_in_the_order_of_the_tree_with_scores_and_times() -> None:
    def node(node_id: str, **more: object) -> str:
        values = {
            "id": node_id,
            "parent_id": node_id.rpartition(".")[0],
            "level": node_id.count("."),
            "facet": Facet.WHY,
        }
        return Node.model_validate({**values, "query": f"why\u202e {node_id}?", **more}).model_dump_json()

    events = [
        told(1, "node", node=node("0.10")), told(2, "node", node=node("0.2", kind="branch")),
        told(3, "node", node=node("0.2.1", depends_on=("0.10",))),
        told(9, "leaf", id="0.10", status="done", hits="3", score="0.25", error=""),
    ]  # fmt: skip
    rows = rows_of(replay("q", events))
    assert [(row.id, row.depth, row.state) for row in rows] == [
        ("0.2", 1, "branch"), ("0.2.1", 2, "waiting"), ("0.10", 1, "done"),
    ]  # fmt: skip
    assert (rows[2].hits, rows[2].score, rows[2].ms) == (3, 0.25, 8)
    assert rows[2].query == "why 0.10?", "nothing hidden"


@pytest.mark.parametrize(
    ("one", "other", "left", "right"),
    [
        ("It holds 3 days.", "It holds 5 days.", ["3"], ["5"]), ("保留三天", "保留五天", ["三"], ["五"]),
        ("", "new", [], ["new"]), ("same", "same", [], []), ("x " * 5000, "y", ["x " * 5000], ["y"]),
    ],
)  # fmt: skip
def test_texts_are_compared_by_words(one: str, other: str, left: list[str], right: list[str]) -> None:
    sides = differing(one, other)
    assert [[piece for piece, only in side if only] for side in sides] == [left, right]
    assert tuple("".join(piece for piece, _ in side) for side in sides) == (one, other)


def test_a_form_becomes_a_request_and_comes_back() -> None:
    form = {
        "question": "Why?", "strategy": "deep", "lane": "batch", "top_n": "7", "summary": "no", "whole": "1",
        "explain": "1",
        "max_calls": "0", "max_cost": "0.5", "deadline_s": "12", "after": "2026-01-01", "tags": "a，b, c",
        "namespace": "n",
        "on_outage": "", "near_symbol": "  ",
    }  # fmt: skip
    request = JobRequest(**request_fields(form))
    assert (request.strategy, request.top_n, request.summary, request.decompose) == ("deep", 7, False, False)
    assert (request.max_calls, request.filters.tags, request.filters.namespace) == (0, ("a", "b", "c"), "n")
    assert JobRequest(**request_fields(form_of(request))) == request
    assert form_of(JobRequest(question="Why?")) == {"question": "Why?"}
