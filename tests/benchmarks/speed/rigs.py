"""What is measured side by side: Ramify's own stack, a bare Celery graph on its Redis, the work in process."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psutil
import redis

from orchestrator.client import Ramify
from orchestrator.local.background import down, start
from orchestrator.local.child_process import launcher
from orchestrator.local.state import connection
from shared.jobs import connect
from shared.jobs.keys import BatchKeys
from shared.models import JobRequest
from shared.settings import Settings, load_settings
from tests.benchmarks.speed import processes
from tests.benchmarks.speed.questions import NOTES

_JOB_S, _LEAST_S = 2.0, 60.0
#: Between two looks for the end: each is a call of Redis.
_LOOK_S = 0.1
_ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Run:
    """Some jobs, from the first submission to the last end. `cpu`: seconds by process."""

    jobs: int
    wall_s: float
    cpu: Counter[str]

    @property
    def jobs_per_s(self) -> float:
        return self.jobs / self.wall_s

    def cpu_ms(self) -> dict[str, float]:
        """Milliseconds a job by process, the largest first."""
        spent = {name: round(1000 * seconds / self.jobs, 1) for name, seconds in self.cpu.most_common()}
        return {"all": round(1000 * self.cpu.total() / self.jobs, 1)} | {name: ms for name, ms in spent.items() if ms}


class Rig(Protocol):
    """Takes jobs and returns when all have ended."""

    def run(self, requests: Sequence[JobRequest]) -> Run: ...


class RamifyRig:
    """A stack as `ramify up` starts it, with the sample notes in its index."""

    def __init__(self, settings: Settings, client: Ramify, redis_client: redis.Redis) -> None:
        self.settings, self.client, self.redis = settings, client, redis_client
        server: Any = redis_client.info("server")  # its title has overwritten its environment
        self.processes = {**processes.stack_processes(settings.data_dir), server["process_id"]: "redis"}

    def run(self, requests: Sequence[JobRequest], *, degraded: bool = False, planned: bool = True) -> Run:
        """`degraded`: answers made without a model or in haste count, too; `planned`: the requests say the leaves."""
        before, begun = processes.cpu_seconds(self.processes), time.perf_counter()
        batch = self.client.submit_many(requests)
        assert not batch.rejected, batch.rejected[:1]
        key, end = BatchKeys(batch.batch_id).batch, time.monotonic() + max(_LEAST_S, _JOB_S * len(requests))
        while int(self.redis.hget(key, "finished") or 0) < len(requests):
            assert time.monotonic() < end, self.client.why(batch.batch_id)
            time.sleep(_LOOK_S)
        wall_s = time.perf_counter() - begun
        account = self.client.batch_status(batch.batch_id)
        if account.done + degraded * account.degraded != len(requests):
            raise AssertionError(account, [one.error for one in self.client.statuses(batch.job_ids) if one.error][:3])
        if not planned:
            return Run(len(requests), wall_s, processes.cpu_seconds(self.processes) - before)
        total = self.client.status(batch.job_ids[0]).leaves_total
        assert total == 1 + len(requests[0].subqueries), f"{total} leaves ran"
        return Run(len(requests), wall_s, processes.cpu_seconds(self.processes) - before)


@contextmanager
def stack(folder: Path, **options: Any) -> Iterator[RamifyRig]:
    """A running stack; the folder's index is kept."""
    settings = load_settings(data_dir=folder, **options)
    start(settings, bound=True)
    try:
        known = connection(settings)
        with Ramify(settings) as client, connect(known) as redis_client:
            yield RamifyRig(known, client, redis_client)
    finally:
        down(settings)


def ingested(folder: Path, **options: Any) -> None:
    """Fill a folder's index with the sample notes."""
    with stack(folder, **options) as rig:
        for _ in rig.client.ingest((NOTES,)):
            pass


class BareRig:
    """Workers of `bare_graph` with the threads of our pools, on a database of the stack's Redis of its own."""

    def __init__(self, settings: Settings, redis_processes: Mapping[int, str], leaves: int) -> None:
        url = settings.redis.url.get_secret_value().removesuffix("/0") + "/1"
        os.environ["BARE_GRAPH_REDIS"] = url
        from tests.benchmarks.speed import bare_graph

        self.graph, self.leaves, self._open = bare_graph, leaves, ExitStack()
        self.redis = redis.Redis.from_url(url, socket_timeout=None)
        started = {name: self._worker(name, settings.threads(name)) for name in bare_graph.POOLS}
        self.processes = {process.pid: name for name, process in started.items()}
        self.processes |= {pid: name for pid, name in redis_processes.items() if name == "redis"}
        self.run([])  # the first job opens connections

    def _worker(self, pool: str, threads: int) -> subprocess.Popen[bytes]:
        command = [
            *launcher(signal.SIGTERM),
            sys.executable,
            "-m",
            "celery",
            "-A",
            self.graph.__name__,
            "worker",
        ]
        command += ["-Q", f"bare.{pool}", "-P", "threads", "-c", str(threads), "-n", f"bare-{pool}@%h", "-l", "WARNING"]
        command += ["--without-gossip", "--without-mingle", "--heartbeat-interval", "5"]
        process = subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._open.callback(process.wait)
        self._open.callback(process.terminate)
        return process

    def run(self, requests: Sequence[JobRequest]) -> Run:
        count = len(requests) or 1
        before, begun = processes.cpu_seconds(self.processes), time.perf_counter()
        for number in range(count):
            self.graph.start(number, self.leaves)
        for _ in range(count):
            assert self.redis.blpop([self.graph.ENDED], timeout=_LEAST_S), "the bare graph stands still"
        return Run(count, time.perf_counter() - begun, processes.cpu_seconds(self.processes) - before)

    def close(self) -> None:
        self._open.close()
        self.redis.flushdb()
        self.redis.close()


class DirectRig:
    """`python -m workers.direct` on a copy of the index: the same leaves, one after the other."""

    def __init__(self, index: Path, folder: Path) -> None:
        shutil.copytree(index, folder, ignore=lambda *_: {"run", "logs", "redis"})
        (folder / "built.json").write_text(json.dumps({"documents": 0}))
        environment = {**os.environ, "RAMIFY_DATA_DIR": str(folder)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "workers.direct"], cwd=_ROOT, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        opened = self._said({"open": {"folder": str(folder), "corpus": str(NOTES)}})["opened"]
        self.chunks = opened["chunks"]
        assert self.chunks > 500, opened

    def _said(self, line: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer
        return answer

    def run(self, requests: Sequence[JobRequest]) -> Run:
        times = psutil.Process(self._process.pid).cpu_times
        before, begun = times(), time.perf_counter()
        for request in requests:
            plan = [entry.query for entry in request.subqueries]
            assert self._said({"question": request.question, "subqueries": plan})["documents"]
        after = times()
        spent = after.user + after.system - before.user - before.system
        return Run(len(requests), time.perf_counter() - begun, Counter({"work": spent}))

    def close(self) -> None:
        self._process.communicate(timeout=30)
