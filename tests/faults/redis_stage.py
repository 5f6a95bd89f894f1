"""Redis servers that can be killed, and the pools as plain Celery commands: without a supervisor that would help."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Self

import psutil
import redis

from orchestrator.client import Ramify
from orchestrator.local import commands, reach
from orchestrator.outage import Outage
from shared.errors import NotRunningError
from shared.settings import Settings
from tests.conftest import free_port, redis_binary

PATIENCE_S = 60.0


def eventually(what: Callable[[], object], seconds: float = PATIENCE_S, every_s: float = 0.1) -> float:
    """Seconds until `what` was true. Raises: AssertionError when it never was."""
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < seconds, f"not within {seconds:.0f} s"
        time.sleep(every_s)
    return time.monotonic() - began


class RedisServer:
    """A server of the test's, on one port for good, with an append-only file."""

    def __init__(self, folder: Path, *options: str, sentinel: bool = False) -> None:
        self.port, self.folder = free_port(), folder
        folder.mkdir(parents=True, exist_ok=True)
        # A Sentinel reads all of this from a file that it rewrites.
        fixed = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
        fixed += ["--appendonly", "yes", "--maxmemory-policy", "noeviction"]
        self._command = [str(redis_binary()), *(options if sentinel else (*fixed, *options))]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def launch(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def start(self) -> Self:
        self.launch()
        eventually(self.answers, 20)
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


@contextmanager
def pools(settings: Settings, names: tuple[str, ...] = (), *, beat: bool = True) -> Iterator[dict[str, psutil.Process]]:
    """The pools of `ramify up` with its command lines, and beat, but nobody who would start one anew."""
    table, env = commands.table(settings), commands.environment(settings)
    programs = [commands.worker(name, pool, settings, env) for name, pool in table.pools.items() if name in names]
    if not names:
        programs = [commands.worker(name, pool, settings, env) for name, pool in table.pools.items()]
    if beat:
        programs.append(commands.beat(table.control_app, env))
    with ExitStack() as stack:
        started: dict[str, psutil.Process] = {}
        for program in programs:
            log = stack.enter_context((settings.data_dir / f"{program.name}.log").open("wb"))
            process = subprocess.Popen(program.argv, env=_environment(program.env), stdout=log, stderr=log)
            stack.callback(_end, process)
            started[program.name] = psutil.Process(process.pid)
        workers = set(started) - {"beat"}
        try:
            eventually(lambda: reach.answering(settings, len(workers)) >= workers, 2 * PATIENCE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{tails(settings)}") from None
        yield started


def _environment(own: Mapping[str, str]) -> dict[str, str]:
    return {**os.environ, **own}


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait(10)


def log_of(settings: Settings, name: str) -> str:
    return (settings.data_dir / f"{name}.log").read_text(encoding="utf-8", errors="replace")


def come_back(settings: Settings, client: Ramify, seconds: float = PATIENCE_S) -> float:
    """Seconds until a new job passes through all pools; it is asked anew when one has not ended after 3 s."""
    began, number, last = time.monotonic(), 0, ""
    while True:
        number += 1
        try:
            job_id = client.submit(f"How does a queue keep its order, asked {began} {number}?", deadline_s=seconds)
            if (status := client.wait(job_id, 3.0)).state == "done":
                return time.monotonic() - began
            last = str(status)
        except NotRunningError as error:
            last = str(error)
        assert time.monotonic() - began < seconds, f"no job passes after {seconds:.0f} s: {last}\n{tails(settings)}"
        time.sleep(0.1)


def states(client: Ramify, job_ids: Iterable[str], seconds: float = PATIENCE_S) -> dict[str, str]:
    """The state of each job once all have ended, or as they are when time is up."""
    until, outage, found = time.monotonic() + seconds, Outage(), dict[str, str]()
    for job_id in job_ids:
        while not (status := outage.retry(lambda job_id=job_id: client.status(job_id))).terminal:  # type: ignore[misc]
            if time.monotonic() > until:
                break
            time.sleep(0.1)
        found[job_id] = str(status.state)
    return found


def tails(settings: Settings) -> str:
    return "\n".join(f"--- {log.name}\n{log.read_text()[-1500:]}" for log in sorted(settings.data_dir.glob("*.log")))
