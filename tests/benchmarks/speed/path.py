"""How long a question takes beside the model calls that it has to wait for, alone and while others are under way."""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orchestrator.client import Ramify
from tests.benchmarks.speed.model_server import model_server
from tests.benchmarks.speed.peers import asked
from tests.benchmarks.speed.questions import NOTES
from tests.benchmarks.speed.rigs import stack

#: Seconds of a call.
LATENCIES = {"chat": 0.5, "embeddings": 0.02, "rerank": 0.1}
#: What follows each other in a job: plan, embedding of a search, rerank of a leaf, of the pool, and the answer.
CRITICAL_S = sum(LATENCIES[name] for name in ("chat", "embeddings", "rerank", "rerank", "chat"))
_ALONE, _WARM, _MOST_S = 8, 10, 300.0


def measured(loads: Sequence[float], jobs: int) -> dict[str, Any]:
    """`loads`: shares of the jobs a second that the stack ends when all are there at once."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="bench") as name, model_server() as server:
        models = {"provider": "endpoint", "model": "fake", "base_url": server.url}
        options: dict[str, Any] = {
            "llm_model": "fake",
            "llm_base_url": server.url,
            "embedding": models,
            "rerank": models,
        }
        with stack(Path(name) / "stack", **options) as rig:
            for _ in rig.client.ingest((NOTES,)):
                pass
            server.wait_each(**LATENCIES)
            _walls(rig.client, asked(_WARM, "warm"), 0.0)
            alone = [_walls(rig.client, [one], 0.0)[0] for one in asked(_ALONE, "alone")]
            rows.append({"load": "alone", **_row(alone)})
            begun = time.perf_counter()
            _walls(rig.client, asked(jobs, "all at once"), 0.0)
            most = jobs / (time.perf_counter() - begun)
            rows += [
                {"load": f"{load:.0%}", **_row(_walls(rig.client, asked(jobs, load), 1 / (load * most)))}
                for load in loads
            ]
    return {"critical_s": CRITICAL_S, "most jobs/s": round(most, 1), "rows": rows}


def _row(walls: Sequence[float]) -> dict[str, float]:
    ratios = sorted(wall / CRITICAL_S for wall in walls)
    at_90 = ratios[min(len(ratios) - 1, int(0.9 * len(ratios)))]
    return {"median": round(statistics.median(ratios), 2), "p90": round(at_90, 2)}


def _walls(client: Ramify, questions: Sequence[str], gap_s: float) -> list[float]:
    """Seconds of each job from its submission to its end, by Redis' clock; `gap_s`: mean of the gaps between them."""
    rng, job_ids = random.Random(f"{questions}"), list[str]()
    for question in questions:
        job_ids.append(client.submit(question))
        time.sleep(rng.expovariate(1 / gap_s) if gap_s else 0.0)
    ended = [client.wait(job_id, _MOST_S) for job_id in job_ids]
    assert all(one.state == "done" and one.finished_at for one in ended), ended[0]
    return [(one.finished_at or 0.0) - one.created_at for one in ended]
