"""What waiting jobs cost, small enough for every run; the bounds are generous: `bench_queue` has the numbers."""

from __future__ import annotations

import time
from threading import Thread
from typing import Any

import redis

from orchestrator.client import Ramify
from shared.jobs.keys import JobKeys
from shared.settings import Settings, load_settings
from tests.benchmarks.queue_load import measured, questions


def test_many_waiting_jobs_cost_each_what_a_few_do(client: redis.Redis, settings: Settings) -> None:
    with Ramify(settings) as ramify:
        batch_id = ramify.open_batch()
        few = measured(ramify, client, batch_id, 200, probe=1_600)
        many = measured(ramify, client, batch_id, 3_000, probe=1_600)
        print(f"\n{few}\n{many}")
        assert many.submit_us < 4 * few.submit_us
        for look, (p50, _) in few.ms.items():
            assert many.ms[look][0] < 4 * p50 + 10, look


def test_a_waiting_job_takes_less_than_two_and_a_half_kilobytes(client: redis.Redis, settings: Settings) -> None:
    """Exact: Redis counts its own bytes."""
    with Ramify(settings) as ramify:
        batch_id = ramify.open_batch()
        list(ramify.add_to_batch(batch_id, questions(500)))
        before = int(client.info("memory")["used_memory"])  # type: ignore[index]
        list(ramify.add_to_batch(batch_id, questions(1_500)))
        each = (int(client.info("memory")["used_memory"]) - before) / 1_500  # type: ignore[index]
        print(f"{each:.0f} bytes a waiting job")
        assert each < 2_500


def test_a_long_batch_is_cancelled_in_seconds(client: redis.Redis, settings: Settings) -> None:
    with Ramify(settings) as ramify:
        batch_id = ramify.open_batch()
        ids = [line.job_id for line in ramify.add_to_batch(batch_id, questions(1_500))]
        before = int(client.info("memory")["used_memory"])  # type: ignore[index]
        began = time.perf_counter()
        assert ramify.cancel_batch(batch_id) == len(ids)
        spent = time.perf_counter() - began
        more = (int(client.info("memory")["used_memory"]) - before) / len(ids)  # type: ignore[index]
        print(f"{more:.0f} bytes more for each that was cancelled")
        assert more < 1_000, "what ended in line has events, but no room for more of them"
        print(f"{len(ids)} jobs in {spent:.1f} s")
        assert ramify.batch_status(batch_id).outcomes() == {"cancelled": len(ids)}
        assert spent < 20
        assert ramify.cancel_batch(batch_id) == 0


def test_a_plain_client_that_waits_for_events_hears_of_a_job_that_ends_in_line(
    client: redis.Redis, settings: Settings
) -> None:
    lanes = {"under_way": 2}
    narrow = load_settings(redis={"url": settings.redis.url}, data_dir=settings.data_dir, lanes=lanes)
    with Ramify(narrow) as ramify:
        job_id = [ramify.submit(f"why, {n}?") for n in range(3)][-1]
        key, heard = JobKeys(job_id).events, list[Any]()
        assert not client.exists(key), "it waits"
        reader = Thread(target=lambda: heard.extend(client.xread({key: "0"}, block=5000)))  # type: ignore[arg-type]
        reader.start()
        time.sleep(0.2)
        ramify.cancel(job_id)
        reader.join(timeout=10)
        states = [fields[b"state"] for _, entries in heard for _, fields in entries]
        assert states == [b"queued", b"cancelled"]
        assert client.ttl(key) > 0
        assert [event.data["state"] for event in ramify.stream(job_id, 5)] == ["queued", "cancelled"]
