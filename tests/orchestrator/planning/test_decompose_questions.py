"""The rules on a table of English and Chinese questions, and what must hold for every question whatever."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.planning.planner import decompose_by_rules
from orchestrator.planning.rule_split import split
from shared.language import question_language
from shared.models import Facet
from shared.settings.sections import DecompositionSettings as Limits

TABLE = Path(__file__).parents[2] / "data" / "rules_questions.jsonl"
CASES = [json.loads(line) for line in TABLE.read_text(encoding="utf-8").splitlines()]


def test_given_the_table_when_counted_then_both_languages_have_forty_questions_and_every_kind():
    for wanted in ("en", "zh"):
        own = [case for case in CASES if question_language(case["question"]).code == wanted]
        assert len(own) >= 40
        assert {case["kind"] for case in own} == {"simple", "compound", "comparison", "broad"}


@pytest.mark.parametrize("case", CASES, ids=[case["question"][:40] for case in CASES])
def test_given_a_question_when_read_then_kind_and_parts_are_as_the_table_says(case):
    reading = split(case["question"])
    queries = [part.query for part in reading.parts]
    assert reading.kind == case["kind"]
    assert [part for part in case["parts"] if not any(part in query for query in queries)] == []
    if reading.kind == "simple":
        assert len(queries) <= 2


@pytest.mark.parametrize("case", CASES, ids=[case["question"][:40] for case in CASES])
def test_given_a_question_when_decomposed_then_the_subqueries_are_whole_questions_in_its_language(case):
    for sub in decompose_by_rules(case["question"], 5).subqueries:
        assert 5 <= len(sub.query) <= 300
        assert sub.query.endswith("？" if question_language(case["question"]).code == "zh" else ("?", "."))
        assert "{" not in sub.query
        assert sub.query == " ".join(sub.query.split())
        assert sub.dimension.planned
        assert sub.depends_on == ()


def test_given_a_broad_question_when_decomposed_then_all_five_facets_are_asked_and_none_is_refined():
    for question in ("How do I optimize database query performance?", "如何优化数据库查询性能"):
        subqueries = decompose_by_rules(question, 5).subqueries
        assert [sub.dimension for sub in subqueries] == [Facet.CORE, Facet.WHY, Facet.HOW, Facet.CASE, Facet.NOTE]
        assert not any(sub.needs_refinement for sub in subqueries)


def test_given_little_room_when_decomposed_then_the_leading_facets_are_chosen_silently():
    decomposition = decompose_by_rules("如何优化数据库查询性能", 2)
    assert [sub.dimension for sub in decomposition.subqueries] == [Facet.CORE, Facet.HOW]
    assert decomposition.warnings == ()


def test_given_more_parts_than_room_when_decomposed_then_the_dropped_ones_are_named():
    decomposition = decompose_by_rules("What is Raft? What is Paxos? Who invented the transistor?", 2)
    assert len(decomposition.subqueries) == 2
    assert "transistor" in decomposition.warnings[0]


def test_given_a_compound_with_a_broad_part_when_decomposed_then_that_part_alone_is_refined_and_can_be():
    decomposition = decompose_by_rules("What is a bloom filter? How do we build a crawler for news sites?", 5)
    assert [sub.needs_refinement for sub in decomposition.subqueries] == [False, True]
    assert len(decompose_by_rules(decomposition.subqueries[1].query, 5).subqueries) >= 2


@pytest.mark.parametrize("case", [case for case in CASES if case["kind"] == "compound"])
def test_given_a_part_marked_for_refinement_when_decomposed_again_then_it_yields_at_least_two(case):
    for sub in decompose_by_rules(case["question"], 5).subqueries:
        if sub.needs_refinement:
            assert len(decompose_by_rules(sub.query, Limits().max_children).subqueries) >= 2


@pytest.mark.parametrize(
    "question",
    [
        "How do I do research and development planning?",
        "What is black and white photography?",
        "How do I build and test pipelines?",
        "Were Scott Derrickson and Ed Wood of the same nationality?",
        "水和平台的和谐发展",
        "社保和公积金怎么交？",
        "怎么合并两个分支？",
        "地球是圆的还是平的？",
    ],
)
def test_given_and_within_a_name_when_read_then_it_is_not_split(question):
    assert split(question).kind in {"simple", "broad"}


def test_given_traditional_characters_when_decomposed_then_the_subqueries_are_traditional_too():
    queries = [sub.query for sub in decompose_by_rules("如何優化資料庫查詢效能？", 5).subqueries]
    assert "資料庫查詢效能優化的常見方法有哪些？" in queries
    assert "優化資料庫查詢效能有哪些常見誤區和注意事項？" in queries


@pytest.mark.parametrize(
    "question", ["データベースを最適化するには？", "데이터베이스 최적화 방법은?", "🙂🙂🙂", "???", "…", "12345"]
)
def test_given_another_language_or_none_when_decomposed_then_there_are_no_subqueries(question):
    assert decompose_by_rules(question, 5).subqueries == ()


HARD = [
    "and " * 1000,
    "和" * 4000,
    "how to do x and " * 250,
    "a. " * 1300,
    "1) " * 1300,
    "的" * 3990 + "区别",
    "之间的" * 1300 + "区别",
    "what? " * 660,
    "为什么？" * 1000,
    "什么" * 2000,
    "difference between " + "a and " * 600,
    " " * 3999 + "a",
    "?" * 4000,
    ("how to " + "x " * 140 + ". ") * 13,
    "\n1." * 1300,
    "在" * 290 + "中",
    "how do i " + "do x and configure " * 14,
]


@pytest.mark.timeout(10)  # milliseconds for linear patterns; an exponential one would run for ages
@pytest.mark.parametrize("question", HARD, ids=range(len(HARD)))
def test_given_a_hostile_question_when_decomposed_then_it_comes_to_an_end(question):
    assert len(decompose_by_rules(question[:4000], 5).subqueries) <= 5


WORDS = [
    *("and", "or", "how", "what", "why", "the", "difference", "between", "vs", "compare", "of", "in", "for", "better"),
    *("than", "should", "i", "do", "is", "to", "it", ",", ".", "?", "x", "{x}", "{}", "redis", "not", "\n", "(", "1)"),
    *(
        "和",
        "与",
        "的",
        "有",
        "什么",
        "区别",
        "为什么",
        "如何",
        "怎么",
        "优化",
        "在",
        "中",
        "上",
        "还是",
        "，",
        "。",
        "？",
    ),
    *("哪个", "比", "性能", "有哪些", "并", "以及", "是", "时", "它", "用", "之间", "原理", "對", "為"),
]


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(st.text(max_size=400), st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join)), st.integers(0, 10)
)
def test_given_any_text_when_decomposed_then_it_gives_a_bounded_decomposition_and_always_the_same(question, most):
    decomposition = decompose_by_rules(question, most)
    assert decomposition == decompose_by_rules(question, most)
    assert len(decomposition.subqueries) <= most
    assert all(5 <= len(sub.query) <= 300 for sub in decomposition.subqueries)
