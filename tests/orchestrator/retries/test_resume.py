"""What of a tree holds when a job is tried again: pure."""

from __future__ import annotations

import pytest

from orchestrator.retries.resume import ResumedTree, replayed_tree, resumed, resumed_tree
from shared.jobs.scripts import node_args
from shared.models import Facet, Node, NodeKind
from shared.models.replay import ReplayStage
from tests.fakes.walked_jobs import route


def node(node_id: str, **fields: object) -> Node:
    values = {"id": node_id, "parent_id": "0", "level": 1, "facet": Facet.CORE, "query": f"question {node_id}"}
    return Node.model_validate({**values, **fields})


def bound(node_id: str, *others: str) -> Node:
    """A leaf that had got the answers that it waited for."""
    return node(
        node_id, depends_on=others, asked="who is #1?", query="who is Ada?", bound_by="names", variants=("a", "b"),
        written=dict.fromkeys(others, ("Ada",)),
    )  # fmt: skip


def of(nodes: list[Node], done: str = "", failed: str = "", again: str = "") -> ResumedTree:
    ends = {**dict.fromkeys(failed.split(), "failed"), **dict.fromkeys(done.split(), "done")}
    return resumed_tree({one.id: one for one in nodes}, ends, frozenset(again.split()))


def states(found: ResumedTree) -> dict[str, str]:
    parts = node_args(found.nodes)
    return dict(zip(parts[::3], parts[1::3], strict=True))


def test_given_a_failed_and_a_missing_leaf_then_only_these_run() -> None:
    found = of([node("0.0"), node("0.1"), node("0.2")], done="0.0", failed="0.1")
    assert list(found.kept) == ["0.0"]
    assert [one.id for one in found.start] == ["0.1", "0.2"]
    assert found.notify == ()


def test_given_everything_answered_then_nothing_runs_but_the_body() -> None:
    found = of([node("0.0"), node("0.1")], done="0.0 0.1")
    assert (found.start, found.notify, len(found.kept)) == ((), (), 2)


def test_given_a_branch_that_was_not_refined_then_it_is_refined_and_a_grown_one_is_not() -> None:
    grown = node("0.1", kind=NodeKind.BRANCH, budget=4)
    child = node("0.1.1", parent_id="0.1", level=2)
    found = of([node("0.0"), grown, child, node("0.2", kind=NodeKind.BRANCH)], done="0.0")
    assert [one.id for one in found.start] == ["0.1.1", "0.2"]
    assert states(found) == {"0.0": "pending", "0.1": "grown", "0.1.1": "pending", "0.2": "open"}


@pytest.mark.parametrize("done", ["0.0 0.2", "0.0"])
def test_given_a_failed_leaf_then_one_that_was_asked_without_its_answer_is_asked_again_with_it(done: str) -> None:
    found = of([node("0.0"), node("0.1"), bound("0.2", "0.1")], done=done, failed="0.1")
    assert list(found.kept) == ["0.0"]
    assert [one.id for one in found.start] == ["0.1"]
    again = found.nodes[2]
    assert (again.query, again.asked, again.bound_by, again.written, again.variants) == (
        "who is #1?",
        None,
        None,
        {},
        (),
    )
    assert states(found)["0.2"] == "waiting"


def test_given_a_chain_of_leaves_then_all_behind_the_failed_one_run_again() -> None:
    chain = [node("0.1"), bound("0.2", "0.1"), bound("0.3", "0.2"), node("0.4")]
    found = of(chain, done="0.2 0.3 0.4", failed="0.1")
    assert list(found.kept) == ["0.4"]
    assert states(found) == {"0.1": "pending", "0.2": "waiting", "0.3": "waiting", "0.4": "pending"}


def test_given_a_failed_leaf_that_had_its_answers_then_it_starts_at_once_as_it_was_bound() -> None:
    found = of([node("0.1"), bound("0.2", "0.1")], done="0.1", failed="0.2")
    assert [one.query for one in found.start] == ["who is Ada?"]
    assert states(found)["0.2"] == "pending"
    assert found.notify == ()


def test_given_a_leaf_that_nobody_had_bound_then_one_that_it_waits_for_is_told() -> None:
    waiting = node("0.3", depends_on=("0.1", "0.2"))
    found = of([node("0.1"), node("0.2"), waiting], done="0.1 0.2")
    assert (found.start, found.notify) == ((), ("0.2",))
    assert of([node("0.1"), node("0.2"), waiting], done="0.1").notify == (), "0.2 runs, and tells it itself"


def test_given_results_of_nodes_that_are_gone_then_they_are_left_out() -> None:
    assert of([node("0.0")], done="0.0 0.9").kept == ("0.0",)


def test_given_a_leaf_that_was_made_without_something_then_it_runs_again_with_those_that_waited_for_it() -> None:
    found = of([node("0.0"), node("0.1"), bound("0.2", "0.1"), node("0.3")], done="0.0 0.1 0.2 0.3", again="0.1")
    assert list(found.kept) == ["0.0", "0.3"]
    assert [one.id for one in found.start] == ["0.1"]
    assert states(found)["0.2"] == "waiting"
    assert [found.holds(item) for item in ("plan.job", "0.3", "0.1", "merge.summarise")] == [True, True, False, False]


def test_given_a_leaf_that_was_bound_without_a_reader_then_it_is_bound_again() -> None:
    found = of([node("0.1"), bound("0.2", "0.1")], done="0.1 0.2", again="0.2")
    assert (list(found.kept), found.start, found.notify) == (["0.1"], (), ("0.1",))
    assert found.nodes[1].query == "who is #1?"


def test_given_a_branch_that_was_refined_without_something_then_it_is_refined_again_and_what_stood_below_it_goes() -> (
    None
):
    branch = node("0.1", kind=NodeKind.BRANCH, budget=4)
    below = [node("0.1.1", parent_id="0.1", level=2, kind=NodeKind.BRANCH), node("0.1.1.1", parent_id="0.1.1", level=3)]
    found = of([node("0.0"), branch, *below], done="0.0 0.1.1.1", again="0.1")
    assert [one.id for one in found.nodes] == ["0.0", "0.1"]
    assert states(found) == {"0.0": "pending", "0.1": "open"}
    assert [one.id for one in found.start] == ["0.1"]
    kept = of([node("0.0"), branch, *below], done="0.0 0.1.1.1", again="0.0")
    assert kept.holds("0.1"), "it has grown"


@pytest.mark.parametrize(
    ("repairs", "item", "state", "anew"),
    [
        (True, "plan.job", "done", True),
        (False, "plan.job", "done", False),
        (False, "plan.job", "failed", True),
        (False, "0.0", "failed", False),
        (True, "0.0", "done", False),
    ],
)
def test_given_a_plan_that_was_made_without_something_then_it_is_made_anew_for_a_repair_and_where_no_leaf_holds(
    repairs: bool, item: str, state: str, anew: bool
) -> None:
    found = resumed(route(), {"0.0": node("0.0")}, {"0.0": state}, {item: ("llm_unavailable",)}, repairs=repairs)
    assert (found is None) == anew


@pytest.mark.parametrize(("state", "started"), [("failed", [NodeKind.BRANCH]), ("done", [])])
def test_given_a_failed_leaf_that_was_to_be_a_branch_then_a_plain_retry_refines_it_again(
    state: str, started: list[NodeKind]
) -> None:
    nodes = {"0.0": node("0.0"), "0.1": node("0.1", budget=3)}
    ends, degraded = {"0.0": "done", "0.1": state}, {"0.1": ("llm_unavailable",)}
    found = resumed(route(), nodes, ends, degraded, repairs=False)
    assert found is not None
    assert [one.kind for one in found.start] == started


def test_given_a_branch_that_became_a_leaf_without_the_llm_then_it_is_refined_again() -> None:
    leaf = node("0.1", budget=3)
    found = of([node("0.0"), leaf], done="0.0 0.1", again="0.1")
    assert states(found) == {"0.0": "pending", "0.1": "open"}
    assert [one.kind for one in found.start] == [NodeKind.BRANCH]
    assert of([node("0.0"), leaf], done="0.0 0.1", again="0.0").kept == ("0.1",)


def test_a_replay_of_the_search_has_the_plan_without_what_was_added_to_it_and_a_later_one_all_leaves() -> None:
    grown, child = node("0.1", kind=NodeKind.BRANCH, budget=4), node("0.1.1", parent_id="0.1", level=2)
    added = node("0.3", facet=Facet.GAP, gap={"signal": "name", "what": "Ada"})
    tree = {one.id: one for one in (node("0.0"), grown, child, bound("0.2", "0.0"), added)}
    early = replayed_tree(tree, ReplayStage.RERANK)
    assert [one.id for one in early.nodes] == ["0.0", "0.1", "0.1.1", "0.2"]
    assert [one.id for one in early.start] == ["0.0", "0.1.1"]
    assert early.nodes[3].query == "who is #1?", "it waits anew for what it asked with"
    late = replayed_tree(tree, ReplayStage.MERGE)
    assert late.kept == ("0.0", "0.1.1", "0.2", "0.3")
    assert (late.start, late.notify) == ((), ())
    assert late.nodes[3].query == "who is Ada?"
