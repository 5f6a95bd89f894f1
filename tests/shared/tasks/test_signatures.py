"""The canvas is pure: what it builds can be read without a broker.

How a message came, as a real Celery worker hands it to the task: its priority, and what the reaper wrote on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from queue import Queue as Line

import pytest
from celery import Celery, chain

from shared.contract import PRIORITY_STEPS, TaskMessage, TaskName, ranks
from shared.models import Facet, Lane, Node, NodeKind
from shared.models.plan import Shard
from shared.tasks.signatures import Delivery, delivery, job_chord, node_signature, sent_again, skip_next, task_signature
from tests.support.worker_in_process import worker_in_process

APP = Celery(broker="memory://", backend="cache+memory://", set_as_current=False)


def node(node_id: str, kind: NodeKind = NodeKind.LEAF) -> Node:
    return Node(id=node_id, parent_id="0", level=1, facet=Facet.HOW, query="the text of a question", kind=kind)


def test_a_leaf_is_searched_and_reranked_on_its_own_queues() -> None:
    chain = node_signature(APP, "0123456789abcdef", 0, node("0.1"))
    assert [(task.task, task.options["queue"]) for task in chain.tasks] == [
        ("search.leaf", "search"),
        ("rerank.leaf", "rerank"),
    ]


def test_a_lists_shard_is_one_task_of_the_pool_that_owns_the_store() -> None:
    shard = node("0.1").model_copy(update={"shard": Shard(number=1, of=2)})
    task = node_signature(APP, "0123456789abcdef", 0, shard)
    assert (task.task, task.options["queue"]) == ("search.shard", "search")


def test_one_flat_chord_whose_body_merges_reranks_and_writes() -> None:
    chord = job_chord(APP, "0123456789abcdef", 5, [node("0.0"), node("0.1", NodeKind.BRANCH)])
    header = [getattr(task, "tasks", [task])[-1].task for task in chord.tasks]
    assert header == ["rerank.leaf", "plan.refine"]
    assert [task.task for task in chord.body.tasks] == ["merge.tree", "rerank.root", "merge.summarise"]


def test_messages_carry_a_version_and_ids_only() -> None:
    chord = job_chord(APP, "0123456789abcdef", 5, [node("0.0")])
    assert chord.tasks[0].tasks[0].args == ({"v": 1, "job_id": "0123456789abcdef", "node_id": "0.0"},)
    assert "the text of a question" not in repr(dict(chord))


def test_interactive_work_has_the_priority_that_redis_serves_first() -> None:
    fast, slow = ranks(Lane.INTERACTIVE), ranks(Lane.BATCH)
    assert fast == [0, 1, 2, 2, 3]
    assert slow == [5, 6, 7, 7, 8]
    assert set(fast + slow) == set(PRIORITY_STEPS)
    assert {
        task.options["priority"] for task in node_signature(APP, "0123456789abcdef", slow[2], node("0.0")).tasks
    } == {7}


def test_force_travels_only_where_it_is_set() -> None:
    assert TaskMessage(job_id="0123456789abcdef", force=True).wire()["force"] is True
    assert "force" not in TaskMessage(job_id="0123456789abcdef").wire()


def test_given_a_leaf_that_waits_when_the_chord_is_built_then_it_is_no_member_yet() -> None:
    waiting = node("0.2").model_copy(update={"depends_on": ("0.1",)})
    chord = job_chord(APP, "0123456789abcdef", 5, [node("0.0"), node("0.1"), waiting])
    assert [chain.tasks[0].args[0]["node_id"] for chain in chord.tasks] == ["0.0", "0.1"]


JOB = "1" * 21


@pytest.fixture(scope="module")
def came() -> Iterator[tuple[Celery, Line[tuple[str, Delivery]]]]:
    app = Celery("deliveries", broker="memory://", set_as_current=False)
    app.conf.update(task_default_queue="search", worker_hijack_root_logger=False)
    seen: Line[tuple[str, Delivery]] = Line()
    for name in (TaskName.SEARCH_LEAF, TaskName.RERANK_LEAF, TaskName.MERGE_SUMMARISE):

        def run(task, raw):
            seen.put((task.name, delivery(task.request)))
            if raw.get("force"):
                skip_next(task, TaskName.RERANK_LEAF)

        app.task(name=name.value, bind=True, shared=False)(run)
    with worker_in_process(app, ["search", "rerank", "merge"], pool="solo"):
        yield app, seen


def two_steps(app: Celery) -> chain:
    message = TaskMessage(job_id=JOB, node_id="0.1")
    return chain(
        task_signature(app, TaskName.SEARCH_LEAF, message, 5),
        task_signature(app, TaskName.RERANK_LEAF, message, 5),
        app=app,
    )


def test_a_message_of_the_reaper_says_so_and_what_follows_it_in_its_chain_does_not(came) -> None:
    app, seen = came
    sent_again(two_steps(app), 1_800_000_000.25).apply_async()
    assert seen.get(timeout=20) == ("search.leaf", Delivery(5, 1_800_000_000.25))
    assert seen.get(timeout=20) == ("rerank.leaf", Delivery(5, None))


def test_any_other_message_says_its_priority_alone(came) -> None:
    app, seen = came
    two_steps(app).apply_async()
    assert [seen.get(timeout=20)[1] for _ in range(2)] == [Delivery(5, None)] * 2


def test_a_task_takes_the_next_one_out_of_its_chain_and_no_other(came) -> None:
    app, seen = came
    first, second, third = TaskName.SEARCH_LEAF, TaskName.RERANK_LEAF, TaskName.MERGE_SUMMARISE
    skips, goes_on = TaskMessage(job_id=JOB, force=True), TaskMessage(job_id=JOB)
    for names, message, ran in [
        ((first, second, third), skips, [first, third]),
        ((first, third, second), skips, [first, third, second]),
        ((first, second, third), goes_on, [first, second, third]),
    ]:
        head, *rest = names
        chain(
            task_signature(app, head, message, 5), *(task_signature(app, name, goes_on, 5) for name in rest), app=app
        ).apply_async()
        assert [seen.get(timeout=20)[0] for _ in ran] == ran
    assert seen.empty()


@pytest.mark.parametrize("written", ["soon", "", {}, None])
def test_a_header_written_by_hand_is_passed_over(written: object) -> None:
    class Request:
        ramify_sent_again = written
        delivery_info = None

    assert delivery(Request()) == Delivery()
