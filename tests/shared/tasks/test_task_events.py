"""Events of tasks: one for a task that ended before they were published, and what Flower makes of it."""

from __future__ import annotations

from typing import Any

from orchestrator.flower_state import FoldedState
from shared.settings import load_settings
from shared.tasks.app import make_app
from shared.tasks.task_events import TaskEvents, folded

_AT = {"hostname": "search@here", "local_received": 9.0, "clock": 1, "pid": 7}


def told(kind: str, uuid: str, at: float, **more: object) -> dict[str, Any]:
    return {"type": f"task-{kind}", "uuid": uuid, "timestamp": at, **_AT, **more}


RECEIVED, STARTED = told("received", "a", 1.0, name="search.leaf", args="()"), told("started", "a", 2.0)
ENDED = told("succeeded", "a", 3.0, runtime=1.0)
OPEN = [told("received", "b", 2.5, name="search.leaf"), told("started", "b", 3.5)]


def test_a_task_that_has_ended_is_one_event_and_one_under_way_is_told_as_it_goes_on() -> None:
    one = {**RECEIVED, **ENDED, "received": 1.0, "started": 2.0}
    assert folded([RECEIVED, OPEN[0], STARTED, ENDED, OPEN[1]]) == [OPEN[0], one, OPEN[1]]
    assert folded([one]) == [one], "what could not be published is folded again"
    assert folded([STARTED, ENDED]) == [{**STARTED, **ENDED, "started": 2.0}], "it was told before that it came"


def test_a_workers_events_are_those() -> None:
    with make_app(load_settings(redis={"url": "redis://127.0.0.1:1/0"})) as app:
        assert issubclass(app.events.Dispatcher, TaskEvents)


def test_flower_shows_and_counts_such_a_task_as_any_other() -> None:
    apart, together = FoldedState(), FoldedState()
    for event in (RECEIVED, STARTED, ENDED):
        apart.event(dict(event))
    for event in folded([RECEIVED, STARTED, ENDED]):
        together.event(dict(event))
    tasks = [state.tasks["a"] for state in (apart, together)]
    shown = ("name", "args", "state", "received", "started", "succeeded", "runtime", "timestamp")
    assert [getattr(tasks[1], name) for name in shown] == [getattr(tasks[0], name) for name in shown]
    assert (
        apart.counter
        == together.counter
        == {"search@here": {f"task-{kind}": 1 for kind in ("received", "started", "succeeded")}}
    )
