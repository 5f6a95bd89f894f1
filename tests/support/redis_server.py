"""Redis servers of the tests' own, on free ports of this machine."""

from __future__ import annotations

import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Self

import pytest
import redis

from orchestrator.local.redis_binary import find_binary
from shared.errors import RamifyError
from tests.support.waiting import until


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def redis_binary() -> Path:
    """Where the server is; skips the test when this machine has none."""
    try:
        return find_binary()
    except RamifyError as error:
        pytest.skip(str(error))


class RedisServer:
    """A server on one port for good, that may be killed and started again.

    `lasting`: with an append-only file, as `ramify up` has it. A Sentinel reads its port and folder from a file that
    it rewrites: `fixed` is False then.
    """

    def __init__(self, folder: Path, *options: str, lasting: bool = False, fixed: bool = True) -> None:
        self.port, self.folder = free_port(), folder
        folder.mkdir(parents=True, exist_ok=True)
        own = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
        durable = ["--appendonly", "yes", "--maxmemory-policy", "noeviction"] if lasting else []
        self._command = [str(redis_binary()), *((*own, *durable) if fixed else ()), *options]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def launch(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def start(self) -> Self:
        self.launch()
        until(self.answers, 20, "Redis answers")
        return self

    def answers(self) -> bool:
        with self.client() as client, suppress(redis.RedisError):
            return bool(client.ping())
        return False

    def client(self) -> redis.Redis:
        """A client that goes around any proxy."""
        return redis.Redis(port=self.port, socket_timeout=5)

    def kill(self) -> None:
        assert self.process
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait(10)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()
