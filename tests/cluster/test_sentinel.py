"""A failover: Redis' master dies, Sentinel names its replica the master, and the jobs go on. All real processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
import redis

from orchestrator.client import Ramify
from shared.connections.connect_async import connect_async
from shared.errors import NotRunningError
from shared.jobs import connect
from shared.settings import Settings, load_settings
from tests.faults.redis_stage import PATIENCE_S, come_back, log_of, pools, states
from tests.support.redis_server import RedisServer
from tests.support.waiting import until

#: Six processes start first, which takes its time on a busy machine.
pytestmark = pytest.mark.timeout(400)
NOTES = Path(__file__).parents[2] / "examples" / "notes" / "en" / "queues"
PASSWORD = "geheim/;@ 密码"
GUARD = "another/secret"
NAME = "ramify-master"


@dataclass
class Group:
    """A master with a replica, and the Sentinel that watches them."""

    master: RedisServer
    replica: RedisServer
    sentinel: RedisServer

    def master_port(self) -> int:
        with redis.Redis(port=self.sentinel.port, password=GUARD) as client:
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


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    secret = ("--requirepass", PASSWORD, "--masterauth", PASSWORD)
    with ExitStack() as stack:
        master = launch(RedisServer(tmp_path / "master", *secret, lasting=True), PASSWORD, stack)
        follow = ("--replicaof", "127.0.0.1", str(master.port))
        replica = launch(RedisServer(tmp_path / "replica", *secret, *follow, lasting=True), PASSWORD, stack)
        folder = tmp_path / "sentinel"
        folder.mkdir()
        sentinel = RedisServer(folder, str(folder / "sentinel.conf"), "--sentinel", fixed=False)
        (folder / "sentinel.conf").write_text(
            f'port {sentinel.port}\nbind 127.0.0.1\nrequirepass "{GUARD}"\n'
            f"sentinel monitor {NAME} 127.0.0.1 {master.port} 1\n"
            f'sentinel auth-pass {NAME} "{PASSWORD}"\n'
            f"sentinel down-after-milliseconds {NAME} 1000\nsentinel failover-timeout {NAME} 4000\n",
            encoding="utf-8",
        )
        launch(sentinel, GUARD, stack)
        found = Group(master, replica, sentinel)
        with redis.Redis(port=sentinel.port, password=GUARD) as client:
            until(lambda: client.sentinel_slaves(NAME), 20)
        yield found


@pytest.fixture
def settings(group: Group, tmp_path: Path) -> Settings:
    redis_settings = {
        "url": f"redis://:{quote(PASSWORD, safe='')}@ignored:1/2",
        "sentinels": [f"127.0.0.1:{group.sentinel.port}"],
        "sentinel_master": NAME,
        "sentinel_password": GUARD,
        "timeout_s": 2.0,
    }
    return load_settings(redis=redis_settings, data_dir=tmp_path, cache={"enabled": False}, jobs={"redrive_after_s": 5})


def test_jobs_go_on_after_a_failover_and_submits_say_one_thing(group: Group, settings: Settings) -> None:
    with pools(settings) as processes, Ramify(settings) as client:
        for _ in client.ingest([NOTES]):
            pass
        come_back(settings, client)
        accepted, refused = list[str](), list[str]()
        group.master.kill()
        end = time.monotonic() + 8
        while time.monotonic() < end:
            try:
                accepted.append(client.submit(f"How is a queue kept, at {time.time()}?", deadline_s=120))
            except NotRunningError as error:
                refused.append(str(error))
            time.sleep(0.3)
        until(lambda: group.master_port() == group.replica.port, PATIENCE_S)
        seconds = come_back(settings, client)
        print(f"failover: {len(refused)} refused, {len(accepted)} accepted, a new job passes after {seconds:.1f} s")
        assert all(NAME in said for said in refused)
        assert accepted
        assert set(states(client, accepted).values()) == {"done"}
        assert all(process.is_running() for process in processes.values())
        logs = "".join(log_of(settings, name) for name in processes)
    assert not any(secret in logs for secret in (PASSWORD, GUARD, "geheim", "another%2Fsecret"))


def test_a_client_finds_the_master_and_closes_what_it_opened(group: Group, settings: Settings) -> None:
    client = connect(settings)
    client.set("greeting", "hello")
    assert client.connection_pool.get_master_address() == ("127.0.0.1", group.master.port)
    assert client.connection_pool.connection_kwargs["db"] == 2
    client.close()
    with redis.Redis(port=group.sentinel.port, password=GUARD) as guard:
        until(lambda: len(guard.client_list()) <= 1, 5)


def test_a_client_of_an_event_loop_does_the_same(group: Group, settings: Settings) -> None:
    async def main() -> None:
        client = connect_async(settings)
        await client.set("greeting", "hello")
        with redis.Redis(port=group.master.port, password=PASSWORD, db=2) as master:
            assert master.get("greeting") == b"hello"
        await client.aclose()

    asyncio.run(main())
    with redis.Redis(port=group.sentinel.port, password=GUARD) as guard:
        until(lambda: len(guard.client_list()) <= 1, 5)
