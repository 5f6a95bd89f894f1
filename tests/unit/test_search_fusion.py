"""Fusion and shaping of one query's results, with sums worked out by hand."""

from __future__ import annotations

import pytest

from shared.models import Hit
from workers.search.fusion import linear_fusion, reciprocal_rank_fusion
from workers.search.shape import boost_sources, thin_out


def hit(chunk_id: str, score: float = 1.0, doc: str = "d", path: str = "a.md", text: str | None = None) -> Hit:
    return Hit(chunk_id=chunk_id, doc_id=doc, path=path, title="t", text=text or chunk_id, score=score)


def test_rrf_sums_weight_over_k_plus_rank() -> None:
    """given two arms / then a = 1/61 + 2/62, b = 1/62 + 2/61, c = 1/63."""
    arms = {"bm25": [("a", 9.0), ("b", 8.0), ("c", 7.0)], "dense": [("b", 0.9), ("a", 0.8)]}
    fused = reciprocal_rank_fusion(arms, {"dense": 2.0}, k=60)
    assert [name for name, _ in fused] == ["b", "a", "c"]
    assert [score for _, score in fused] == pytest.approx([1 / 62 + 2 / 61, 1 / 61 + 2 / 62, 1 / 63])


def test_rrf_breaks_ties_by_id() -> None:
    assert reciprocal_rank_fusion({"x": [("b", 1.0)], "y": [("a", 1.0)]}, {}, k=60)[0][0] == "a"


def test_linear_fusion_normalises_each_arm_by_its_best() -> None:
    """given bm25 10 and 5, dense 0.8 and 0.4 / then a = 0.7*1 + 0.3*0.5, b = 0.7*0.5 + 0.3*1."""
    arms = {"bm25": [("a", 10.0), ("b", 5.0)], "dense": [("b", 0.8), ("a", 0.4)]}
    fused = dict(linear_fusion(arms, {"bm25": 0.7, "dense": 0.3}))
    assert fused == pytest.approx({"a": 0.85, "b": 0.65})


def test_linear_fusion_of_scores_at_or_below_zero_divides_by_nothing() -> None:
    assert linear_fusion({"dense": [("a", 0.0), ("b", -0.2)]}, {}) == [("a", 0.0), ("b", 0.0)]


def test_the_longest_prefix_boosts_a_source() -> None:
    hits = [hit("a", 1.0, path="archive/old.md"), hit("b", 0.9, path="docs/guide/x.md"), hit("c", 0.8, path="misc.md")]
    boosted = boost_sources(hits, {"docs/": 1.1, "docs/guide/": 2.0, "archive/": 0.5})
    assert [(h.chunk_id, round(h.score, 3)) for h in boosted] == [("b", 1.8), ("c", 0.8), ("a", 0.5)]
    assert boosted[0].parts["source_boost"] == 2.0


def test_no_document_fills_the_list_and_no_text_stands_twice() -> None:
    hits = [hit("a"), hit("b"), hit("c"), hit("d", doc="e"), hit("e", doc="f", text="d")]
    assert [h.chunk_id for h in thin_out(hits, per_doc=2)] == ["a", "b", "d"]
