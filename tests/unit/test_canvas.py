"""The canvas is pure: what it builds can be read without a broker."""

from __future__ import annotations

from celery import Celery

from shared.contract import PRIORITY_STEPS, Message, rank
from shared.models import Facet, Lane, Node, NodeKind
from shared.models.shard import Shard
from shared.signatures import job_chord, member

APP = Celery(broker="memory://", backend="cache+memory://", set_as_current=False)


def node(node_id: str, kind: NodeKind = NodeKind.LEAF) -> Node:
    return Node(id=node_id, parent_id="0", level=1, facet=Facet.HOW, query="the text of a question", kind=kind)


def test_a_leaf_is_searched_and_reranked_on_its_own_queues() -> None:
    chain = member(APP, "0123456789abcdef", 0, node("0.1"))
    assert [(task.task, task.options["queue"]) for task in chain.tasks] == [
        ("search.leaf", "search"),
        ("rerank.leaf", "rerank"),
    ]


def test_a_lists_shard_is_one_task_of_the_pool_that_owns_the_store() -> None:
    shard = node("0.1").model_copy(update={"shard": Shard(number=1, of=2)})
    task = member(APP, "0123456789abcdef", 0, shard)
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
    fast, slow = ([rank(lane, others) for others in (0, 1, 3, 4, 1000)] for lane in (Lane.INTERACTIVE, Lane.BATCH))
    assert fast == [0, 1, 2, 3, 3]
    assert slow == [5, 6, 7, 8, 8]
    assert set(fast + slow) == set(PRIORITY_STEPS)
    assert {task.options["priority"] for task in member(APP, "0123456789abcdef", slow[2], node("0.0")).tasks} == {7}


def test_force_travels_only_where_it_is_set() -> None:
    assert Message(job_id="0123456789abcdef", force=True).wire()["force"] is True
    assert "force" not in Message(job_id="0123456789abcdef").wire()


def test_given_a_leaf_that_waits_when_the_chord_is_built_then_it_is_no_member_yet() -> None:
    waiting = node("0.2").model_copy(update={"depends_on": ("0.1",)})
    chord = job_chord(APP, "0123456789abcdef", 5, [node("0.0"), node("0.1"), waiting])
    assert [chain.tasks[0].args[0]["node_id"] for chain in chord.tasks] == ["0.0", "0.1"]
