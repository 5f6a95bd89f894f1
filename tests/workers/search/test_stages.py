"""Stages one by one, with sums worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from qdrant_client import models

from shared.models import Filters, Hit
from shared.models.hits import PagePart, Via
from shared.models.plan import Facet
from shared.settings import load_settings
from shared.settings import stages as s
from workers.search.stages import diversity, rescoring
from workers.search.stages.expansion import is_strong_signal
from workers.search.stages.fusion import boosted, fuse
from workers.search.state import Candidate, Query, SearchArm, SearchState, Tools
from workers.shown_hits import most_of_a_kind, shown_hits

TOOLS = Tools(
    settings=load_settings(
        search={"source_boosts": {"docs/": 1.1, "docs/guide/": 2.0, "old/": 0.5}, "excludes": ["old/"]}
    ),
    today=date(2026, 1, 1),
)


def hit(name: str, score: float = 1.0, **more: object) -> Hit:
    fields = {"doc_id": name, "path": f"{name}.md", "title": "t", "text": name, **more}
    return Hit.model_validate({"chunk_id": name, "score": score, **fields})


def state(*hits: Hit, vector: tuple[float, ...] = (), filters: Filters | None = None, wanted: int = 10) -> SearchState:
    candidates = tuple(Candidate(h, 0.0).plus("search", h.score) for h in hits)
    return SearchState(Query("q", filters or Filters(), wanted), candidates=candidates, vector=vector)


def names(found: SearchState) -> list[str]:
    return [c.hit.chunk_id for c in found.candidates]


def scores(found: SearchState) -> dict[str, float]:
    for c in found.candidates:
        assert sum(e.effect for e in c.effects) == pytest.approx(c.score)
    return {c.hit.chunk_id: round(c.score, 6) for c in found.candidates}


def test_rrf_is_weight_over_k_plus_rank_with_one_bonus_that_keeps_the_weights() -> None:
    lists = {"x": [hit("a"), hit("b")], "y": [hit("b")]}
    fused = fuse(lists, {"x": 1.0, "y": 2.0}, s.FusionStage(k=60, first_bonus=0.05, next_bonus=0.02))
    # a: 1/61 + 0.05 * 1/2; b: 1/62 + 2/61 + 0.05, its bonus 0.02 * 1/2 of x is not paid too
    assert scores(SearchState(state().query, candidates=fused)) == {"b": 0.098916, "a": 0.041393}
    bonus = fused[1].effects[-1]
    assert (bonus.stage, bonus.effect) == ("fusion bonus", 0.025)
    assert bonus.detail == {"arm": "x", "bonus": 0.05, "share": 0.5}


def test_six_arms_at_rank_one_get_one_bonus_and_the_question_stays_twice_its_rewrites() -> None:
    weights = {"bm25": 2.0, "dense": 2.0, "bm25#1": 1.0, "dense#1": 1.0, "bm25#2": 1.0, "dense#2": 1.0}
    options = s.FusionStage(k=60, first_bonus=0.05, next_bonus=0.02)
    (best,) = fuse({name: [hit("a")] for name in weights}, weights, options)
    assert best.score == pytest.approx(0.181148, abs=1e-6), "8/61 + 0.05, not 8/61 + 6 * 0.05"
    one_each = {"bm25": [hit("asked")], "bm25#1": [hit("rewritten")], "dense": []}
    asked, rewritten = fuse(one_each, weights, options)
    assert (asked.hit.chunk_id, asked.score) == ("asked", pytest.approx(0.082787, abs=1e-6))  # 2/61 + 0.05
    assert rewritten.score == pytest.approx(0.041393, abs=1e-6), "1/61 + 0.025: half of it"


def test_linear_fusion_scales_each_arm_by_its_best() -> None:
    lists = {"x": [hit("a", 10), hit("b", 5)], "y": [hit("b", 0.8), hit("a", 0.4)]}
    fused = fuse(lists, {"x": 0.7, "y": 0.3}, s.FusionStage(method="linear"))
    assert {c.hit.chunk_id: c.score for c in fused} == pytest.approx({"a": 0.85, "b": 0.65})
    assert fuse({"x": [hit("a", 0.0)], "y": []}, {"x": 1, "y": 1}, s.FusionStage(method="linear"))[0].score == 0.0


def test_the_first_bonus_is_for_rank_one_and_the_next_for_ranks_two_and_three() -> None:
    lists = {"x": [hit(name, 9.0) for name in "abcd"], "y": []}
    fused = fuse(lists, {"x": 1.0, "y": 1.0}, s.FusionStage(k=60, first_bonus=0.05, next_bonus=0.02))
    assert {c.hit.chunk_id: c.score for c in fused} == pytest.approx(
        {"a": 1 / 61 + 0.05, "b": 1 / 62 + 0.02, "c": 1 / 63 + 0.02, "d": 1 / 64}
    )
    assert [c.effects[0].detail for c in fused][3] == {"rank": 4, "score": 9.0, "weight": 1.0, "k": 60}


def test_linear_fusion_counts_a_score_below_zero_as_nothing() -> None:
    lists = {"x": [hit("a", 1.0), hit("b", -0.5)], "y": [hit("b", 2.0)]}
    fused = fuse(lists, {"x": 0.7, "y": 0.3}, s.FusionStage(method="linear"))
    assert {c.hit.chunk_id: c.score for c in fused} == pytest.approx({"a": 0.7, "b": 0.3})


def test_a_list_that_is_alone_keeps_its_scores_and_ties_go_by_id() -> None:
    assert [(c.hit.chunk_id, c.score) for c in fuse({"x": [hit("b", 7), hit("a", 7)]}, {"x": 1}, s.FusionStage())] == [
        ("a", 7),
        ("b", 7),
    ]


def test_a_strong_signal_is_high_and_far_ahead_on_an_absolute_scale() -> None:
    options = s.StrongSignalStage()
    assert is_strong_signal(20.0, 2.0, options)  # 0.952 and 0.667
    assert not is_strong_signal(20.0, 15.0, options), "0.952 and 0.9375: no gap"
    assert not is_strong_signal(2.0, 0.0, options), "0.667: s over the best score would call this 1"


def test_cosine_mixes_the_scaled_score_with_nearness() -> None:
    found = rescoring.cosine(
        state(hit("a", 2, vector=(1, 0)), hit("b", 1, vector=(0, 1)), hit("c", 1), vector=(0, 1)),
        s.CosineStage(),
        TOOLS,
    )
    assert scores(found) == {"a": 0.7, "b": 0.65, "c": 0.35}
    assert rescoring.cosine(state(hit("a")), s.CosineStage(), TOOLS).skipped == "no vector of the question"


def test_the_longest_prefix_boosts_and_excludes_hide_unless_asked_for() -> None:
    hits = (hit("a", 1, path="old/x.md"), hit("b", 0.9, path="docs/guide/y.md"), hit("c", 0.8, path="z.md"))
    assert scores(rescoring.sources(state(*hits), s.SourcesStage(), TOOLS)) == {"b": 1.8, "c": 0.8, "a": 0.5}
    assert names(rescoring.exclude(state(*hits), s.ExcludeStage(), TOOLS)) == ["b", "c"]
    asked = state(*hits, filters=Filters(paths=("old/",)))
    assert names(rescoring.exclude(asked, s.ExcludeStage(), TOOLS)) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("path", "asked", "kept"),
    [
        ("notes/archive/x.md", "", False),
        ("notes/2024/archive/x.md", "", False),
        ("notes/test/x.md", "", False),
        ("notes/tests/x.md", "", True),
        ("notes/archive.md", "", True),
        ("archive/x.md", "", True),
        ("notes/archive/x.md", "notes/archive/", True),
        ("notes/archive/x.md", "notes/archive", True),
        ("notes/archive/x.md", "notes/", False),
    ],
)
def test_folders_of_noise_are_left_out_wherever_they_stand_below_an_ingested_one(
    path: str, asked: str, kept: bool
) -> None:
    filters = Filters(paths=(asked,)) if asked else Filters()
    found = rescoring.exclude(state(hit("a", path=path), filters=filters), s.ExcludeStage(), TOOLS)
    assert bool(found.candidates) is kept


def test_what_is_left_out_among_the_best_is_told_with_the_way_to_it_and_callers_stay() -> None:
    called = Via(chunk_id="x", bridge="x", hop=1, how="called by")
    hits = [hit("b", path="n/test/b.md"), hit("c", path="n/archive/c.md"), *(hit(f"{n:02}") for n in range(9))]
    hits.append(hit("d", 0.3, path="n/test/d.py", via=called))
    found = rescoring.exclude(state(*hits, wanted=20), s.ExcludeStage(), TOOLS)
    assert names(found)[-1] == "d"
    assert len(found.candidates) == 10
    assert found.note == "left out: 2"
    (warning,) = found.warnings
    assert warning == (
        "What was found in n/test/, n/archive/ is left out (search.exclude_folders); `--path n/test/` searches there."
    )
    few = rescoring.exclude(state(*hits[2:], *hits[3:6], hits[0]), s.ExcludeStage(), TOOLS)
    assert (few.note, few.warnings) == ("left out: 1", ()), "one behind the ten best is not missed"
    bare = Tools(settings=load_settings(search={"exclude_folders": []}))
    assert len(rescoring.exclude(state(*hits), s.ExcludeStage(), bare).candidates) == 12


def test_on_equal_words_the_title_beats_compiled_truth_and_truth_beats_text() -> None:
    words = {"text": "zebra herds", "title": "page"}
    found = [
        hit("a text", 2.0, **words),
        hit("b truth", 2.0, part=PagePart.TRUTH, **words),
        hit("c title", 2.0, text="something", title="Zebra herds"),
        hit("d half", 2.0, text="something else", title="Zebra"),
    ]
    arm = SearchArm("bm25", models.QueryRequest(), 1.0, text="zebra herds", title=0.1, truth=0.05)
    raised = boosted(found, arm)
    # times 1 + 0.1, 1 + 0.1 / 2, 1 + 0.05, 1
    assert [(h.chunk_id, round(h.score, 6)) for h in raised] == [
        ("c title", 2.2), ("b truth", 2.1), ("d half", 2.1), ("a text", 2.0)
    ]  # fmt: skip
    ranks = {
        c.hit.chunk_id: c.effects[0].detail
        for c in fuse({"bm25": raised, "y": []}, {"bm25": 1, "y": 1}, s.FusionStage())
    }
    assert ranks["c title"] == {
        "rank": 1, "score": pytest.approx(2.2), "weight": 1, "unboosted": 2.0, "title": 0.1, "truth": 0.0,
        "k": 60,
    }  # fmt: skip


def test_backlinks_multiply_by_one_and_a_weighted_logarithm() -> None:
    hits = (hit("none", 1.04), hit("one", 1, backlinks=1), hit("many", 1, backlinks=19))
    found = rescoring.backlinks(state(*hits), s.BacklinksStage(), TOOLS)
    assert scores(found) == {"many": 1.149787, "none": 1.04, "one": 1.034657}  # 1 + 0.05 ln 20, 1 + 0.05 ln 2
    assert names(found) == ["many", "none", "one"]
    detail = {"factor": pytest.approx(1.149787), "links": 19, "weight": 0.05}
    assert found.candidates[0].effects[-1].detail == detail


def test_without_backlinks_nothing_changes() -> None:
    unlinked = state(hit("b", 1), hit("a", 2))
    found = rescoring.backlinks(unlinked, s.BacklinksStage(), TOOLS)
    assert found.candidates == unlinked.candidates
    assert found.skipped == "no other document links to what was found"


def test_facet_lifts_memories_of_the_facet_asked_for_and_never_past_one() -> None:
    hits = (
        hit("a", 0.5),
        hit("b", 0.48, facet="result"),
        hit("c", 1.0, facet="result"),
        hit("d", 0.4, facet="insight"),
    )
    asked = replace(state(*hits), query=replace(state().query, facet="result"))
    found = rescoring.facet(asked, s.FacetStage(weight=0.1), TOOLS)
    assert scores(found) == {"c": 1.0, "b": 0.50496, "a": 0.5, "d": 0.4}
    assert rescoring.facet(state(*hits), s.FacetStage(), TOOLS).skipped == "the question asks for no facet"
    none = rescoring.facet(replace(asked, query=replace(asked.query, facet="intent")), s.FacetStage(), TOOLS)
    assert none.skipped == "nothing found is a memory's intent"


def test_every_search_facet_has_the_storage_facet_of_its_row() -> None:
    assert {facet.value: facet.stored for facet in Facet} == {
        "original": "", "gap": "", "core": "context", "why": "intent", "how": "action", "case": "result",
        "note": "insight",
    }  # fmt: skip


def test_recency_halves_its_boost_every_half_life() -> None:
    hits = (
        hit("old", 1, date="2025-07-05"),
        hit("new", 1, date="2026-01-01"),
        hit("none", 1),
        hit("next", 1, date="2027-01-01"),
    )
    found = rescoring.recency(state(*hits), s.RecencyStage(weight=0.2, half_life_days=180), TOOLS)
    assert scores(found) == {"new": 1.2, "next": 1.2, "old": 1.1, "none": 1.0}


def test_caps_bound_documents_identical_texts_and_kinds() -> None:
    hits = [hit(n, doc_id="d", text=n) for n in "abc"] + [hit("e", text="a"), hit("f", kind="memory"), hit("g")]
    found = diversity.caps(state(*hits, wanted=4), s.CapsStage(per_doc=2, per_kind=0.5), TOOLS)
    assert names(found) == ["a", "b", "f", "g"], "g is the third resource of four wanted: it fills up behind the memory"


def test_caps_keep_more_of_the_best_document_and_of_all_where_it_is_asked_how_something_is_now() -> None:
    hits = [hit(f"a{n}", doc_id="a") for n in range(6)] + [hit(f"b{n}", doc_id="b") for n in range(4)]
    options = s.CapsStage(per_doc=2, best_doc=4)
    assert names(diversity.caps(state(*hits), options, TOOLS)) == ["a0", "a1", "a2", "a3", "b0", "b1"]
    asked = state(*hits)
    asked = replace(asked, query=replace(asked.query, text="Is the lift still out of order?"))
    assert len(diversity.caps(asked, options, TOOLS).candidates) == len(hits)


def test_dedup_folds_only_within_a_document() -> None:
    near = {"vector": (1.0, 0.0)}
    hits = (hit("a", 3, doc_id="d", **near), hit("b", 2, doc_id="d", **near), hit("c", 1, doc_id="e", **near))
    assert names(diversity.dedup(state(*hits), s.DedupStage(), TOOLS)) == ["a", "c"]
    texts = (hit("a", doc_id="d", text="one two three four five"), hit("b", doc_id="d", text="one two three four five"))
    assert names(diversity.dedup(state(*texts), s.DedupStage(), TOOLS)) == ["a"]


def test_a_kind_that_has_its_share_makes_room_for_others_and_fills_up_behind_them() -> None:
    hits = [hit("a"), hit("b"), hit("c"), hit("f", kind="memory"), hit("g", kind="memory")]
    assert names(diversity.caps(state(*hits, wanted=4), s.CapsStage(per_kind=0.5), TOOLS)) == ["a", "b", "f", "g", "c"]


def test_a_share_of_less_than_one_hit_is_one_hit() -> None:
    hits = [hit("a"), hit("b"), hit("f", kind="memory")]
    assert names(diversity.caps(state(*hits, wanted=1), s.CapsStage(per_kind=0.5), TOOLS)) == ["a", "f", "b"]


def test_a_share_of_one_kind_holds_in_the_results_that_are_shown() -> None:
    hits = [hit(f"r{n}") for n in range(9)] + [hit(f"m{n}", kind="memory") for n in range(3)]
    assert [h.chunk_id for h in shown_hits(hits, 5, 0.6)] == ["r0", "r1", "r2", "m0", "m1"], "3 of 5"
    ten = [h.chunk_id for h in shown_hits(hits, 10, 0.6)]
    assert ten == ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "m0", "m1", "m2"], (
        "6 of 10, and one where no other is left"
    )
    assert [h.chunk_id for h in shown_hits(hits, 4)] == ["r0", "r1", "r2", "r3"]
    assert [h.kind for h in shown_hits(hits[:9], 4, 0.6)] == ["resource"] * 4
    assert most_of_a_kind(0.29, 100) == 29, "0.29 * 100 is a little less to a computer"


@pytest.mark.parametrize(("depth", "kept"), [(None, 5), (1, 5), (2, 10), (3, 10)])
def test_chunks_of_one_document_are_capped_by_the_hops_where_no_number_is_set(depth: int | None, kept: int) -> None:
    linked = state(*(hit(f"{n:02}", doc_id="d") for n in range(12)))
    linked = replace(linked, query=replace(linked.query, depth=depth))
    assert len(diversity.caps(linked, s.CapsStage(per_doc=0), TOOLS).candidates) == kept


def test_dedup_folds_from_the_threshold_on_and_compares_text_where_one_has_no_vector() -> None:
    hits = (hit("a", 2, doc_id="d", vector=(1.0, 0.0)), hit("b", 1, doc_id="d", vector=(0.6, 0.8)))
    assert names(diversity.dedup(state(*hits), s.DedupStage(threshold=0.6), TOOLS)) == ["a"]
    assert names(diversity.dedup(state(*hits), s.DedupStage(threshold=0.61), TOOLS)) == ["a", "b"]
    words = {"doc_id": "d", "text": "one two three four five"}
    mixed = (hit("a", 2, vector=(1.0, 0.0), **words), hit("b", 1, **words))
    assert names(diversity.dedup(state(*mixed), s.DedupStage(), TOOLS)) == ["a"]
    turned = (hit("a", 2, **words), hit("b", 1, vector=(1.0, 0.0), **words))
    assert names(diversity.dedup(state(*turned), s.DedupStage(), TOOLS)) == ["a"]


def test_mmr_prefers_what_is_different_and_changes_no_score() -> None:
    hits = (hit("a", 1.0, vector=(1, 0)), hit("b", 0.9, vector=(1, 0)), hit("c", 0.5, vector=(0, 1)))
    found = diversity.mmr(state(*hits), s.MmrStage(relevance=0.5), TOOLS)
    assert names(found) == ["a", "c", "b"]
    assert scores(found) == {"a": 1.0, "c": 0.5, "b": 0.9}
    assert names(diversity.mmr(state(*hits), s.MmrStage(relevance=1.0), TOOLS)) == ["a", "b", "c"]


def test_mmr_scales_by_the_best_score_and_leaves_what_is_beyond_its_limit_behind() -> None:
    hits = (hit("a", 10.0, vector=(1, 0)), hit("b", 9.0, vector=(1, 0)), hit("c", 1.0, vector=(0, 1)), hit("d", 0.5))
    found = diversity.mmr(state(*hits), s.MmrStage(relevance=0.5, limit=3), TOOLS)
    assert names(found) == ["a", "c", "b", "d"], "b: 0.45 - 0.5, c: 0.05 - 0"
    assert [c.effects[-1].detail.get("value") for c in found.candidates] == pytest.approx([0.5, 0.05, -0.05, None])


def test_mmr_remembers_the_nearest_of_all_that_was_taken_and_breaks_ties_by_the_order_before() -> None:
    hits = [hit(name, 1.0, vector=vector) for name, vector in (("a", (1, 0)), ("b", (0, 1)), ("c", (1, 0)))]
    hits.append(hit("d", 1.0, vector=(0.6, 0.8)))
    assert names(diversity.mmr(state(*hits), s.MmrStage(relevance=0.5), TOOLS)) == ["a", "b", "d", "c"]
    equal = (hit("b", 1.0, vector=(1, 0)), hit("a", 1.0, vector=(1, 0)))
    assert names(diversity.mmr(state(*equal), s.MmrStage(), TOOLS)) == ["b", "a"]


def test_blending_trusts_the_fused_rank_at_the_top() -> None:
    reranked = [
        Candidate(hit(n), 0.0).plus("search", fused).plus("rerank", score - fused)
        for n, fused, score in (("a", 0.5, 0.2), ("b", 0.4, 0.9))
    ]
    found = rescoring.blend(SearchState(Query("q", Filters(), 5), candidates=tuple(reranked)), s.BlendStage(), TOOLS)
    assert scores(found) == {"b": round(0.75 * 0.8 + 0.25 * 0.9, 6), "a": round(0.75 + 0.25 * 0.2, 6)}


def test_blending_weighs_by_the_rank_that_stood_before_the_rerank() -> None:
    ranked = [
        Candidate(hit(f"{n:02}"), 0.0).plus("search", 0.5).plus("rerank", 0.2).plus("facet", 0.1 * n)
        for n in reversed(range(12))
    ]
    found = rescoring.blend(SearchState(Query("q", Filters(), 12), candidates=tuple(ranked)), s.BlendStage(), TOOLS)
    by_id = sorted(found.candidates, key=lambda c: c.hit.chunk_id)
    details = [c.effects[-1].detail for c in by_id]
    assert [detail["rank"] for detail in details] == list(range(1, 13)), "ties by id"
    assert [detail["weight"] for detail in details] == [0.75] * 3 + [0.6] * 7 + [0.4] * 2
    assert {detail["fused"] for detail in details} == {1.0}


@pytest.mark.parametrize(
    ("text", "question", "start"),
    [
        (
            "Nothing here. Vacuum cleans dead rows. More follows.",
            "what does vacuum do",
            "Vacuum cleans dead rows. More",
        ),
        ("先说别的。缓存雪崩是大量缓存同时失效。后面还有。", "什么是缓存雪崩", "缓存雪崩是大量缓存同时失效。"),
        ("No word of it at all.", "zebra", "No word"),
        ("", "zebra", ""),
    ],
)
def test_the_snippet_begins_where_the_text_speaks_of_the_question(text: str, question: str, start: str) -> None:
    from shared.language.text import terms
    from workers.search.stages.context import snippet

    found = snippet(text, frozenset(terms(question)), 40)
    assert found.startswith(start)
    assert len(found) <= 40


def test_limits_keep_the_best() -> None:
    assert names(diversity.limit(state(hit("a"), hit("b"), wanted=1), s.LimitStage(), TOOLS)) == ["a"]
    assert names(diversity.limit(state(hit("a"), hit("b"), hit("c")), s.LimitStage(limit=2), TOOLS)) == ["a", "b"]
