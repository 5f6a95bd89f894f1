"""Spans as a collector receives them; and that neither its absence nor a span costs a job anything."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
import redis
from celery import Celery
from fastapi.testclient import TestClient

from orchestrator.client import Ramify
from orchestrator.server.app import make_app
from shared.contract import TaskMessage, TaskName
from shared.jobs import JobStore
from shared.providers.called import called, traced_headers
from shared.providers.gates import Gate, UnreachableError
from shared.providers.rerankers.call_batcher import CallBatcher
from shared.providers.rerankers.scoring import Request
from shared.settings import Settings, load_settings
from shared.tasks.run_context import in_task, tell
from shared.tasks.signatures import task_signature
from shared.tracing import spans
from shared.tracing.spans import NO_SPAN, carried, current, parent_of, span, submitted
from tests.fakes.otlp_receiver import OtlpReceiver, ReceivedSpan
from tests.support.fixtures import store

__all__ = ["store"]


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as receiver:
        yield receiver


def traced(url: str, redis_url: str = "", folder: Path = Path(), **telemetry: object) -> Settings:
    return load_settings(redis={"url": redis_url}, data_dir=folder, telemetry={"otlp_url": url, **telemetry})


@pytest.fixture
def on(receiver: OtlpReceiver, redis_url: str, tmp_path: Path) -> Iterator[Settings]:
    settings = traced(receiver.url, redis_url, tmp_path, otlp_headers="x-key=s3cret")
    spans.configure(settings)
    yield settings
    end()


def end() -> None:
    """Send what waits, and trace no more."""
    if spans._Own.tracer is not None:
        spans._Own.tracer.close()  # type: ignore[attr-defined]
    spans.configure(load_settings())


def received(receiver: OtlpReceiver) -> dict[str, ReceivedSpan]:
    end()
    return {one.name: one for one in receiver.spans}


def test_given_no_collector_in_the_settings_when_traced_then_nothing_is_loaded_or_kept():
    code = (
        "import sys; from shared.settings import load_settings; from shared.tracing import spans\n"
        "spans.configure(load_settings())\n"
        "with spans.span('a', job_id='j') as s: assert s is spans.NO_SPAN and spans.carried('j') is None\n"
        "assert spans.submitted('j') is None and spans.parent_of('j', None) == ''\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_given_spans_in_spans_when_sent_then_ids_parents_attributes_and_headers_arrive(
    on: Settings, receiver: OtlpReceiver
):
    with span("outer", "producer", attributes={"ramify.jobs": 2}) as outer, span("inner") as inner:
        assert current() == inner.traceparent
        assert inner.traceparent[:35] == outer.traceparent[:35]
    with pytest.raises(ValueError, match="secret text"), span("broken"):
        raise ValueError("secret text")
    assert current() == ""
    found = received(receiver)
    assert found["inner"].parent_id == found["outer"].span_id
    assert found["outer"].attributes == {"ramify.jobs": 2}
    assert found["broken"].failed
    assert found["broken"].attributes == {"error.type": "ValueError"}
    assert found["broken"].trace_id != found["outer"].trace_id
    assert (receiver.headers[0]["path"], receiver.headers[0]["x-key"]) == ("/v1/traces", "s3cret")


def test_given_a_job_when_submitted_then_its_hash_and_its_messages_carry_the_span(
    on: Settings, receiver: OtlpReceiver, client: redis.Redis, store: JobStore
):
    with Ramify(on) as ramify:
        job_id, other = ramify.submit("why is it secret?"), ramify.submit("and why?")
    job = store.job(job_id)
    assert job is not None
    app = Celery()
    with in_task(job, TaskMessage(job_id=job_id), "plan.job") as plan:
        own = task_signature(app, TaskName.SEARCH_LEAF, TaskMessage(job_id=job_id, node_id="0.1"), 0)
        theirs = task_signature(app, TaskName.PLAN_JOB, TaskMessage(job_id=other), 0)
        message = TaskMessage.model_validate(own.args[0])
        assert message.traceparent == plan.traceparent
        assert "traceparent" not in theirs.args[0], "a job that is let in meanwhile goes on with its own"
        with in_task(job, message, "search.leaf") as leaf:
            tell(leaf, {"node": "0.1", "failed": "no store: secret.md", "degraded": "store_unavailable"})
    end()
    of_job = {one.name: one for one in receiver.of_job(job_id)}
    assert {"submit", "plan.job", "search.leaf"} == set(of_job)
    assert of_job["plan.job"].parent_id == of_job["submit"].span_id
    assert of_job["search.leaf"].parent_id == of_job["plan.job"].span_id
    assert of_job["search.leaf"].attributes["ramify.node_id"] == "0.1"
    assert of_job["search.leaf"].failed
    assert of_job["submit"].trace_id != receiver.of_job(other)[0].trace_id
    assert "secret" not in str(receiver.spans)


def test_given_a_traced_request_when_it_asks_over_http_then_its_job_belongs_to_the_callers_trace(
    on: Settings, receiver: OtlpReceiver, client: redis.Redis
):
    theirs = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    with TestClient(make_app(on), base_url="http://127.0.0.1") as http:
        for given in (theirs, "nonsense"):
            http.post("/v1/jobs", json={"question": "why?"}, headers={"traceparent": given})
        http.get("/v1/jobs/none")
    end()
    request, submit = (next(one for one in receiver.spans if one.name == name) for name in ("POST", "submit"))
    assert (request.trace_id, request.parent_id) == ("a" * 32, "b" * 16)
    assert (submit.trace_id, submit.parent_id) == ("a" * 32, request.span_id)
    assert sorted({one.name for one in receiver.spans}) == ["POST", "submit"]
    assert len({one.trace_id for one in receiver.spans}) == 2


def test_given_a_batch_when_entered_then_each_job_has_a_trace_that_links_to_the_page(
    on: Settings, receiver: OtlpReceiver, client: redis.Redis
):
    with Ramify(on) as ramify:
        list(ramify.add_to_batch(ramify.open_batch(), [f"question {number}" for number in range(3)]))
    end()
    submits = [one for one in receiver.spans if one.name == "submit"]
    (page,) = (one for one in receiver.spans if one.name == "batch page")
    assert len({one.trace_id for one in submits} | {page.trace_id}) == 4
    assert {one.links for one in submits} == {(page.span_id,)}


def test_given_a_client_that_traces_nothing_when_its_job_runs_then_all_tasks_share_one_trace(on: Settings):
    first, second = (parent_of("00000000000000000000a", None) for _ in range(2))
    assert first == second
    assert first != parent_of("00000000000000000000b", None)
    given = "00-" + "1" * 32 + "-" + "2" * 16 + "-01"
    assert parent_of("00000000000000000000a", "nonsense", given) == given
    assert submitted("00000000000000000000a") is not None


def test_given_no_share_when_jobs_are_traced_then_none_is_sent(receiver: OtlpReceiver):
    spans.configure(traced(receiver.url, sample=0.0))
    with span("a"), span("b"):
        assert not int(current()[-2:], 16) & 1, "the decision is carried"
    with span("task", parent=parent_of("00000000000000000000a", None)):
        pass
    assert received(receiver) == {}


def test_given_calls_of_servers_when_made_then_each_is_a_span_and_counted(
    on: Settings, receiver: OtlpReceiver, client: redis.Redis
):
    gate = Gate("llm", "http://model.example:8000/v1", on.providers)
    with called(gate, "POST", "/chat/completions") as asked:
        asked.set(http__response__status_code=200)
        assert traced_headers() == {"traceparent": asked.traceparent}
    with pytest.raises(UnreachableError), called(gate, "POST", "/chat/completions"):
        raise UnreachableError("away")
    end()
    good, bad = receiver.spans
    assert good.attributes["http.response.status_code"] == 200
    assert good.attributes["server.address"] == "model.example:8000"
    assert (good.failed, bad.failed) == (False, True)
    assert traced_headers() == {}


def test_given_requests_of_two_tasks_in_one_call_when_traced_then_the_call_links_to_the_other(
    on: Settings, receiver: OtlpReceiver
):
    def run(requests: object, _: float) -> None:
        with span("call"):
            for request in requests:  # type: ignore[attr-defined]
                request.scores.update(dict.fromkeys(request.texts, 1.0))

    batcher = CallBatcher(run, 0.2, key=lambda _: None)

    def task(name: str) -> None:
        with span(name):
            batcher.score(Request("q", (name,), time.monotonic() + 5))

    threads = [Thread(target=task, args=(name,)) for name in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = received(receiver)
    both = {found["first"].span_id, found["second"].span_id}
    assert {found["call"].parent_id, *found["call"].links} == both


@pytest.mark.parametrize("kind", ["refuses", "is silent"])
def test_given_a_collector_that_is_away_when_traced_then_spans_cost_nothing_and_the_end_comes(kind: str):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if kind == "is silent":
            server.listen()
        code = (
            "import sys, time; from shared.settings import load_settings; from shared.tracing import spans\n"
            f"spans.configure(load_settings(telemetry={{'otlp_url': 'http://127.0.0.1:{server.getsockname()[1]}'}}))\n"
            "with spans.span('first'): pass\n"
            "began = time.process_time()\n"
            "for _ in range(2000):\n"
            "    with spans.span('one', job_id='j'): pass\n"
            "print(time.process_time() - began)"
        )
        began = time.monotonic()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert float(done.stdout) < 2
    assert time.monotonic() - began < 30
    assert "Traceback" not in done.stderr


def test_given_the_extra_is_missing_when_traces_are_asked_for_then_that_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(spans, "find_spec", lambda _: None)
    with pytest.raises(spans.RamifyError, match=r"pip install 'ramify\[telemetry\]'"):
        spans.configure(traced("http://127.0.0.1:1"))
    assert NO_SPAN.traceparent == ""
    assert carried("j") is None
