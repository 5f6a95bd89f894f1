"""A RabbitMQ of the tests' own, on free ports of this machine, that may be killed, stopped and started again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Self
from urllib.parse import quote

import pytest

from tests.support.redis_server import free_port
from tests.support.waiting import until

#: Where Debian has it; what lies on its path there asks for root and another user.
_FOLDER = Path("/usr/lib/rabbitmq/bin")
USER, PASSWORD = "ramify", "s3cret/;@ #?%"
DEPLOYED = Path(__file__).parents[2] / "deploy" / "rabbitmq" / "rabbitmq.conf"
#: Behind what is deployed: of two lines the later one holds.
_CONF = """
listeners.tcp.1 = 127.0.0.1:{port}
loopback_users.ramify = false
log.console = false
log.file.level = info
"""


def rabbitmq_binary() -> Path:
    """Where the server is; skips the test when this machine has none."""
    found = _FOLDER / "rabbitmq-server"
    if not found.is_file() or shutil.which("erl") is None:
        pytest.skip("no RabbitMQ server is installed: sudo apt install rabbitmq-server")
    return found


class RabbitServer:
    """One node with one data folder. What it has been told to keep is there again after a kill."""

    def __init__(self, folder: Path) -> None:
        self.binary, self.folder, self.port = rabbitmq_binary(), folder, free_port()
        self._epmd_port, self._dist_port = free_port(), free_port()
        self.node = f"ramify{os.getpid()}-{self.port}@localhost"
        self.process: subprocess.Popen[bytes] | None = None
        self._epmd: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "rabbitmq.conf").write_text(DEPLOYED.read_text() + _CONF.format(port=self.port))
        (folder / "plugins").write_text("[].\n")
        cookie = folder / ".erlang.cookie"
        cookie.touch(0o600)
        cookie.write_text("ONLYFORTESTS" + os.urandom(8).hex())
        cookie.chmod(0o400)

    def url(self, vhost: str = "%2F", password: str = PASSWORD, port: int = 0) -> str:
        """As broker.url."""
        return f"amqp://{USER}:{quote(password, safe='')}@127.0.0.1:{port or self.port}/{vhost}"

    @property
    def env(self) -> dict[str, str]:
        """Everything in the folder, nothing beyond loopback."""
        own = {
            "NODENAME": self.node, "NODE_PORT": self.port, "NODE_IP_ADDRESS": "127.0.0.1", "DIST_PORT": self._dist_port,
            "MNESIA_BASE": self.folder / "data", "LOG_BASE": self.folder / "log", "HOME": self.folder,
            "CONFIG_FILE": self.folder / "rabbitmq.conf", "ENABLED_PLUGINS_FILE": self.folder / "plugins",
            "DEFAULT_USER": USER, "DEFAULT_PASS": PASSWORD, "CONF_ENV_FILE": os.devnull,
            "SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none",
        }  # fmt: skip
        base = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "LC_ALL"}}
        more = {"HOME": str(self.folder), "ERL_EPMD_PORT": str(self._epmd_port), "ERL_EPMD_ADDRESS": "127.0.0.1"}
        return {**base, **more, **{f"RABBITMQ_{name}": str(value) for name, value in own.items() if name != "HOME"}}

    def start(self) -> Self:
        if self._epmd is None:
            command = ["epmd", "-port", str(self._epmd_port), "-address", "127.0.0.1"]
            self._epmd = subprocess.Popen(command, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with (self.folder / "out").open("ab") as out:
            self.process = subprocess.Popen(
                [str(self.binary)], env=self.env, cwd=self.folder, stdout=out, stderr=out, start_new_session=True
            )
        until(self.answers, 180, f"RabbitMQ answers; see {self.folder / 'log'}", every_s=0.2)
        return self

    def answers(self) -> bool:
        """Whether it speaks AMQP: it listens a moment before."""
        assert self.process
        assert self.process.poll() is None, (self.folder / "out").read_text(errors="replace")
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 10) as probe:
            probe.sendall(b"AMQP\x00\x00\x09\x01")
            return bool(probe.recv(1))
        return False

    def signal(self, signum: signal.Signals) -> None:
        """To all processes of the node."""
        assert self.process
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signum)

    def kill(self) -> None:
        """As a power cut."""
        assert self.process
        self.signal(signal.SIGKILL)
        self.process.wait(10)

    def ctl(self, *arguments: str) -> str:
        """What rabbitmqctl says."""
        command = [str(_FOLDER / "rabbitmqctl"), "-q", "-n", self.node, *arguments]
        found = subprocess.run(
            command, env=self.env, cwd=self.folder, capture_output=True, text=True, timeout=180, check=False
        )
        assert found.returncode == 0, found.stderr + found.stdout
        return found.stdout

    def queues(self, column: str) -> dict[str, str]:
        """A column of `list_queues`, by queue; those of remote control left out."""
        rows = self.ctl("list_queues", "--no-table-headers", "name", column).splitlines()
        found = dict(row.split("\t") for row in rows if "\t" in row)
        return {name: value for name, value in found.items() if "pidbox" not in name}

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        self.kill()
        if self._epmd:
            self._epmd.kill()
            self._epmd.wait(10)
