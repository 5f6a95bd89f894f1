"""Which questions a dense model may vote on: by what is declared, by its name, and by what it finds."""

from __future__ import annotations

import pytest

from shared.models import Hit
from workers.search.language import arms_agree, model_reads

EN, ZH = "Which port does Redis listen on?", "如何优化数据库查询性能？"
JA, KO, RU = (
    "データベースを速くするには？",
    "데이터베이스를 어떻게 빠르게 하나요?",
    "Как ускорить запросы к базе данных?",
)


def hits(*scored: tuple[str, float]) -> list[Hit]:
    return [Hit(chunk_id=one, doc_id=one, path="p", title="", text="t", score=score) for one, score in scored]


@pytest.mark.parametrize(
    ("model", "english", "chinese"),
    [
        ("fastembed:all-MiniLM-L6-v2-int8", True, False),
        ("BAAI/bge-small-en-v1.5", True, False),
        ("BAAI/bge-small-zh-v1.5", False, True),
        ("BAAI/bge-m3", True, True),
        ("intfloat/multilingual-e5-large", True, True),
        ("sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2", True, True),
        ("jinaai/jina-embeddings-v2-base-zh", True, True),
        ("fastembed:my-own", True, None),
    ],
)
def test_reads_given_a_model_name_then_what_it_is_known_for(model: str, english: bool, chinese: bool | None) -> None:
    assert model_reads(model, (), EN) is english
    assert model_reads(model, (), ZH) is chinese


@pytest.mark.parametrize(
    ("declared", "read"),
    [
        (("en",), {EN}),
        (("de",), {EN}),
        (("zh",), {ZH}),
        (("zh-CN", "EN"), {EN, ZH}),
        (("ja",), {JA, ZH}),
        (("ko", "ru"), {KO, RU}),
        (("multi",), {EN, ZH, JA, KO, RU}),
    ],
)
def test_reads_given_declared_languages_then_their_scripts(declared: tuple[str, ...], read: set[str]) -> None:
    assert {text for text in (EN, ZH, JA, KO, RU) if model_reads("all-MiniLM-L6-v2", declared, text)} == read


def test_reads_given_an_unknown_model_then_latin_letters_yes_and_others_nobody_knows() -> None:
    assert [model_reads("mine", (), text) for text in (EN, ZH, RU)] == [True, None, None]


def test_reads_given_mixed_scripts_then_the_one_that_most_is_written_in() -> None:
    assert model_reads("mine", ("en",), "Redis AOF rewrite 重写") is True
    assert model_reads("mine", ("en",), "请问 Redis 的持久化机制是怎么实现的？") is False


def test_reads_given_no_letters_then_nothing_stands_against_it() -> None:
    assert model_reads("mine", ("zh",), "404 500 ?") is True


def test_agrees_given_hits_that_bm25_likes_then_yes_and_foreign_ones_no() -> None:
    lexical = hits(*((f"c{n}", 20.0 - n) for n in range(20)))
    assert arms_agree(lexical, hits(("c3", 0.9), ("c1", 0.8), ("x", 0.7), ("c0", 0.6)))
    assert not arms_agree(lexical, hits(("x", 0.9), ("y", 0.8), ("c15", 0.7)))


def test_agrees_worked_out_by_hand() -> None:
    """BM25 10 + 6 + 4 = 20, so 6 is just enough and 4 is not."""
    lexical = hits(("a", 10.0), ("b", 6.0), ("c", 4.0))
    assert arms_agree(lexical, hits(("b", 0.5)))
    assert not arms_agree(lexical, hits(("c", 0.5)))


def test_agrees_given_no_words_in_common_with_the_corpus_then_the_dense_arm_is_all_there_is() -> None:
    assert arms_agree([], hits(("a", 0.5)))


def test_agrees_given_long_lists_then_the_ten_best_of_both_are_held_against_each_other() -> None:
    lexical = hits(*((f"c{n:02}", 1.0) for n in range(40)))
    strangers = [(f"x{n}", 0.9) for n in range(10)]
    assert arms_agree(lexical, hits(*strangers[:7], ("c00", 0.2), ("c01", 0.1), ("c39", 0.1)))
    assert not arms_agree(lexical, hits(*strangers, ("c00", 0.2), ("c01", 0.1), ("c02", 0.1)))
    assert not arms_agree(lexical, hits(("c00", 0.9), ("c01", 0.8))), "2 of 10"
