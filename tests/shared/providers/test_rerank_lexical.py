"""The lexical reranker's scores, and what happens when any reranker fails."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import PermanentError, RamifyError, ReplyError, TransientError
from shared.models import Hit
from shared.providers.rerankers.base import Reranked, score_parts
from shared.providers.rerankers.guarded import GuardedReranker
from shared.providers.rerankers.lexical import LexicalReranker, candidate_idf, lexical_scores


def hit(chunk_id: str, text: str, score: float = 1.0, title: str = "", heading: str = "") -> Hit:
    return Hit(chunk_id=chunk_id, doc_id="d", path="p", title=title, heading=heading, text=text, score=score)


def test_scores_given_one_candidate_with_every_term_then_it_wins_over_a_better_fused_one() -> None:
    hits = [hit("a", "eviction in general", 1.0), hit("b", "redis cache eviction policy", 0.9)]
    ranked = LexicalReranker().rerank("redis cache eviction policy", hits, 1)
    assert [h.chunk_id for h in ranked.hits] == ["b", "a"]


def test_scores_worked_out_by_hand() -> None:
    """Two candidates, terms x (in one) and y (in both): idf(x) = ln(1 + 1.5/1.5) = ln 2, idf(y) = ln(1 + 0.5/2.5)."""
    x, y = math.log(2), math.log(1.2)
    first, second = lexical_scores("xx yy", [hit("a", "xx yy", 2.0), hit("b", "yy", 1.0)])
    assert first == pytest.approx((2 * 1 + 1 + 0 + 0 + 1) / 6)
    assert second == pytest.approx((2 * 0.5 + y / (x + y)) / 6)
    assert candidate_idf(["xx"], [frozenset(["xx"]), frozenset()]) == {"xx": pytest.approx(x)}


def test_scores_given_title_in_the_question_then_it_counts_and_heading_too() -> None:
    plain, titled, headed = lexical_scores(
        "who wrote War of Knives",
        [hit("a", "text"), hit("b", "text", title="War of Knives"), hit("c", "text", heading="Knives")],
    )
    assert titled > headed > plain


def test_scores_given_chinese_then_the_chunk_with_the_asked_words_wins() -> None:
    hits = [hit("a", "缓存的淘汰策略", 1.0), hit("b", "数据库的慢查询要看执行计划", 0.95)]
    assert LexicalReranker().rerank("如何优化数据库慢查询？", hits, 1).hits[0].chunk_id == "b"


def test_scores_given_stop_words_only_then_the_fused_order_stays() -> None:
    hits = [hit("a", "see three", 3.0), hit("b", "two", 2.0), hit("c", "text", 1.9, title="Three")]
    assert [h.chunk_id for h in LexicalReranker().rerank("what is it?", hits, 1).hits] == ["a", "b", "c"]


def test_scores_given_a_title_that_the_best_hit_names_then_it_passes_a_better_fused_one() -> None:
    hits = [
        hit("film", "The Polish film Ida was directed by Pawel Pawlikowski", 1.0, title="Ida"),
        hit("other", "A festival shows films of a director", 0.6, title="Festival"),
        hit("man", "He was born in Warsaw in 1957", 0.5, title="Pawel Pawlikowski"),
    ]
    ranked = LexicalReranker().rerank("Where was the director of the film Ida born?", hits, 1).hits
    assert [h.chunk_id for h in ranked] == ["film", "man", "other"]


def test_scores_given_a_mention_then_worked_out_by_hand() -> None:
    """The question names "aa" (1); the best hit names "bb" (1), the second best names "cc" (1/2); no fused score."""
    hits = [hit("a", "bb", 0.0, title="aa"), hit("b", "cc", 0.0, title="bb"), hit("c", "zz", 0.0, title="cc")]
    assert lexical_scores("aa", hits) == pytest.approx([(1 + 1 + 1) / 6, 1 / 6, 0.5 / 6])


def test_a_reranked_hit_names_what_its_score_is_made_of() -> None:
    """Two hits, terms xx (in both) and yy (in one): idf 0.1823 and 0.6931; the pair xx yy is in the first alone."""
    first, second = LexicalReranker().rerank("xx yy", [hit("a", "xx yy", 2.0), hit("b", "xx", 1.0)], 1).hits
    made_of = {"raw": 0.666667, "fused": 1.0, "words": 1.0, "lead": 0.0, "pairs": 1.0, "title": 0.0}  # 4 / 6
    assert score_parts(first) == pytest.approx(made_of, abs=1e-6)
    assert first.score == pytest.approx(0.911600, abs=1e-6)  # 1 / (1 + e^-(17 * 2/3 - 9))
    raw = {"raw": 0.201376, "fused": 0.5, "words": 0.208256, "lead": 0.0, "pairs": 0.0, "title": 0.0}  # 1.208256 / 6
    assert score_parts(second) == pytest.approx(raw, abs=1e-6)
    assert score_parts(second.model_copy(update={"score": 0.3})) == {}, "a score that is no reranker's"


def test_scores_given_chunks_of_one_title_then_they_do_not_name_each_other() -> None:
    hits = [hit("a", "Redis and its cache", 1.0, title="Redis"), hit("b", "more of Redis", 0.0, title="Redis")]
    assert lexical_scores("cache", hits)[1] == 0


def test_scores_given_a_chinese_title_in_the_best_hit_then_it_counts() -> None:
    named, other = (
        lexical_scores("谁写了红楼梦", [hit("a", "红楼梦是曹雪芹写的", 1.0), hit("b", "生于南京", 0.1, title=title)])[1]
        for title in ("曹雪芹", "吴承恩")
    )
    assert named > other


@given(
    st.lists(st.tuples(st.text(max_size=30), st.floats(-1e6, 1e6)), max_size=8),
    st.text(max_size=30),
)
def test_scores_given_anything_then_they_lie_between_0_and_1(found: list[tuple[str, float]], query: str) -> None:
    hits = [hit(str(i), text, score) for i, (text, score) in enumerate(found)]
    assert all(0 <= score <= 1 + 1e-9 for score in lexical_scores(query, hits))


class Failing:
    name = "endpoint:m"

    def __init__(self, error: RamifyError | None = None, score: float = 0.0) -> None:
        self.error, self.score = error, score

    def rerank(self, query: str, hits: Sequence[Hit], timeout_s: float) -> Reranked:
        if self.error:
            raise self.error
        return Reranked(hits=tuple(h.model_copy(update={"score": self.score}) for h in hits), reranker=self.name)


@pytest.mark.parametrize(
    "error", [TransientError("it is busy."), PermanentError("bad key"), ReplyError("index 7 of 2")]
)
def test_guard_given_a_failure_then_fused_order_warning_and_calls(error: RamifyError) -> None:
    error.calls = 3
    hits = [hit("a", "x", 2.0), hit("b", "y", 1.0)]
    ranked = GuardedReranker(Failing(error)).rerank("q", hits, 1)
    assert [(h.chunk_id, h.score, h.parts["fused"]) for h in ranked.hits] == [("a", 2.0, 2.0), ("b", 1.0, 1.0)]
    assert ranked.reranker == "none (endpoint:m failed)"
    assert ranked.calls == 3
    (warning,) = ranked.warnings
    assert "endpoint:m failed" in warning
    assert str(error).rstrip(".") in warning
    assert not warning.endswith("..")


@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_guard_given_a_score_that_is_no_number_then_fused_order(score: float) -> None:
    ranked = GuardedReranker(Failing(score=score)).rerank("q", [hit("a", "x", 2.0)], 1)
    assert ranked.hits[0].score == 2.0
    assert ranked.warnings


def test_guard_given_no_time_then_the_reranker_is_not_asked() -> None:
    ranked = GuardedReranker(LexicalReranker()).rerank("q", [hit("a", "x")], 0)
    assert ranked.reranker == "none (lexical:v2 failed)"


def test_guard_given_no_hits_then_nothing_is_asked() -> None:
    assert GuardedReranker(Failing(PermanentError("asked"))).rerank("q", [], 1) == Reranked(reranker="endpoint:m")


def test_words_are_weighed_in_the_order_of_the_question_whatever_order_sets_have_in_this_process() -> None:
    asked = tuple(f"word{number}" for number in range(20))
    assert tuple(candidate_idf((*asked, *asked), [frozenset(asked), frozenset(asked[:3])])) == asked
