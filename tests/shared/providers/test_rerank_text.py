"""Terms, shingles and sentences in both languages.

Long chunks are windowed, not cut.
"""

from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import assume, example, given
from hypothesis import strategies as st

from shared.language.sentences import BlockKind, sentence_spans, sentences
from shared.language.text import fold, is_cjk_text, shingles, terms
from shared.models import Hit
from shared.providers.rerankers.scoring import document_windows, fitting, spans, width, windows


def test_terms_given_english_then_stop_words_go_and_forms_meet() -> None:
    assert terms("Which companies' increased releases weren't running?")[:3] == ["company", "increas", "releas"]
    assert terms("running runs") == terms("run running")
    assert terms("caches caching cached") == ["cach"] * 3
    assert terms("Jähn's 3.5 GB ＡＢＣ") == ["jahn", "3.5", "gb", "abc"]
    assert terms("what is the") == []


def test_terms_given_chinese_then_function_words_go_and_pairs_remain() -> None:
    assert terms("高豆莫是哪个部落的首领？") == ["高豆", "豆莫", "部落", "首领"]
    assert terms("Redis 和 RabbitMQ 有什么区别") == ["redis", "rabbitmq", "区别"]
    assert terms("目的地") == ["目的", "的地"]


def test_shingles_given_short_text_then_one_and_given_none_then_none() -> None:
    assert shingles("One two", 3) == {"one two"}
    assert shingles("one two three four", 3) == {"one two three", "two three four"}
    assert shingles("缓存雪崩", 3) == {"缓 存 雪", "存 雪 崩"}
    assert shingles(" ...", 3) == frozenset()


def test_language_given_mixed_text_then_the_main_one_counts() -> None:
    assert is_cjk_text("如何优化 PostgreSQL 的查询性能")
    assert not is_cjk_text("How do we say 缓存 in English?")
    assert not is_cjk_text("")


def test_sentences_given_dots_inside_then_no_break() -> None:
    text = "It costs 3.5 units, e.g. Foo and J. R. Smith in the U.S. Army. Next one! 中文句子。还有吗？是的"
    assert sentences(text) == [
        "It costs 3.5 units, e.g. Foo and J. R. Smith in the U.S. Army.", "Next one!", "中文句子。", "还有吗？", "是的",
    ]  # fmt: skip


def test_sentences_given_markdown_then_fences_tables_and_headings_stay_whole() -> None:
    text = "# Head. Line\n\n- one. Two\n  goes on.\n\n~~~py\na = 1. B\n\nc\n~~~\n| a. B | c |\n|--|--|\n> quoted. Now."
    found = [(span.kind, text[span.start : span.end]) for span in sentence_spans(text)]
    assert found == [
        (BlockKind.HEADING, "# Head. Line"),
        (BlockKind.PROSE, "one."),
        (BlockKind.PROSE, "Two\n  goes on."),
        (BlockKind.FENCE, "~~~py\na = 1. B\n\nc\n~~~"),
        (BlockKind.TABLE, "| a. B | c |\n|--|--|"),
        (BlockKind.PROSE, "quoted."),
        (BlockKind.PROSE, "Now."),
    ]


@given(st.text(alphabet="ab .!?。！\n`~#-|>*中1)", max_size=200))
@example("..中")
@example("a\n...b. 中")
def test_sentences_given_any_text_then_spans_are_in_order_and_nothing_is_lost(text: str) -> None:
    assume(not re.search(r"^ *\.\. ", text, re.MULTILINE))  # a comment of reStructuredText, which nobody is shown
    at = 0
    for span in sentence_spans(text):
        assert at <= span.start < span.end
        at = span.end
    kept = "".join(sentences(text))
    assert [c for c in kept if c in "ab中"] == [c for c in text if c in "ab中"]


@given(st.text(max_size=200))
def test_text_given_anything_then_nothing_raises_and_folding_is_stable(text: str) -> None:
    assert terms(text) == terms(fold(text)) or not text.isascii()
    shingles(text, 3)
    sentences(text)


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
