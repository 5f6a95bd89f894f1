"""The reaper on a real Redis without workers: what it sends can be read off the queues."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import redis

from shared.contract import PRIORITY_STEPS, Queue
from shared.job_store import Job, JobStore, State, new_id
from shared.job_store.keys import ACTIVE, JobKeys
from shared.models import Facet, JobRequest, LeafResult, LeafStatus, MergedPool, Node, NodeKind
from shared.settings import Settings


@pytest.fixture
def store(client: redis.Redis, settings: Settings) -> JobStore:
    return JobStore(client, settings)


@pytest.fixture
def reap(store: JobStore, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Runs one reap at once, whatever was said about when to look next."""
    monkeypatch.setenv("RAMIFY_REDIS__URL", settings.redis.url.get_secret_value())
    from orchestrator.reaper.reaper import Reaper
    from shared.celery_app import make_app

    app = make_app(settings)

    def run() -> int:
        for job_id in store.client.zrange(ACTIVE, 0, -1):
            store.client.zadd(ACTIVE, {job_id: 0})
        return Reaper(app, store).run()

    return run


def queued(client: redis.Redis) -> dict[str, int]:
    names = {
        queue.value: [f"{queue.value}\x06\x16{step}" if step else queue.value for step in PRIORITY_STEPS]
        for queue in Queue
    }
    return {name: total for name, keys in names.items() if (total := sum(client.llen(key) for key in keys))}


def create(store: JobStore, *, silent_for: float = 0.0, deadline_in: float = 600.0, state: State = State.QUEUED) -> Job:
    job_id = new_id()
    store.create([(job_id, JobRequest(question="why?"))])
    if state is not State.QUEUED:
        store.start_planning(job_id, "gone")
    if state in {State.SEARCHING, State.MERGING, State.SUMMARISING}:
        branch = Node(id="0.2", parent_id="0", level=1, facet=Facet.HOW, query="b", kind=NodeKind.BRANCH, budget=3)
        leaves = [Node(id=f"0.{n}", parent_id="0", level=1, facet=Facet.CORE, query="q") for n in (0, 1)]
        store.start_searching(job_id, [*leaves, branch])
        store.record_leaf(job_id, LeafResult(node_id="0.0", status=LeafStatus.DONE))
    if state in {State.MERGING, State.SUMMARISING}:
        store.start_merging(job_id, "gone", force=True)
    if state is State.SUMMARISING:
        store.start_summarising(job_id, MergedPool())
    now = time.time()
    store.client.hset(JobKeys(job_id).job, mapping={"updated_at": now - silent_for, "deadline_at": now + deadline_in})
    job = store.job(job_id)
    assert job is not None
    return job


@pytest.mark.parametrize(
    ("state", "sent"),
    [
        (State.QUEUED, {"plan": 1}),
        (State.PLANNING, {"plan": 1}),
        (State.SEARCHING, {"search": 1, "plan": 1}),  # the leaf that is missing, and the branch; not the recorded one
        (State.MERGING, {"merge": 1}),
        (State.SUMMARISING, {"merge": 1}),
    ],
)
def test_a_silent_job_is_sent_exactly_what_it_misses(
    store: JobStore, client: redis.Redis, reap: Callable[[], int], state: State, sent: dict[str, int]
) -> None:
    create(store, silent_for=1000, state=state)
    assert reap() == 1
    assert queued(client) == sent


def test_a_job_that_moves_or_whose_queue_is_not_empty_is_left_alone(
    store: JobStore, client: redis.Redis, reap: Callable[[], int]
) -> None:
    create(store, silent_for=1)
    reap()
    assert queued(client) == {}
    create(store, silent_for=1000)
    reap()
    reap()
    assert queued(client) == {"plan": 1}, "the first message still waits: a second one would pile up"


def test_all_leaves_recorded_but_no_body_means_the_body_is_sent(
    store: JobStore, client: redis.Redis, reap: Callable[[], int]
) -> None:
    job = create(store, silent_for=1000, state=State.SEARCHING)
    store.record_leaf(job.id, LeafResult(node_id="0.1", status=LeafStatus.DONE))
    store.grow(job.id, "0.2", [Node(id="0.2", parent_id="0", level=1, facet=Facet.HOW, query="b")])
    store.record_leaf(job.id, LeafResult(node_id="0.2", status=LeafStatus.DONE))
    client.hset(JobKeys(job.id).job, "updated_at", time.time() - 1000)
    reap()
    assert queued(client) == {"merge": 1}


def test_past_the_deadline_a_partial_merge_is_forced_and_later_the_job_expires(
    store: JobStore, client: redis.Redis, reap: Callable[[], int]
) -> None:
    searching = create(store, deadline_in=-10, state=State.SEARCHING)
    waiting = create(store, deadline_in=-10)
    reap()
    assert queued(client) == {"merge": 1}
    expired = store.job(waiting.id)
    assert expired is not None
    assert expired.state is State.EXPIRED
    client.hset(JobKeys(searching.id).job, "deadline_at", time.time() - 1000)
    reap()
    given_up = store.job(searching.id)
    assert given_up is not None
    assert given_up.state is State.EXPIRED
    assert client.zcard(ACTIVE) == 0


def test_two_reaps_at_once_do_the_work_of_one(store: JobStore, client: redis.Redis, reap: Callable[[], int]) -> None:
    create(store, silent_for=1000)
    with client.lock("ramify:{reaper}:lock", timeout=5):
        assert reap() == 0
    assert queued(client) == {}


def test_a_leaf_that_nobody_bound_is_told_of_by_one_that_it_waited_for(
    store: JobStore, client: redis.Redis, reap: Callable[[], int]
) -> None:
    job_id = new_id()
    store.create([(job_id, JobRequest(question="why?"))])
    store.start_planning(job_id, "gone")
    first, second = (Node(id=f"0.{n}", parent_id="0", level=1, facet=Facet.CORE, query="q") for n in (1, 2))
    third = second.model_copy(update={"id": "0.3", "depends_on": ("0.1", "0.2")})
    store.start_searching(job_id, [first, second, third])
    store.record_leaf(job_id, LeafResult(node_id="0.1", status=LeafStatus.DONE))

    client.hset(JobKeys(job_id).job, "updated_at", time.time() - 1000)
    reap()
    assert queued(client) == {"search": 1}, "the leaf that it waits for, not the one that waits, and no body"
    for queue in Queue:
        client.delete(queue.value)

    store.record_leaf(job_id, LeafResult(node_id="0.2", status=LeafStatus.FAILED))
    client.hset(JobKeys(job_id).job, "updated_at", time.time() - 1000)
    reap()
    assert queued(client) == {"rerank": 1}
    for queue in Queue:
        client.delete(queue.value)

    store.bind(job_id, third)
    client.hset(JobKeys(job_id).job, "updated_at", time.time() - 1000)
    reap()
    assert queued(client) == {"search": 1}
