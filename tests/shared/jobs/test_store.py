"""The job store on a real Redis: transitions, counts, once-only recording, TTLs."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable

import pytest
import redis

from shared.errors import RamifyError
from shared.jobs import STOPPED, TERMINAL, TRANSITIONS, Job, JobReader, JobStore, State, new_id
from shared.jobs.admission import Enqueued, EnqueueResult
from shared.jobs.ingests import ItemDone, NextItems
from shared.jobs.keys import ACTIVE, JobKeys
from shared.jobs.note import Note
from shared.models import (
    Answer,
    Cost,
    DocumentOutcome,
    DocumentStatus,
    Facet,
    Hit,
    JobRequest,
    LeafResult,
    LeafStatus,
    MergedPool,
    Node,
    NodeKind,
    SearchResult,
)
from shared.models.degraded import Degradation
from shared.models.ingest import HandedOver, IngestReport, IngestRequest
from shared.models.status import JobEvent
from tests.fakes.walked_jobs import WalkedJob, enter

HIT = Hit(chunk_id="c", doc_id="d", path="a.md", title="A", text="all of it", score=0.5)


def leaf(node_id: str, kind: NodeKind = NodeKind.LEAF) -> Node:
    return Node(id=node_id, parent_id="0", level=1, facet=Facet.CORE, query=f"question {node_id}", kind=kind)


def result(node_id: str, status: LeafStatus = LeafStatus.DONE) -> LeafResult:
    return LeafResult(node_id=node_id, status=status, error=None if status is LeafStatus.DONE else "no store")


def create(store: JobStore, batch_id: str | None = None, **options: object) -> Job:
    job_id = new_id()
    jobs = [(job_id, JobRequest.model_validate({"question": "why?", **options}))]
    if batch_id:
        enter(store, batch_id, jobs)
    else:
        store.enqueue(jobs)
    job = store.job(job_id)
    assert job is not None
    return job


def answer(job: Job) -> Answer:
    return Answer(job_id=job.id, question="why?", state="done", coverage="1 of 1 leaves answered")


WALK = IngestRequest(by=HandedOver.PATHS, sources=("/a",))
STEPS: dict[State, Callable[[JobStore, Job], object]] = {
    State.PLANNING: lambda s, j: s.start_planning(j.id, "planner"),
    State.SEARCHING: lambda s, j: s.start_searching(j.id, [leaf("0.0")]),
    State.MERGING: lambda s, j: (s.record_leaf(j.id, result("0.0")), s.start_merging(j.id, "merger"))[1],
    State.SUMMARISING: lambda s, j: s.start_summarising(j.id, MergedPool()),
    State.INDEXING: lambda s, j: s.ingests.start(j.id, WALK).taken,
    State.FINISHING: lambda s, j: (walked(s, j), s.ingests.start_finishing(j.id, "finisher") is not None)[1],
    State.DONE: lambda s, j: s.finish(j, answer(j)),
    **{state: (lambda s, j, state=state: s.stop(j, state, "because")) for state in STOPPED},
}
PATH = [State.PLANNING, State.SEARCHING, State.MERGING, State.SUMMARISING, State.DONE]
#: The same of a job that puts documents in.
INGEST_PATH = [State.PLANNING, State.INDEXING, State.FINISHING]


def bring_to(store: JobStore, job: Job, state: State) -> None:
    if state in STOPPED:
        STEPS[state](store, job)
    path = INGEST_PATH if state in INGEST_PATH[1:] else PATH
    for step in path[: path.index(state) + 1] if state in path else []:
        STEPS[step](store, job)


def walked(store: JobStore, job: Job) -> NextItems:
    """The one item of an ingest without files is done."""
    done = ItemDone(IngestReport(item="0"))
    return store.ingests.record(job.id, "0", done, job.request, Note())


@pytest.mark.parametrize("failed", [False, True])
def test_given_pieces_of_a_file_when_recorded_without_a_prune_then_what_was_in_them_is_known_at_the_end(
    store: JobStore, failed: bool
) -> None:
    job = create(store, ingest=WALK)
    bring_to(store, job, State.INDEXING)
    met = [DocumentOutcome(path="a/x.jsonl#1", doc_id="one", status=DocumentStatus.ADDED)]
    met += [DocumentOutcome(path="a/x.jsonl", status=DocumentStatus.FAILED, reason="line 3: is bad")] * failed
    done = ItemDone(IngestReport(item="0", outcomes=tuple(met)), "/a", pieces=("/a/x.jsonl",))
    store.ingests.record(job.id, "0", done, job.request, Note())
    assert store.ingests.seen(job.id, ["/a"]).pieces == ({} if failed else {"/a/x.jsonl": ["one"]})


@pytest.mark.parametrize("origin", list(State))
@pytest.mark.parametrize("target", [state for state in State if state is not State.QUEUED])
def test_only_the_transitions_of_the_table_are_possible(store: JobStore, origin: State, target: State) -> None:
    """given a job in any state / when any step is tried / then the scripts allow what the table allows."""
    job = create(store)
    bring_to(store, job, origin)

    # a claim may be repeated by its own claimant: try as another one
    again = {
        State.PLANNING: lambda: store.start_planning(job.id, "another"),
        State.MERGING: lambda: store.start_merging(job.id, "another"),
        State.FINISHING: lambda: store.ingests.start_finishing(job.id, "another") is not None,
    }
    if target is State.FINISHING and origin is State.INDEXING:
        walked(store, job)
    if target is State.MERGING and origin is State.SEARCHING:
        store.record_leaf(job.id, result("0.0"))
    moved = again[target]() if target in again else STEPS[target](store, job)

    assert bool(moved) == (target in TRANSITIONS[origin])
    now = store.job(job.id)
    assert now is not None
    assert now.state is (target if target in TRANSITIONS[origin] else origin)


def test_every_key_of_a_job_has_a_ttl_and_the_jobs_hash_tag(store: JobStore, client: redis.Redis) -> None:
    """given a job with a key of every kind / then each key expires and carries the tag."""
    batch_id = new_id()
    store.batches.open(batch_id)
    job_id = new_id()
    enter(store, batch_id, [(job_id, JobRequest(question="why?", idempotency_key="k"))])
    job = store.job(job_id)
    assert job is not None
    store.start_planning(job.id, "t")
    store.annotate(job.id, Cost(llm_calls=1), ["careful"])
    store.start_searching(job.id, [leaf("0.0"), leaf("0.1")])
    store.put_candidates(job.id, "0.0", SearchResult(mode="hybrid"))
    store.put_candidates(job.id, "0.1", SearchResult(mode="hybrid", hits=(HIT,)))
    store.record_leaf(job.id, result("0.0"))
    other = new_id()
    store.batches.open(other)
    enter(store, other, [(new_id(), JobRequest(question="why?", idempotency_key="k"))])
    own = JobKeys(job_id)
    expected = set(vars(own).values()) - {own.pool, own.answer, own.manifest}
    assert {key.decode() for key in client.keys(f"*{{{job_id}}}*")} == expected
    store.record_leaf(job.id, result("0.1"))
    store.start_merging(job.id, "t")
    store.start_summarising(job.id, MergedPool())
    store.finish(job, answer(job))

    assert {key: client.ttl(key) for key in client.keys("*") if client.ttl(key) < 0} == {}


def test_a_leaf_counts_once_however_often_it_is_recorded(store: JobStore) -> None:
    job = create(store)
    store.start_planning(job.id, "t")
    store.start_searching(job.id, [leaf("0.0"), leaf("0.1")])

    returned = [store.record_leaf(job.id, result(node)) for node in ("0.0", "0.0", "0.1", "0.1", "0.9")]

    assert returned == [1, -1, 0, -1, -2]
    status = JobReader(store.client).status(job.id)
    assert (status.leaves_total, status.leaves_done, status.leaves_failed) == (2, 2, 0)


def test_a_failed_leaf_is_counted_apart_and_its_error_kept(store: JobStore) -> None:
    job = create(store)
    store.start_planning(job.id, "t")
    store.start_searching(job.id, [leaf("0.0")])

    store.record_leaf(job.id, result("0.0", LeafStatus.FAILED))
    late = store.record_leaf(job.id, result("0.0"))

    assert late == -1
    assert store.results(job.id)["0.0"].error == "no store"
    assert JobReader(store.client).status(job.id).leaves_failed == 1


def test_a_branch_delivered_twice_grows_once(store: JobStore) -> None:
    job = create(store)
    store.start_planning(job.id, "t")
    store.start_searching(job.id, [leaf("0.0"), leaf("0.1", NodeKind.BRANCH)])
    children = [leaf("0.1.1"), leaf("0.1.2")]

    grown = [store.grow(job.id, "0.1", children) for _ in range(3)]

    assert grown == [True, False, False]
    assert JobReader(store.client).status(job.id).leaves_total == 3
    assert store.leaf_states(job.id)["0.1"] == "grown"


def test_leaves_are_added_to_a_searched_tree_once_and_hold_the_body_back(store: JobStore) -> None:
    job = create(store)
    store.start_planning(job.id, "t")
    store.start_searching(job.id, [leaf("0.0"), leaf("0.1")])
    store.record_leaf(job.id, result("0.0"))
    added = [leaf("0.2"), leaf("0.3")]
    assert not store.search_again(job.id, added), "a leaf is open"
    store.record_leaf(job.id, result("0.1"))

    claimed = [store.search_again(job.id, added) for _ in range(3)]

    assert claimed == [True, False, False]
    assert JobReader(store.client).status(job.id).leaves_total == 4
    assert store.leaf_states(job.id) == {"0.0": "done", "0.1": "done", "0.2": "pending", "0.3": "pending"}
    assert not store.start_merging(job.id, "t"), "the new leaves are open"
    assert [store.record_leaf(job.id, result(one.id)) for one in added] == [1, 0]
    assert not store.search_again(job.id, [leaf("0.4")]), "one round a job"
    assert store.start_merging(job.id, "t")
    assert not store.search_again(create(store).id, added), "that job has searched nothing"
    assert all(store.client.ttl(getattr(JobKeys(job.id), key)) > 0 for key in ("job", "nodes", "leaves", "work"))


def test_a_branch_may_come_back_as_a_leaf_of_its_own_id(store: JobStore) -> None:
    job = create(store)
    store.start_planning(job.id, "t")
    store.start_searching(job.id, [leaf("0.1", NodeKind.BRANCH)])

    assert store.grow(job.id, "0.1", [leaf("0.1")])
    assert not store.grow(job.id, "0.1", [leaf("0.1")])

    assert store.record_leaf(job.id, result("0.1")) == 0
    assert JobReader(store.client).status(job.id).leaves_total == 1


def test_the_body_waits_for_every_node_unless_forced(store: JobStore) -> None:
    job = create(store)
    store.start_planning(job.id, "t")
    store.start_searching(job.id, [leaf("0.0"), leaf("0.1", NodeKind.BRANCH)])
    store.record_leaf(job.id, result("0.0"))

    assert not store.start_merging(job.id, "chord")
    assert store.start_merging(job.id, "sweep", force=True)
    assert not store.start_merging(job.id, "chord")
    assert store.start_merging(job.id, "sweep"), "the same claimant may come again"


def test_cancelled_jobs_take_no_results(store: JobStore) -> None:
    job = create(store)
    store.start_planning(job.id, "t")
    store.start_searching(job.id, [leaf("0.0")])

    assert store.stop(job, State.CANCELLED, "enough")
    assert store.record_leaf(job.id, result("0.0")) == -2
    assert not store.put_candidates(job.id, "0.0", SearchResult(mode="hybrid"))
    assert not store.finish(job, answer(job))
    assert JobReader(store.client).status(job.id).error == "enough"


def test_notes_on_a_job_that_is_gone_leave_no_key(store: JobStore, client: redis.Redis) -> None:
    store.annotate("0123456789abcdef", Cost(llm_calls=1), ["late"])
    assert client.keys("*") == []


def test_costs_add_up_and_a_warning_is_said_once(store: JobStore) -> None:
    job = create(store)
    for _ in range(3):
        store.annotate(job.id, Cost(llm_calls=1, llm_tokens_in=10), ["no model", "no model"])
    status = JobReader(store.client).status(job.id)
    assert status.cost == Cost(llm_calls=3, llm_tokens_in=30)
    assert status.warnings == ("no model",)


def test_an_idempotency_key_gives_the_first_job_of_its_tenant(store: JobStore) -> None:
    request = JobRequest(question="why?", idempotency_key="order 7")
    first, second, third = (new_id() for _ in range(3))
    assert store.enqueue([(first, request)]) == [Enqueued(EnqueueResult.TAKEN, first)]
    other = request.model_copy(update={"tenant": "other"})
    assert store.enqueue([(second, request), (third, other)]) == [
        Enqueued(EnqueueResult.KNOWN, first),
        Enqueued(EnqueueResult.TAKEN, third),
    ]
    assert store.job(second) is None
    store.client.delete(JobKeys(first).job)
    assert store.enqueue([(second, request)]) == [Enqueued(EnqueueResult.TAKEN, second)], "the first one is gone"
    assert store.enqueue([(first, request)]) == [Enqueued(EnqueueResult.KNOWN, second)]


def test_a_batch_counts_each_end_once_and_finds_uncounted_ends(store: JobStore) -> None:
    batch_id = new_id()
    store.batches.open(batch_id)
    ids = [new_id() for _ in range(4)]
    enter(store, batch_id, [(job_id, JobRequest(question="q")) for job_id in ids])
    jobs = [store.job(job_id) for job_id in ids]
    assert all(jobs)
    store.stop(jobs[0], State.FAILED, "x")
    store.stop(jobs[0], State.CANCELLED, "again")
    store.client.hset(JobKeys(ids[1]).job, "state", "cancelled")  # by hand: nobody counts it
    store.client.delete(JobKeys(ids[2]).job)

    assert store.batches.status(batch_id).outcomes() == {"failed": 1, "open": 3}
    assert store.batches.reconcile(batch_id) == 2
    assert store.batches.reconcile(batch_id) == 0
    status = store.batches.status(batch_id)
    assert (status.lines, status.enqueued, status.finished) == (4, 4, 3)
    assert status.outcomes() == {"failed": 1, "expired": 1, "cancelled": 1, "open": 1}


@pytest.mark.parametrize(
    ("state", "partial", "degraded", "outcome"),
    [
        ("done", "0", "", "done"),
        ("done", "0", "llm_unavailable", "degraded"),
        ("done", "1", "llm_unavailable", "partial"),
        ("failed", "", "llm_unavailable,out_of_time", "failed"),
        ("expired", "", "", "expired"),
        ("cancelled", "", "", "cancelled"),
    ],
)
def test_an_ended_job_has_one_outcome_and_counts_for_each_of_its_reasons(
    store: JobStore, state: str, partial: str, degraded: str, outcome: str
) -> None:
    batch_id, job_id = new_id(), new_id()
    store.batches.open(batch_id)
    enter(store, batch_id, [(job_id, JobRequest(question="q"))])
    assert store.batches.status(batch_id).outcomes() == {"open": 1}
    for reason in filter(None, degraded.split(",")):
        store.annotate(job_id, item="0.1", degraded=[Degradation(reason)])
    walked = WalkedJob(store, job_id)
    if state == "done":
        walked.to("summarising").done(partial=partial == "1")
    else:
        store.stop(walked.job, State(state), "why not")
    store.batches.reconcile(batch_id)
    status = store.batches.status(batch_id)
    assert (status.outcomes(), status.finished) == ({outcome: 1}, 1)
    assert status.reasons == {code: 1 for code in degraded.split(",") if code}
    assert list(store.batches.members(batch_id)) == [(job_id, outcome)]


def test_a_batch_counts_what_its_answers_say_of_their_sources(store: JobStore) -> None:
    batch_id, ids = new_id(), [new_id(), new_id()]
    store.batches.open(batch_id)
    enter(store, batch_id, [(job_id, JobRequest(question="q")) for job_id in ids])
    for job_id, codes in zip(ids, (("stale_source", "contradicting_sources"), ("stale_source",)), strict=True):
        job = WalkedJob(store, job_id).to("summarising").job
        assert store.finish(job, answer(job).model_copy(update={"verdicts": codes}))
    assert store.batches.status(batch_id).verdicts == {"stale_source": 2, "contradicting_sources": 1}
    statuses = JobReader(store.client).statuses(ids)
    assert [len(status.verdicts) for status in statuses] == [2, 1]


def test_an_ended_job_gets_no_more_reasons_but_what_it_has_cost(store: JobStore) -> None:
    batch_id, job_id = new_id(), new_id()
    store.batches.open(batch_id)
    enter(store, batch_id, [(job_id, JobRequest(question="q"))])
    assert WalkedJob(store, job_id).to("summarising").done()
    store.annotate(job_id, Cost(llm_calls=1), ["late"], item="0.1", degraded=[Degradation.LLM_UNAVAILABLE])
    status = JobReader(store.client).status(job_id)
    assert (status.degraded, status.cost.llm_calls, status.warnings) == ((), 1, ("late",))
    assert store.batches.status(batch_id).outcomes() == {"done": 1}


def test_events_tell_the_way_of_a_job_and_end_with_it(store: JobStore) -> None:
    job = create(store)
    bring_to(store, job, State.DONE)
    events = list(JobReader(store.client).events(job.id, timeout_s=5))
    states = [event.data["state"] for event in events if event.type == "state"]
    assert states == ["queued", "planning", "searching", "merging", "summarising", "done"]
    assert [event.data["id"] for event in events if event.type == "leaf"] == ["0.0"]


def test_ended_jobs_are_off_the_sweeps_list(store: JobStore, client: redis.Redis) -> None:
    ended = create(store)
    open_job = create(store)
    bring_to(store, ended, State.DONE)
    assert client.zrange(ACTIVE, 0, -1) == [open_job.id.encode()]


def test_timings_of_the_stages_sum_to_the_total(store: JobStore) -> None:
    job = create(store)
    time.sleep(0.02)
    bring_to(store, job, State.DONE)
    timings = dict(JobReader(store.client).status(job.id).timings_ms)
    total = timings.pop("total")
    assert total >= 20
    assert sum(timings.values()) == pytest.approx(total, abs=2)


def test_the_terminal_states_are_those_without_a_way_out() -> None:
    assert {state for state, targets in TRANSITIONS.items() if not targets} == TERMINAL


def waiting(node_id: str, *depends_on: str) -> Node:
    return leaf(node_id).model_copy(update={"depends_on": depends_on})


def searching(store: JobStore, *nodes: Node) -> Job:
    job = create(store)
    store.start_planning(job.id, "t")
    store.start_searching(job.id, nodes)
    return job


def test_the_first_nodes_are_told_one_by_one_and_again_behind_all_but_the_last(store: JobStore) -> None:
    nodes = [leaf("0.0"), leaf("0.1"), leaf("0.2")]
    job, reader = searching(store, *nodes), JobReader(store.client)

    def told(after: str) -> list[JobEvent]:
        return [event for event in reader.events(job.id, 0.05, after) if event.type == "node"]

    first = told("0")
    assert [Node.model_validate_json(event.data["node"]) for event in first] == nodes
    assert [event.data for event in told(first[0].id)] == [event.data for event in first]
    assert told(first[-1].id) == []


def test_a_leaf_that_waits_counts_as_open_and_takes_nothing(store: JobStore) -> None:
    job = searching(store, leaf("0.0"), waiting("0.1", "0.0"))
    assert store.leaf_states(job.id) == {"0.0": "pending", "0.1": "waiting"}
    assert JobReader(store.client).status(job.id).leaves_total == 2
    assert not store.put_candidates(job.id, "0.1", SearchResult(mode="hybrid"))
    assert store.record_leaf(job.id, result("0.1")) == -2
    assert store.record_leaf(job.id, result("0.0")) == 1
    assert not store.start_merging(job.id, "chord")
    assert store.start_merging(job.id, "sweep", force=True)


def test_a_leaf_is_bound_once_and_only_when_all_that_it_waits_for_has_ended(store: JobStore) -> None:
    job = searching(store, leaf("0.1"), leaf("0.2"), waiting("0.3", "0.1", "0.2"))
    bound = waiting("0.3", "0.1", "0.2").model_copy(update={"query": "with a name", "bound_by": "names"})
    store.record_leaf(job.id, result("0.1"))
    assert not store.bind(job.id, bound), "0.2 is open"
    store.record_leaf(job.id, result("0.2", LeafStatus.FAILED))

    assert [store.bind(job.id, bound) for _ in range(3)] == [True, False, False]

    assert store.leaf_states(job.id)["0.3"] == "pending"
    assert store.node(job.id, "0.3") == bound
    assert store.record_leaf(job.id, result("0.3")) == 0
    told = [event.data["node"] for event in JobReader(store.client).events(job.id, 0.2) if event.type == "bound"]
    assert [Node.model_validate_json(node) for node in told] == [bound]


def test_a_leaf_of_a_job_that_has_ended_is_not_bound(store: JobStore) -> None:
    job = searching(store, leaf("0.1"), waiting("0.2", "0.1"))
    store.record_leaf(job.id, result("0.1"))
    store.stop(job, State.CANCELLED, "enough")
    assert not store.bind(job.id, waiting("0.2", "0.1"))


def test_a_branchs_children_may_wait_for_each_other(store: JobStore) -> None:
    job = searching(store, leaf("0.1", NodeKind.BRANCH))
    store.grow(job.id, "0.1", [leaf("0.1.1"), waiting("0.1.2", "0.1.1")])
    assert store.leaf_states(job.id) == {"0.1": "grown", "0.1.1": "pending", "0.1.2": "waiting"}
    assert JobReader(store.client).status(job.id).leaves_total == 2


def test_results_of_some_leaves_are_read_alone(store: JobStore) -> None:
    job = searching(store, leaf("0.1"), leaf("0.2"), leaf("0.3"))
    for node_id in ("0.1", "0.2"):
        store.record_leaf(job.id, result(node_id))
    assert list(store.results(job.id, ["0.2", "0.3"])) == ["0.2"]
    assert store.results(job.id, []) == {}
    assert sorted(store.results(job.id)) == ["0.1", "0.2"]


@pytest.mark.parametrize("blob", [b"", b"garbage", b"x\x9c", zlib.compress(b"[]"), zlib.compress(b"{}")])
def test_given_a_result_written_by_hand_when_read_then_that_leaf_has_failed_and_the_others_stand(
    store: JobStore, blob: bytes
) -> None:
    job = create(store)
    store.start_planning(job.id, "planner")
    store.start_searching(job.id, [leaf("0.0"), leaf("0.1")])
    for node_id in ("0.0", "0.1"):
        store.record_leaf(job.id, result(node_id))
    store.client.hset(JobKeys(job.id).results, "0.1", blob)
    found = store.results(job.id)
    assert {node_id: leaf.status for node_id, leaf in found.items()} == {
        "0.0": LeafStatus.DONE,
        "0.1": LeafStatus.FAILED,
    }
    assert "cannot be read" in (found["0.1"].error or "")


def test_given_an_answer_written_by_hand_when_read_then_a_sentence_says_so(store: JobStore) -> None:
    job = create(store)
    store.client.set(JobKeys(job.id).answer, b"garbage")
    with pytest.raises(RamifyError, match="cannot be read"):
        JobReader(store.client).answer(job.id)
