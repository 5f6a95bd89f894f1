"""The embedded Redis: starts it on loopback with a password and an append-only file, waits for its answer.

Neither a command line nor the environment of the server has the password: it stands in two files of its owner's.
"""

from __future__ import annotations

import secrets
import signal
import time
from collections.abc import Callable
from pathlib import Path

from redis.exceptions import BusyLoadingError, RedisError

from orchestrator.local import ports
from orchestrator.local.child_process import Child, Program
from orchestrator.local.redis_binary import INSTALL, find_binary, version
from orchestrator.local.state import log_dir, read_private, rotate, tail, with_password, with_redis_url, write_private
from shared import jobs
from shared.connections.connect import refuse_cluster
from shared.errors import RamifyError
from shared.settings import Settings

HOST = "127.0.0.1"
USUAL_PORT = 6390
_CONF = "redis.conf"
_ANSWER_S = 20.0
_LOADING_S = 120.0
_TRIES = 5
#: Commands that load code, read other files or give the data away: whoever learns the password gets none of them.
_REMOVED = ("MODULE", "DEBUG", "REPLICAOF", "SLAVEOF", "MIGRATE", "SYNC", "PSYNC", "ACL")


def require_redis(settings: Settings) -> None:
    """Raises: NotRunningError when the Redis that the settings name does not answer, or is a cluster; SettingsError."""
    with jobs.connect(settings, retries=0) as client, jobs.reachable(settings):
        client.ping()
        refuse_cluster(client, settings)


class RedisServer:
    """The server as a child of the supervisor. `port` is known once it has started."""

    def __init__(self, settings: Settings, keep_waiting: Callable[[], None] = lambda: None) -> None:
        """`keep_waiting` is called while waiting; what it raises ends the wait."""
        self._settings, self._keep_waiting = settings, keep_waiting
        self._binary = find_binary()
        self._folder = settings.data_dir.absolute() / "redis"
        self._password = read_private(self.password_file) or secrets.token_urlsafe(32)
        self.port = 0
        program = Program("redis", (str(self._binary), _CONF), cwd=self._folder, when_orphaned=signal.SIGTERM)
        self.child = Child(program, rotate(log_dir(settings) / "redis.log"))

    @property
    def address(self) -> str:
        """Where it listens, for people and for the state file: without the password."""
        return f"redis://{HOST}:{self.port}/0"

    @property
    def url(self) -> str:
        """What clients connect to, with the password."""
        return with_password(self.address, self._password)

    @property
    def password_file(self) -> Path:
        """Holds the password alone, as REDISCLI_AUTH wants it. It stays, for clients that outlive the server."""
        return self._folder / "password"

    def start(self) -> None:
        """Start and wait until it answers.

        Raises: InputError when the port that the settings name is taken; RamifyError with the log when it will not run.
        """
        self._refuse_newer_files()
        for _ in range(_TRIES):
            self.port = ports.pick("redis.port", HOST, self._settings.redis.port, USUAL_PORT)
            self._write_files()
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

    def _write_files(self) -> None:
        """It runs in its own folder, so that no path needs quoting. CONFIG gets a name that only its owner reads."""
        lines = (
            f"bind {HOST}", f"port {self.port}", "protected-mode yes", "daemonize no", "dir ./", 'logfile ""',
            'save ""', "appendonly yes", "appendfsync everysec", "maxmemory-policy noeviction",
            # A job's hash with its question in it takes half the memory so. Named as in Redis 6; later ones know it.
            "hash-max-ziplist-value 1024",
            f"requirepass {self._password}", f"rename-command CONFIG CONFIG-{secrets.token_urlsafe(32)}",
            *(f'rename-command {name} ""' for name in _REMOVED),
        )  # fmt: skip
        write_private(self._folder / _CONF, "\n".join((*lines, "")))
        write_private(self.password_file, f"{self._password}\n")

    def _refuse_newer_files(self) -> None:
        """Redis before 7 ignores the files of 7 and later: it would start empty, without an error."""
        _, found = version(self._binary)
        if found and found[0] < 7 and (self._folder / "appendonlydir").exists():
            raise RamifyError(
                f"{self._folder} was written by Redis 7 or later, and {self._binary} is {'.'.join(map(str, found))}: "
                f"install the newer one ({INSTALL}) or choose another data_dir"
            )
