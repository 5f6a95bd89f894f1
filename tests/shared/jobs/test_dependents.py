"""Leaves that waited, on a real Redis without workers: who starts them, when, and only once."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from shared.jobs import Job, JobReader, JobStore, new_id
from shared.models import Facet, Hit, JobRequest, LeafResult, LeafStatus, Node
from shared.settings import Settings
from shared.tasks.app import make_app
from shared.tasks.task_run import TaskRun
from workers.rerank.binding import bind_dependents
from workers.search.state import Tools


@dataclass
class Task:
    """A running member of a chord that remembers what is added to it."""

    app: Any
    added: list[str] = field(default_factory=list)
    request: Any = field(default_factory=lambda: SimpleNamespace(chord=True, id="task"))
    name: str = "rerank.leaf"

    def add_to_chord(self, signature: Any) -> None:
        self.added.append(signature.tasks[0].args[0]["node_id"])


def node(node_id: str, *depends_on: str, needed_by: tuple[str, ...] = (), query: str = "who?") -> Node:
    facet = Facet.CORE
    return Node(
        id=node_id, parent_id="0", level=1, facet=facet, query=query, depends_on=depends_on, needed_by=needed_by
    )


FIRST = node("0.1", needed_by=("0.3",))
SECOND = node("0.2", needed_by=("0.3", "0.4"))
THIRD = node("0.3", "0.1", "0.2", query="did #1 meet #2?")
FOURTH = node("0.4", "0.2", query="where is #2?")


@pytest.fixture
def job(store: JobStore) -> Job:
    job_id = new_id()
    store.enqueue([(job_id, JobRequest(question="why?"))])
    store.start_planning(job_id, "t")
    store.start_searching(job_id, [FIRST, SECOND, THIRD, FOURTH])
    found = store.job(job_id)
    assert found is not None
    return found


def record(store: JobStore, job: Job, node_id: str, title: str) -> None:
    hit = Hit(chunk_id=node_id, doc_id=node_id, path="p", title=title, text="", score=1)
    store.record_leaf(job.id, LeafResult(node_id=node_id, status=LeafStatus.DONE, hits=(hit,)))


def ended(store: JobStore, job: Job, leaf: Node, task: Task) -> None:
    step = TaskRun(task, store, job, SimpleNamespace(node_id=leaf.id))  # type: ignore[arg-type]
    bind_dependents(step, leaf.needed_by, Tools(settings=store.settings, timeout_s=1))


def test_given_two_leaves_that_end_when_told_often_then_each_that_waited_is_added_once(
    store: JobStore, settings: Settings, job: Job
) -> None:
    task = Task(make_app(settings))
    record(store, job, "0.1", "Ada")
    ended(store, job, FIRST, task)
    assert task.added == [], "0.2 is open"
    record(store, job, "0.2", "Bo")
    for leaf in (SECOND, FIRST, SECOND):
        ended(store, job, leaf, task)
    assert task.added == ["0.3", "0.4"]
    nodes = store.nodes(job.id)
    assert (nodes["0.3"].query, nodes["0.4"].query) == ("did Ada meet Bo?", "where is Bo?")
    assert store.leaf_states(job.id)["0.3"] == "pending"


def _broken(*_: object) -> None:
    raise ValueError("no names")


def test_given_a_binding_that_breaks_when_told_then_the_leaf_is_searched_without_and_a_warning_says_so(
    store: JobStore, settings: Settings, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = Task(make_app(settings))
    record(store, job, "0.2", "Bo")
    monkeypatch.setattr("workers.rerank.binding.bind", _broken)
    ended(store, job, SECOND, task)
    assert task.added == ["0.4"]
    assert (store.nodes(job.id)["0.4"].query, store.nodes(job.id)["0.4"].bound_by) == ("where is?", "nothing")
    warnings = JobReader(store.client).status(job.id).warnings
    assert any(said.startswith("Subquestion 0.4 runs without what it waited for") for said in warnings)
