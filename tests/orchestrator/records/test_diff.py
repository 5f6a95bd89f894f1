"""What differs between two answers, and which cause the last sentence names: on manifests that differ in one thing."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.cli.render.differences import draw_difference
from orchestrator.cli.streams import console
from orchestrator.records.causes import compared
from orchestrator.records.diff import AnswerDifference, sentence_changes
from shared.models import Facet, Node
from shared.models.manifest import (
    DocumentVersion,
    LeafHit,
    Manifest,
    ModelUsed,
    Record,
    RecordedAnswer,
    RecordedLeaf,
    RecordedPlan,
    RecordedResult,
    RunRecord,
    SettingsUsed,
)

ZH = "缓存雪崩是大量缓存同时过期造成的。[1] 后来给过期时间加了随机抖动。[2]"


def leaf_node(node_id: str, query: str, **more: Any) -> Node:
    return Node(id=node_id, parent_id="0", level=1, facet=Facet.CORE, query=query, **more)


def result(name: str, score: float, **parts: float) -> RecordedResult:
    return RecordedResult(chunk_id=f"c-{name}", doc_id=name, title=f"Page {name}", score=score, parts=parts)


def document(name: str, version: str = "v1") -> DocumentVersion:
    return DocumentVersion(doc_id=name, path=f"notes/{name}.md", version=version)


BASE: dict[str, Any] = {
    "question": "缓存雪崩的原因是什么？",
    "plan": RecordedPlan(nodes=(leaf_node("0.0", "缓存雪崩的原因是什么？"), leaf_node("0.1", "后来呢？", by="llm"))),
    "settings": SettingsUsed(fingerprint={"search": "1", "rerank": "1", "llm": "1"}),
    "models": {"llm": ModelUsed(provider="endpoint", model="one", digest="d1")},
    "prompts": {"summarise": "p1", "decompose": "p1"},
    "documents": (document("a"), document("b")),
    "leaves": (RecordedLeaf(id="0.0", status="done", hits=(LeafHit(chunk_id="c-a", score=1.0),)),),
    "results": (result("a", 0.9, bm25=9.0, rerank=0.9), result("b", 0.5, bm25=5.0, rerank=0.5)),
    "answer": RecordedAnswer(text=ZH, kind="llm", digest="t1"),
    "releases": {"ramify": "1"},
}


def manifest(index: int = 1, **changes: Any) -> Manifest:
    return Manifest.of(Record(**{**BASE, **changes}), RunRecord(job_id="j", index_versions=(index,)))


def found(index: int = 1, **changes: Any) -> AnswerDifference:
    return compared(manifest(), manifest(index, **changes))


def test_another_tenant_is_named_and_not_its_corpus() -> None:
    other = (result("x", 0.9, bm25=9.0, rerank=0.9),)
    theirs = Manifest.of(
        Record(**{**BASE, "documents": (document("x"),), "results": other}),
        RunRecord(job_id="j", tenant="t2", index_versions=(2,)),
    )
    assert compared(manifest(), theirs).sentence == "The cause is the settings: tenant is t2 instead of default."
    same = Manifest.of(Record(**BASE), RunRecord(job_id="k", tenant="t2", index_versions=(2,)))
    assert compared(manifest(), same).sentence.startswith("Nothing differs")


MOVED = (result("b", 0.5, bm25=5.0, rerank=0.5), result("a", 0.4, bm25=2.0, rerank=0.8))


@pytest.mark.parametrize(
    ("change", "causes", "said"),
    [
        ({}, (), "Nothing differs: the two records are the same, byte for byte."),
        ({"question": "那为什么？"}, ("question",), "The cause is the question: another one was asked."),
        (
            {"settings": SettingsUsed(fingerprint={"search": "2"}, values={"search.strategy": "deep"})},
            ("settings",),
            "The cause is the settings: search.strategy is deep instead of the default.",
        ),
        (
            {"settings": SettingsUsed(fingerprint={"search": "2"})},
            ("settings",),
            "The cause is the settings: search is 2 instead of 1.",
        ),
        ({"options": {"top_n": 5}}, ("settings",), "The cause is the settings: top_n is 5 instead of none."),
        (
            {
                "models": {"llm": ModelUsed(provider="endpoint", model="two", digest="d2")},
                "prompts": {"summarise": "p1"},
            },
            ("model",),
            "The cause is the model: llm is endpoint two (d2) instead of endpoint one (d1).",
        ),
        (
            {"prompts": {"summarise": "p2", "decompose": "p1"}},
            ("model",),
            "The cause is the model: the prompt summarise was changed.",
        ),
        (
            {"degraded": {"plan.job": ("llm_unavailable",)}, "plan": RecordedPlan(nodes=())},
            ("outage",),
            "The cause is the outage of a server: B was made without the LLM (llm_unavailable) at plan.job.",
        ),
        (
            {"leaves": (RecordedLeaf(id="0.0", status="failed", error="no store"),)},
            ("outage",),
            "The cause is the outage of a server: B was made without the answer of a leaf (leaf_failed) at 0.0.",
        ),
        (
            {"documents": (document("a", "v2"), document("b")), "results": MOVED, "index": 2},
            ("corpus",),
            "The cause is the corpus: notes/a.md was changed.",
        ),
        (
            {"documents": (document("b"), document("新")), "results": (result("新", 1.0),), "index": 2},
            ("corpus",),
            "The cause is the corpus: it was written in between: notes/新.md came in, notes/a.md is found no more.",
        ),
        (
            {"results": MOVED, "index": 2},
            ("corpus",),
            "The cause is the corpus: it was written in between, and none of the documents they rest on changed.",
        ),
        (
            {
                "plan": RecordedPlan(
                    nodes=(leaf_node("0.0", "缓存雪崩的原因是什么？"), leaf_node("0.1", "谁？", by="llm"))
                )
            },
            ("plan",),
            "The cause is the plan: the question was split otherwise (0.1).",
        ),
        (
            {"options": {"subqueries": [{"query": "谁？"}]}, "plan": RecordedPlan(nodes=())},
            ("plan",),
            "The cause is the plan: subqueries is 1 entry instead of none.",
        ),
        (
            {
                "options": {"subqueries": [{"query": "谁？"}]},
                "plan": RecordedPlan(nodes=()),
                "results": MOVED,
                "index": 2,
            },
            ("plan",),
            "The cause is the plan: subqueries is 1 entry instead of none.",
        ),
        (
            {"leaves": (RecordedLeaf(id="0.0", status="done", candidates=7),), "index": 2},
            ("corpus",),
            "The cause is the corpus: it was written in between, and none of the documents they rest on changed.",
        ),
        ({"releases": {"ramify": "2"}}, ("release",), "The cause is the release: ramify is 2 instead of 1."),
        (
            {"answer": RecordedAnswer(text="It fell.", kind="llm", digest="t2"), "index": 2},
            ("model",),
            "The cause is the model: llm endpoint one replied otherwise under the same name.",
        ),
        (
            {"settings": SettingsUsed(fingerprint={"search": "1", "llm": "2"}, values={"llm_max_tokens": 700})},
            ("settings",),
            "The cause is the settings: llm_max_tokens is 700 instead of the default.",
        ),
        (
            {"results": MOVED},
            (),
            "The records name no cause: nothing that was asked, set or stored differs, and no server failed.",
        ),
    ],
)
def test_the_sentence_names_the_cause_of_a_single_change(
    change: dict[str, Any], causes: tuple[str, ...], said: str
) -> None:
    differs = found(**change)
    assert differs.causes == causes
    assert differs.sentence == said


def test_what_follows_from_a_setting_is_not_named_beside_it_and_two_causes_are() -> None:
    cut = SettingsUsed(fingerprint={"chunking": "2"}, values={"chunking.target_chars": 500})
    assert found(2, settings=cut, documents=(document("a", "v2"), document("b", "v2"))).causes == ("settings",)
    both = found(2, options={"top_n": 5}, documents=(document("a", "v2"), document("b")))
    assert both.causes == ("settings", "corpus")
    assert both.sentence == (
        "Several things changed, the first of which explains most: the settings (top_n is 5 instead of none); "
        "the corpus (notes/a.md was changed)."
    )


def test_a_model_that_writes_otherwise_is_named_beside_a_corpus_that_moves_scores_alone() -> None:
    text = RecordedAnswer(text="It fell.", kind="llm", digest="t2")
    scored = (result("a", 0.8, bm25=8.0, rerank=0.9), result("b", 0.5, bm25=5.0, rerank=0.5))
    assert found(2, answer=text, results=scored).causes == ("model", "corpus")
    assert found(2, answer=text, results=MOVED).causes == ("corpus",)
    assert found(2, answer=text.model_copy(update={"kind": "extractive"}), results=scored).causes == ("corpus",)


def test_documents_that_were_found_otherwise_are_no_cause_where_an_outage_explains_them() -> None:
    down = {"0.0": ("embedding_unavailable",)}
    assert found(2, degraded=down, documents=(document("b"),), results=MOVED).causes == ("outage",)
    assert found(2, degraded=down, documents=(document("a", "v2"), document("b"))).causes == ("outage", "corpus")


def test_a_reply_that_another_setting_makes_unusable_is_no_outage() -> None:
    unusable = {"plan.job": ("llm_reply_unusable",)}
    assert found(options={"top_n": 5}, degraded=unusable).causes == ("settings",)
    assert found(degraded=unusable).causes == ("outage",)
    assert found(options={"top_n": 5}, degraded={"plan.job": ("llm_unavailable",)}).causes == ("settings", "outage")


def test_a_corpus_that_was_written_without_any_effect_is_no_cause() -> None:
    assert found(7).sentence.startswith("Nothing differs")


def test_results_that_came_went_and_moved_stand_with_the_part_of_the_score_that_did_it() -> None:
    differs = found(results=(*MOVED, result("new", 0.3, bm25=1.0)))
    by_how = {(one.how, one.chunk_id): one for one in differs.results}
    assert set(by_how) == {("moved", "c-b"), ("moved", "c-a"), ("came", "c-new")}
    fell = by_how["moved", "c-a"]
    assert (fell.before, fell.after, fell.score_before, fell.score_after) == (1, 2, 0.9, 0.4)
    assert [(part.name, part.before, part.after) for part in fell.parts] == [("bm25", 9.0, 2.0), ("rerank", 0.9, 0.8)]
    rose = by_how["moved", "c-b"]
    assert (rose.parts, rose.why) == ((), "its score is the same: others came before it, or went")
    assert [one.how for one in found(results=MOVED[:1]).results] == ["moved", "went"]


def test_ranks_follow_the_scores_that_they_are_made_of() -> None:
    before, after = result("a", 0.9, bm25=9.0, bm25_rank=1.0), result("a", 0.8, bm25=8.0, bm25_rank=9.0)
    (one,) = compared(manifest(results=(before,)), manifest(results=(after,))).results
    assert (one.how, [part.name for part in one.parts]) == ("scored", ["bm25", "bm25_rank"])


@pytest.mark.parametrize(
    ("before", "after", "went", "came", "kept"),
    [
        pytest.param(ZH, ZH.replace("[1]", "[9]"), (), (), 2, id="numbers"),
        pytest.param(ZH, ZH[:17] + "已分层。[3]", ("后来给过期时间加了随机抖动。",), ("已分层。",), 1, id="zh"),
        pytest.param("It was slow. [1] We fixed it. [2]", "We fixed it. [1]", ("It was slow.",), (), 1, id="en"),
        pytest.param(
            "2 fit.\n\n| # | a |\n| --- | --- |\n| 1 | x |\n| 2 | z |",
            "3 fit.\n\n| # | a |\n| --- | --- |\n| 1 | x |\n| 2 | y |\n| 3 | z |",
            ("2 fit.",), ("3 fit.", "| y |"), 4, id="a row of a table",
        ),
        pytest.param("", "We fixed it. [1]", (), ("We fixed it.",), 0, id="nothing before"),
    ],
)  # fmt: skip
def test_sentences_are_compared_in_both_languages_without_the_numbers_of_their_citations(
    before: str, after: str, went: tuple[str, ...], came: tuple[str, ...], kept: int
) -> None:
    assert sentence_changes(before, after) == (went, came, kept)


def test_it_is_drawn_with_its_sentence_last_and_reads_back_as_json() -> None:
    differs = found(2, documents=(document("a", "v2"), document("b")), results=MOVED, warnings=("慢",))
    out = console()
    with out.capture() as captured:
        out.print(draw_difference(differs), width=100)
    text = captured.get()
    assert text.rstrip().endswith("The cause is the corpus: notes/a.md was changed.")
    for part in ("notes/a.md", "bm25 9 → 2", "its document was changed", "慢"):
        assert part in text
    assert AnswerDifference.model_validate_json(differs.model_dump_json()) == differs
