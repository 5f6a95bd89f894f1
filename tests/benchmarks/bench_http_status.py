"""`GET /v1/jobs/{id}` beside a bare FastAPI route with one Redis call: two server processes, asked in turns.

Run: python -m pytest -m benchmark -s tests/benchmarks/bench_http_status.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median, quantiles

import httpx
import pytest

from orchestrator.client import Ramify
from shared.jobs import JobStore
from shared.settings import load_settings
from tests.fakes.walked_jobs import WalkedJob
from tests.support.redis_server import free_port
from tests.support.waiting import until

ROUNDS, ASKED = 20, 50
MOST_RATIO = 3.0
_BARE = """
import sys
import redis, uvicorn
from fastapi import FastAPI

app, client = FastAPI(), redis.Redis.from_url(sys.argv[1])

@app.get("/bare/{job_id}")
def bare(job_id: str) -> dict[str, str | None]:
    state = client.hget(f"ramify:{{{job_id}}}:job", "state")
    return {"job_id": job_id, "state": state.decode() if state else None}

uvicorn.run(app, port=int(sys.argv[2]), log_config=None, http="h11")
"""

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(300)]


@contextmanager
def running(command: list[str], env: dict[str, str], url: str) -> Iterator[None]:
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: answers(url), 60, url)
            yield
        finally:
            process.terminate()


def answers(url: str) -> bool:
    with suppress(httpx.HTTPError):
        return httpx.get(url).status_code < 500
    return False


def times_ms(client: httpx.Client, url: str) -> list[float]:
    found = []
    for _ in range(ASKED):
        began = time.perf_counter()
        assert client.get(url).status_code == 200
        found.append((time.perf_counter() - began) * 1000)
    return found


def test_the_status_of_a_job_is_told_within_three_times_a_bare_route(redis_url: str, tmp_path: Path) -> None:
    settings = load_settings(redis={"url": redis_url}, data_dir=tmp_path)
    with Ramify(settings) as client:
        job_id = client.submit("Why do queues lose messages?")
        WalkedJob(JobStore(client._redis, settings), job_id).to("searching")
    own, bare = free_port(), free_port()
    env = os.environ | {"RAMIFY_REDIS__URL": redis_url, "RAMIFY_SERVER__PORT": str(own)}
    urls = {
        "GET /v1/jobs/{id}": f"http://127.0.0.1:{own}/v1/jobs/{job_id}",
        "bare route": f"http://127.0.0.1:{bare}/bare/{job_id}",
    }
    commands = ([sys.executable, "-m", "orchestrator.server"], [sys.executable, "-c", _BARE, redis_url, str(bare)])
    with ExitStack() as stack:
        for command, url in zip(commands, urls.values(), strict=True):
            stack.enter_context(running(command, env, url))
        asking = stack.enter_context(httpx.Client())
        found: dict[str, list[float]] = {name: [] for name in urls}
        for _ in range(ROUNDS):
            for name, url in urls.items():
                found[name] += times_ms(asking, url)
    # A machine that others use delays some of the calls: the fastest tenth of both tells what they take.
    least = {}
    for name, times in found.items():
        least[name] = quantiles(times, n=10)[0]
        print(f"{name:<18} fastest tenth {least[name]:.2f} ms, median {median(times):.2f} ms")
    ratio = least["GET /v1/jobs/{id}"] / least["bare route"]
    print(f"{ratio:.2f} times a bare route with one Redis call")
    assert ratio <= MOST_RATIO
