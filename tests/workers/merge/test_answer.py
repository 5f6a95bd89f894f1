"""Leaves that recorded nothing, each with its reason."""

from __future__ import annotations

from shared.models import Facet, LeafResult, LeafStatus, Node, NodeKind
from workers.merge.answer import _searched_first, all_leaves, verdict
from workers.merge.extract import nothing_found


def node(node_id: str, query: str = "who?", *depends_on: str, kind: NodeKind = NodeKind.LEAF) -> Node:
    return Node(id=node_id, level=1, facet=Facet.CORE, query=query, depends_on=depends_on, kind=kind)


def errors(nodes: list[Node], states: dict[str, str], **results: LeafResult) -> dict[str, str | None]:
    known = {result.node_id: result for result in results.values()}
    return {leaf.node_id: leaf.error for leaf in all_leaves({one.id: one for one in nodes}, states, known)}


def test_given_a_leaf_that_still_waits_then_it_says_for_which_subquestions() -> None:
    nodes = [node("0.1", "Who founded it?"), node("0.2", "Who owns it?"), node("0.3", "Where is #1?", "0.1", "0.2")]
    done = LeafResult(node_id="0.2", status=LeafStatus.DONE)
    found = errors(nodes, {"0.1": "searched", "0.2": "done", "0.3": "waiting"}, done=done)
    assert found == {
        "0.1": "had not answered when the job's time was up",
        "0.2": None,
        "0.3": "was still waiting for 0.1 ('Who founded it?') when the job's time was up",
    }


def test_given_a_leaf_whose_parents_ended_but_that_nobody_bound_then_it_says_so() -> None:
    nodes = [node("0.1"), node("0.2", "Where is #1?", "0.1")]
    done = LeafResult(node_id="0.1", status=LeafStatus.FAILED, error="gone")
    found = errors(nodes, {"0.1": "failed", "0.2": "waiting"}, done=done)
    assert found["0.2"] == "waited for 0.1, whose answers came too late for it to start"


def test_given_a_long_query_with_controls_then_the_reason_stays_one_short_line() -> None:
    nodes = [node("0.1", "x\x1b[31m\n" * 90), node("0.2", "#1?", "0.1")]
    said = errors(nodes, {"0.1": "pending", "0.2": "waiting"})["0.2"]
    assert said is not None
    assert said.isprintable()
    assert len(said) < 250


def test_given_a_branch_that_has_grown_then_it_is_no_leaf() -> None:
    nodes = [node("0.1", kind=NodeKind.BRANCH), node("0.1.1")]
    assert list(errors(nodes, {"0.1": "grown", "0.1.1": "pending"})) == ["0.1.1"]


def test_given_leaves_of_different_verdicts_then_there_is_none() -> None:
    def leaf(said: str | None, status: LeafStatus = LeafStatus.DONE) -> LeafResult:
        return LeafResult(node_id="0.1", status=status, verdict=said)

    assert verdict([leaf("nothing relevant"), leaf(None, LeafStatus.FAILED)]) == "nothing relevant"
    assert verdict([leaf("nothing relevant"), leaf(None)]) is None
    assert verdict([]) is None


def test_given_a_list_that_was_only_searched_when_nothing_is_found_then_the_answer_says_that_first() -> None:
    nothing = nothing_found("Who drives at night?")
    warning = "Searched, not listed (unread words), because this was not understood: “night”."
    told = _searched_first(nothing, ("Another one.", warning), "Who drives at night?")
    assert told is not None
    assert told.text == f"{warning} {nothing.text}"
    assert _searched_first(nothing, ("Another one.",), "Who drives at night?") == nothing
