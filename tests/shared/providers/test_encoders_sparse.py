"""BM25 tokens of questions and passages meet, in English, Chinese and code."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from shared.errors import InputError
from shared.providers.encoders import Bm25Encoder, SparseVector

ENCODER = Bm25Encoder(100.0)


def shared_tokens(query: str, passage: str) -> int:
    return len(set(ENCODER.encode_query(query).indices) & set(ENCODER.encode_passage(passage).indices))


@pytest.mark.parametrize(
    ("query", "passage"),
    [
        ("databases", "The database runs."),
        ("Running", "it runs at night"),
        ("持久化", "Redis 持久化有两种方式:RDB 与 AOF"),
        ("如何优化数据库查询性能?", "数据库的查询计划"),
        ("Redis 持久化 AOF", "AOF 日志"),
        ("Redis 持久化 AOF", "Redis persistence"),
        ("404", "error 404 was returned"),
        ("2026-05-11", "restore drill of 2026-05-11"),
        ("user name", "def getUserName(self):"),
        ("getUserName", "the name of the user"),
        ("max_total_leaves", "maxTotalLeaves = 12"),
        ("cafe", "Café"),
        ("Redis 404", "Redis 返回 404"),
        ("HTTP2", "the http2 server"),
    ],
)
def test_given_a_question_when_the_passage_answers_it_then_tokens_meet(query: str, passage: str) -> None:
    assert shared_tokens(query, passage) > 0


@pytest.mark.parametrize(
    ("query", "passage"), [("redis", "kafka"), ("缓存", "数据库"), ("the of", "of the"), ("的", "的")]
)
def test_given_other_words_or_only_stop_words_then_nothing_meets(query: str, passage: str) -> None:
    assert shared_tokens(query, passage) == 0


def test_given_simplified_and_traditional_then_the_segments_differ() -> None:
    """A known limit, told in the encoder's docstring."""
    assert shared_tokens("备份恢复", "備份恢復") == 0


@pytest.mark.parametrize("text", ["", "   \n", "the", "!?。", "\x00"])
def test_given_text_without_words_then_the_vector_is_empty(text: str) -> None:
    assert ENCODER.encode_query(text) == ENCODER.encode_passage(text) == SparseVector()
    assert ENCODER.length(text) == 0
    assert not ENCODER.encode_query(text)


def test_given_a_word_once_then_its_weight_is_bm25s() -> None:
    """tf 1, length 1, avg_len 2: 1 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 1 / 2)) = 2.2 / 1.75."""
    [weight] = Bm25Encoder(2.0).encode_passage("redis").values

    assert weight == pytest.approx(2.2 / 1.75, rel=1e-6)


def test_given_a_query_then_every_weight_is_one() -> None:
    assert set(ENCODER.encode_query("Redis Redis 持久化 404 getUserName").values) == {1.0}


def test_given_a_longer_average_then_the_same_passage_weighs_more() -> None:
    short, long = (Bm25Encoder(avg).encode_passage("redis streams and groups") for avg in (2.0, 200.0))

    assert short.indices == long.indices
    assert all(left < right for left, right in zip(short.values, long.values, strict=True))


def test_given_a_text_then_its_length_counts_every_occurrence_without_stop_words() -> None:
    assert ENCODER.length("redis") == 1
    assert ENCODER.length("the redis of redis") == 2
    assert ENCODER.length("redis 404 " * 50) == 100
    assert ENCODER.length("数据库查询") >= 2


@pytest.mark.parametrize("avg_len", [0.0, -1.0, math.nan, math.inf])
def test_given_an_impossible_average_then_one_sentence(avg_len: float) -> None:
    with pytest.raises(InputError, match="avg_len"):
        Bm25Encoder(avg_len)


@given(st.text(max_size=200))
@settings(max_examples=60, deadline=None)
def test_given_any_text_then_query_and_passage_have_the_same_ascending_tokens(text: str) -> None:
    query, passage = ENCODER.encode_query(text), ENCODER.encode_passage(text)

    assert query.indices == passage.indices == tuple(sorted(set(query.indices)))
    assert all(math.isfinite(value) and value > 0 for value in passage.values)


def test_given_half_a_surrogate_pair_then_it_is_replaced_instead_of_failing() -> None:
    assert ENCODER.encode_query("redis \ud800") == ENCODER.encode_query("redis ?")


@pytest.mark.parametrize(("indices", "values"), [((1,), ()), ((2, 1), (1.0, 1.0)), ((1, 1), (1.0, 1.0))])
def test_given_indices_out_of_order_or_without_values_then_no_vector(
    indices: tuple[int, ...], values: tuple[float, ...]
) -> None:
    with pytest.raises(ValidationError):
        SparseVector(indices=indices, values=values)
