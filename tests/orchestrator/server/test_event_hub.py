"""The hub of job events: resumed, shared by listeners, bounded, and unharmed by outages and foreign keys."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import redis

from orchestrator.server.events.hub import EventHub
from orchestrator.server.events.wire import BEGINNING, StreamEntry, StreamId, shown_id, stream_id
from shared.errors import TooManyRequestsError
from shared.jobs import JobStore, new_id
from shared.jobs.keys import JobKeys
from shared.models import JobRequest
from shared.settings import Settings, load_settings
from tests.support.redis_server import RedisServer


class FakeJob:
    """A job of which only state and events stand in Redis."""

    def __init__(self, client: redis.Redis, state: str = "searching") -> None:
        self.id, self._client = new_id(), client
        self.keys = JobKeys(self.id)
        client.hset(self.keys.job, "state", state)

    def tell(self, **fields: str) -> str:
        return self._client.xadd(self.keys.events, fields).decode()

    def end(self, state: str = "done") -> str:
        self._client.hset(self.keys.job, "state", state)
        return self.tell(type="state", state=state)


@pytest.fixture
def job(client: redis.Redis) -> FakeJob:
    return FakeJob(client)


def run(settings: Settings, scenario: Callable[[EventHub], Awaitable[None]], **options: float) -> None:
    async def main() -> None:
        async with EventHub(settings, **{"most": 100, **options}) as hub:
            async with asyncio.timeout(20):
                await scenario(hub)

    asyncio.run(main())


async def collect(hub: EventHub, job_id: str, after: StreamId = BEGINNING) -> list[StreamEntry]:
    return [entry async for page in hub.follow(job_id, after) for entry in page]


def told(entries: list[StreamEntry]) -> list[str]:
    return [entry.data.get("n") or entry.data.get("state") or entry.type for entry in entries]


def test_an_ended_job_is_replayed_and_closed(settings: Settings, job: FakeJob) -> None:
    job.tell(type="leaf", n="1")
    job.end()
    job.tell(type="retried", retried_as="x")

    async def scenario(hub: EventHub) -> None:
        assert told(await collect(hub, job.id)) == ["1", "done", "retried", "done"]

    run(settings, scenario)


def test_it_resumes_behind_the_last_event_id(settings: Settings, job: FakeJob) -> None:
    first = stream_id(job.tell(type="leaf", n="1"))
    job.tell(type="leaf", n="2")
    last = stream_id(job.end())
    assert first
    assert last

    async def scenario(hub: EventHub) -> None:
        assert told(await collect(hub, job.id, first)) == ["2", "done", "done"]
        assert [entry.type for entry in await collect(hub, job.id, last)] == ["end"]

    run(settings, scenario)


def test_listeners_of_many_jobs_hear_theirs_at_once(settings: Settings, client: redis.Redis) -> None:
    jobs = [FakeJob(client) for _ in range(20)]

    async def scenario(hub: EventHub) -> None:
        listeners = [asyncio.create_task(collect(hub, job.id)) for job in jobs * 2]
        await asyncio.sleep(0.2)
        assert hub.places.taken == len(listeners)
        began = asyncio.get_running_loop().time()
        for number, job in enumerate(jobs):
            job.tell(type="leaf", n=str(number))
            job.end()
        found = await asyncio.gather(*listeners)
        assert [told(entries) for entries in found] == [[str(n), "done", "done"] for n in range(20)] * 2
        assert asyncio.get_running_loop().time() - began < 4, "the reader's XREAD of 5 s was armed anew"
        assert hub.places.taken == 0

    run(settings, scenario)


def test_a_late_listener_of_a_stream_that_is_read_gets_all_of_it_once(settings: Settings, job: FakeJob) -> None:
    async def scenario(hub: EventHub) -> None:
        early = asyncio.create_task(collect(hub, job.id))
        late = []
        for number in range(40):
            job.tell(type="leaf", n=str(number))
            late.append(asyncio.create_task(collect(hub, job.id)))
            await asyncio.sleep(0.002)
        job.end()
        wanted = [*map(str, range(40)), "done", "done"]
        for entries in await asyncio.gather(early, *late):
            assert told(entries) == wanted

    run(settings, scenario)


def test_a_slow_listener_is_dropped_and_told_where_to_go_on(settings: Settings, job: FakeJob) -> None:
    async def scenario(hub: EventHub) -> None:
        slow = hub.follow(job.id)
        assert await anext(slow) == []
        waiting = asyncio.create_task(anext(slow))
        await asyncio.sleep(0.1)
        seen = stream_id(job.tell(type="leaf", n="seen"))
        assert told(list(await waiting)) == ["seen"]
        for number in range(9):
            job.tell(type="leaf", n=str(number))
        await asyncio.sleep(0.3)
        (last,) = await anext(slow)
        assert last.type == "dropped"
        assert seen
        assert stream_id(last.data["last_event_id"]) == seen
        assert [page async for page in slow] == []
        job.end()
        assert told(await collect(hub, job.id, seen))[:9] == [*map(str, range(9))]

    run(settings, scenario, most_waiting=5)


def test_a_waiting_job_says_so_and_silence_is_filled(settings: Settings, client: redis.Redis) -> None:
    job = FakeJob(client, "queued")

    async def scenario(hub: EventHub) -> None:
        pages = hub.follow(job.id)
        assert told(list(await anext(pages))) == ["queued"]
        assert await anext(pages) == []
        job.end("cancelled")
        assert told([entry async for page in pages for entry in page]) == ["cancelled", "cancelled"]

    run(settings, scenario, keepalive_s=0.1)


def test_a_job_that_waited_says_so_once(settings: Settings, client: redis.Redis) -> None:
    store, waiting = JobStore(client, settings), new_id()
    store.enqueue([(waiting, JobRequest(question="why?"))])

    async def scenario(hub: EventHub) -> None:
        pages = hub.follow(waiting)
        (first,) = await anext(pages)
        store.admit()
        assert store.start_planning(waiting, "a")
        stored = [entry_id.decode() for entry_id, _ in client.xrange(JobKeys(waiting).events)]
        seen = [first]
        while len(seen) < len(stored):
            seen += await anext(pages)
        assert [shown_id(entry.id) for entry in seen] == stored
        assert told(seen) == ["queued", "planning"]

    run(settings, scenario)


def test_an_end_that_nobody_told_is_found(settings: Settings, client: redis.Redis, job: FakeJob) -> None:
    async def scenario(hub: EventHub) -> None:
        listener = asyncio.create_task(collect(hub, job.id))
        await asyncio.sleep(0.1)
        client.delete(job.keys.job)
        assert told(await listener) == ["gone"]

    run(settings, scenario, keepalive_s=0.2)


def test_there_are_not_more_listeners_than_allowed(settings: Settings, job: FakeJob) -> None:
    async def scenario(hub: EventHub) -> None:
        first = hub.follow(job.id)
        await anext(first)
        with pytest.raises(TooManyRequestsError, match="max_listeners"):
            await anext(hub.follow(job.id))
        await first.aclose()
        await anext(hub.follow(job.id))

    run(settings, scenario, most=1)


def test_a_key_of_another_type_ends_its_own_listeners_alone(settings: Settings, client: redis.Redis) -> None:
    spoilt, whole = FakeJob(client), FakeJob(client)

    async def scenario(hub: EventHub) -> None:
        hurt = asyncio.create_task(collect(hub, spoilt.id))
        other = asyncio.create_task(collect(hub, whole.id))
        await asyncio.sleep(0.1)
        client.set(spoilt.keys.events, "no stream")
        whole.tell(type="leaf", n="1")
        await asyncio.sleep(0.5)
        whole.end()
        assert told(await other) == ["1", "done", "done"]
        assert told(await hurt) == ["unreadable"]

    run(settings, scenario)


def test_listeners_outlive_an_outage_of_redis(tmp_path: Path) -> None:
    with RedisServer(tmp_path, lasting=True) as server:
        settings = load_settings(redis={"url": server.url, "timeout_s": 1}, data_dir=tmp_path)
        job = FakeJob(server.client())
        job.tell(type="leaf", n="before")

        async def scenario(hub: EventHub) -> None:
            listener = asyncio.create_task(collect(hub, job.id))
            await asyncio.sleep(0.2)
            server.kill()
            await asyncio.sleep(0.5)
            await asyncio.to_thread(server.start)
            job.tell(type="leaf", n="after")
            job.end()
            assert told(await listener) == ["before", "after", "done", "done"]

        run(settings, scenario)
