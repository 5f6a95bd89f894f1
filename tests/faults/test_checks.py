"""The suite's own checks: each fault that they are to find is found, in a job that is otherwise in order."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from shared.models import Answer, LeafResult, LeafStatus
from tests.faults.harness.answers import Essence
from tests.faults.harness.checks import job_faults
from tests.faults.harness.jobs import Seen, recovery
from tests.faults.harness.kills import Kill, Piece
from tests.faults.harness.load import asks, orders
from tests.faults.harness.report import spread

Event = dict[str, str]
_WAY = ("queued", "planning", "searching", "merging", "summarising", "done")


def _events(*, nodes: tuple[str, ...] = ("0.0", "0.1")) -> list[Event]:
    ways = [{"type": "state", "state": state} for state in _WAY]
    told = [{"type": "node", "node": json.dumps({"id": node})} for node in nodes]
    leaves = [{"type": "leaf", "id": node, "status": "done"} for node in nodes]
    return [*ways[:3], *told, *leaves, *ways[3:]]


def _job(events: list[Event] | None = None, **changes: Any) -> Seen:
    fields = {"state": "done", "leaves_total": "2", "leaves_done": "2", "leaves_failed": "0", "partial": "0"}
    leaves = {"0.0": "done", "0.1": "done"} | changes.pop("leaves", {})
    timed = [(float(at), event) for at, event in enumerate(events or _events())]
    return Seen("j", fields | changes, leaves, {}, timed, has_answer=True)


def _answer(**changes: Any) -> Answer:
    leaves = tuple(LeafResult(node_id=node, status=LeafStatus.DONE) for node in ("0.0", "0.1"))
    fields = {"job_id": "j", "question": "q", "state": "done", "coverage": "2 of 2 leaves answered", "leaves": leaves}
    return Answer.model_validate(fields | changes)


class _Client:
    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def result(self, job_id: str) -> Answer:
        return self._answer


def _faults(job: Seen, answer: Answer | None = None) -> list[str]:
    return list(job_faults(job, None, _Client(answer or _answer()), {}))  # type: ignore[arg-type]


def test_given_a_job_in_order_when_checked_then_nothing_is_said() -> None:
    assert _faults(_job()) == []


def _with(change: Callable[[list[Event]], object]) -> Seen:
    events = _events()
    change(events)
    return _job(events)


_LATE = {"type": "leaf", "id": "0.1", "status": "done"}
_FAILED = (LeafResult(node_id="0.0", status=LeafStatus.DONE), LeafResult(node_id="0.1", status=LeafStatus.FAILED))


@pytest.mark.parametrize(
    ("job", "answer", "said"),
    [
        (_job(state=""), None, "is lost"),
        (_job(state="searching"), None, "never ended"),
        (_job(state="failed"), None, "without a reason"),
        (_job(state="failed", error="x"), None, "has an answer all the same"),
        (_with(lambda events: events.append({"type": "state", "state": "done"})), None, "its events end 2 times"),
        (_with(lambda events: events.pop(1)), None, "went from queued to searching"),
        (_with(lambda events: events.append(_LATE)), None, "went on after its end"),
        (_with(lambda events: events.insert(6, _LATE)), None, "recorded leaves more than once"),
        (_with(lambda events: events.insert(4, events[3])), None, "told of a node twice"),
        (_job(leaves_done="1"), None, "counts"),
        (_job(leaves={"0.2": "pending"}), None, "leaves_total 2"),
        (_job(), _answer(leaves=()), "answers of leaves []"),
        (_job(), _answer(coverage="1 of 2 leaves answered"), "says '1 of 2"),
        (_job(), _answer(partial=True), "partial"),
        (_job(), _answer(leaves=_FAILED), "without a named reason"),
    ],
)
def test_given_a_fault_when_checked_then_it_is_named(job: Seen, answer: Answer | None, said: str) -> None:
    faults = _faults(job, answer)
    assert any(said in fault for fault in faults), faults
    assert all(fault.startswith("job j ") for fault in faults)


def test_given_another_answer_when_compared_then_the_difference_is_named() -> None:
    calm = Essence(_answer())
    assert Essence(_answer()).differences(calm) == []
    assert "text" in Essence(_answer(summary={"text": "other"})).differences(calm)[0]
    assert "leaves" in Essence(_answer(leaves=_answer().leaves[:1])).differences(calm)[0]


def _found(*hits: tuple[str, float]) -> Answer:
    made = [{"chunk_id": name, "doc_id": "d", "path": "p", "title": "t", "text": "x", "score": s} for name, s in hits]
    return _answer(leaves=({"node_id": "0.0", "status": "done", "hits": made},))


def test_given_hits_in_another_order_when_compared_then_only_ties_may_differ() -> None:
    calm = Essence(_found(("a", 0.9), ("b", 0.9), ("c", 0.5)))
    assert Essence(_found(("b", 0.9), ("a", 0.9), ("c", 0.5))).differences(calm) == []
    assert Essence(_found(("b", 0.9), ("a", 0.9), ("d", 0.5))).differences(calm) == [], "one that ties with the last"
    assert Essence(_found(("a", 0.9), ("c", 0.9), ("b", 0.5))).differences(calm)
    assert Essence(_found(("a", 0.9), ("b", 0.8), ("c", 0.5))).differences(calm)
    assert Essence(_found(("a", 0.9), ("b", 0.9))).differences(calm)


def test_given_a_killed_leaf_when_timed_then_its_record_ends_it() -> None:
    kill = Kill(0.5, "search", 1, [Piece("search.leaf", "j", "0.1"), Piece("merge.tree", "j", None)])
    lost = Kill(0.5, "rerank", 2, [Piece("rerank.leaf", "gone", "0.1")])
    found = recovery([kill, lost], {"j": _job()})
    assert (found.leaves, found.steps, found.dropped) == ([5.5], [0.5], 1)
    assert spread(found.leaves).startswith("min 5.5, median 5.5")


def test_given_a_seed_when_the_load_is_made_then_it_is_the_same_again_and_asks_each_question_once() -> None:
    asked = asks(60)
    assert orders(asked, 3, 10, "x") == orders(asked, 3, 10, "x") != orders(asked, 4, 10, "x")
    assert sorted(order.ask.number for order in orders(asked, 3, 10, "x")) == list(range(60))
    assert {ask.leaves for ask in asked} == {8, None}
