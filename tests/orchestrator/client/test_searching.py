"""Grouping of hits, and how options and queries become a job's request and leaves."""

import json

import pytest

from orchestrator.planning.planner import typed_leaves
from orchestrator.searching import grouped, no_retrieval_result, session_result, targeted
from orchestrator.sessions import as_session, read_session
from shared.errors import InputError
from shared.models import Facet, Filters, JobRequest, LeafResult, LeafStatus, Node, PagePart, SearchResult
from shared.models.find import Context, Related
from shared.models.request import ChatMessage, ContextType, SessionIntent, TypedQuery
from shared.settings import load_settings
from tests.fakes.ramify_client import answer, hit
from workers.merge.tree import LEAF_SHARE, apply_root_rerank, leaf_share, merge_tree
from workers.search.leaf import leaf_query

RAW = TypedQuery(query="write an RFC", priority=1)
SKILL = TypedQuery(query="Write RFC", context_type=ContextType.SKILL, priority=2)
MEMORY = TypedQuery(query="user's RFC style", context_type=ContextType.MEMORY)


def test_given_hits_of_all_kinds_when_grouped_then_each_stands_in_its_group_in_order():
    hits = tuple(hit(n, kind=kind) for n, kind in enumerate(("skill", "note", "memory", "resource", "skill"), 1))
    found = grouped(SearchResult(hits=hits, mode="m"), {})
    assert [match.chunk_id for match in found.skills] == ["c1", "c5"]
    assert [len(group) for group in (found.memories, found.resources, found.others)] == [1, 1, 1]
    assert (found.total, found.hits, found.query_plan) == (5, hits, None)


def test_given_contexts_when_grouped_then_abstract_and_relations_stand_with_their_hit():
    related = (Related(uri="ramify://default/b.md", title="B", how="links to"),)
    found = grouped(
        SearchResult(hits=(hit(1, snippet="own"), hit(2, snippet="own too")), mode="m"),
        {"c1": Context(abstract="about queues", related=related)},
    )
    first, second = found.resources
    assert (first.abstract, first.snippet, first.related) == ("about queues", "own", related)
    assert (second.abstract, second.related) == ("own too", ())
    assert first.uri == "ramify://default/notes/1.md#0"


def test_given_a_directory_when_grouped_then_it_is_no_leaf_and_its_text_is_the_abstract():
    found = grouped(
        SearchResult(hits=(hit(1, part=PagePart.ABSTRACT, namespace="default:dirs", path="a/"),), mode="m"), {}
    )
    assert (found.resources[0].leaf, found.resources[0].abstract) == (False, "streams keep order")
    assert found.resources[0].uri == "ramify://default/a/"


def test_given_typed_queries_when_planned_then_the_question_is_the_original_leaf_and_each_has_its_kinds():
    nodes = typed_leaves([RAW, SKILL], Filters()).nodes
    assert [(node.id, node.facet, node.query, node.kinds) for node in nodes] == [
        ("0.0", Facet.ORIGINAL, "write an RFC", ()),
        ("0.1", Facet.CORE, "Write RFC", ("skill",)),
    ]


def test_given_a_filter_of_kinds_when_planned_then_queries_for_others_are_named_not_searched():
    grown = typed_leaves([RAW, SKILL, MEMORY], Filters(kinds=("memory",)))
    assert [node.query for node in grown.nodes] == ["write an RFC", "user's RFC style"]
    assert grown.warnings == ("The query for the kind skill was left out: only memory is asked for.",)


@pytest.mark.parametrize(
    ("asked", "node", "searched"),
    [((), ("skill",), ("skill",)), (("memory", "skill"), ("skill",), ("skill",)), (("memory",), (), ("memory",)),
     (("memory",), ("skill",), ("memory",))],
)  # fmt: skip
def test_given_kinds_of_a_node_when_searched_then_they_narrow_the_filter_and_never_widen_it(asked, node, searched):
    request = JobRequest(question="q", filters=Filters(kinds=asked, paths=("a/",), namespace="ns"))
    leaf = Node(id="0.1", level=1, facet=Facet.CORE, query="q", kinds=node)
    assert leaf_query(request, leaf, load_settings()).filters == Filters(kinds=searched, paths=("a/",), namespace="ns")


def test_given_an_answer_when_grouped_with_its_plan_then_each_query_shows_what_it_found():
    intent = SessionIntent(queries=(TypedQuery(query="q"), TypedQuery(query="Why: q")), standalone="q", by="llm")
    found = session_result(intent, answer("job1", "q", partial=True), "default", {}, plan=True)
    assert [(result.query, len(result.hits), result.error) for result in found.query_results] == [
        ("q", 1, None),
        ("Why: q", 0, "the store is gone"),
    ]
    assert (found.job_id, found.partial, found.planned_by, found.total) == ("job1", True, "llm", 1)
    assert "No LLM is configured." in found.warnings
    assert session_result(intent, answer("job1", "q"), "default", {}, plan=False).query_plan is None


def test_given_nothing_to_look_up_when_told_then_there_is_no_job_and_a_reason():
    found = no_retrieval_result("hi", SessionIntent(reason="It is a greeting."))
    assert (found.retrieval, found.reason, found.job_id, found.total, found.query_plan) == (
        False, "It is a greeting.", None, 0, (),
    )  # fmt: skip


def test_given_a_target_when_asked_then_it_becomes_the_filter_beside_others():
    assert targeted({"target_uri": "ramify://work/a/", "filters": {"tags": ["x"]}}) == {
        "filters": {"tags": ["x"], "namespace": "work", "paths": ("a/",)}
    }
    assert targeted({"target_uri": "notes/"}) == {"filters": {"paths": ("notes/",)}}
    assert targeted({"filters": Filters(tags=("x",)), "target_uri": "notes/"})["filters"]["tags"] == ("x",)


@pytest.mark.parametrize("filters", [{"namespace": "other"}, {"paths": ["b/"]}])
def test_given_a_target_against_another_filter_when_asked_then_it_is_refused_not_widened(filters):
    with pytest.raises(InputError, match="target_uri"):
        targeted({"target_uri": "ramify://work/a/", "filters": filters})


def test_given_files_of_both_forms_when_read_then_they_hold_the_same_conversation(tmp_path):
    messages = [{"role": "user", "content": "你好", "ts": 1}, {"role": "assistant", "content": "hi"}]
    whole, lines, one = tmp_path / "a.json", tmp_path / "b.jsonl", tmp_path / "c.jsonl"
    whole.write_text(json.dumps({"summary": "s", "messages": messages}), encoding="utf-8")
    lines.write_text("\n".join(map(json.dumps, messages)) + "\n", encoding="utf-8")
    one.write_text(json.dumps(messages[0]), encoding="utf-8")
    assert read_session(whole).messages == read_session(lines).messages
    assert read_session(whole).summary == "s"
    assert read_session(one).messages == (ChatMessage(role="user", content="你好"),)


@pytest.mark.parametrize(
    ("text", "named"),
    [("nonsense", "line 1"), ('{"role":"user","content":"a"}\n{"role"', "line 2"), ('"text"', "messages"),
     ('{"messages": [{"role": "robot", "content": "x"}]}', "is none of user, assistant, system, tool"),
     ('{"messages": [{"role": "user", "content": "' + "x" * 8001 + '"}]}', "messages.0.content"),
     ('{"messages": 7}', "messages"), ('{"message": []}', "message")],
)  # fmt: skip
def test_given_a_faulty_file_when_read_then_one_sentence_says_where(tmp_path, text, named):
    path = tmp_path / "s.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_session(path)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_given_a_long_conversation_when_taken_then_the_newest_hundred_are_kept():
    held = as_session({"messages": [{"role": "user", "content": str(n)} for n in range(150)]})
    assert (len(held.messages), held.messages[0].content, held.recent[-1].content) == (100, "50", "149")


@pytest.mark.parametrize("given", [["a"], "text", 7])
def test_given_no_conversation_when_taken_then_its_form_is_told(given):
    with pytest.raises(InputError, match=r"session.*messages"):
        as_session(given)


def test_given_a_failed_leaf_when_shown_then_it_is_no_empty_success():
    leaf = LeafResult(node_id="0.0", status=LeafStatus.FAILED, error="gone")
    whole = answer("j", "q").model_copy(update={"leaves": (leaf,)})
    found = session_result(SessionIntent(queries=(TypedQuery(query="q"),), standalone="q"), whole, "m", {}, plan=True)
    assert found.query_results[0].error == "gone"


def test_given_a_follow_up_when_merged_then_what_its_bare_words_found_does_not_lead():
    nodes = {node.id: node for node in typed_leaves([TypedQuery(query="and that?"), SKILL], Filters()).nodes}
    leaves = [
        LeafResult(node_id="0.0", status=LeafStatus.DONE, hits=(hit(1, score=0.9),), reranker="r"),
        LeafResult(node_id="0.1", status=LeafStatus.DONE, hits=(hit(2, "other words", score=0.6),), reranker="r"),
    ]
    pool = merge_tree(leaves, nodes, load_settings().multi_query, 10)
    by_root = (hit(2, "other words", score=0.3), hit(1, score=0.1))
    follow_up = JobRequest(question="Redis", typed=(TypedQuery(query="and that?"), SKILL))
    plain = JobRequest(question="and that?", typed=(TypedQuery(query="and that?"), SKILL))
    assert (leaf_share(follow_up), leaf_share(plain), leaf_share(JobRequest(question="q"))) == (
        0,
        LEAF_SHARE,
        LEAF_SHARE,
    )
    ordered = [apply_root_rerank(pool, by_root, "r", leaf_share=leaf_share(r)).hits for r in (follow_up, plain)]
    assert [[h.chunk_id for h in hits] for hits in ordered] == [["c2", "c1"], ["c1", "c2"]]
