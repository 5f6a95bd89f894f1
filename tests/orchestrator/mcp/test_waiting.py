"""A job's events as steps of a progress bar: each grows, each says what was done, and few are enough."""

from __future__ import annotations

from orchestrator.mcp.waiting import Step, Steps
from shared.models import Facet, JobEvent, Node
from shared.models.plan import NodeKind, Shard


def _event(kind: str, **data: str) -> JobEvent:
    return JobEvent(id="1-0", type=kind, data=data)


def _node(id_: str, query: str, **fields: object) -> JobEvent:
    node = Node(id=id_, parent_id="0", level=1, facet=Facet.CORE, query=query, **fields)
    return _event("node", node=node.model_dump_json())


def test_given_the_events_of_a_tree_when_taken_then_each_leaf_and_stage_is_a_step() -> None:
    steps = Steps()
    events = [
        _event("state", state="queued"),
        _event("state", state="planning"),
        _event("routed", route="{}"),
        _node("0.0", "why\u202e?"),
        _node("0.1", "part 1 of 1", shard=Shard(number=1, of=1)),
        _node("0.2", "refined", kind=NodeKind.BRANCH),
        _event("node", node="not JSON"),
        _event("leaf", id="0.0", status="searched"),
        _event("leaf", id="0.0", status="done", hits="7"),
        _event("leaf", id="0.1", status="done", hits="0"),
        _event("leaf", id="0.3", status="failed", error="the store is gone"),
        _event("state", state="merging"),
        _event("state", state="done"),
    ]
    assert [step for step in map(steps.take, events) if step] == [
        Step(1, 6, "it is being planned"),
        Step(2, 8, "searched, 7 passages: why?"),
        Step(3, 8, "listed: part 1 of 1"),
        Step(4, 8, "failed: part 0.3"),
        Step(5, 8, "the findings are being merged"),
    ]


def test_given_thousands_of_files_when_taken_then_a_hundred_steps_are_told_and_the_last_one_is_whole() -> None:
    steps = Steps()
    events = (_event("indexed", read=str(number), files="5000") for number in range(1, 5001))
    found = [step for step in map(steps.take, events) if step]
    assert len(found) == 100
    assert found[-1] == Step(5000, 5000, "5000 of 5000 files read")
    assert [step.done for step in found] == sorted({step.done for step in found})
