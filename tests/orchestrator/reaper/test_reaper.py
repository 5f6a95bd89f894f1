"""The reaper on a real Redis without workers: what it sends can be read off the queues, what it knows off the store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import pytest
import redis
from pydantic import HttpUrl

from orchestrator.reaper.reaper import LAST_RUN, LOCK, SLOTS, TOKEN, Reaper
from shared.connections.heartbeat import worker_id
from shared.contract import PRIORITY_STEPS, Queue
from shared.jobs import Job, JobStore, State, new_id
from shared.jobs.dead_letters import DeadLetterStore
from shared.jobs.keys import ACTIVE, AdmissionKeys, BatchKeys, JobKeys
from shared.jobs.work import Attempt
from shared.models import Facet, JobRequest, LeafResult, LeafStatus, MergedPool, Node, NodeKind, SearchResult
from shared.models.plan import Shard
from shared.providers.gates.gate_store import key_of
from shared.settings import Settings, load_settings
from shared.tasks.app import make_app
from shared.tasks.broker import BrokerLostError
from tests.fakes.walked_jobs import enter
from tests.support.accounts import assert_adds_up
from tests.support.redis_server import free_port

_PLACE, _, _MARK, _SPACE = worker_id().rsplit(":", 3)
#: A process of this host that is gone: no process has this number.
GONE = f"{_PLACE}:4194305:{_MARK}:{_SPACE}"
NODES = (
    Node(id="0.0", parent_id="0", level=1, facet=Facet.ORIGINAL, query="why?"),
    Node(id="0.1", parent_id="0", level=1, facet=Facet.CORE, query="what?"),
    Node(id="0.2", parent_id="0", level=1, facet=Facet.HOW, query="how?", kind=NodeKind.BRANCH, budget=3),
)


class Hands:
    """A clock that is set by hand."""

    at = 1_800_000_000.0

    def now(self) -> float:
        self.at += 1e-4
        return self.at


class Bench:
    """Jobs under way, a reaper, and what it has sent."""

    def __init__(self, client: redis.Redis, settings: Settings) -> None:
        self.client, self.clock = client, Hands()
        self.jobs = JobStore(client, settings, clock=self.clock)
        self.app = make_app(settings)

    def look(self) -> int:
        return Reaper(self.app, self.jobs).run()

    def sent(self) -> dict[str, int]:
        """Messages by queue; they are taken away."""
        counts = {}
        for queue in Queue:
            keys = [f"{queue.value}\x06\x16{step}" if step else queue.value for step in PRIORITY_STEPS]
            if total := sum(self.client.llen(key) for key in keys):
                counts[queue.value] = total
            self.client.delete(*keys)
        return counts

    def tasks(self, queue: str) -> list[str]:
        """The tasks of the messages that wait in a queue; they are taken away."""
        keys = [f"{queue}\x06\x16{step}" if step else queue for step in PRIORITY_STEPS]
        found = [json.loads(raw)["headers"]["task"] for key in keys for raw in self.client.lrange(key, 0, -1)]
        self.client.delete(*keys)
        return found

    def job(self, state: State = State.SEARCHING, *, silent_for: float = 60.0, deadline_s: float = 600.0) -> Job:
        """A job that came so far, whose workers have said nothing since."""
        job_id, jobs = new_id(), self.jobs
        jobs.enqueue([(job_id, JobRequest(question="why?", deadline_s=deadline_s))])
        jobs.admit()
        if state is not State.QUEUED:
            jobs.start_planning(job_id, "gone")
        if state in {State.SEARCHING, State.MERGING, State.SUMMARISING}:
            jobs.start_searching(job_id, NODES)
            jobs.record_leaf(job_id, LeafResult(node_id="0.0", status=LeafStatus.DONE))
        if state in {State.MERGING, State.SUMMARISING}:
            jobs.start_merging(job_id, "gone", force=True)
        if state is State.SUMMARISING:
            jobs.start_summarising(job_id, MergedPool())
        self.clock.at += silent_for
        return self.of(job_id)

    def of(self, job_id: str) -> Job:
        found = self.jobs.job(job_id)
        assert found is not None
        return found

    def at_work(self, job: Job, item: str, worker: str, task: str = "search.leaf") -> str:
        """A worker's mark, as if it had begun now."""
        mark = str(Attempt(self.clock.now(), worker, task))
        self.client.hset(JobKeys(job.id).work, f"busy:{item}", mark)
        return mark


@pytest.fixture
def bench(client: redis.Redis, settings: Settings) -> Iterator[Bench]:
    bench = Bench(client, settings)
    yield bench
    bench.app.close()


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
def test_a_silent_job_is_sent_exactly_what_it_misses_and_once(bench: Bench, state: State, sent: dict[str, int]) -> None:
    job = bench.job(state)
    assert bench.look() == 1
    assert bench.sent() == sent
    bench.look()
    assert bench.sent() == {}, "it is on its way"
    bench.clock.at += 10
    bench.look()
    assert bench.sent() == sent, "that was lost too"
    assert int(bench.client.hget(JobKeys(job.id).job, "redriven") or 0) == 2 * sum(sent.values())


def test_a_job_that_moves_or_whose_message_still_waits_is_left_alone(bench: Bench) -> None:
    bench.job(silent_for=1)
    bench.look()
    assert bench.sent() == {}
    bench.clock.at += 60
    bench.look()
    bench.clock.at += 60
    bench.look()
    assert bench.sent() == {"search": 1, "plan": 1}, "a second message of each would pile up"


def test_a_recorded_leaf_is_never_sent_again_and_all_of_them_send_the_body(bench: Bench) -> None:
    job = bench.job()
    bench.jobs.record_leaf(job.id, LeafResult(node_id="0.1", status=LeafStatus.FAILED))
    bench.jobs.grow(job.id, "0.2", [NODES[2].model_copy(update={"kind": NodeKind.LEAF})])
    bench.jobs.record_leaf(job.id, LeafResult(node_id="0.2", status=LeafStatus.DONE))
    bench.clock.at += 60
    bench.look()
    assert bench.sent() == {"merge": 1}


def test_a_worker_that_lives_keeps_its_work_and_a_dead_ones_is_sent_again_at_once(bench: Bench) -> None:
    job = bench.job()
    bench.at_work(job, "0.1", worker_id())
    bench.at_work(job, "0.2", worker_id(), "plan.refine")
    bench.look()
    assert bench.sent() == {}
    bench.at_work(job, "0.1", GONE)
    bench.look()
    assert bench.sent() == {"search": 1}
    assert bench.jobs.work.items(job.id)["0.1"].deaths == 1


def test_leaves_that_a_merge_claimed_and_its_death_kept_from_being_sent_are_sent_at_once(bench: Bench) -> None:
    job = bench.job(silent_for=0.0)
    bench.jobs.grow(job.id, "0.2", [NODES[2].model_copy(update={"kind": NodeKind.LEAF})])
    for name in ("0.1", "0.2"):
        bench.jobs.record_leaf(job.id, LeafResult(node_id=name, status=LeafStatus.DONE))
    bench.at_work(job, "merge.tree", GONE, "merge.tree")
    added = [Node(id=f"0.{n}", parent_id="0", level=1, facet=Facet.GAP, query=f"{n}?") for n in (3, 4)]
    assert bench.jobs.search_again(job.id, added)

    bench.look()

    assert bench.sent() == {"search": 2}
    assert not bench.jobs.search_again(job.id, added), "whoever merges next adds no second round"
    for one in added:
        bench.jobs.record_leaf(job.id, LeafResult(node_id=one.id, status=LeafStatus.DONE))
    assert bench.jobs.start_merging(job.id, "another")


def test_a_death_frees_the_claim_so_that_the_next_one_may_plan(bench: Bench) -> None:
    job = bench.job(State.PLANNING, silent_for=0.0)
    bench.at_work(job, "plan.job", GONE, "plan.job")
    assert not bench.jobs.start_planning(job.id, "another")
    bench.look()
    assert bench.sent() == {"plan": 1}
    assert bench.jobs.start_planning(job.id, "another")


def test_a_death_alone_and_a_second_sending_alone_free_the_claim(bench: Bench) -> None:
    died, sent = (bench.job(State.PLANNING, silent_for=0.0) for _ in range(2))
    bench.jobs.work.record_death(died.id, "plan.job", bench.at_work(died, "plan.job", GONE, "plan.job"))
    bench.jobs.redrive(sent.id, State.PLANNING, 1, "lost", [("plan.job", "", "")])
    assert [bench.jobs.start_planning(job.id, "another") for job in (died, sent)] == [True, True]


def test_a_death_is_counted_once_whoever_tells_it_and_however_often(bench: Bench) -> None:
    job = bench.job()
    mark, work = bench.at_work(job, "0.1", GONE), bench.jobs.work
    assert work.record_death(job.id, "0.1", mark) == 1
    assert [work.record_death(job.id, "0.1", mark, overtaken=overtaken) for overtaken in (False, True, True)] == [
        -1,
        -1,
        -1,
    ]
    assert work.items(job.id)["0.1"].deaths == 1
    other = str(Attempt(bench.clock.now(), GONE, "search.leaf"))
    assert work.record_death(job.id, "0.1", other, overtaken=True) == 2


def test_of_two_suspects_one_is_tried_at_a_time_and_innocent_work_goes_on(bench: Bench) -> None:
    first, second, third = bench.job(), bench.job(), bench.job()
    for job in (first, second):
        bench.client.hset(JobKeys(job.id).work, "dead:0.1", 2)
    bench.look()
    assert bench.sent() == {"search": 2, "plan": 3}, "one suspect, the leaf of the third, and three branches"
    bench.client.delete(*SLOTS.values())
    bench.look()
    assert bench.sent() == {"search": 1}
    assert third.state is State.SEARCHING


def test_what_was_lost_goes_before_all_else_of_its_lane(bench: Bench) -> None:
    job = bench.job()
    bench.client.hset(JobKeys(job.id).job, "rank", 3)
    bench.look()
    assert (bench.client.llen("search"), bench.client.llen("search\x06\x163")) == (1, 0)


def test_the_next_suspect_is_tried_as_soon_as_the_last_has_ended(bench: Bench) -> None:
    first, second = bench.job(), bench.job()
    for job in (first, second):
        bench.client.hset(JobKeys(job.id).work, "dead:0.1", 2)
    bench.look()
    bench.sent()
    tried = bench.client.get(SLOTS[Queue.SEARCH]).decode().split(" ")[0]
    bench.jobs.record_leaf(tried, LeafResult(node_id="0.1", status=LeafStatus.DONE))
    bench.look()
    assert bench.client.get(SLOTS[Queue.SEARCH]).decode().split(" ")[0] != tried
    assert bench.sent()["search"] == 1


def test_a_death_in_company_is_told_from_one_alone(bench: Bench) -> None:
    first, second = bench.job(), bench.job()
    for job in (first, second):
        bench.at_work(job, "0.1", GONE)
    bench.look()
    assert [
        (item.deaths, item.sole_deaths) for job in (first, second) for item in [bench.jobs.work.items(job.id)["0.1"]]
    ] == [
        (1, 0),
        (1, 0),
    ]
    bench.sent()
    bench.at_work(first, "0.1", GONE)
    bench.look()
    assert [
        bench.jobs.work.items(first.id)["0.1"].sole_deaths,
        bench.jobs.work.items(second.id)["0.1"].sole_deaths,
    ] == [1, 0]


def test_deadlines_are_kept_while_rabbitmq_is_away(client: redis.Redis, settings: Settings) -> None:
    """It is asked once a run, however many jobs there are; the run says that it is away, and has been one."""
    broker = {"url": f"amqp://nobody@127.0.0.1:{free_port()}/none", "timeout_s": 1}
    bench = Bench(client, load_settings(redis=settings.redis, broker=broker, jobs=settings.jobs))
    planned = bench.job(State.PLANNING, deadline_s=30, silent_for=0.0)
    searched = bench.job(deadline_s=30, silent_for=36.0)
    with closing(bench.app):
        with pytest.raises(BrokerLostError, match="does not answer"):
            bench.look()
        assert (bench.of(planned.id).state, bench.of(searched.id).state) == (State.EXPIRED, State.SEARCHING)
        bench.clock.at += 60
        with pytest.raises(BrokerLostError):
            bench.look()
    assert bench.of(searched.id).state is State.EXPIRED
    assert float(client.get(LAST_RUN) or 0) > bench.clock.at - 1


def test_past_the_deadline_a_partial_merge_is_forced_and_later_the_job_expires(bench: Bench) -> None:
    searching, planning = (
        bench.job(deadline_s=30, silent_for=0.0),
        bench.job(State.PLANNING, deadline_s=30, silent_for=0),
    )
    bench.clock.at += 36
    bench.look()
    assert bench.sent() == {"merge": 1}
    assert bench.of(planning.id).state is State.EXPIRED
    bench.clock.at += 60
    bench.look()
    assert bench.of(searching.id).state is State.EXPIRED
    assert bench.client.zcard(ACTIVE) == 0
    assert bench.jobs.admission.under_way() == {}


def test_what_is_overdue_in_a_stuck_lane_expires_at_once_all_of_it(client: redis.Redis, settings: Settings) -> None:
    """The window is full and nobody works: no place is given back, and one page of jobs is not all of them."""
    bench = Bench(client, settings.model_copy(update={"lanes": settings.lanes.model_copy(update={"under_way": 2})}))
    try:
        runs = bench.job(deadline_s=3600)
        hasty = JobRequest(question="why?", queue_limit_s=30)
        ids = [new_id() for _ in range(1_200)]
        bench.jobs.batches.open("0" * 21)
        enter(bench.jobs, "0" * 21, [(job_id, hasty) for job_id in ids])
        patient = new_id()
        bench.jobs.enqueue([(patient, JobRequest(question="why?", queue_limit_s=3600))])
        bench.look()
        assert bench.of(ids[0]).state is State.QUEUED
        bench.clock.at += 31
        bench.look()
        assert {bench.of(job_id).state for job_id in ids} == {State.EXPIRED}
        assert (bench.of(patient).state, bench.of(runs.id).state) == (State.QUEUED, State.SEARCHING)
        assert bench.client.hget(JobKeys(ids[7]).job, "planning_at") is None
        error = (bench.client.hget(JobKeys(ids[7]).job, "error") or b"").decode()
        assert error == "it waited for 30 s, all that queue_limit_s allows, and its turn had not come"
        status = bench.jobs.batches.status("0" * 21)
        assert (status.enqueued, status.open, status.expired) == (1_200, 0, 1_200)
        assert int(client.hget(AdmissionKeys("interactive").counts, "waiting") or 0) == 1
    finally:
        bench.app.close()


def test_jobs_that_are_gone_are_counted_in_their_batches_without_a_client(bench: Bench) -> None:
    """given jobs of two batches, some of them gone, and a damaged batch / then the reaper counts them."""
    batches, ids = [new_id() for _ in range(3)], [new_id() for _ in range(40)]
    for batch in batches:
        bench.jobs.batches.open(batch)
    enter(bench.jobs, batches[0], [(job_id, JobRequest(question="why?", idempotency_key=job_id)) for job_id in ids])
    enter(bench.jobs, batches[1], [(new_id(), JobRequest(question="why?", idempotency_key=job_id)) for job_id in ids])
    bench.client.hset(BatchKeys(batches[2]).batch, "open", "1")
    bench.client.set(BatchKeys(batches[2]).members, "no hash")
    bench.client.delete(*(JobKeys(job_id).job for job_id in ids[:30]))
    reaper = Reaper(bench.app, bench.jobs)
    for _ in range(4):
        reaper.run()
    own, other = (assert_adds_up(bench.client, batch) for batch in batches[:2])
    assert (own["open"], own["expired"], other["known_open"]) == (10, 30, 10)


def test_two_reapers_at_once_do_the_work_of_one_and_an_old_one_is_refused(bench: Bench) -> None:
    job = bench.job()
    bench.client.set(LOCK, "7 somebody", px=5_000)
    assert bench.look() == 0
    assert bench.sent() == {}
    item = ("0.1", "pending", bench.jobs.work.items(job.id)["0.1"].sent_raw)
    assert bench.jobs.redrive(job.id, State.SEARCHING, 8, "lost", [item]) == {"0.1"}
    again = ("0.1", "pending", bench.jobs.work.items(job.id)["0.1"].sent_raw)
    assert bench.jobs.redrive(job.id, State.SEARCHING, 7, "lost", [again]) == frozenset()
    assert bench.jobs.redrive(job.id, State.SEARCHING, 8, "lost", [again]) == {"0.1"}


def test_a_look_that_something_has_overtaken_gets_no_leave(bench: Bench) -> None:
    job = bench.job()
    item = ("0.1", "pending", bench.jobs.work.items(job.id)["0.1"].sent_raw)

    def leave() -> frozenset[str]:
        return bench.jobs.redrive(job.id, State.SEARCHING, 1, "lost", [item])

    bench.at_work(job, "0.1", worker_id())
    assert leave() == frozenset(), "somebody has begun it"
    bench.client.hdel(JobKeys(job.id).work, "busy:0.1")
    bench.client.hset(JobKeys(job.id).leaves, "0.1", "searched")
    assert leave() == frozenset(), "it has gone on"
    bench.jobs.stop(job, State.CANCELLED, "enough")
    assert leave() == frozenset(), "the job has ended"


def test_were_the_counter_of_tokens_lost_work_would_be_sent_all_the_same(bench: Bench) -> None:
    bench.job()
    bench.look()
    assert bench.sent() == {"search": 1, "plan": 1}
    assert bench.client.ttl(TOKEN) > 3600
    bench.client.delete(TOKEN)
    bench.clock.at += 10
    bench.look()
    assert bench.sent() == {"search": 1, "plan": 1}


@pytest.mark.parametrize("state", [State.QUEUED, State.SEARCHING])
def test_jobs_whose_lists_were_deleted_are_put_back_and_go_on(bench: Bench, state: State) -> None:
    job = bench.job(state)
    for key in bench.client.keys(f"{AdmissionKeys.tag}*"):
        bench.client.delete(key)
    bench.clock.at += 60
    bench.look()
    bench.clock.at += 60
    bench.look()
    assert job.id in bench.jobs.admission.under_way()
    assert bench.sent() == ({"plan": 1} if state is State.QUEUED else {"search": 1, "plan": 1})
    bench.jobs.stop(job, State.CANCELLED, "enough")
    assert {int(count) for count in bench.client.hvals(AdmissionKeys(job.lane.value).counts)} == {0}


def test_marks_that_were_deleted_or_make_no_sense_keep_nobody_from_looking(bench: Bench) -> None:
    job = bench.job()
    bench.client.delete(JobKeys(job.id).work)
    bench.look()
    assert bench.sent() == {"search": 1, "plan": 1}
    bench.client.hset(JobKeys(job.id).work, mapping={"busy:0.1": "nonsense", "dead:0.1": "x", "sent:0.2": "", "y": "z"})
    bench.clock.at += 60
    bench.look()
    assert bench.sent() != {}


def test_a_job_that_is_gone_is_forgotten_and_gives_its_place_back(bench: Bench, settings: Settings) -> None:
    job = bench.job()
    bench.client.delete(JobKeys(job.id).job)
    bench.look()
    assert bench.client.zcard(ACTIVE) == 0
    assert bench.jobs.admission.under_way() == {}
    assert DeadLetterStore(bench.client, settings).count() == 0


def test_a_lost_shard_is_read_again_and_one_that_was_read_goes_to_the_rerank_pool(bench: Bench) -> None:
    job = bench.job(State.PLANNING, silent_for=0.0)
    shard = NODES[1].model_copy(update={"shard": Shard(number=1, of=1)})
    bench.jobs.start_searching(job.id, [shard])
    bench.clock.at += 60
    bench.look()
    assert bench.tasks("search") == ["search.shard"]
    bench.jobs.put_candidates(job.id, shard.id, SearchResult(mode="enumeration"))
    bench.clock.at += 60
    bench.look()
    assert bench.tasks("rerank") == ["rerank.columns"]
    bench.jobs.record_leaf(job.id, LeafResult(node_id=shard.id, status=LeafStatus.DONE))
    bench.clock.at += 60
    bench.look()
    assert bench.sent() == {"merge": 1}


def test_a_leaf_that_nobody_bound_is_told_of_by_one_that_it_waited_for(bench: Bench) -> None:
    job = bench.job(State.PLANNING, silent_for=0.0)
    first, second = (NODES[1].model_copy(update={"id": f"0.{number}"}) for number in (1, 2))
    third = second.model_copy(update={"id": "0.3", "depends_on": ("0.1", "0.2")})
    bench.jobs.start_searching(job.id, [first, second, third])
    bench.jobs.record_leaf(job.id, LeafResult(node_id="0.1", status=LeafStatus.DONE))
    bench.clock.at += 60
    bench.look()
    assert bench.sent() == {"search": 1}, "the leaf that it waits for, not the one that waits, and no body"
    bench.jobs.record_leaf(job.id, LeafResult(node_id="0.2", status=LeafStatus.FAILED))
    bench.clock.at += 60
    bench.look()
    assert bench.sent() == {"rerank": 1}
    bench.jobs.bind(job.id, third)
    bench.clock.at += 60
    bench.look()
    assert bench.sent() == {"search": 1}


def test_work_that_waits_for_a_server_is_sent_when_its_gate_opens_and_not_while_it_is_shut(bench: Bench) -> None:
    settings = bench.jobs.settings.model_copy(
        update={"llm_base_url": HttpUrl("http://127.0.0.1:9/v1"), "llm_model": "m"}
    )
    bench.jobs = JobStore(bench.client, settings, clock=bench.clock)
    waiting = [bench.job(State.PLANNING, silent_for=0.0) for _ in range(6)]
    for job in waiting:
        assert bench.jobs.work.postpone(job, "plan.job", "llm", "it answered 500", 0.0)
    reaper, gate = Reaper(bench.app, bench.jobs), key_of("llm:127.0.0.1:9")
    reaper.run()
    assert bench.sent() == {}, "their time has not come"
    bench.clock.at += 60
    bench.client.hset(gate, mapping={"open_until": 4e12, "fails": 5, "why": "answered 500"})
    reaper.run()
    assert bench.sent() == {}, "the breaker is open"
    bench.client.delete(gate)
    reaper.run()
    assert bench.sent() == {"plan": 4}, "the server may only just be back"
    reaper.run()
    assert bench.sent() == {"plan": 2}
    reaper.run()
    assert bench.sent() == {}, "each is on its way"
    assert bench.jobs.start_planning(waiting[0].id, "another"), "its claim is free"
    assert bench.client.hget(JobKeys(waiting[0].id).job, "redriven") is None


@pytest.mark.parametrize("item", ["rerank.root", "merge.tree"])
def test_a_root_rerank_that_has_waited_is_sent_with_its_merge_which_may_merge_again(bench: Bench, item: str) -> None:
    job = bench.job(State.MERGING, silent_for=0.0)
    if item == "rerank.root":
        bench.jobs.put_pool(job.id, MergedPool())
    assert bench.jobs.work.postpone(job, item, "rerank", "it answered 500", 0.0)
    bench.clock.at += 60
    bench.look()
    assert bench.tasks("merge") == ["merge.tree"]
    assert bench.jobs.work.items(job.id)[item].postponed is None
    bench.clock.at += 2
    bench.look()
    assert bench.sent() == {}, "the merge is on its way"
    assert bench.jobs.start_merging(job.id, "another")
