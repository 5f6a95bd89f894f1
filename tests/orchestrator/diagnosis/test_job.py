"""`why` on a real Redis: every state, every reason to wait, broken keys, and milliseconds with many jobs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
import redis

from orchestrator.client import Ramify
from shared.connections.heartbeat import WORKERS, key, worker_id
from shared.connections.process import stopped
from shared.errors import NotFoundError
from shared.jobs import JobStore, State
from shared.jobs.dead_letters import DeadLetterStore
from shared.jobs.keys import ACTIVE, AdmissionKeys, JobKeys
from shared.models import Lane
from shared.models.status import BatchWhy, DeadLetter, Why
from shared.providers.gates.gate_store import key_of
from shared.settings import Settings, load_settings
from tests.fakes.walked_jobs import PLACES, WAITING, WalkedJob, leaf, node, route
from tests.support.waiting import until


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return load_settings(
        redis={"url": settings.redis.url}, data_dir=settings.data_dir, lanes={"under_way": 2},
        llm_base_url="http://127.0.0.1:9/v1", llm_model="m",
    )  # fmt: skip


def serve(client: redis.Redis, *queues: str, **more: float) -> str:
    """A heartbeat of this process, as a worker of these queues."""
    me = worker_id()
    client.set(key(me), json.dumps({"pool": "all", "queues": queues, **more}), ex=60)
    client.zadd(WORKERS, {me: float(client.time()[0])})  # type: ignore[index]
    return me


def gone() -> str:
    """A worker of this host whose process is no more."""
    return worker_id().replace(f":{os.getpid()}:", ":4194304:")


@pytest.fixture
def frozen(client: redis.Redis) -> Iterator[str]:
    """The id of a worker of queue search whose process is stopped; its heartbeat has not expired yet."""
    say = "from shared.connections.heartbeat import *; set_node_name('search'); print(worker_id(), flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", say], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as it:
        assert it.stdout
        worker = it.stdout.readline().strip()
        client.set(key(worker), json.dumps({"pool": "search", "queues": ["search", "index"]}), ex=60)
        client.zadd(WORKERS, {worker: float(client.time()[0])})  # type: ignore[index]
        it.send_signal(signal.SIGSTOP)
        until(lambda: stopped(it.pid), 5)
        yield worker
        it.kill()


def test_a_pool_that_is_stopped_is_named_with_its_pid_and_the_command_that_lets_it_go_on(
    ramify: Ramify, store: JobStore, client: redis.Redis, frozen: str
) -> None:
    serve(client, "plan", "rerank", "merge", "ops")
    taken = ramify.submit_many(["why?"])
    walked, pid = WalkedJob(store, taken.job_ids[0]).to("searching"), frozen.split(":")[1]
    found = ramify.why(walked.id)
    assert "no worker serves that queue" in found.said
    name = f"{frozen.partition(':')[0]} pid {pid}"
    assert f"{name} is there, but it is stopped." in found.said
    assert found.next == f"kill -CONT {pid}"
    for leaf_id in ("0.0", "0.1", "0.2"):
        busy = f"{time.time():.3f} {frozen} search.leaf"
        store.client.hset(JobKeys(walked.id).work, f"busy:{leaf_id}", busy)
    found = ramify.why(walked.id)
    assert found.said.endswith(f"1 more are open. {name} is there, but it is stopped.")
    assert found.next == f"kill -CONT {pid}"
    of_batch = ramify.why(taken.batch_id)
    assert f"{name} is there, but it is stopped" in of_batch.said
    assert of_batch.next == f"kill -CONT {pid}"


def asked(ramify: Ramify, job_id: str) -> Why:
    found = ramify.why(job_id)
    assert isinstance(found, Why)
    assert found.next.startswith("ramify ")
    return found


def test_a_job_in_line_says_its_place_and_when_its_turn_may_come(ramify: Ramify, client: redis.Redis) -> None:
    serve(client, "plan", "ops")
    ids = [ramify.submit(f"why, {n}?") for n in range(4)]
    ramify.submit("why?", tenant="acme")
    found = asked(ramify, ids[3])
    assert found.turn is not None
    assert (found.turn.ahead, found.turn.tenants, found.turn.under_way, found.turn.window) == (2, 1, 2, 2)
    assert "2 jobs of its tenant are before it" in found.said
    assert "2 of at most 2 jobs of the interactive lane are under way" in found.said
    assert found.turn.eta_s is None, "nothing has ended yet: nobody knows"
    now = time.time()
    client.rpush(AdmissionKeys("interactive").ends, *(f"{now - n:.3f}" for n in range(20)))
    found = asked(ramify, ids[3])
    assert found.turn is not None
    assert found.turn.eta_s is not None
    assert 2 < found.turn.eta_s < 4, "3 turns at about 1 a second"
    assert "about" in found.said
    assert found.work == ()


def with_pace(client: redis.Redis, lane: Lane, ends: int = 20) -> None:
    """A job has ended every second, the last one just now."""
    now = time.time()
    client.rpush(AdmissionKeys(lane.value).ends, *(f"{now - n:.3f}" for n in range(ends)))


def test_a_job_whose_turn_comes_too_late_is_told_so_at_submission_and_later(
    ramify: Ramify, client: redis.Redis
) -> None:
    serve(client, "plan", "ops")
    with_pace(client, Lane.INTERACTIVE)
    ids = [ramify.submit(f"why, {n}?", queue_limit_s=limit) for n, limit in enumerate((1, 1, 600, 2))]
    assert [ramify.too_slow(job_id) is None for job_id in ids] == [True, False, True, False]
    warning = ramify.too_slow(ids[3]) or ""
    assert "its turn comes in about 3." in warning
    assert "later than the 2 s that queue_limit_s allows: it will expire" in warning
    found = asked(ramify, ids[3])
    assert "That is too late: in 1.9 s" in found.said or "That is too late: in 2.0 s" in found.said
    assert "too late" not in asked(ramify, ids[2]).said
    assert found.deadline_left_s is None


def test_a_job_that_has_waited_for_too_long_is_not_said_to_wait(ramify: Ramify, client: redis.Redis) -> None:
    serve(client, "plan", "ops")
    ramify.submit("it takes the place")
    late = ramify.submit("why?", queue_limit_s=0.001)
    time.sleep(0.01)
    assert asked(ramify, late).said.startswith("It has waited for longer than queue_limit_s allows")


def test_of_a_batch_that_is_too_slow_it_is_said_how_many_will_expire(ramify: Ramify, client: redis.Redis) -> None:
    """given one end a second and 500 jobs that may wait for 150 s / when asked / then the numbers add up"""
    serve(client, "plan", "ops")
    with_pace(client, Lane.BATCH)
    taken = ramify.submit_many([f"why, {n}?" for n in range(500)], queue_limit_s=150)
    assert taken.warning is not None
    said = re.search(r"about (\d+) of its 500 open jobs will expire", taken.warning)
    assert said is not None
    assert int(said[1]) == pytest.approx(350, abs=15)
    assert "later than the 150 s that queue_limit_s allows" in taken.warning
    found = ramify.why(taken.batch_id)
    assert isinstance(found, BatchWhy)
    assert found.expiring == pytest.approx(350, abs=15), "at 0.95 to 1 a second"
    assert found.eta_s == pytest.approx(150, abs=15), "the others end until the limit, no later"
    assert f"About {found.expiring} jobs will expire" in found.said
    assert f"ramify retry {taken.batch_id} --queue-limit" in found.said
    patient = ramify.submit_many(["why?", "what?"], queue_limit_s=3600)
    assert patient.warning is None
    found = ramify.why(patient.batch_id)
    assert isinstance(found, BatchWhy)
    assert (found.expiring, "expire" in found.said) == (0, False)


def test_while_nobody_knows_the_pace_nothing_is_said_to_expire(ramify: Ramify, client: redis.Redis) -> None:
    serve(client, "plan", "ops")
    taken = ramify.submit_many([f"why, {n}?" for n in range(50)], queue_limit_s=5)
    assert taken.warning is None
    client.delete(AdmissionKeys("batch").ends)
    client.set(AdmissionKeys("batch").ends, "no list")
    assert ramify.too_slow(taken.batch_id) is None, "a broken key is no reason to fail a submission"


@pytest.mark.parametrize("place", PLACES)
def test_every_state_has_an_answer_without_any_worker(ramify: Ramify, store: JobStore, place: str) -> None:
    if place == WAITING:
        ramify.submit("it takes the place")
    walked = WalkedJob(store, ramify.submit("why?"))
    if place in PLACES[2:]:
        walked.to(place)
    found = asked(ramify, walked.id)
    assert found.next == "ramify doctor"
    assert "no worker serves" in found.said.lower()
    waits = place == WAITING
    assert (found.wait_left_s is not None, found.deadline_left_s is not None) == (waits, not waits)
    left, most = (found.wait_left_s, 259_200) if waits else (found.deadline_left_s, 120)
    assert 0 < (left or 0) <= most


def test_a_leaf_at_a_worker_one_in_a_queue_and_one_that_waits(
    ramify: Ramify, store: JobStore, client: redis.Redis
) -> None:
    me = serve(client, "plan", "search", "rerank", "ops")
    walked = WalkedJob(store, ramify.submit("why?"))
    walked.planning()
    store.route(walked.id, route())
    nodes = [node("0.0"), node("0.1"), node("0.2", depends_on=("0.1",)), node("0.3")]
    store.start_searching(walked.id, nodes)
    store.work.begin(walked.id, "0.1", "search.leaf")
    store.record_leaf(walked.id, leaf("0.3"))
    client.lpush("search", *(f"message {n}" for n in range(3)))
    found = asked(ramify, walked.id)
    by_item = {piece.item: piece for piece in found.work}
    assert (by_item["0.1"].stands, by_item["0.1"].worker, by_item["0.1"].lives) == ("working", me, True)
    assert (by_item["0.0"].stands, by_item["0.0"].in_queue, by_item["0.0"].serving) == ("queued", 3, 1)
    assert "behind at most 2 others" in by_item["0.0"].said
    assert "threads are taken" not in by_item["0.0"].said
    serve(client, "search", threads=4, running=4, longest_s=63)
    (taken,) = [piece for piece in asked(ramify, walked.id).work if piece.item == "0.0"]
    assert taken.said.endswith("1 worker serves it, and all 4 threads are taken, one of them since 63 s")
    assert (by_item["0.2"].stands, by_item["0.2"].needs) == ("waits", ("0.1",))
    assert by_item["0.2"].said == "leaf 0.2 waits for the answer of 0.1"
    assert "1 of 4 leaves have ended" in found.said
    assert "0.3" not in by_item


def test_a_dead_worker_and_a_lost_message_are_told_with_how_often(
    ramify: Ramify, store: JobStore, client: redis.Redis
) -> None:
    serve(client, "plan", "search", "ops")
    walked = WalkedJob(store, ramify.submit("why?")).to("searching")
    now, dead = store.clock.now(), gone()
    client.hset(JobKeys(walked.id).work, mapping={
        "busy:0.0": f"{now - 7:.6f} {dead} search.leaf", "dead:0.0": 1,
        "proof:0.0": f"{now - 60:.6f} {dead} search.leaf",
        "sent:0.1": f"{now - 30:.6f}",
    })  # fmt: skip
    client.hset(JobKeys(walked.id).job, "redriven", 2)
    client.xadd(JobKeys(walked.id).events, {"type": "redriven", "items": '["0.0"]', "why": "its worker died"})
    found = asked(ramify, walked.id)
    by_item = {piece.item: piece for piece in found.work}
    assert (by_item["0.0"].stands, by_item["0.0"].tries, by_item["0.0"].lives) == ("lost", 2, False)
    assert "pid 4194304, which has died, 2nd try" in by_item["0.0"].said
    assert by_item["0.1"].stands == "lost"
    assert "its message is in no queue" in by_item["0.1"].said
    assert found.redriven == 2
    assert [(one.items, one.why) for one in found.redrives] == [(("0.0",), "its worker died")]
    assert [death.worker for death in found.deaths] == [dead]
    assert "The reaper sends again" in found.said


def test_how_a_job_ended_and_what_to_do_about_it(ramify: Ramify, store: JobStore, client: redis.Redis) -> None:
    walked = WalkedJob(store, ramify.submit("why?")).to("searching")
    walked.merging(failed=("0.1", "0.2"))
    walked.summarising()
    walked.done(partial=True)
    found = asked(ramify, walked.id)
    assert [failure.item for failure in found.failed] == ["0.1", "0.2"]
    assert "partial: 1 of 3 leaves answered; leaf 0.1 failed: no store (1 more failed)" in found.said
    assert (found.next, found.deadline_left_s) == (f"ramify retry {walked.id}", None)
    new = ramify.retry(walked.id).job_id
    found = asked(ramify, walked.id)
    assert (found.retried_as, found.next) == (new, f"ramify why {new}")
    gone = WalkedJob(store, ramify.submit("why?"))
    ramify.cancel(gone.id, State.EXPIRED, "the deadline passed while the job was queued")
    assert "ended expired" in asked(ramify, gone.id).said
    whole = WalkedJob(store, ramify.submit("why?")).to("summarising")
    whole.done()
    assert asked(ramify, whole.id).next == f"ramify result {whole.id}"


def test_a_dead_letter_and_a_paused_provider_are_named(
    ramify: Ramify, store: JobStore, settings: Settings, client: redis.Redis
) -> None:
    serve(client, "search", "plan", "ops")
    walked = WalkedJob(store, ramify.submit("why?")).to("searching")
    client.hset(key_of("llm:127.0.0.1:9"), "pause_until", int((time.time() + 60) * 1000))
    assert "LLM server at 127.0.0.1:9 wants no request until" in asked(ramify, walked.id).said
    client.hset(JobKeys(walked.id).work, mapping={"dead:0.1": 3, "proof:0.1": f"1.0 {gone()} search.leaf"})
    dead_letter = DeadLetter(id=f"{walked.id}:0.1", kind="work", at=1.0, tenant="default", job_id=walked.id, item="0.1",
                        task="search.leaf", reason="it killed its worker 3 times")  # fmt: skip
    DeadLetterStore(client, settings).add(dead_letter)
    walked.merging(failed=("0.1",))
    walked.summarising()
    walked.done(partial=True)
    found = asked(ramify, walked.id)
    assert found.dead_letters == (dead_letter.id,)
    assert found.next == f"ramify dead show {dead_letter.id}"


@pytest.mark.parametrize("broken", ["line", "ring", "counts", "under_way", "front", "held", "work", "leaves", "events"])
def test_a_broken_key_costs_its_own_fact_and_is_named_or_set_aside(
    ramify: Ramify, store: JobStore, client: redis.Redis, broken: str
) -> None:
    walked = WalkedJob(store, ramify.submit("why?")).to("searching")
    queues, keys = AdmissionKeys("interactive"), JobKeys(walked.id)
    name = {
        "line": f"{queues.waiting}default", "ring": queues.ring, "counts": queues.counts,
        "under_way": queues.under_way, "front": queues.latest_taken, "held": queues.held,
        "work": keys.work, "leaves": keys.leaves, "events": keys.events,
    }[broken]  # fmt: skip
    client.delete(name)
    client.set(name, "rubbish")
    found = asked(ramify, walked.id)
    own = name in (keys.work, keys.leaves, keys.events)
    assert bool(found.faults) == own, "it says what could not be read of the job"
    assert bool(client.exists(f"ramify:quarantine:{name}")) != own, "what belongs to no job is set aside"
    assert not any(piece.stands == "lost" for piece in found.work)
    assert "searching" in found.said


def test_a_queued_job_that_stands_in_no_line(ramify: Ramify, client: redis.Redis) -> None:
    serve(client, "plan", "ops")
    job_id = ramify.submit("why?")
    client.delete(*client.keys("ramify:{line}*"))
    assert "stands in no admission queue" in asked(ramify, job_id).said


def test_a_batch_says_its_counts_its_slowest_and_its_commonest_error(
    ramify: Ramify, store: JobStore, client: redis.Redis
) -> None:
    serve(client, "plan", "ops")
    batch = ramify.submit_many([f"why, {n}?" for n in range(9)])
    for job_id in batch.job_ids[5:8]:
        ramify.cancel(job_id, State.FAILED, "no search worker")
    ramify.cancel(batch.job_ids[8], State.EXPIRED, "too late")
    found = ramify.why(batch.batch_id)
    assert isinstance(found, BatchWhy)
    assert found.waiting + found.under_way + found.finished == found.enqueued == 9
    assert (found.finished, found.under_way) == (4, 1)
    assert found.slowest is not None
    assert found.slowest.job_id == batch.job_ids[0]
    assert found.error is not None
    assert (found.error.count, found.error.looked_at) == (3, 4)
    assert "no search worker" in found.said
    ramify.cancel_batch(batch.batch_id)
    ended = ramify.why(batch.batch_id)
    assert ended.said.startswith("It has ended")
    assert ended.next == f"ramify retry {batch.batch_id}"


def test_what_nobody_knows_is_said(ramify: Ramify) -> None:
    with pytest.raises(NotFoundError, match="no such job or batch"):
        ramify.why("0" * 21)


def test_it_reads_as_little_with_many_jobs_as_with_few(ramify: Ramify, store: JobStore, client: redis.Redis) -> None:
    """given 20,000 jobs in line / when one of them is asked after / then that reads no more than with 20."""

    def read(id_: str) -> tuple[int, int]:
        """Redis commands and bytes of replies of one `why`."""
        before = client.info("stats")
        ramify.why(id_)
        after = client.info("stats")
        return tuple(after[name] - before[name] for name in ("total_commands_processed", "total_net_output_bytes"))  # type: ignore[return-value]

    serve(client, "plan", "ops")
    store.client.rpush(AdmissionKeys("batch").ends, *(f"{time.time() - n:.3f}" for n in range(20)))
    small = ramify.submit_many([f"why, {n}?" for n in range(20)])
    job, batch = read(small.job_ids[-1]), read(small.batch_id)
    large = ramify.submit_many([f"why, {n}?" for n in range(20_000)])
    assert client.zcard(ACTIVE) > 20_000
    job_later, batch_later = read(large.job_ids[-1]), read(large.batch_id)
    print(f"job {job} and {job_later}, batch {batch} and {batch_later} (commands, bytes)")
    assert all(later <= 2 * first + 1000 for later, first in zip(job_later, job, strict=True))
    assert batch_later[0] < 600, "a sample of the batch's jobs is looked at"
    assert batch_later[1] < 100_000, "the ids of all would be half a megabyte"
    place = store.admission.position(large.job_ids[-1], Lane.BATCH, "default")
    assert place.ahead > 19_000


def test_work_that_waits_for_a_server_says_how_that_failed_and_when_it_goes_on(
    ramify: Ramify, store: JobStore, client: redis.Redis
) -> None:
    serve(client, "plan", "search", "rerank", "merge", "ops")
    made = ramify.submit_many(["why?"])
    walked = WalkedJob(store, made.job_ids[0]).to("planning")
    why = "LLM server at 127.0.0.1:9 answered 500: it is busy or failing"
    assert store.work.postpone(walked.job, "plan.job", "llm", why, 0.0)
    found = asked(ramify, walked.id)
    assert f"Its planning waits: {why}; tried again at " in found.said
    assert " UTC, goes on without it at " in found.said
    (piece,) = found.work
    assert (piece.stands, piece.tries) == ("postponed", 2)
    assert piece.postponed is not None
    status = ramify.status(walked.id)
    assert status.postponed == {"plan.job": piece.postponed}
    assert status.postponed["plan.job"].goes_on_at > status.postponed["plan.job"].until > time.time()
    of_batch = ramify.why(made.batch_id)
    assert isinstance(of_batch, BatchWhy)
    assert of_batch.postponed == 1
    assert f"1 of its jobs waits for a server: {why}; tried again at " in of_batch.said


def test_a_leaf_whose_binding_waits_for_a_server_says_so(ramify: Ramify, store: JobStore, client: redis.Redis) -> None:
    serve(client, "plan", "search", "rerank", "merge", "ops")
    walked = WalkedJob(store, ramify.submit("why?", on_outage="wait")).to("planning")
    store.route(walked.id, route())
    store.start_searching(walked.id, [node("0.1", needed_by=("0.2",)), node("0.2", depends_on=("0.1",))])
    store.record_leaf(walked.id, leaf("0.1"))
    assert store.work.postpone(walked.job, "0.1", "llm", "LLM server at h answered 500", 0.0)
    assert "Leaf 0.2 waits to be bound: LLM server at h answered 500; tried again" in asked(ramify, walked.id).said


def test_a_degraded_job_says_what_it_was_made_without_and_how_it_is_repaired(ramify: Ramify, store: JobStore) -> None:
    walked = WalkedJob(store, ramify.submit("why?")).to("searching")
    for item in ("plan.job", "0.1"):
        store.annotate(walked.id, item=item, degraded=["llm_unavailable"])
    walked.merging()
    walked.summarising()
    walked.done()
    found = asked(ramify, walked.id)
    assert "but degraded: llm_unavailable (planned by rules, leaf 0.1)." in found.said
    assert found.next == f"ramify retry --degraded {walked.id}"
    ends = [event for event in store.events(walked.id, 100) if event.get("state") == "done"]
    assert [event["degraded"] for event in ends] == ["llm_unavailable"]
