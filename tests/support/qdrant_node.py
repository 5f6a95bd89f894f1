"""Nodes of real Qdrant servers of the tests' own, on free ports of this machine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Self

import httpx
import pytest

from tests.support.redis_server import free_port
from tests.support.waiting import until


def qdrant_binary() -> str:
    """The server's program: RAMIFY_TEST_QDRANT names it, or it is on the PATH; skips the test without one."""
    found = os.environ.get("RAMIFY_TEST_QDRANT") or shutil.which("qdrant")
    if not found or not Path(found).is_file():
        pytest.skip("no Qdrant server: name its program in RAMIFY_TEST_QDRANT")
    return found


class QdrantNode:
    """A node on one port for good, that may be killed and started again. With `cluster`, one of several.

    `first`: the node whose cluster it joins; None: it begins one.
    """

    def __init__(self, folder: Path, *, cluster: bool = False, first: QdrantNode | None = None) -> None:
        self.port, grpc, self.peer_port = free_port(), free_port(), free_port()
        folder.mkdir(parents=True, exist_ok=True)
        self._log = folder / "log"
        self._environment = {
            **os.environ,
            "QDRANT__SERVICE__HOST": "127.0.0.1",
            "QDRANT__SERVICE__HTTP_PORT": str(self.port),
            "QDRANT__SERVICE__GRPC_PORT": str(grpc),
            "QDRANT__STORAGE__STORAGE_PATH": str(folder / "storage"),
            "QDRANT__STORAGE__SNAPSHOTS_PATH": str(folder / "snapshots"),
            "QDRANT__STORAGE__TEMP_PATH": str(folder / "temp"),
            "QDRANT__TELEMETRY_DISABLED": "true",
            "QDRANT__LOG_LEVEL": "WARN",
        }
        self._arguments: list[str] = []
        if cluster:
            self._environment["QDRANT__CLUSTER__ENABLED"] = "true"
            self._environment["QDRANT__CLUSTER__P2P__PORT"] = str(self.peer_port)
            self._arguments = ["--uri", f"http://127.0.0.1:{self.peer_port}"]
            self._arguments += ["--bootstrap", f"http://127.0.0.1:{first.peer_port}"] if first else []
        self._folder, self._binary = folder, qdrant_binary()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Self:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [self._binary, *self._arguments], stdout=log, stderr=log, env=self._environment, cwd=self._folder
            )
        until(self.answers, 120, "Qdrant answers")
        return self

    def answers(self) -> bool:
        """It lives; one that copies shards back may not be ready for minutes."""
        with suppress(httpx.HTTPError):
            return httpx.get(f"{self.url}/livez", timeout=2, trust_env=False).is_success
        return False

    def kill(self) -> None:
        """As a power cut does."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()
