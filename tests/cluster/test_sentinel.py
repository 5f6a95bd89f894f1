"""A failover: Redis' master dies, three Sentinels name a replica the master, and the jobs go on. All real processes."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from urllib.parse import quote

import pytest
import redis

from orchestrator.client import Ramify
from shared.connections.connect_async import connect_async
from shared.errors import NotFoundError, NotRunningError
from shared.jobs import connect
from shared.settings import Settings, load_settings
from tests.faults.redis_stage import PATIENCE_S, come_back, log_of, pools, states
from tests.support.redis_server import RedisServer
from tests.support.waiting import until

#: Eleven processes start first, which takes its time on a busy machine.
pytestmark = pytest.mark.timeout(400)
NOTES = Path(__file__).parents[2] / "examples" / "notes" / "en" / "queues"
PASSWORD = "geheim/;@ 密码"
GUARD = "another/secret"
NAME = "ramify-master"
#: Jobs before the failover and behind it; what a failover may take with it, as replicas follow (s).
_BEFORE, _AFTER, _REPLICATED_S = 40, 20, 1.0


@dataclass
class Group:
    """A master with two replicas, and the Sentinels that watch them."""

    master: RedisServer
    replicas: tuple[RedisServer, ...]
    sentinels: tuple[RedisServer, ...]

    @property
    def watchers(self) -> list[str]:
        return [f"127.0.0.1:{one.port}" for one in self.sentinels]

    def master_port(self) -> int:
        with redis.Redis(port=self.sentinels[0].port, password=GUARD) as client:
            return int(client.sentinel_master(NAME)["port"])


def asking(server: RedisServer, password: str) -> bool:
    with redis.Redis(port=server.port, password=password, socket_timeout=2) as client:
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False


def launch(server: RedisServer, password: str, stack: ExitStack) -> RedisServer:
    server.launch()
    stack.callback(server.kill)
    until(lambda: asking(server, password), 20)
    return server


def sentinel(folder: Path, master: RedisServer) -> RedisServer:
    """Two of three have to agree that the master is away."""
    folder.mkdir()
    server = RedisServer(folder, str(folder / "sentinel.conf"), "--sentinel", fixed=False)
    (folder / "sentinel.conf").write_text(
        f'port {server.port}\nbind 127.0.0.1\nrequirepass "{GUARD}"\n'
        f"sentinel monitor {NAME} 127.0.0.1 {master.port} 2\n"
        f'sentinel auth-pass {NAME} "{PASSWORD}"\n'
        f"sentinel down-after-milliseconds {NAME} 1000\nsentinel failover-timeout {NAME} 4000\n",
        encoding="utf-8",
    )
    return server


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    secret = ("--requirepass", PASSWORD, "--masterauth", PASSWORD)
    with ExitStack() as stack:
        master = launch(RedisServer(tmp_path / "master", *secret, lasting=True), PASSWORD, stack)
        follow = ("--replicaof", "127.0.0.1", str(master.port))
        replicas = [RedisServer(tmp_path / f"replica{at}", *secret, *follow, lasting=True) for at in range(2)]
        followers = tuple(launch(one, PASSWORD, stack) for one in replicas)
        watchers = tuple(launch(sentinel(tmp_path / f"sentinel{at}", master), GUARD, stack) for at in range(3))
        for one in watchers:
            with redis.Redis(port=one.port, password=GUARD) as client:
                until(lambda client=client: len(client.sentinel_slaves(NAME)) == len(followers), 30)
                until(lambda client=client: len(client.sentinel_sentinels(NAME)) == len(watchers) - 1, 30)
        yield Group(master, followers, watchers)


@pytest.fixture
def settings(group: Group, tmp_path: Path) -> Settings:
    redis_settings = {
        "url": f"redis://:{quote(PASSWORD, safe='')}@ignored:1/2",
        "sentinels": group.watchers,
        "sentinel_master": NAME,
        "sentinel_password": GUARD,
        "timeout_s": 2.0,
    }
    return load_settings(redis=redis_settings, data_dir=tmp_path, cache={"enabled": False}, jobs={"redrive_after_s": 5})


@dataclass
class Load:
    """One job after the other, until told to stop: when each was acknowledged (monotonic seconds), what was refused."""

    settings: Settings
    accepted: dict[str, float] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    stopped: Event = field(default_factory=Event)

    def run(self) -> None:
        with Ramify(self.settings) as client:
            while not self.stopped.wait(0.05):
                try:
                    job_id = client.submit(f"How is a queue kept, at {time.time()}?", lane="batch")
                    self.accepted[job_id] = time.monotonic()
                except NotRunningError as error:
                    self.refused.append(str(error))

    def between(self, begin: float, end: float) -> list[str]:
        """Those that were acknowledged then."""
        return [job_id for job_id, at in self.accepted.items() if begin <= at < end]


def end_of(client: Ramify, job_id: str) -> str:
    """How a job ended; empty for one that the master took along."""
    try:
        return states(client, [job_id])[job_id]
    except NotFoundError:
        return ""


def guests(guard: redis.Redis) -> int:
    """Connections to a Sentinel that are not those of the others."""
    return sum(not one["name"].startswith("sentinel-") for one in guard.client_list())


def test_given_load_when_the_master_dies_then_what_was_acknowledged_a_second_before_ends(
    group: Group, settings: Settings
) -> None:
    with pools(settings) as processes, Ramify(settings) as client:
        for _ in client.ingest([NOTES]):
            pass
        come_back(settings, client)
        load = Load(settings)
        with ThreadPoolExecutor(1) as threads:
            sending = threads.submit(load.run)
            enough = 3 * _REPLICATED_S + time.monotonic()
            until(lambda: len(load.accepted) >= _BEFORE and time.monotonic() > enough, PATIENCE_S, "there is load")
            died = time.monotonic()
            group.master.kill()
            until(lambda: group.master_port() != group.master.port, PATIENCE_S, "another master is named")
            named = time.monotonic()
            until(lambda: load.between(named, math.inf)[_AFTER:], PATIENCE_S, "jobs are taken by the new master")
            load.stopped.set()
            sending.result(PATIENCE_S)
        kept, at_risk = load.between(0.0, died - _REPLICATED_S), load.between(died - _REPLICATED_S, died)
        after = load.between(died, math.inf)
        until(lambda: set(states(client, [*kept, *after]).values()) <= {"done"}, 2 * PATIENCE_S, "they are done")
        ends = {job_id: end_of(client, job_id) for job_id in at_risk}
        print(
            f"failover after {named - died:.1f} s: {len(kept)} jobs before it and {len(after)} behind are done, of the "
            f"{len(at_risk)} of its last second {Counter(ends.values())}; {len(load.refused)} were refused"
        )
        assert kept
        assert set(ends.values()) <= {"done", ""}, "what is there at all ends"
        assert all(NAME in said for said in load.refused)
        assert all(process.is_running() for process in processes.values())
        logs = "".join(log_of(settings, name) for name in processes)
    assert not any(secret in logs for secret in (PASSWORD, GUARD, "geheim", "another%2Fsecret"))


def test_a_client_finds_the_master_and_closes_what_it_opened(group: Group, settings: Settings) -> None:
    client = connect(settings)
    client.set("greeting", "hello")
    assert client.connection_pool.get_master_address() == ("127.0.0.1", group.master.port)
    assert client.connection_pool.connection_kwargs["db"] == 2
    client.close()
    with redis.Redis(port=group.sentinels[0].port, password=GUARD) as guard:
        until(lambda: guests(guard) <= 1, 5)


def test_a_client_of_an_event_loop_does_the_same(group: Group, settings: Settings) -> None:
    async def main() -> None:
        client = connect_async(settings)
        await client.set("greeting", "hello")
        with redis.Redis(port=group.master.port, password=PASSWORD, db=2) as master:
            assert master.get("greeting") == b"hello"
        await client.aclose()

    asyncio.run(main())
    with redis.Redis(port=group.sentinels[0].port, password=GUARD) as guard:
        until(lambda: guests(guard) <= 1, 5)
