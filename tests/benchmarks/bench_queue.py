"""What 100,000 waiting jobs cost: to submit, in memory, to look at, to cancel. Ratios side by side in one run.

Run: python -m pytest -m benchmark -s tests/benchmarks/bench_queue.py
"""

from __future__ import annotations

import time

import pytest
import redis

from orchestrator.client import Ramify
from shared.settings import Settings
from tests.benchmarks.queue_load import measured, questions

FEW, MANY = 1_000, 100_000
MOST_BYTES = 2_500
CANCELLED = 10_000

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]


def test_a_hundred_thousand_waiting_jobs(client: redis.Redis, settings: Settings) -> None:
    with Ramify(settings) as ramify:
        batch_id = ramify.open_batch()
        few = measured(ramify, client, batch_id, FEW)
        before, size = int(client.info("memory")["used_memory"]), client.dbsize()  # type: ignore[index]
        many = measured(ramify, client, batch_id, MANY)
        each = (int(client.info("memory")["used_memory"]) - before) / (MANY - FEW)  # type: ignore[index]
        print(
            f"\n{few}\n{many}\n{each:,.0f} bytes a waiting job, {client.dbsize() - size:,} keys for {MANY - FEW:,} jobs"
        )
        other = ramify.open_batch()
        list(ramify.add_to_batch(other, questions(CANCELLED)))
        began = time.perf_counter()
        assert ramify.cancel_batch(other) == CANCELLED
        spent = time.perf_counter() - began
        status = ramify.batch_status(other)
        print(f"{CANCELLED:,} of {MANY + CANCELLED:,} cancelled in {spent:.1f} s")
        assert status.outcomes() == {"cancelled": CANCELLED}
    assert each < MOST_BYTES
    assert many.submit_us < 2 * few.submit_us
    for look, (p50, _) in few.ms.items():
        assert many.ms[look][0] < 2 * p50 + 2, look
    assert spent < 30
