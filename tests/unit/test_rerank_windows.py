"""Long chunks are windowed, not cut."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from shared.models import Hit
from shared.rerankers.windows import document_windows, fitting, spans, width, windows


def hit(text: str, title: str = "", heading: str = "") -> Hit:
    return Hit(chunk_id="c", doc_id="d", path="p", title=title, heading=heading, text=text, score=1.0)


@given(st.text(alphabet="ab .\n。数据"), st.integers(4, 40))
def test_windows_given_any_text_then_they_cover_it_in_order_within_the_size(text: str, most: int) -> None:
    found = spans(text, most)
    assert found[0][0] == 0
    assert found[-1][1] == len(text)
    assert all(width(text[start:end]) <= most for start, end in found)
    for (start, end), (next_start, next_end) in pairwise(found):
        assert start < next_start <= end < next_end


def test_windows_given_sentences_then_each_ends_at_one_and_shares_one_with_the_next() -> None:
    text = " ".join(f"This is sentence number {n:02}." for n in range(40))
    pieces = windows(text, 300)
    assert all(piece.rstrip().endswith(".") for piece in pieces)
    assert all(piece.startswith("This") for piece in pieces)
    assert all(after[:27] in before for before, after in pairwise(pieces))


def test_windows_given_chinese_then_half_as_many_characters_cut_at_the_full_stop() -> None:
    text = "数据库的慢查询要看执行计划。" * 30
    pieces = windows(text, 200)
    assert all(len(piece) <= 100 and piece.endswith("。") for piece in pieces)
    assert width("a数") == 3


def test_windows_given_no_place_to_cut_then_it_is_cut_anyway() -> None:
    pieces = windows("x" * 1000, 300)
    assert all(len(piece) <= 300 for piece in pieces)
    assert sum(map(len, pieces)) > 1000


def test_document_given_a_short_chunk_then_it_is_one_text() -> None:
    short = hit("text", "Title", "Heading")
    assert document_windows(short, 200) == [short.full_text] == ["Title\nHeading\ntext"]


def test_document_given_a_long_chunk_then_each_window_begins_with_title_and_heading() -> None:
    long = hit("A word or two. " * 100, "Title", "Heading")
    pieces = document_windows(long, 400)
    assert len(pieces) > 3
    assert all(piece.startswith("Title\nHeading\nA word") and len(piece) <= 400 for piece in pieces)


def test_document_given_a_title_longer_than_a_window_then_nothing_of_it_is_lost() -> None:
    pieces = document_windows(hit("end", "t" * 990 + " last"), 300)
    assert all(len(piece) <= 300 for piece in pieces)
    assert "last\nend" in pieces[-1]


def test_fitting_given_more_tokens_than_room_then_pieces_that_fit() -> None:
    text = "one two three four. " * 100
    pieces = fitting(text, lambda part: len(part.split()), 50)
    assert all(len(piece.split()) <= 50 for piece in pieces)
    assert fitting(text, lambda part: len(part.split()), 400) == [text]
    assert fitting("short", lambda _: 99, 0) == ["short"]
