"""Plans of the caller's own, as files: what round-trips, and what each mistake is told."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from pydantic import ValidationError

from orchestrator.intake import as_request
from orchestrator.planning.plan_file import PlanFile, as_plan, check_leaves, plan_fields, read_plan, written
from orchestrator.planning.planner import own_tree
from shared.errors import InputError
from shared.models import JobRequest, NodeKind
from shared.settings.sections import DecompositionSettings

LIMITS = DecompositionSettings()
NESTED = """
question = "How do we move the queue?"
strategy = "multihop"
[filters]
tags = ["queue"]
after = 2026-01-02

[[subqueries]]
id = 7
query = "Who owns #3?"
[[subqueries]]
id = 3
query = "Which service writes to the queue?"
[[subqueries]]
id = 9
query = "What are the \\"risks\\"? 有哪些风险？"
dimension = "note"
[[subqueries]]
id = 4
query = "Which messages may be lost?"
under = 9
[[subqueries]]
id = 5
query = "After #4, who is told?"
under = 9
"""


def file(tmp_path: Path, text: str | bytes, name: str = "plan.toml") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def tree(plan: PlanFile):
    request = JobRequest.model_validate({"question": "How do we move the queue?", **plan_fields(plan)})
    return own_tree(request.question, request.subqueries, LIMITS)


def test_given_entries_in_any_order_when_read_then_the_tree_has_branches_and_dependencies(tmp_path: Path) -> None:
    grown = tree(read_plan(file(tmp_path, NESTED)))
    shown = [(node.id, node.kind.value, node.query, node.depends_on, node.needed_by) for node in grown.nodes]
    assert shown == [
        ("0.0", "leaf", "How do we move the queue?", (), ()),
        ("0.1", "leaf", "Which service writes to the queue?", (), ("0.2",)),
        ("0.2", "leaf", "Who owns #1?", ("0.1",), ()),
        ("0.3", "branch", 'What are the "risks"? 有哪些风险？', (), ()),
        ("0.3.1", "leaf", "Which messages may be lost?", (), ("0.3.2",)),
        ("0.3.2", "leaf", "After #1, who is told?", ("0.3.1",), ()),
    ]
    assert [node.parent_id for node in grown.nodes] == ["0", "0", "0", "0", "0.3", "0.3"]
    assert grown.warnings == ()


@pytest.mark.parametrize("as_toml", [True, False])
def test_given_a_plan_when_written_and_read_then_it_is_the_same(tmp_path: Path, *, as_toml: bool) -> None:
    plan = read_plan(file(tmp_path, NESTED))
    text = written(plan, as_toml=as_toml)
    assert (tomllib.loads if as_toml else json.loads)(text)["subqueries"][2]["dimension"] == "note"
    again = read_plan(file(tmp_path, text, "again"))
    assert again == plan
    assert tree(again) == tree(plan)


def test_given_a_plan_without_entries_when_read_then_the_question_is_searched_as_it_is(tmp_path: Path) -> None:
    fields = plan_fields(read_plan(file(tmp_path, 'question = "why?"')))
    assert fields == {"question": "why?", "decompose": False}


def entry(**fields: object) -> str:
    return json.dumps({"question": "q", "subqueries": [{"query": "first?"}, fields]})


NONSENSE = {
    "unknown field": (entry(query="b?", depend_on=[1]), "entry 2, depend_on", "did you mean 'depends_on'?"),
    "unknown top field": ('{"queston": "q"}', "queston", "did you mean 'question'?"),
    "no query": (entry(dimension="why"), "entry 2, query", "it is missing"),
    "empty query": (entry(query=""), "entry 2, query", "at least 1 character"),
    "blank query": (entry(query=" \t"), "entry 2, query", "it is empty: write a question"),
    "unknown filter": ('question="q"\n[filters]\ntag=["x"]', "filters.tag", "did you mean 'tags'?"),
    "a line for entries": ('question="q"\nsubqueries="b?"', "subqueries", "write a list, in brackets"),
    "a line for an entry": (json.dumps({"question": "q", "subqueries": ["b?"]}), "entry 1", "write a table"),
    "wrong type": (entry(query=["b?"]), "entry 2, query", "valid string"),
    "unknown facet": (entry(query="b?", dimension="when"), "entry 2, dimension", "'core', 'why'"),
    "the original": (entry(query="b?", dimension="original"), "entry 2, dimension", "is there anyway"),
    "duplicate id": (entry(query="b?", id=1), "entry 1, id", "two entries have that number"),
    "id of no number": (entry(query="b?", id="one"), "entry 2, id", "valid integer"),
    "id out of range": (entry(query="b?", id=100), "entry 2, id", "less than or equal to 99"),
    "no such entry": (entry(query="b?", depends_on=[8]), "entry 2, depends_on: 8", "use one of 1, 2"),
    "itself": (entry(query="b?", depends_on=[2]), "entry 2, depends_on: 2", "cannot stand under itself or wait"),
    "under nobody": (entry(query="b?", under=5), "entry 2, under: 5", "there is no entry of that number"),
    "waits for a branch": (
        json.dumps({"subqueries": [{"query": "a"}, {"query": "b", "under": 1}, {"query": "c", "depends_on": [1]}]}),
        "entry 3, depends_on: 1", "that entry is refined",
    ),
    "waits for a stranger": (
        json.dumps({"subqueries": [{"query": "a"}, {"query": "b", "under": 1}, {"query": "c #2"}]}),
        "entry 3, depends_on: 2", "only for entries under the same one",
    ),
    "circle": (
        json.dumps({"subqueries": [{"query": "a #2"}, {"query": "b #3"}, {"query": "c #1"}]}),
        "entry 1, depends_on: 2", "(1 -> 2 -> 3 -> 1): break it",
    ),
    "circle of branches": (
        json.dumps({"subqueries": [{"query": "a", "under": 2}, {"query": "b", "under": 1}]}), "under", "in a circle",
    ),
    "500 leaves": (json.dumps({"subqueries": [{"query": f"q{n}"} for n in range(500)]}), "500 entries", "at most 63"),
    "a list": ("[1, 2]", "plan: [1, 2]", "it is no table"),
    "a text": ('"why?"', "--plan", "neither TOML nor JSON"),
    "yaml": ("question: why?\nsubqueries:\n  - query: b\n", "--plan", "YAML is not read"),
    "cut off json": ('{"question": "q"', "--plan", "line 1 is no JSON"),
    "json with a comment": ('{\n// mine\n"question": "q"}', "--plan", "line 2 is no JSON"),
    "deep json": ("[" * 100_000, "--plan", ""),
    "nothing": (" \n", "--plan", "it is empty"),
    "not utf-8": (b'question = "\xff"', "--plan", "byte 12 is not UTF-8"),
    "ten megabytes": (b"# " + b"x" * 10_000_000, "--plan", "more than 512,000 bytes"),
    "bad dates": ('question="q"\n[filters]\nafter="never"', "filters.after", "valid date"),
    "dates in disorder": ('question="q"\n[filters]\nafter=2026-02-01\nbefore=2026-01-01', "filters", "lies behind"),
    "endless question": (json.dumps({"question": "q" * 5000}), "question", "at most 4000"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(NONSENSE))
def test_given_a_plan_edited_into_nonsense_when_read_then_one_sentence_says_where_and_how_to_mend_it(
    tmp_path: Path, name: str
) -> None:
    text, where, fix = NONSENSE[name]
    path = file(tmp_path, text, "plan.yaml" if name == "yaml" else "plan")
    with pytest.raises(InputError) as caught:
        read_plan(path)
    said = str(caught.value)
    assert where in said
    assert fix in said
    assert str(path)[:60] in said
    assert "\n" not in said
    assert len(said) < 700


def test_given_a_file_that_is_none_when_read_then_it_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        read_plan(tmp_path / "gone.toml")
    with pytest.raises(InputError, match="it is a folder"):
        read_plan(tmp_path)


def test_given_more_leaves_than_fit_when_checked_then_the_sentence_names_the_setting() -> None:
    plan = as_plan({"subqueries": [{"query": f"q{n}"} for n in range(12)]})
    with pytest.raises(InputError, match=r"p.toml: subqueries: '12 leaves'.* or raise decomposition.max_total_leaves"):
        check_leaves(plan, 12, "p.toml: ")
    check_leaves(plan, 13, "p.toml: ")


def test_given_a_nested_plan_beyond_the_cap_when_grown_then_the_last_leaves_are_left_out_by_name() -> None:
    entries = [{"query": "a"}, {"query": "a1", "under": 1}, {"query": "a2", "under": 1}, {"query": "b"},
               {"query": "b1", "under": 4}]  # fmt: skip
    plan = JobRequest.model_validate({"question": "q", "subqueries": entries}).subqueries
    grown = own_tree("q", plan, LIMITS.model_copy(update={"max_total_leaves": 3}))
    assert [(node.id, node.kind) for node in grown.nodes] == [
        ("0.0", NodeKind.LEAF), ("0.1", NodeKind.BRANCH), ("0.1.1", NodeKind.LEAF), ("0.1.2", NodeKind.LEAF),
    ]  # fmt: skip
    assert grown.warnings == (
        "1 subquestion(s) of the plan beyond the room for 2 were left out (decomposition.max_total_leaves): 'b1'.",
    )


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([{"query": "a", "under": 1}], "entry 1 waits for itself"),
        ([{"query": "a"}, {"query": "b", "under": 1}, {"query": "c #1"}], "that entry is refined"),
    ],
)
def test_given_subqueries_of_a_request_that_lead_nowhere_when_read_then_they_are_refused(entries, said) -> None:
    with pytest.raises(ValidationError, match=said):
        JobRequest.model_validate({"question": "q", "subqueries": entries})


def test_given_a_request_with_a_plan_when_read_then_its_own_fields_go_before_the_plans() -> None:
    plan = {"question": "from the plan", "strategy": "multihop", "subqueries": ["a?", {"query": "who is #1?"}]}
    plan["subqueries"] = [{"query": "a?"}, {"query": "who is #1?"}]
    request = as_request({"plan": plan, "strategy": "keyword"}, {"top_n": 3})
    assert (request.question, request.strategy, request.top_n) == ("from the plan", "keyword", 3)
    assert [entry.depends_on for entry in request.subqueries] == [(), (1,)]
    assert as_request("mine", {"plan": plan}).question == "mine"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"question": "q", "plan": "plan.toml"}, "it is no table"),
        ({"question": "q", "plan": {"subqueries": [{"query": "a", "id": 0}]}}, "plan entry 1, id: 0"),
        ({"question": "q", "plan": {"subqueries": [{"query": "a"}]}, "subqueries": ["b"]}, "give one of the two"),
        ({"plan": {"subqueries": [{"query": "a"}]}}, "question"),
    ],
)
def test_given_a_request_with_a_bad_plan_when_read_then_it_is_refused(given, said) -> None:
    """A path is taken from people at a command line alone: lines of a batch may come from anybody."""
    with pytest.raises(InputError, match=said):
        as_request(given)
