"""How a message came, as a real Celery worker hands it to the task: its priority, and what the reaper wrote on it."""

from __future__ import annotations

from collections.abc import Iterator
from queue import Queue as Line

import pytest
from celery import Celery, chain
from celery.contrib.testing.worker import start_worker

from shared.contract import Message, TaskName
from shared.signatures import Delivery, delivery, sent_again, skip_next, step

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
    with start_worker(app, pool="solo", perform_ping_check=False, queues=["search", "rerank", "merge"]):
        yield app, seen


def two_steps(app: Celery) -> chain:
    message = Message(job_id=JOB, node_id="0.1")
    return chain(step(app, TaskName.SEARCH_LEAF, message, 5), step(app, TaskName.RERANK_LEAF, message, 5), app=app)


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
    skips, goes_on = Message(job_id=JOB, force=True), Message(job_id=JOB)
    for names, message, ran in [
        ((first, second, third), skips, [first, third]),
        ((first, third, second), skips, [first, third, second]),
        ((first, second, third), goes_on, [first, second, third]),
    ]:
        head, *rest = names
        chain(step(app, head, message, 5), *(step(app, name, goes_on, 5) for name in rest), app=app).apply_async()
        assert [seen.get(timeout=20)[0] for _ in ran] == ran
    assert seen.empty()


@pytest.mark.parametrize("written", ["soon", "", {}, None])
def test_a_header_written_by_hand_is_passed_over(written: object) -> None:
    class Request:
        ramify_sent_again = written
        delivery_info = None

    assert delivery(Request()) == Delivery()
