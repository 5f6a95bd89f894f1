"""Metrics of a real job store: what stands there is told, in a bounded number of calls, and to those who may know."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator

import pytest
import redis
from fastapi.testclient import TestClient
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from orchestrator.metrics.collector import StoreCollector
from orchestrator.metrics.snapshot import Snapshot, SnapshotReader
from orchestrator.server.app import make_app
from shared.connections.connect import connect
from shared.connections.heartbeat import Heartbeat, key, set_node_name, worker_id
from shared.contract import Queue
from shared.jobs import JobStore, State, new_id
from shared.jobs.keys import AdmissionKeys, TotalKeys, WebhookKeys
from shared.jobs.scripts import Scripts
from shared.jobs.totals import add_runs
from shared.models import Cost, JobRequest, Lane
from shared.models.degraded import Degradation
from shared.process_counts import ProcessCounts, counts
from shared.settings import Settings, load_settings
from shared.settings.broker import BrokerSettings
from shared.tasks.app import _CountsAdder, outcome_of_run
from shared.tasks.app import make_app as make_celery
from tests.fakes.walked_jobs import WalkedJob
from tests.support.fixtures import store
from tests.support.waiting import until

__all__ = ["store"]
Values = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def reader(client: redis.Redis, settings: Settings) -> Iterator[SnapshotReader]:
    with make_celery(settings) as app:
        yield SnapshotReader(client, app, settings)


def values(families: object) -> Values:
    return {(one.name, frozenset(one.labels.items())): one.value for family in families for one in family.samples}  # type: ignore[attr-defined]


def told(reader: SnapshotReader, settings: Settings) -> Values:
    return values(StoreCollector(reader.read, settings).collect())


def value(found: Values, name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


def ask(store: JobStore, number: int = 1, tenant: str = "default", lane: Lane = Lane.INTERACTIVE) -> list[str]:
    ids = [new_id() for _ in range(number)]
    store.enqueue([(one, JobRequest(question="why?", tenant=tenant, lane=lane)) for one in ids])
    return ids


def test_given_jobs_in_all_states_when_scraped_then_lines_outcomes_times_and_costs_are_told(
    store: JobStore, reader: SnapshotReader, settings: Settings
):
    done, failed, waiting = (ask(store)[0] for _ in range(3))
    store.annotate(
        done, Cost(llm_calls=2, llm_tokens_in=700), ["gone"], item="0", degraded=[Degradation.LLM_UNAVAILABLE]
    )
    assert WalkedJob(store, done).to("summarising").done()
    store.endings.stop([failed], State.FAILED, "no leaf answered")
    ask(store, 2, tenant="acme", lane=Lane.BATCH)
    found = told(reader, settings)
    assert value(found, "ramify_jobs_waiting", lane="interactive", tenant="default") == 1
    assert value(found, "ramify_jobs_waiting", lane="batch", tenant="acme") == 2
    assert value(found, "ramify_jobs_waiting", lane="batch", tenant="other") == 0
    ended = {"lane": "interactive", "kind": "question"}
    assert value(found, "ramify_jobs_ended_total", **ended, outcome="degraded") == 1
    assert value(found, "ramify_jobs_ended_total", **ended, outcome="failed") == 1
    assert value(found, "ramify_jobs_degraded_total", reason="llm_unavailable") == 1
    assert value(found, "ramify_llm_calls_total") == 2
    assert value(found, "ramify_llm_tokens_total", direction="in") == 700
    assert value(found, "ramify_pool_owed_tasks", pool="plan") == 3
    assert value(found, "ramify_pool_tasks", pool="search", state="waiting") == 18
    store.admit()
    assert store.job(waiting)
    found = told(reader, settings)
    assert value(found, "ramify_jobs_under_way", lane="interactive", tenant="default") == 1
    assert 0 <= value(found, "ramify_oldest_job_age_seconds", lane="interactive", state="under_way") < 60


def test_given_an_admitted_job_when_it_ends_then_its_wait_and_run_are_in_the_histograms(
    client: redis.Redis, store: JobStore, reader: SnapshotReader, settings: Settings
):
    (job_id,) = ask(store)
    store.admit()
    client.hset(
        f"ramify:{{{job_id}}}:job", mapping={"created_at": store.clock.now() - 90, "admitted_at": store.clock.now() - 3}
    )
    assert WalkedJob(store, job_id).to("summarising").done()
    found = told(reader, settings)
    waited = {
        bound: value(found, "ramify_job_queue_wait_seconds_bucket", lane="interactive", le=bound)
        for bound in ("60.0", "300.0", "+Inf")
    }
    assert waited == {"60.0": 0, "300.0": 1, "+Inf": 1}
    assert value(found, "ramify_job_queue_wait_seconds_sum", lane="interactive") == pytest.approx(87, abs=1)
    of_run = {"lane": "interactive", "kind": "question"}
    assert value(found, "ramify_job_run_seconds_count", **of_run) == 1
    assert value(found, "ramify_job_run_seconds_bucket", **of_run, le="2.0") == 0
    assert 0 < client.ttl(TotalKeys.jobs) <= settings.jobs.ttl_s


def test_given_totals_of_another_type_when_a_job_ends_then_it_ends(client: redis.Redis, store: JobStore):
    (job_id,) = ask(store)
    client.set(TotalKeys.jobs, "no hash")
    assert WalkedJob(store, job_id).to("summarising").done()


def test_given_what_processes_count_when_added_then_runs_and_calls_are_told_by_name(
    client: redis.Redis, reader: SnapshotReader, settings: Settings
):
    counts = ProcessCounts()
    for seconds in (0.01, 0.3, 400):
        counts.add("task:search.leaf", "done", seconds)
    counts.add("call:llm", "failed", 7)
    sums = counts.take()
    assert counts.take() == {}
    counts.put_back(sums)
    for _ in range(2):
        add_runs(Scripts(client), counts.take() or sums, settings.jobs.ttl_s)
    found = told(reader, settings)
    assert value(found, "ramify_task_runs_total", pool="search", task="search.leaf", outcome="done") == 6
    assert value(found, "ramify_task_run_seconds_bucket", task="search.leaf", le="0.5") == 4
    assert value(found, "ramify_task_run_seconds_count", task="search.leaf") == 6
    assert value(found, "ramify_task_run_seconds_sum", task="search.leaf") == pytest.approx(800.62)
    assert value(found, "ramify_provider_calls_total", provider="llm", outcome="failed") == 2
    assert 0 < client.ttl(TotalKeys.runs) <= settings.jobs.ttl_s


def test_how_a_run_ended_is_read_from_what_its_task_returned():
    assert outcome_of_run("SUCCESS", {"node": "0.1"}) == "done"
    assert outcome_of_run("SUCCESS", {"node": "0.1", "failed": "no store", "degraded": "x"}) == "failed"
    assert outcome_of_run("SUCCESS", "a reply") == "done"
    assert outcome_of_run("FAILURE", ValueError()) == "raised"


def test_given_a_worker_when_scraped_then_its_pool_has_workers_threads_and_running_tasks(
    client: redis.Redis, reader: SnapshotReader, settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    at_work = type(
        "AtWork",
        (),
        {"told": lambda _: {"threads": 4, "running": 3, "longest_s": 9.5, "of_queue": {"search": 2, "index": 1}}},
    )
    monkeypatch.setattr("shared.connections.heartbeat.under_way", at_work())
    set_node_name("search@h")
    Heartbeat(client, settings, ("search", "index"))._beat()
    set_node_name("")
    found = told(reader, settings)
    assert value(found, "ramify_pool_workers", pool="search") == 1
    assert value(found, "ramify_pool_threads", pool="index") == 4
    assert value(found, "ramify_pool_owed_tasks", pool="search") == 2
    assert value(found, "ramify_pool_owed_tasks", pool="index") == 1
    assert value(found, "ramify_pool_longest_task_seconds", pool="search") == 9.5
    assert value(found, "ramify_pool_workers", pool="merge") == 0


def test_given_many_tenants_when_scraped_then_the_largest_have_series_and_the_rest_is_one(
    store: JobStore, reader: SnapshotReader, settings: Settings
):
    for number in range(30):
        ask(store, 1 + number, tenant=f"t{number}")
    few = settings.model_copy(update={"telemetry": settings.telemetry.model_copy(update={"metrics_tenants": 3})})
    reader._settings = few
    waiting = reader.read().lanes[Lane.INTERACTIVE].waiting
    assert waiting == {"t29": 30, "t28": 29, "t27": 28, "other": 30 * 31 // 2 - 87}


def test_given_100_000_open_jobs_of_3_000_tenants_when_scraped_then_calls_and_time_are_bounded(
    client: redis.Redis, reader: SnapshotReader
):
    keys = AdmissionKeys("batch")
    with client.pipeline(transaction=False) as pipe:
        for number in range(3000):
            pipe.rpush(keys.ring, f"t{number}")
            pipe.zadd(keys.waiting + f"t{number}", {f"{number}-{job}": 1.0 + job for job in range(33)})
        pipe.hset(keys.counts, "waiting", 99_000)
        pipe.hset(AdmissionKeys.under_way, mapping={new_id(): "batch t1" for _ in range(5000)})
        pipe.execute()
    reader.read()
    client.config_resetstat()
    found = reader.read()
    calls = sum(value["calls"] for value in client.info("commandstats").values())
    assert sum(found.lanes[Lane.BATCH].waiting.values()) == 99_000
    assert calls < 1300
    assert found.seconds < 2


def test_given_no_redis_when_scraped_then_that_is_what_is_told(settings: Settings):
    away = load_settings(redis={"url": "redis://127.0.0.1:1/0"}, data_dir=settings.data_dir)
    with TestClient(make_app(away), "http://localhost") as http:
        found = values(read_text(http.get("/metrics").text))
    assert value(found, "ramify_redis_up") == 0
    assert not [name for name, _ in found if name.startswith("ramify_jobs")]


def test_given_no_rabbitmq_when_scraped_then_that_is_told_beside_the_jobs(client: redis.Redis, settings: Settings):
    over = settings.model_copy(update={"broker": BrokerSettings(url="amqp://127.0.0.1:1")})
    with TestClient(make_app(over), "http://localhost") as http:
        found = values(read_text(http.get("/metrics").text))
    assert (value(found, "ramify_redis_up"), value(found, "ramify_broker_up")) == (1, 0)
    assert [name for name, _ in found if name.startswith("ramify_jobs")]


def test_given_a_redis_that_does_not_answer_when_scraped_then_it_ends_in_time(settings: Settings):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        frozen = load_settings(redis={"url": url, "timeout_s": 0.5}, data_dir=settings.data_dir)
        with make_celery(frozen) as app:
            found = SnapshotReader(connect(frozen, retries=0, timeout_s=0.5), app, frozen).read()
    assert not found.up
    assert found.seconds < 3


def test_given_scrapers_that_come_together_when_scraped_then_the_store_is_read_once(settings: Settings):
    reads = []
    collector = StoreCollector(lambda: reads.append(1) or Snapshot(), settings)  # type: ignore[func-returns-value]
    for _ in range(3):
        list(collector.collect())
    assert len(reads) == 1


@pytest.fixture
def http(client: redis.Redis, settings: Settings, store: JobStore) -> Iterator[TestClient]:
    ask(store)
    with TestClient(make_app(settings), "http://localhost") as http:
        yield http


def test_given_both_formats_when_asked_for_then_each_is_read_by_its_own_parser_and_promtool(http: TestClient):
    http.get("/v1/jobs/none/result")
    text = http.get("/metrics")
    found = values(read_text(text.text))
    assert value(found, "ramify_jobs_waiting", lane="interactive", tenant="default") == 1
    assert value(found, "ramify_http_requests_total", method="GET", route="/v1/jobs/{id}/result", status="404") == 1
    assert text.headers["cache-control"] == "no-store"
    openmetrics = http.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert "openmetrics" in openmetrics.headers["content-type"]
    assert "ramify_redis_up" in {family.name for family in read_openmetrics(openmetrics.text)}
    if (promtool := shutil.which("promtool")) is None:
        pytest.skip("promtool is not installed: Debian has it in the package prometheus")
    checked = subprocess.run(
        [promtool, "check", "metrics"], input=text.text, text=True, capture_output=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def test_given_a_token_when_metrics_are_asked_for_then_only_who_has_it_reads_them(
    client: redis.Redis, settings: Settings
):
    guarded = load_settings(
        redis={"url": settings.redis.url}, data_dir=settings.data_dir, telemetry={"metrics_token": "s3cret"}
    )
    with TestClient(make_app(guarded), "http://localhost") as http:
        assert http.get("/metrics").status_code == 401
        assert http.get("/metrics", headers={"Authorization": "Bearer s3cre"}).status_code == 401
        assert http.get("/metrics", headers={"Authorization": "Bearer s3cret"}).status_code == 200


def test_the_queues_of_the_contract_all_have_series(reader: SnapshotReader, settings: Settings, client: redis.Redis):
    found = told(reader, settings)
    assert {dict(labels)["pool"] for name, labels in found if name == "ramify_pool_owed_tasks"} == set(Queue)


def test_given_a_worker_when_it_ends_then_what_it_has_counted_is_added(client: redis.Redis, settings: Settings):
    counts.take()
    adder = _CountsAdder(Scripts(client), settings.jobs.ttl_s)
    beat = Heartbeat(client, settings, ("merge",), adder)
    beat.start()
    until(lambda: bool(client.exists(key(worker_id()))), 5)
    counts.add("task:merge.tree", "done", 0.1)
    beat.stop()
    assert client.hget(TotalKeys.runs, "count:task:merge.tree:done") == b"1"
    client.set(TotalKeys.runs, "no hash")
    counts.add("task:merge.tree", "done", 0.1)
    with pytest.raises(redis.ResponseError):
        adder(True)
    assert counts.take()["count:task:merge.tree:done"] == 1, "it is added the next time"


def test_given_webhooks_when_scraped_then_their_tries_are_counted_from_zero_on(
    client: redis.Redis, settings: Settings, http: TestClient
):
    first = values(read_text(http.get("/metrics").text))
    assert value(first, "ramify_webhooks_total", result="failed") == 0
    client.hset(WebhookKeys.counts, mapping={"delivered": 3, "failed": 2})
    client.zadd(WebhookKeys.due, {"we_1": 1})
    with make_celery(settings) as app:
        found = SnapshotReader(client, app, settings).read()
    assert found.webhooks == {"delivered": 3, "failed": 2}
    assert found.sizes["webhook_targets_waiting"] == 1
