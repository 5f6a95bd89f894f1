"""Questions with an LLM through Ramify and its peers, on the same notes and the same fake LLM: two calls a question."""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from shared.models import JobRequest
from tests.benchmarks.speed.model_server import model_server
from tests.benchmarks.speed.questions import NOTES, words
from tests.benchmarks.speed.rigs import RamifyRig, stack

IN_FLIGHT = 50
_PEERS = ("llamaindex", "haystack", "langchain")
_ALONE = 8
#: The five searches that the server plans, and the question's own.
_LEAVES = 6
_ROOT = Path(__file__).parents[3]


class Peer:
    """A process of `peer_process`, run by a Python that has the peer's packages."""

    def __init__(self, python: str, name: str, url: str) -> None:
        script = Path(__file__).with_name("peer_process.py")
        self._process = subprocess.Popen(
            [python, "-W", "ignore", str(script), name, str(NOTES), url], cwd=_ROOT, text=True, env={},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.chunks = self._read()["chunks"]

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        said: dict[str, Any] = json.loads(self._process.stdout.readline())
        return said

    def run(self, questions: Sequence[str], in_flight: int) -> dict[str, float]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"questions": questions, "in_flight": in_flight}) + "\n")
        self._process.stdin.flush()
        said = self._read()
        assert said["answered"] == len(questions), said
        return _figures(len(questions), said["wall_s"], said["cpu_s"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=30)


class RamifyPeer:
    """The stack as shipped, with an LLM; one question alone is asked as a program does that waits for it."""

    def __init__(self, rig: RamifyRig) -> None:
        self._rig = rig

    def run(self, questions: Sequence[str], in_flight: int) -> dict[str, float]:
        if in_flight == 1:
            begun = time.perf_counter()
            for question in questions:
                client = self._rig.client
                ended = client.wait(client.submit(question))
                assert (ended.state, ended.leaves_total) == ("done", _LEAVES), ended
            return _figures(len(questions), time.perf_counter() - begun, 0.0)
        run = self._rig.run([JobRequest(question=question) for question in questions], planned=False)
        return _figures(len(questions), run.wall_s, run.cpu.total())


def _figures(count: int, wall_s: float, cpu_s: float) -> dict[str, float]:
    return {"jobs/s": count / wall_s, "s": wall_s / count, "cpu_ms": 1000 * cpu_s / count}


def measured(python: str, latencies_s: Sequence[float], jobs: int, rounds: int) -> dict[str, Any]:
    """`python`: of an environment with the peers' packages; each round asks all in turn, new questions each time."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="bench") as name, model_server() as server:
        # a tenant alone may have half of the window under way
        options: dict[str, Any] = {
            "llm_model": "fake", "llm_base_url": server.url, "lanes": {"under_way": 2 * IN_FLIGHT},
        }  # fmt: skip
        with stack(Path(name) / "stack", **options) as rig:
            for _ in rig.client.ingest((NOTES,)):
                pass
            peers: dict[str, Any] = {"ramify": RamifyPeer(rig)}
            peers |= {name: Peer(python, name, server.url) for name in _PEERS}
            try:
                for latency_s in latencies_s:
                    server.wait_each(chat=latency_s)
                    rows.append({"llm_s": latency_s, "of": _row(peers, latency_s, jobs, rounds)})
                    print(rows[-1], flush=True)
            finally:
                for peer in list(peers.values())[1:]:
                    peer.__exit__()
            chunks = {name: peer.chunks for name, peer in list(peers.items())[1:]}
    return {"in_flight": IN_FLIGHT, "jobs": jobs, "chunks": chunks, "rows": rows}


def _row(peers: dict[str, Any], latency_s: float, jobs: int, rounds: int) -> dict[str, Any]:
    many: dict[str, list[dict[str, float]]] = {name: [] for name in peers}
    alone: dict[str, list[dict[str, float]]] = {name: [] for name in peers}
    for turn in range(rounds + 1):
        for name, peer in peers.items():
            found = peer.run(asked(jobs if turn else 10, (latency_s, turn)), IN_FLIGHT)
            many[name] += [found] if turn else []  # the first round warms up
    for turn in range(_ALONE):
        for name, peer in peers.items():
            alone[name].append(peer.run(asked(1, (latency_s, "alone", turn)), 1))
    return {
        name: {
            "jobs/s": round(statistics.median(one["jobs/s"] for one in many[name]), 1),
            "cpu_ms": round(statistics.median(one["cpu_ms"] for one in many[name]), 1),
            "alone_s": round(statistics.median(one["s"] for one in alone[name]), 3),
        }
        for name in peers
    }


def asked(count: int, seed: object) -> list[str]:
    """Questions that Ramify asks the LLM to plan; the same for all."""
    rng = random.Random(f"{seed}")
    return [f"Why did we change {' '.join(rng.choice(words()) for _ in range(6))}?" for _ in range(count)]
