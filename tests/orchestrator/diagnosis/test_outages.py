"""`why`, `status` and `jobs` while a server fails and after it: no promise of pace, and what repairs the answers."""

from __future__ import annotations

import json
import time

import pytest
import redis

from orchestrator.client import Ramify
from orchestrator.diagnosis.batch import why_batch
from orchestrator.diagnosis.job import why_job
from shared.connections.heartbeat import WORKERS, key, worker_id
from shared.jobs import JobStore
from shared.jobs.keys import AdmissionKeys
from shared.models import Lane
from shared.models.status import BatchWhy, Why
from shared.providers.gates.gate_store import key_of
from shared.settings import Settings, load_settings
from shared.settings.broker import BrokerSettings
from shared.tasks.app import make_app
from tests.fakes.walked_jobs import WalkedJob
from tests.support.redis_server import free_port

GATE = "llm:127.0.0.1:9"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return load_settings(
        redis={"url": settings.redis.url}, data_dir=settings.data_dir, lanes={"under_way": 8},
        llm_base_url="http://127.0.0.1:9/v1", llm_model="m",
    )  # fmt: skip


@pytest.fixture
def batch_id(ramify: Ramify, client: redis.Redis) -> str:
    """A batch of three at work, one end a second behind it."""
    me, now = worker_id(), float(client.time()[0])  # type: ignore[index]
    client.set(key(me), json.dumps({"pool": "all", "queues": ["plan", "ops", "search"]}), ex=60)
    client.zadd(WORKERS, {me: now})
    client.rpush(AdmissionKeys(Lane.BATCH.value).ends, *(f"{now - n:.3f}" for n in range(20)))
    return ramify.submit_many([f"why, {n}?" for n in range(3)]).batch_id


def why(ramify: Ramify, batch_id: str) -> BatchWhy:
    found = ramify.why(batch_id)
    assert isinstance(found, BatchWhy)
    return found


def breaker(client: redis.Redis, **times: float) -> None:
    """The gate of the LLM server with a breaker that has opened; `times` in seconds from now."""
    fields = {name: int((time.time() + seconds) * 1000) for name, seconds in times.items()}
    client.hset(key_of(GATE), mapping={"opened_at": 1, "fails": 5, "why": "answered 500", **fields})


def test_given_jobs_that_wait_for_a_server_then_the_wait_leads_and_no_pace_is_promised(
    ramify: Ramify, store: JobStore, batch_id: str
) -> None:
    before = why(ramify, batch_id)
    assert before.eta_s is not None
    assert "At the present pace" in before.said
    for job_id in ramify.batch_jobs(batch_id):
        walked = WalkedJob(store, job_id).to("searching")
        store.work.postpone(walked.job, "0.0", "llm", "LLM server at 127.0.0.1:9 answered 500", 0.0)
    found = why(ramify, batch_id)
    assert found.said.startswith(
        "3 of its jobs wait for a server: LLM server at 127.0.0.1:9 answered 500; tried again at "
    )
    assert "goes on without it at" in found.said
    assert ("pace" in found.said, found.eta_s, found.postponed) == (False, None, 3)
    assert ramify.batch_status(batch_id).postponed == 3


def test_given_a_probe_that_hangs_then_its_server_leads_and_no_pace_is_promised(
    ramify: Ramify, client: redis.Redis, batch_id: str
) -> None:
    breaker(client, open_until=-1, probe_until=60)
    assert why(ramify, batch_id).eta_s is not None, "nobody probes"
    client.hset(key_of(GATE), "probe", "a token")
    found = why(ramify, batch_id)
    assert found.said.startswith("The LLM server at 127.0.0.1:9 is tried with one call, which all others wait for")
    assert ("pace" in found.said, found.eta_s) == (False, None)
    assert len(found.providers) == 1
    job = ramify.why(next(iter(ramify.batch_jobs(batch_id))))
    assert isinstance(job, Why)
    assert job.providers == found.providers


def degraded(ramify: Ramify, store: JobStore, *, partial: bool) -> str:
    walked = WalkedJob(store, ramify.submit("why?")).to("searching")
    store.annotate(walked.id, warnings=["it was split by rules"], item="0.0", degraded=["llm_unavailable"])
    walked.merging(("0.1",) if partial else ())
    walked.summarising()
    assert walked.done(partial=partial)
    return walked.id


@pytest.mark.parametrize(("partial", "again"), [(False, "degraded"), (True, "missing or degraded")])
def test_given_a_degraded_answer_then_why_points_to_its_repair_and_a_warning_is_no_error(
    ramify: Ramify, store: JobStore, partial: bool, again: str
) -> None:
    job_id = degraded(ramify, store, partial=partial)
    found = ramify.why(job_id)
    assert isinstance(found, Why)
    assert "llm_unavailable (leaf 0.0)" in found.said
    assert f"`ramify retry --degraded {job_id}` makes again what is {again}" in found.said
    assert found.next == f"ramify retry --degraded {job_id}"
    assert found.last_error == ("no store" if partial else None)
    assert ramify.retry(job_id, degraded=True).taken_over.leaves == (1 if partial else 2)


def test_given_a_rabbitmq_that_is_away_then_it_is_the_answer(
    store: JobStore, settings: Settings, ramify: Ramify
) -> None:
    job_id, at = ramify.submit("why?"), f"127.0.0.1:{free_port()}"
    batch_id = ramify.submit_many(["why not?"]).batch_id
    broker = BrokerSettings(url=f"amqp://u:p@{at}/v", timeout_s=0.2)
    over = settings.model_copy(update={"broker": broker})
    app, jobs = make_app(over), JobStore(store.client, over)
    for found in (why_job(app, jobs, job_id), why_batch(app, jobs, batch_id)):
        assert found.said.startswith(f"RabbitMQ at {at}, virtual host 'v' does not answer")
        assert (found.next, found.faults) == ("ramify doctor", ())


def test_queues_without_a_worker_are_told_by_heartbeats(ramify: Ramify, batch_id: str) -> None:
    assert batch_id
    assert ramify.unserved_queues() == ("rerank", "merge", "index")
