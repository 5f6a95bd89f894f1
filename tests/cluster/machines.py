"""What an operator has on several machines: Redis and a store on one, pools on three, a client on another."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis

from orchestrator.client import Ramify
from shared.connections.heartbeat import WorkerBeat, ages, workers
from shared.settings import Settings, load_settings
from shared.tasks.app import make_app
from tests.cluster.lan import Host, Lan
from tests.support.redis_server import redis_binary
from tests.support.waiting import last, until

ROOT = Path(__file__).parents[2]
#: `ramify`, and a pool as docs/operations.md starts it on a machine of its own.
RAMIFY = (sys.executable, "-P", "-m", "orchestrator.cli.main")
POOLS = {
    "workers": ("-A", "workers.app", "worker", "-Q", "search,index,rerank,merge", "-P", "threads", "-c", "8"),
    "orchestrator": ("-A", "orchestrator.app", "worker", "-Q", "plan,ops", "-P", "threads", "-c", "4"),
}
_CELERY = (sys.executable, "-P", "-m", "shared.tasks.celery_command")
_PASSWORD = "geheim/1"


@dataclass
class Machines:
    """`services` has Redis and the store; `hosts` each have all pools; `desk` has a client, which this process is."""

    services: Host
    hosts: list[Host]
    desk: Host
    settings: Settings
    ramify: Ramify
    redis: redis.Redis

    def cli(self, *words: str, timeout_s: float = 120) -> str:
        """What a command on the client's host prints. Raises: AssertionError when it fails."""
        done = self.desk.run([*RAMIFY, *words], environment(self.services, self.desk), timeout_s)
        assert done.returncode == 0, f"{words}: {done.stdout}\n{done.stderr}\n{self.logs()}"
        return done.stdout

    def beats(self) -> list[WorkerBeat]:
        """Of those that have told of themselves within the last six seconds."""
        late = ages(self.redis)
        return [beat for beat in workers(self.redis) if late.get(beat.worker, 60.0) < 6.0]

    def received(self, host: Host) -> int:
        """How many tasks the pools of hosts of this name have begun."""
        node = f"celery@{host.hostname}"
        with make_app(self.settings) as app, app.connection_for_write() as broker:
            told = app.control.broadcast("stats", reply=True, timeout=3.0, destination=[node], connection=broker) or []
        return sum(sum(reply[node]["total"].values()) for reply in told)

    def logs(self) -> str:
        return "\n".join(host.log() for host in (*self.hosts, self.services))


def environment(services: Host, host: Host) -> dict[str, str]:
    """The settings of whatever runs on a host."""
    return {
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "",
        "RAMIFY_DATA_DIR": str(host.disk / "ramify"),
        "RAMIFY_REDIS__URL": redis_url(services),
        **{f"RAMIFY_STORE__{name.upper()}": str(value) for name, value in store_settings(services).items()},
        "RAMIFY_CACHE__ENABLED": "false",
    }


def redis_url(services: Host) -> str:
    return f"redis://:{_PASSWORD.replace('/', '%2F')}@{services.address}:6379/0"


def store_settings(services: Host) -> dict[str, object]:
    """A server of Python takes its time on a busy machine."""
    return {"kind": "server", "url": f"http://{services.address}:6333", "timeout_s": 30}


@contextmanager
def machines(folder: Path) -> Iterator[Machines]:
    """Five hosts whose pools all answer. Two of the workers' hosts have the same name, as copies of an image do."""
    with Lan(folder) as lan:
        services = lan.host("services")
        _redis(services)
        _store(services)
        hosts = [lan.host("one", "node"), lan.host("two"), lan.host("three", "node")]
        for host in hosts:
            for name, pool in POOLS.items():
                host.start(name, [*_CELERY, *pool, "-l", "INFO"], environment(services, host))
        desk = lan.host("desk")
        settings = load_settings(
            data_dir=folder / "client", redis={"url": redis_url(services)},
            store=store_settings(services), cache={"enabled": False},
        )  # fmt: skip
        with services.entered(), redis.Redis(host=services.address, password=_PASSWORD, socket_timeout=10) as look:
            until(lambda: _answers(look), 20, "Redis answers")
            with desk.entered(), Ramify(settings) as ramify:
                found = Machines(services, hosts, desk, settings, ramify, look)
                expected = len(hosts) * len(POOLS)
                assert last(lambda: len(found.beats()) == expected, 240, 0.2), found.logs()
                yield found


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False


def _redis(host: Host) -> None:
    options = {
        "--bind": host.address, "--port": "6379", "--requirepass": _PASSWORD, "--dir": str(host.disk),
        "--appendonly": "yes", "--maxmemory-policy": "noeviction", "--save": "",
    }  # fmt: skip
    host.start("redis", [str(redis_binary()), *(word for option in options.items() for word in option)])


def qdrant() -> str | None:
    """The program of a Qdrant server."""
    return os.environ.get("RAMIFY_TEST_QDRANT") or shutil.which("qdrant")


def _store(host: Host) -> None:
    """A Qdrant server: RAMIFY_TEST_QDRANT names the program, or it is on PATH; else one of Python stands in."""
    if program := qdrant():
        where = {"QDRANT__SERVICE__HOST": host.address, "QDRANT__TELEMETRY_DISABLED": "true"}
        host.start("qdrant", [program], where)
    else:
        stand_in = [sys.executable, "-m", "tests.cluster.qdrant_stand_in", host.address, "6333"]
        host.start("qdrant", stand_in, {"PYTHONPATH": str(ROOT)})
