"""One scale for all rerankers, and the verdict "nothing relevant"."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.models import Hit
from shared.providers.rerankers import NOTHING_RELEVANT, GuardedReranker, Reranked, nothing_relevant
from shared.providers.rerankers.base import with_score
from shared.providers.rerankers.calibration import (
    ServerScale,
    from_lexical,
    from_logits,
    from_marks,
    sigmoid,
)
from shared.providers.rerankers.lexical import LexicalReranker, lexical_scores


def hit(chunk_id: str, text: str = "x", score: float = 1.0) -> Hit:
    return Hit(chunk_id=chunk_id, doc_id="d", path="p", title="", text=text, score=score)


def scored(*scores: float) -> Reranked:
    return Reranked(hits=tuple(with_score(hit(str(at)), score, score) for at, score in enumerate(scores)), reranker="m")


def test_server_given_probabilities_then_they_stay_and_rounding_is_clipped() -> None:
    assert ServerScale()([1.0000001, 0.4, -0.0000001]) == ([1.0, 0.4, 0.0], "")


def test_server_given_one_score_outside_then_logits_from_then_on() -> None:
    scale = ServerScale()
    assert scale([0.9, 0.2]) == ([0.9, 0.2], "")
    assert scale([3.0, -7.5]) == ([sigmoid(3.0), sigmoid(-7.5)], "logits")
    assert scale([0.9, 0.2]) == ([sigmoid(0.9), sigmoid(0.2)], "logits")


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=20))
def test_maps_given_any_scores_then_0_to_1_and_never_another_order(raw: list[float]) -> None:
    raw.sort()
    for scale in (ServerScale(), from_logits, from_lexical):
        scores = scale(raw).scores
        assert all(0 <= score <= 1 for score in scores)
        assert scores == sorted(scores)


def test_maps_worked_out_by_hand() -> None:
    assert from_marks([10, 7, 0]).scores == [1.0, 0.7, 0.0]
    assert from_logits([0.0]).scores == [0.5]
    assert from_lexical([9 / 17]).scores == [pytest.approx(0.5)]
    assert math.isnan(sigmoid(math.nan))


@pytest.mark.parametrize(("least", "nothing"), [(0.0, False), (0.3, False), (0.31, True)])
def test_verdict_given_a_best_score_of_0_3_then_it_depends_on_the_setting(least: float, nothing: bool) -> None:
    assert nothing_relevant(scored(0.3, 0.1), least) is nothing


def test_verdict_given_hits_that_were_not_scored_then_none_is_passed() -> None:
    """A reranker that failed, or that left a document out, has not seen that nothing is relevant."""
    assert not nothing_relevant(Reranked(hits=(hit("a", score=0.01),), reranker="none (m failed)"), 0.5)
    partly = Reranked(hits=(*scored(0.1).hits, hit("b", score=0.0)), reranker="m")
    assert not nothing_relevant(partly, 0.5)


def test_verdict_given_no_hits_then_nothing_is_relevant() -> None:
    assert nothing_relevant(Reranked(reranker="m"), 0.1)
    assert GuardedReranker(LexicalReranker(), 0.1).rerank("q", [], 1).verdict == NOTHING_RELEVANT


def lexical(min_relevance: float) -> GuardedReranker:
    return GuardedReranker(LexicalReranker(), min_relevance)


CORPUS: Sequence[Hit] = [
    hit("a", "Postgres autovacuum runs when dead tuples pass a threshold.", 2.0),
    hit("b", "Redis evicts keys with allkeys-lru when maxmemory is reached.", 1.5),
    hit("c", "缓存雪崩：大量键同时过期，数据库压力骤增。", 1.0),
]


@pytest.mark.parametrize(
    ("question", "verdict"),
    [
        ("Which keys does Redis evict when maxmemory is reached?", None),
        ("缓存雪崩是什么？", None),
        ("Who won the bicycle race through the mountains of Tuscany?", NOTHING_RELEVANT),
        ("京都的红叶什么时候最好看？", NOTHING_RELEVANT),
    ],
)
def test_lexical_verdict_at_the_suggested_threshold(question: str, verdict: str | None) -> None:
    ranked = lexical(0.1).rerank(question, CORPUS, 1)
    assert ranked.verdict == verdict
    assert len(ranked.hits) == 3


def test_lexical_given_calibration_then_raw_fused_and_new_score_are_all_kept_in_the_same_order() -> None:
    raw = lexical_scores("Redis evict keys", CORPUS)
    plain = sorted(zip(raw, CORPUS, strict=True), key=lambda scored: -scored[0])
    mapped = lexical(0.0).rerank("Redis evict keys", CORPUS, 1)
    assert [h.chunk_id for h in mapped.hits] == [h.chunk_id for _, h in plain]
    for new, (score, old) in zip(mapped.hits, plain, strict=True):
        assert new.parts["rerank_raw"] == score
        assert new.parts["fused"] == old.score
        assert new.score == new.parts["rerank"] == from_lexical([score]).scores[0]
