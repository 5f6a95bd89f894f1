"""One whole stack under test: its processes by name, Redis as a plain client sees it, and how to hurt both."""

from __future__ import annotations

import inspect
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import redis

from orchestrator.client import Ramify
from orchestrator.local.background import start
from orchestrator.local.state import StackState, log_dir, read_state
from shared.contract import POOL_QUEUES
from shared.settings import Settings, load_settings
from tests.acceptance.conftest import launched
from tests.faults.harness.corpus import write_corpus
from tests.faults.harness.load import TENANTS
from tests.faults.harness.skew import skewable
from tests.support.redis_server import free_port
from tests.support.waiting import until

POOLS = tuple(POOL_QUEUES)
#: Sorted set of the workers that have had a heartbeat; their pid stands in their id.
WORKERS = "ramify:workers"


class Rig:
    """A running stack with its corpus."""

    def __init__(self, client: Ramify, settings: Settings, skew_file: Path) -> None:
        self.client, self.settings, self.skew_file = client, client.settings, skew_file
        self._started_with = settings
        self.url = client.settings.redis.url.get_secret_value()
        self.redis = redis.Redis.from_url(self.url, socket_timeout=10, socket_connect_timeout=5)

    def config_set(self, name: str, value: str) -> None:
        """CONFIG SET, by the name that the embedded server has for it."""
        conf = (self.settings.data_dir / "redis" / "redis.conf").read_text()
        renamed = next(line.split()[2] for line in conf.splitlines() if line.startswith("rename-command CONFIG "))
        assert self.redis.execute_command(renamed, "SET", name, value) == b"OK"

    def another_client(self) -> Ramify:
        """For another thread; close it."""
        return Ramify(self.settings)

    def state(self) -> StackState:
        """What the supervisor says."""
        state = read_state(self.settings)
        assert state is not None, "no stack state"
        return state

    def pid(self, name: str) -> int | None:
        """The living process of that name, `supervisor` among them; None while there is none."""
        state = read_state(self.settings)
        if state is None:
            return None
        if name == "supervisor":
            return state.pid if lives(state.pid) else None
        return next((child.pid for child in state.children if child.name == name and lives(child.pid)), None)

    def serving(self, name: str) -> bool:
        """True when the pool's process lives and has given a sign that it takes work."""
        pid = self.pid(name)
        return pid is not None and any(f":{pid}:".encode() in worker for worker in self.redis.zrange(WORKERS, 0, -1))

    def signal(self, name: str, signum: signal.Signals = signal.SIGKILL) -> int | None:
        """Signal one process; returns its pid, or None when there is none now. After SIGKILL it is gone."""
        pid = self.pid(name)
        if pid is None:
            return None
        try:
            os.kill(pid, signum)
        except ProcessLookupError:
            return None
        if signum == signal.SIGKILL:
            until(lambda: not lives(pid), 5, f"{name} is gone")
        return pid

    def start_again(self) -> None:
        """After the supervisor was killed: start the stack in the same folder, as a person would."""
        start(self._started_with)

    def until_whole(self, seconds: float = 60.0) -> None:
        """Wait until Redis answers and every pool takes work."""
        until(self._whole, seconds, "every pool takes work again")

    def until_redis_answers(self, seconds: float = 60.0) -> None:
        """Wait until Redis takes commands, after it was killed."""
        until(self._answers, seconds, "Redis answers again")

    def _answers(self) -> bool:
        try:
            return bool(self.redis.ping())
        except redis.RedisError:
            return False

    def _whole(self) -> bool:
        try:
            return bool(self.redis.ping()) and all(map(self.serving, POOLS))
        except redis.RedisError:
            return False

    def logs(self) -> Path:
        """Folder of the logs, one file a process."""
        return log_dir(self.settings)

    def without_caches(self) -> None:
        """Forget what earlier rounds have computed."""
        for key in self.redis.scan_iter(match="ramify:cache:*", count=1000):
            self.redis.delete(key)


def lives(pid: int) -> bool:
    """True while the process runs; a zombie that nobody has reaped does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


@contextmanager
def rigged(folder: Path, **options: object) -> Iterator[Rig]:
    """A stack with the corpus in it, for every tenant. Its Redis keeps its port over restarts of the supervisor."""
    options = {"redis": {"port": free_port()}, **options}
    with skewable(folder / "skew") as skew_file:
        for client in launched(folder / "stack", **options):
            write_corpus(folder / "notes")
            for tenant in TENANTS:
                _ingest(client, folder / "notes", tenant)
            off = {"enabled": False}
            settings = load_settings(data_dir=folder / "stack", flower=off, server=off, **options)
            rig = Rig(client, settings, skew_file)
            try:
                yield rig
            finally:
                rig.redis.close()


def _ingest(client: Ramify, root: Path, tenant: str) -> None:
    """Chunks belong to a tenant once `ingest` takes one; before, they are everybody's."""
    belongs = "tenant" in inspect.signature(client.ingest).parameters
    for step in client.ingest(root, **({"tenant": tenant} if belongs else {})):
        failed = [out for out in step.outcomes if out.status.value == "failed"]
        assert not failed, failed
