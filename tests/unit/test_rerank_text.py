"""Terms, shingles and sentences in both languages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shared.language.sentences import BlockKind, sentence_spans, sentences
from shared.language.text import fold, is_cjk_text, shingles, terms


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
def test_sentences_given_any_text_then_spans_are_in_order_and_nothing_is_lost(text: str) -> None:
    at = 0
    for span in sentence_spans(text):
        assert at <= span.start < span.end
        at = span.end
    kept = set("".join(sentences(text)))
    assert all(c in kept for c in text if c in "ab中")


@given(st.text(max_size=200))
def test_text_given_anything_then_nothing_raises_and_folding_is_stable(text: str) -> None:
    assert terms(text) == terms(fold(text)) or not text.isascii()
    shingles(text, 3)
    sentences(text)
