"""The tree merge: quota, cap, best score, sources, folding; and the root rerank's new order."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.models import Facet, Hit, LeafResult, LeafStatus, MergedPool, Node
from shared.models.hits import Effect, Via
from shared.settings.sections import MultiQuerySettings
from workers.merge.tree import apply_root_rerank, merge_tree, only_original_leaf

LIMITS = MultiQuerySettings()


def hit(chunk_id: str, score: float, text: str = "", vector: tuple[float, ...] = ()) -> Hit:
    return Hit(
        chunk_id=chunk_id, doc_id="d", path="p", title="", text=text or f"only {chunk_id} says this", score=score,
        vector=vector, parts={"fused": 9.0},
    )  # fmt: skip


def leaf(node_id: str, hits: Sequence[Hit], reranker: str = "lexical:v1") -> LeafResult:
    return LeafResult(node_id=node_id, status=LeafStatus.DONE, hits=tuple(hits), reranker=reranker)


def nodes(*node_ids: str, original: str = "0.1") -> dict[str, Node]:
    return {
        one: Node(id=one, level=1, facet=Facet.ORIGINAL if one == original else Facet.HOW, query="q")
        for one in node_ids
    }


def merge(leaves: Sequence[LeafResult], cap: int = 20, limits: MultiQuerySettings = LIMITS) -> MergedPool:
    return merge_tree(leaves, nodes(*(one.node_id for one in leaves)), limits, cap)


def ids(pool: MergedPool) -> list[str]:
    return [one.chunk_id for one in pool.hits]


def test_given_a_chunk_in_two_leaves_then_once_with_best_score_and_both_sources() -> None:
    pool = merge([leaf("0.2", [hit("x", 0.9), hit("a", 0.4)]), leaf("0.1", [hit("b", 0.6), hit("a", 0.5)])])
    assert ids(pool) == ["x", "b", "a"]
    assert pool.hits[2].score == 0.5
    assert [(s.node_id, s.facet, s.rank, s.score) for s in pool.hits[2].sources] == [
        ("0.1", "original", 2, 0.5), ("0.2", "how", 2, 0.4),
    ]  # fmt: skip
    assert pool.per_leaf == {"0.1": ("b", "a"), "0.2": ("x", "a")}


def test_given_one_leaf_then_its_own_order_stands_and_of_several_the_scores_decide() -> None:
    spread = leaf("0.1", [hit("a", 0.9), hit("c", 0.5), hit("b", 0.8)])
    assert ids(merge([spread])) == ["a", "c", "b"], "mmr orders without changing scores"
    assert ids(merge([spread, leaf("0.2", [])])) == ["a", "c", "b"]
    assert ids(merge([spread, leaf("0.2", [hit("d", 0.7)])])) == ["a", "b", "d", "c"]


def test_given_callers_of_a_named_symbol_when_merged_and_reranked_then_text_does_not_push_them_back() -> None:
    def near(chunk_id: str, precedence: int, text: str = "") -> Hit:
        via = Via(chunk_id="definition", bridge="f", hop=1, how="called by", precedence=precedence)
        return hit(chunk_id, 0.1, text).model_copy(update={"via": via})

    symbol = [near("definition", 0), *(near(f"caller{n}", 1, "alike in every word") for n in range(9))]
    others = [leaf(f"0.{n}", [hit(f"{n}-{r}", 0.9) for r in range(5)]) for n in range(2, 6)]
    pool = merge([leaf("0.1", [*symbol, hit("text", 0.8)]), *others], cap=12)

    assert ids(pool)[:10] == [one.chunk_id for one in symbol]
    assert len(pool.hits) == 12
    scores = {"definition": 0.0, "caller0": 0.0, **dict.fromkeys(ids(pool)[10:], 1.0)}
    reranked = apply_root_rerank(pool, [hit(one, score) for one, score in scores.items()], "lexical:v1")
    assert ids(reranked)[0] == "definition"
    assert set(ids(reranked)[1:10]) == {one.chunk_id for one in symbol[1:]}


def test_given_twelve_leaves_and_cap_20_then_one_each_and_the_rest_by_score() -> None:
    leaves = [leaf(f"0.{n}", [hit(f"{n:02}-{r}", 1 / n - r / 1000) for r in range(5)]) for n in range(1, 13)]
    pool = merge(leaves)
    assert len(pool.hits) == 20
    assert all(pool.per_leaf.values())
    assert pool.per_leaf["0.1"] == tuple(f"01-{r}" for r in range(5))
    assert pool.per_leaf["0.12"] == ("12-0",)


def test_given_room_then_every_leaf_keeps_its_quota_against_better_scores() -> None:
    strong = leaf("0.1", [hit(f"s{r}", 0.9 - r / 100) for r in range(20)])
    weak = leaf("0.2", [hit(f"w{r}", 0.1 - r / 100) for r in range(5)])
    pool = merge([strong, weak], cap=10)
    assert pool.per_leaf["0.2"] == ("w0", "w1", "w2")
    assert len(pool.per_leaf["0.1"]) == 7


def test_given_more_leaves_than_places_then_the_question_first_and_then_the_best_leaves() -> None:
    leaves = [leaf(f"0.{n}", [hit(f"h{n}", n / 10)]) for n in range(1, 6)]
    assert ids(merge(leaves, cap=3)) == ["h5", "h4", "h1"]


def test_given_places_for_exactly_one_more_round_then_it_is_taken() -> None:
    strong = leaf("0.1", [hit(f"s{r}", 0.9 - r / 100) for r in range(5)])
    weak = leaf("0.2", [hit(f"w{r}", 0.1 - r / 100) for r in range(5)])
    pool = merge([strong, weak], cap=4, limits=MultiQuerySettings(min_per_leaf=2))
    assert pool.per_leaf == {"0.1": ("s0", "s1"), "0.2": ("w0", "w1")}


def test_given_equal_scores_then_the_better_rank_comes_first() -> None:
    assert ids(merge([leaf("0.1", [hit("z", 0.5)]), leaf("0.2", [hit("x", 0.9), hit("a", 0.5)])])) == ["x", "z", "a"]


def test_given_folded_hits_of_one_leaf_then_its_best_rank_is_the_source() -> None:
    twice = [hit("x", 0.9), hit("b", 0.4, vector=(1.0, 0.0)), hit("a", 0.4, vector=(1.0, 0.0))]
    pool = merge([leaf("0.1", twice), leaf("0.2", [hit("a", 0.8, vector=(1.0, 0.0))])])
    assert [(s.node_id, s.rank) for s in pool.hits[1].sources] == [("0.1", 2), ("0.2", 1)]


def test_given_a_leaf_without_hits_then_its_reranker_counts_for_nothing() -> None:
    pool = merge([leaf("0.1", [hit("a", 0.5)], "one:v1"), leaf("0.2", [], "other:v1")])
    assert (pool.reranked_by, pool.warnings) == ("one:v1", ())
    differ = merge([leaf("0.1", [hit("a", 0.5)], "one:v1"), leaf("0.2", [hit("b", 0.4)], "other:v1")])
    assert differ.reranked_by is None


def test_one_leaf_is_the_question_s_own_alone() -> None:
    own, other = leaf("0.1", [hit("a", 0.5)]), leaf("0.2", [hit("b", 0.4)])
    assert only_original_leaf(merge([own]))
    assert not only_original_leaf(merge([own, other]))
    assert not only_original_leaf(merge_tree([other], nodes("0.1", "0.2"), LIMITS, 20))


def test_given_no_quota_then_by_score_alone() -> None:
    leaves = [leaf("0.1", [hit("a", 0.1)]), leaf("0.2", [hit("b", 0.9), hit("c", 0.8)])]
    assert ids(merge(leaves, cap=2, limits=MultiQuerySettings(min_per_leaf=0))) == ["b", "c"]


def test_given_equal_vectors_then_folded_into_the_better_one_with_united_sources() -> None:
    first = leaf("0.1", [hit("a", 0.9, vector=(1.0, 0.0)), hit("z", 0.5, vector=(0.0, 1.0))])
    second = leaf("0.2", [hit("b", 0.8, vector=(2.0, 0.01)), hit("y", 0.1, vector=(1.0, 1.0))])
    pool = merge([first, second])
    assert ids(pool) == ["a", "z", "y"]
    assert pool.folded == 1
    assert [(s.node_id, s.score) for s in pool.hits[0].sources] == [("0.1", 0.9), ("0.2", 0.8)]
    assert pool.per_leaf["0.2"] == ("a", "y")
    assert all(one.vector == () for one in pool.hits)


def test_given_leaves_reranked_differently_then_by_rank_with_a_warning() -> None:
    pool = merge(
        [leaf("0.1", [hit("a", 31.0), hit("b", 30.0)], "none (endpoint:m failed)"), leaf("0.2", [hit("c", 0.9)])]
    )
    assert ids(pool) == ["a", "c", "b"]
    assert "merged by rank" in pool.warnings[0]
    assert "none (endpoint:m failed)" in pool.warnings[0]


def test_given_failed_leaves_or_none_then_an_empty_pool() -> None:
    failed = LeafResult(node_id="0.1", status=LeafStatus.FAILED, error="lost")
    assert merge([failed]) == MergedPool(per_leaf={"0.1": ()})
    assert merge([]) == MergedPool()


def test_given_ties_then_chunk_ids_decide_and_the_order_of_leaves_does_not_matter() -> None:
    leaves = [leaf("0.1", [hit("b", 0.5)]), leaf("0.2", [hit("a", 0.5)]), leaf("0.10", [hit("c", 0.5)])]
    assert ids(merge(leaves)) == ["a", "b", "c"]
    assert merge(leaves) == merge(leaves[::-1])
    assert list(merge(leaves[::-1]).per_leaf) == ["0.1", "0.2", "0.10"]


def test_root_rerank_given_a_part_of_the_hits_then_resorted_and_nothing_dropped() -> None:
    pool = merge([leaf("0.1", [hit("a", 0.9), hit("b", 0.8), hit("c", 0.7)])]).model_copy(
        update={"warnings": ("slow",)}
    )
    better = pool.hits[2].model_copy(update={"score": 0.99, "parts": {"fused": 0.7, "rerank": 0.99}})
    done = apply_root_rerank(pool, [better, better, hit("unknown", 5.0)], "lexical:v1")
    assert ids(done) == ["c", "a", "b"]
    assert done.hits[0].score == pytest.approx(0.5 * 0.7 + 0.5 * 0.99)
    other = apply_root_rerank(pool, [better], "another:v1")
    assert other.hits[0].score == 0.99, "scores of different rerankers are not mixed"
    assert done.hits[0].parts == {"fused": 9.0, "rerank": 0.99, "leaf": 0.7}
    assert done.hits[0].sources == pool.hits[2].sources
    assert (done.reranked_by, done.warnings) == ("lexical:v1", ("slow",))


def test_root_rerank_sorts_what_it_ranked_and_explains_what_was_explained() -> None:
    told = hit("b", 0.8).model_copy(update={"explain": (Effect(stage="search", effect=0.8),)})
    pool = merge([leaf("0.1", [hit("a", 0.9), told, hit("c", 0.1)])])
    scores = {"a": 0.2, "b": 0.6, "c": 0.5}
    ranked = [one.model_copy(update={"score": scores[one.chunk_id]}) for one in pool.hits]
    done = apply_root_rerank(pool, ranked, "lexical:v1", leaf_share=0.25)
    assert [(one.chunk_id, round(one.score, 6)) for one in done.hits] == [("b", 0.65), ("c", 0.4), ("a", 0.375)]
    step = done.hits[0].explain[-1]
    assert (step.stage, round(step.effect, 6)) == ("root rerank", -0.15)
    assert step.detail == {"leaf": 0.8, "root": 0.6, "weight": 0.75}
    assert done.hits[1].explain == ()
    assert apply_root_rerank(pool, ranked).reranked_by == "lexical:v1", "nobody reranked it anew"


def test_given_a_leaf_of_the_rules_then_it_weighs_less_than_the_question_and_than_a_leaf_of_the_llm() -> None:
    """0.7 of what the rules' leaf scores: b 0.7 * 0.9 = 0.63, c 0.7 * 0.8 = 0.56, e -0.7 / 0.7 = -1."""
    by = {"0.2": "rules", "0.3": "llm"}
    tree = {key: node.model_copy(update={"by": by.get(key, "")}) for key, node in nodes("0.1", "0.2", "0.3").items()}
    told = hit("c", 0.8).model_copy(update={"explain": (Effect(stage="search", effect=0.8),)})
    leaves = [
        leaf("0.1", [hit("a", 0.6), hit("b", 0.5)]),
        leaf("0.2", [hit("b", 0.9), told, hit("e", -0.7)]),
        leaf("0.3", [hit("d", 0.58)]),
    ]
    pool = merge_tree(leaves, tree, LIMITS, 20)
    found = [(one.chunk_id, round(one.score, 6)) for one in pool.hits]
    assert found == [("b", 0.63), ("a", 0.6), ("d", 0.58), ("c", 0.56), ("e", -1.0)]
    assert [source.score for source in pool.hits[0].sources] == [0.5, 0.9], "a source keeps the score of its leaf"
    root = {"a": 0.7, "b": 0.2, "c": 0.4, "d": 0.1, "e": 0.0}
    ranked = [one.model_copy(update={"score": root[one.chunk_id]}) for one in pool.hits]
    done = apply_root_rerank(pool, ranked, "lexical:v1")
    final = [(one.chunk_id, round(one.score, 6)) for one in done.hits]
    assert final == [("a", 0.65), ("c", 0.48), ("b", 0.415), ("d", 0.34), ("e", -0.5)]
    steps = done.hits[1].explain
    assert [(step.stage, round(step.effect, 6)) for step in steps] == [
        ("search", 0.8), ("tree merge", -0.24), ("root rerank", -0.08),
    ]  # fmt: skip
    assert steps[1].detail == {"leaf": "0.2", "by": "rules", "weight": 0.7}
    chained = {**tree, "0.2": tree["0.2"].model_copy(update={"needed_by": ("0.3",)})}
    assert merge_tree(leaves, chained, LIMITS, 20).hits[0].score == 0.9, "a step of a chain counts whole"


@st.composite
def trees(draw: st.DrawFn) -> list[LeafResult]:
    leaves = []
    for n in range(draw(st.integers(0, 14))):
        chunks = draw(st.lists(st.integers(0, 30), unique=True, max_size=6))
        scores = sorted(draw(st.lists(st.floats(0, 1), min_size=len(chunks), max_size=len(chunks))), reverse=True)
        by_chunk = {chunk: ((), (1.0, 0.0), (0.0, 1.0), (0.6, 0.8), (0.0, 0.0))[chunk % 5] for chunk in chunks}
        texts = draw(st.booleans())
        leaves.append(
            leaf(
                f"0.{n + 1}",
                [
                    hit(f"c{chunk:02}", score, "the same words for all of them" if texts else "", by_chunk[chunk])
                    for chunk, score in zip(chunks, scores, strict=True)
                ],
            )
        )
    return leaves


@given(trees(), st.integers(1, 25), st.integers(0, 6))
def test_properties_cap_quota_no_duplicates_best_score(leaves: list[LeafResult], cap: int, quota: int) -> None:
    pool = merge(leaves, cap, MultiQuerySettings(min_per_leaf=quota))
    found = {one.chunk_id for each in leaves for one in each.hits}
    kept = ids(pool)
    assert len(kept) == len(set(kept)) == min(cap, len(found) - pool.folded)
    assert [one.score for one in pool.hits] == sorted((one.score for one in pool.hits), reverse=True)
    for one in pool.hits:
        own = [other.score for each in leaves for other in each.hits if other.chunk_id == one.chunk_id]
        assert one.score == max(own)
        assert len({source.node_id for source in one.sources}) == len(one.sources)
    answering = [each for each in leaves if each.hits]
    even = min(quota, cap // len(answering)) if answering else 0
    unlimited = merge(leaves, 1000, MultiQuerySettings(min_per_leaf=quota))
    for each in answering:
        assert len(pool.per_leaf[each.node_id]) >= min(even, len(unlimited.per_leaf[each.node_id]))
    assert set(kept) == {chunk_id for ids_ in pool.per_leaf.values() for chunk_id in ids_}


@pytest.mark.parametrize("cap", [1, 2])
def test_given_a_tiny_cap_then_it_holds(cap: int) -> None:
    leaves = [leaf(f"0.{n}", [hit(f"{n}{r}", n / 10) for r in range(4)]) for n in range(1, 5)]
    assert len(merge(leaves, cap).hits) == cap
