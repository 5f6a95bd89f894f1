"""The model servers die in the middle of a batch and come back: every job is done, and says what it went without."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from uuid import uuid4

import pytest

from orchestrator.client import Ramify
from orchestrator.local import checks_stack
from shared.connections.heartbeat import workers
from shared.jobs import connect
from shared.models import Answer
from tests.acceptance.conftest import NOTES, ingested, launched
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.replies import Fault, Hang, Reply, Step
from tests.support.redis_server import free_port
from tests.support.waiting import until

JOBS = 20
#: What a call may take, and how often it is tried: a job of three LLM calls, four embeddings and four reranks would
#: wait for 11 * 2 * 2 s on a server that hangs.
TIMEOUT_S, ATTEMPTS = 2.0, 2
QUESTIONS = ("How should we choose between Redis Streams and RabbitMQ?", "如何优化数据库查询性能，锁等待怎么排查？")


def settings(url: str) -> dict[str, object]:
    return {
        "llm_base_url": url,
        "llm_model": "fake",
        "llm_timeout_s": TIMEOUT_S,
        "llm_attempts": ATTEMPTS,
        "enable_summary": True,
        "embedding": {"provider": "endpoint", "base_url": url, "model": "fake", "dim": 64, "timeout_s": TIMEOUT_S},
        "rerank": {
            "provider": "endpoint", "base_url": url, "model": "fake", "timeout_s": TIMEOUT_S, "attempts": ATTEMPTS,
        },
        "cache": {"enabled": False},
        "providers": {"breaker": {"failures": 3, "open_s": 1.0, "longest_open_s": 2.0}},
    }  # fmt: skip


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[Ramify]:
    for client in launched(tmp_path_factory.mktemp("servers"), **settings(f"http://127.0.0.1:{port}/v1")):
        with FakeOpenAI(port):
            ingested(client, NOTES / "en" / "queues", NOTES / "zh" / "databases")
        yield client


def submitted(client: Ramify, count: int) -> list[str]:
    """A batch of questions of which no two are the same, and which do not wait for servers that fail."""
    questions = [f"{QUESTIONS[n % 2]} ({uuid4().hex[:8]})" for n in range(count)]
    return list(client.submit_many(questions, on_outage="degrade").job_ids)


def answers(client: Ramify, jobs: list[str], seconds: float) -> list[Answer]:
    ends = Counter(client.wait(job, seconds).state for job in jobs)
    assert ends == {"done": len(jobs)}, ends
    return [client.result(job) for job in jobs]


def finished(client: Ramify, jobs: list[str]) -> int:
    return sum(client.status(job).terminal for job in jobs)


def left_out(answer: Answer) -> set[str]:
    """The servers that an answer went without, by its warnings."""
    told = " ".join(answer.warnings)
    names = {"LLM server": "llm", "embedding server": "embedding", "rerank server": "rerank"}
    return {kind for name, kind in names.items() if name in told}


def recovered(client: Ramify, seconds: float) -> float:
    """Ask until a job goes without nothing; how long that took."""
    began = time.monotonic()
    while True:
        [answer] = answers(client, submitted(client, 1), 30)
        if not left_out(answer):
            return time.monotonic() - began
        assert time.monotonic() - began < seconds, answer.warnings
        time.sleep(0.2)


def test_servers_that_die_in_a_batch_and_come_back_cost_no_job(stack: Ramify, port: int) -> None:
    began = time.monotonic()
    with FakeOpenAI(port) as server:
        jobs = submitted(stack, JOBS)
        until(lambda: finished(stack, jobs) >= 4, 60)
        assert server.requests("chat")
    down = submitted(stack, 6)  # asked while everything is down
    without = answers(stack, down, 60)
    assert all(left_out(answer) == {"llm", "embedding", "rerank"} for answer in without), [a.warnings for a in without]
    assert all(answer.results and answer.summary and answer.summary.kind == "extractive" for answer in without)

    with FakeOpenAI(port):
        back = recovered(stack, 20)
        done = answers(stack, jobs, 60)
        gates = checks_stack.gates(stack.settings, stack.settings)

    seconds = time.monotonic() - began
    print(f"{JOBS + 6} jobs in {seconds:.1f} s, all servers in use {back:.1f} s after they were back")
    complete = [answer for answer in done if not left_out(answer)]
    assert complete, "those that came before"
    assert all(answer.results for answer in done)
    assert all(answer.summary.kind == "llm" for answer in complete if answer.summary)
    assert [check.ok for check in gates] == [True] * 3, gates
    assert seconds < 90


def killed(client: Ramify, *queues: str) -> None:
    """Kill the workers of these queues."""
    redis = connect(client.settings)
    for beat in workers(redis):
        if set(queues) & set(beat.queues):
            os.kill(int(beat.worker.split(":")[-3]), signal.SIGKILL)
    redis.close()


def test_a_batch_that_waits_for_servers_is_whole_when_they_are_back_whoever_was_killed_meanwhile(
    stack: Ramify, port: int
) -> None:
    with FakeOpenAI(port):
        batch = stack.submit_many([f"{QUESTIONS[n % 2]} ({uuid4().hex[:8]})" for n in range(12)])
        until(lambda: finished(stack, list(batch.job_ids)) >= 3, 60)
    until(lambda: stack.batch_status(batch.batch_id).postponed >= 3, 60)
    killed(stack, "plan", "merge", "ops")
    asked = stack.submit(f"{QUESTIONS[0]} ({uuid4().hex[:8]})")
    [without] = answers(stack, [asked], 60)
    assert set(without.degraded) == {"llm_unavailable", "embedding_unavailable", "rerank_unavailable"}
    assert not stack.batch_status(batch.batch_id).terminal, "it waits"

    with FakeOpenAI(port):
        done = answers(stack, list(batch.job_ids), 150)
        assert [answer.degraded for answer in done] == [()] * 12
        assert all(answer.coverage.startswith(str(len(answer.leaves))) for answer in done)
        status = stack.batch_status(batch.batch_id)
        assert (status.done, status.postponed, status.waits_for) == (12, 0, None)
        made = stack.retry(asked, degraded=True)
        [whole] = answers(stack, [made.job_id or ""], 60)
        assert whole.degraded == ()


@pytest.mark.parametrize(
    "step", [Hang(60), Fault(500), Fault(503, retry_after=1)], ids=["hangs", "fails", "overloaded"]
)
def test_servers_that_fail_are_asked_a_few_times_and_the_batch_ends_soon(stack: Ramify, port: int, step: Step) -> None:
    with FakeOpenAI(port) as server:
        recovered(stack, 20)
        for endpoint in ("chat", "embeddings", "rerank"):
            server.handle(endpoint, lambda _: step)
        before = {endpoint: len(server.requests(endpoint)) for endpoint in ("chat", "embeddings", "rerank")}
        began = time.monotonic()
        done = answers(stack, submitted(stack, 20), 80)
        seconds = time.monotonic() - began
        sent = {endpoint: len(server.requests(endpoint)) - before[endpoint] for endpoint in before}
        print(f"20 jobs in {seconds:.1f} s with {sent} requests")

        assert all(left_out(answer) and answer.results for answer in done)
        assert seconds < 45, "without the breaker each job would wait for each of its calls"
        # Unbroken: 20 jobs, two tries, two and more calls of a kind in each job. Of calls that hang, as many are under
        # way as a pool has threads (64) before the first of them is known to have failed.
        most = 70 if isinstance(step, Hang) else 60
        assert all(count < most for count in sent.values()), sent
        for endpoint in before:
            server.handle(endpoint, lambda _: Reply())
        recovered(stack, 20)
