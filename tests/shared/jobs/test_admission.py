"""The lines in which jobs wait, on a real Redis: turns, bounds, thresholds, and accounts that are true."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping

import pytest
import redis
from hypothesis import HealthCheck, given
from hypothesis import settings as profile
from hypothesis import strategies as st

from shared.contract import priority
from shared.jobs import JobStore, State, new_id
from shared.jobs.admission import QUANTUM, Enqueued, EnqueueResult
from shared.jobs.keys import ACTIVE, RECENT, AdmissionKeys
from shared.models import JobRequest, Lane
from shared.settings import Settings
from tests.model.checks import Checks

TENANTS = ("ada", "bo", "cy")
Make = Callable[..., "Bench"]


class Bench:
    """Tenants, their jobs, and a window."""

    def __init__(self, client: redis.Redis, settings: Settings, **lanes: object) -> None:
        changed = settings.lanes.model_copy(update={"under_way": 8, **lanes})
        self.client = client
        self.jobs = JobStore(client, settings.model_copy(update={"lanes": changed}))
        self.tenant_of = dict[str, str]()

    def submit(self, tenant: str, count: int = 1, lane: Lane = Lane.BATCH) -> list[EnqueueResult]:
        request = JobRequest(question="why?", tenant=tenant, lane=lane)
        wanted = [(new_id(), request) for _ in range(count)]
        entries = [one.result for one in self.jobs.enqueue(wanted)]
        self.tenant_of |= {job_id: tenant for (job_id, _), entry in zip(wanted, entries, strict=True) if entry == 1}
        return entries

    def admit(self) -> list[tuple[str, int]]:
        """(tenant, priority) of those that are let in, in order."""
        self.last = self.jobs.admission.admit().begin
        return [(self.tenant_of[job_id], rank) for job_id, rank in self.last]

    def leave(self, job_id: str, leaves: int, lane: Lane = Lane.BATCH) -> int:
        return int(self.jobs.admission.leave(job_id, lane, self.tenant_of[job_id], leaves))

    def serve(self, rounds: int, leaves: Mapping[str, int]) -> Counter[str]:
        """Let in, and end what has ended, again and again: a leaf takes a second. Leaves that each tenant got."""
        served, running, now = Counter[str](), list[tuple[int, str]](), 0
        for _ in range(rounds):
            self.admit()
            for job_id, _ in self.last:
                heapq.heappush(running, (now + leaves[self.tenant_of[job_id]], job_id))
            now, job_id = heapq.heappop(running)
            served[self.tenant_of[job_id]] += leaves[self.tenant_of[job_id]]
            self.leave(job_id, leaves[self.tenant_of[job_id]])
        return served

    def true(self) -> None:
        for lane in Lane:
            Checks(self.client).lines(lane, TENANTS, window=self.jobs.settings.lanes.under_way)


@pytest.fixture
def make(client: redis.Redis, settings: Settings) -> Make:
    return lambda **lanes: Bench(client, settings, **lanes)


def test_tenants_take_turns_however_many_jobs_one_has(make: Make) -> None:
    bench = make(under_way=6)
    bench.submit("ada", 50)
    bench.submit("bo", 2)
    bench.submit("cy", 2)
    assert [tenant for tenant, _ in bench.admit()] == ["ada", "bo", "cy", "ada", "bo"], "a place stays for newcomers"
    assert bench.admit() == []
    bench.true()


def test_tenants_get_equal_shares_of_leaves_not_of_jobs(make: Make) -> None:
    bench = make()
    for tenant in TENANTS:
        bench.submit(tenant, 400)
    served = bench.serve(300, {"ada": 24, "bo": 6, "cy": 2})
    assert min(served.values()) / max(served.values()) > 0.75, served
    bench.true()


def test_one_tenant_alone_gets_half_and_a_newcomer_is_let_in_at_once(make: Make) -> None:
    bench = make(under_way=16)
    bench.submit("ada", 100)
    assert len(bench.admit()) == 8
    bench.submit("bo", 100)
    assert [tenant for tenant, _ in bench.admit()] == ["bo"] * 4
    bench.submit("cy", 1)
    assert [tenant for tenant, _ in bench.admit()] == ["cy"]
    bench.true()


def test_who_has_few_jobs_under_way_is_served_first_within_the_lane(make: Make) -> None:
    bench = make(under_way=32)
    bench.submit("ada", 20)
    bench.submit("bo", 1, Lane.INTERACTIVE)
    ranks = [rank for tenant, rank in bench.admit() if tenant == "ada"]
    assert ranks[:5] == [priority(Lane.BATCH) + plus for plus in (0, 1, 2, 2, 3)]
    assert max(ranks) == priority(Lane.BATCH) + 3
    bench.submit("cy", 1)
    assert bench.admit() == [("cy", priority(Lane.BATCH))]


def test_a_full_lane_and_a_full_share_refuse_and_what_is_refused_does_not_exist(make: Make) -> None:
    bench = make(max_waiting_batch=10, tenant_share=0.5)
    assert Counter(bench.submit("ada", 7)) == {EnqueueResult.TAKEN: 5, EnqueueResult.TENANT_FULL: 2}
    assert Counter(bench.submit("bo", 4)) == {EnqueueResult.TAKEN: 4}
    assert bench.submit("cy", 2) == [EnqueueResult.TAKEN, EnqueueResult.LANE_FULL]
    assert bench.submit("cy", 1, Lane.INTERACTIVE) == [EnqueueResult.TAKEN], "the other lane has room"
    assert bench.client.zcard(ACTIVE) == 11
    bench.true()
    bench.admit()
    assert bench.submit("cy", 1) == [EnqueueResult.TAKEN], "room again"


def test_a_job_that_is_known_is_left_as_it_is(make: Make) -> None:
    bench = make()
    bench.submit("ada")
    (job_id,) = bench.tenant_of
    request = JobRequest(question="another?", tenant="bo", lane=Lane.BATCH)
    assert bench.jobs.enqueue([(job_id, request)]) == [Enqueued(EnqueueResult.KNOWN, job_id)]
    job = bench.jobs.job(job_id)
    assert job is not None
    assert job.request.question == "why?"
    bench.true()


def test_leaving_twice_gives_one_place_back_and_a_waiting_job_leaves_its_line(make: Make) -> None:
    bench = make()
    bench.submit("ada", 5)
    waits = list(bench.tenant_of)[-1]
    assert [bench.leave(waits, 0), bench.leave(waits, 0)] == [1, 0]
    bench.admit()
    (runs, _), *_ = bench.last
    assert [bench.leave(runs, 6), bench.leave(runs, 6)] == [2, 0]
    bench.true()


def test_a_tenant_that_owes_waits_its_turns_but_never_for_ever(make: Make) -> None:
    bench = make(under_way=4)
    bench.submit("ada", 20)
    bench.admit()
    bench.leave(bench.last[0][0], 10_000)
    assert int(bench.client.hget(AdmissionKeys("batch").deficit, "ada") or 0) == -10 * QUANTUM, "the debt is bounded"
    bench.submit("bo", 2)
    assert [tenant for tenant, _ in bench.admit()][:1] == ["bo"]
    for _ in range(30):
        for job_id, _ in list(bench.last):
            bench.leave(job_id, 6)
        bench.admit()
    assert bench.client.zcard(AdmissionKeys("batch").waiting + "ada") == 0
    bench.true()


def test_a_job_put_back_stands_at_its_old_place_and_only_once(make: Make) -> None:
    bench = make()
    bench.submit("ada", 3)
    first, *_ = bench.tenant_of
    job = bench.jobs.job(first)
    assert job is not None
    for key in bench.client.keys(f"{AdmissionKeys.tag}*"):
        bench.client.delete(key)
    lines = bench.jobs.admission
    for job_id in reversed(bench.tenant_of):
        known = bench.jobs.job(job_id)
        assert known is not None
        assert [lines.readmit(job_id, Lane.BATCH, "ada", known.created_at, runs=False) for _ in range(2)] == [
            True,
            False,
        ]
    bench.true()
    bench.admit()
    assert [job_id for job_id, _ in bench.last] == list(bench.tenant_of)
    assert not lines.readmit(first, Lane.BATCH, "ada", job.created_at, runs=True), "it is under way"
    bench.true()


def test_the_place_of_a_job_says_what_is_before_it(make: Make) -> None:
    bench = make(under_way=2)
    bench.submit("ada", 4)
    bench.submit("bo", 1)
    bench.admit()
    last = list(bench.tenant_of)[3]
    place = bench.jobs.admission.position(last, Lane.BATCH, "ada")
    assert (place.waiting, place.under_way, place.ahead) == (True, False, 2)
    assert (place.lane_waiting, place.lane_under_way) == (3, 2)


def test_an_ended_job_gives_its_place_back_whoever_ends_it(make: Make) -> None:
    bench = make(under_way=4)
    bench.submit("ada", 6)
    bench.admit()
    assert bench.jobs.endings.stop(list(bench.tenant_of), State.CANCELLED, "enough") == 6
    assert bench.jobs.admission.under_way() == {}
    assert bench.client.lrange(AdmissionKeys("batch").ring, 0, -1) == []
    bench.true()


@pytest.mark.parametrize("keys", [("ring",), ("counts",), ("held",), ("under_way",), ("ring", "counts", "held")])
def test_whatever_single_list_is_lost_the_lines_are_true_again_after_a_look(make: Make, keys: tuple[str, ...]) -> None:
    bench = make(under_way=8)
    bench.submit("ada", 9)
    bench.submit("bo", 3)
    bench.admit()
    for name in keys:
        bench.client.delete(getattr(AdmissionKeys("batch"), name))
    mended = bench.jobs.admission.repair(Lane.BATCH, ["ada", "bo", "nobody"], recount=True)
    assert mended > 0
    bench.true()
    assert bench.jobs.admission.repair(Lane.BATCH, ["ada", "bo", "nobody"], recount=True) == 0, (
        "there is nothing left to mend"
    )
    if keys != ("under_way",):
        assert bench.jobs.admission.under_way() != {}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["submit", "admit", "end", "end", "cancel"]), st.sampled_from(TENANTS), st.integers(0, 40)
    ),
    max_size=40,
)


@given(steps=STEPS)
@profile(
    max_examples=60, deadline=None, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
def test_the_accounts_are_true_after_any_history(make: Make, steps: list[tuple[str, str, int]]) -> None:
    bench = make(under_way=5, max_waiting_batch=12)
    bench.client.flushdb()
    for what, tenant, number in steps:
        running = list(bench.jobs.admission.under_way())
        if what == "submit":
            bench.submit(tenant, number % 4 + 1)
        elif what == "admit":
            bench.admit()
        elif what == "end" and running:
            bench.leave(running[number % len(running)], number)
        elif what == "cancel" and bench.tenant_of:
            bench.leave(list(bench.tenant_of)[number % len(bench.tenant_of)], 0)
        bench.true()


@pytest.mark.parametrize("broken", ["ring", "counts", "queue", "active", "recent"])
def test_given_a_key_of_another_type_when_entered_then_no_job_is_half_made(
    store: JobStore, client: redis.Redis, broken: str
) -> None:
    queues = AdmissionKeys(Lane.INTERACTIVE.value)
    key = {
        "ring": queues.ring, "counts": queues.counts, "queue": f"{queues.waiting}default", "active": ACTIVE,
        "recent": RECENT,
    }[broken]  # fmt: skip
    client.set(key, "x")
    before = {name: client.dump(name) for name in client.scan_iter()}
    with pytest.raises(redis.ResponseError, match=r"WRONGTYPE.*is a string"):
        store.enqueue([(new_id(), JobRequest(question=f"why, {number}?")) for number in range(3)])
    assert {name: client.dump(name) for name in client.scan_iter()} == before
