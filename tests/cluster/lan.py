"""Hosts on one machine: each has a network, processes, a name and a disk of its own; a switch joins them.

Nothing of this machine's own network is touched: the switch is a bridge in a namespace of its own. Needs root and `ip`.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import psutil
import pytest

from orchestrator.local.child_process import importable, launcher
from tests.support.waiting import until

_CLONE_NEWNET = 0x40000000
_SUBNET = "10.213.77"


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


def _enter(space: int) -> None:
    """Let this thread see the network namespace of a file descriptor (`os.setns` came with Python 3.12)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(space, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Host:
    """Made by `Lan.host`. `disk` is the same path on every host, and on each another file system, in memory."""

    def __init__(self, lan: Lan, name: str, number: int, hostname: str) -> None:
        self.name, self.hostname, self.disk = name, hostname, lan.disk
        self.address = f"{_SUBNET}.{number}"
        self._started = list[subprocess.Popen[bytes]]()
        self._switch, self._space, self._port = lan.switch, f"{lan.switch}-{name}", f"p{number}"

    def boot(self) -> None:
        """Its cable, its disk and its first process, with which all others end."""
        _ip("netns", "add", self._space)
        _ip(
            "link",
            "add",
            self._port,
            "netns",
            self._switch,
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            self._space,
        )
        _ip("-n", self._switch, "link", "set", self._port, "master", "br0", "up")
        _ip("-n", self._space, "address", "add", f"{self.address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", self._space, "link", "set", device, "up")
        script = (
            'hostname "$0" && mount -t tmpfs tmpfs "$1" && mkdir "$1/tmp" && touch "$1/booted" && exec sleep infinity'
        )
        own = ["--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
        command = [
            "ip",
            "netns",
            "exec",
            self._space,
            "unshare",
            *own,
            "sh",
            "-c",
            script,
            self.hostname,
            str(self.disk),
        ]
        self._outer = subprocess.Popen(
            [*launcher(signal.SIGKILL), *command], env={**os.environ, **importable()},
            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until(lambda: self._outer.poll() is not None or self._first(), 10, f"{self.name} boots")
        until(lambda: self._outer.poll() is not None or self.path("booted").exists(), 10, f"{self.name} boots")
        if self._outer.poll() is not None:
            raise OSError(f"unshare ended with {self._outer.returncode}")

    def _first(self) -> int | None:
        children = psutil.Process(self._outer.pid).children()
        return children[0].pid if children else None

    def path(self, name: str) -> Path:
        """A file of its disk, as this process can read it."""
        return Path(f"/proc/{self._first()}/root{self.disk}") / name

    def start(self, name: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        """A process of this host until it is powered off; its output goes to NAME.log on its disk."""
        folder = self.path(f"{name}-folder")
        folder.mkdir()
        inside = ["sh", "-c", 'cd "$0" && exec "$@" >"$0/../$LOG" 2>&1', str(self.disk / folder.name), *command]
        self._started.append(
            subprocess.Popen(self._inside(inside), env=self._environment({**(env or {}), "LOG": f"{name}.log"}))
        )

    def run(
        self, command: Sequence[str], env: Mapping[str, str] | None = None, timeout_s: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """A command of this host, to its end."""
        return subprocess.run(
            self._inside(command), env=self._environment(env or {}), capture_output=True, text=True,
            timeout=timeout_s, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def _inside(self, command: Sequence[str]) -> list[str]:
        return ["nsenter", "--target", str(self._first()), "--mount", "--uts", "--net", "--pid", "--", *command]

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        return {**os.environ, "HOME": str(self.disk), "TMPDIR": str(self.disk / "tmp"), **more}

    def log(self) -> str:
        """The ends of what its processes wrote."""
        logs = sorted(self.path("").glob("*.log"))
        return "\n".join(f"--- {self.name} {log.name}\n{log.read_text(errors='replace')[-3000:]}" for log in logs)

    def processes(self) -> list[psutil.Process]:
        """What was started and runs."""
        first = self._first()
        space = Path(f"/proc/{first}/ns/pid").readlink()
        found = []
        for process in psutil.process_iter():
            try:
                if process.pid != first and Path(f"/proc/{process.pid}/ns/pid").readlink() == space:
                    found.append(process)
            except OSError:
                continue
        return found

    @contextmanager
    def entered(self) -> Iterator[None]:
        """What this thread connects to in the block, and threads that it starts there, is reached from this host."""
        with Path("/proc/thread-self/ns/net").open() as own, Path(f"/run/netns/{self._space}").open() as there:
            _enter(there.fileno())
            try:
                yield
            finally:
                _enter(own.fileno())

    # -- faults of its cable -----------------------------------------------------------------------------------

    def unplug(self) -> None:
        """The link is down: both ends know."""
        _ip("-n", self._switch, "link", "set", self._port, "down")

    def freeze(self) -> None:
        """It stands still, as a virtual machine that is moved: its connections live, and nothing comes from it."""
        for process in self.processes():
            process.suspend()

    def plug(self) -> None:
        """Whatever was done to it, it is as in the beginning."""
        for outer in self._started:  # nsenter stops with what it has started
            outer.send_signal(signal.SIGCONT)
        for process in self.processes():
            process.resume()
        _ip("-n", self._switch, "link", "set", self._port, "master", "br0", "up")
        for words in (
            ("tc", "qdisc", "del", "dev", self._port, "root"),
            ("nft", "delete", "table", "bridge", self._port),
        ):
            if shutil.which(words[0]):
                subprocess.run(["ip", "netns", "exec", self._switch, *words], capture_output=True, check=False)

    def silence(self) -> None:
        """The switch drops all of it: the link stays up, and nobody is told anything, no RST and no ICMP."""
        _ip("-n", self._switch, "link", "set", self._port, "nomaster")

    def deafen(self) -> None:
        """What is sent to it is lost, silently; what it sends arrives."""
        self._dropped("oifname", self._port)

    def mute(self) -> None:
        """What it sends is lost, silently; what is sent to it arrives."""
        self._dropped("iifname", self._port)

    def impair(self, loss_percent: int, kbit: int, late_ms: int) -> None:
        """So much is lost in each direction; what is sent to it waits for a line of so many kbit/s, at most so long."""
        for way in ("iifname", "oifname"):
            self._dropped(way, self._port, "numgen", "random", "mod", "100", "<", str(loss_percent))
        slow = ("rate", f"{kbit}kbit", "burst", "20kb", "latency", f"{late_ms}ms")
        _ip("netns", "exec", self._switch, "tc", "qdisc", "replace", "dev", self._port, "root", "tbf", *slow)

    def _dropped(self, *which: str) -> None:
        """Let the switch drop these frames. Skips the test where there is no nft."""
        if not shutil.which("nft"):
            pytest.skip("what the switch is to drop it is told by nft (Debian's package nftables)")
        chain = ("bridge", self._port, "forward")
        for words in (
            ("table", *chain[:2]), ("chain", *chain, "{ type filter hook forward priority 0 ; }"),
            ("rule", *chain, *which, "drop"),
        ):  # fmt: skip
            _ip("netns", "exec", self._switch, "nft", "add", *words)

    def power_off(self) -> None:
        """Every process ends at once."""
        if first := self._first():
            os.kill(first, signal.SIGKILL)
        for process in (*self._started, self._outer):
            process.wait(60)


def _forget_dead() -> None:
    """Delete the namespaces of runs that were killed."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
    for name, run in re.findall(r"^(ramify(\d+)\S*)", listed, re.MULTILINE):
        if not psutil.pid_exists(int(run)):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


class Lan:
    """`with Lan(folder) as lan:` then `lan.host(...)`. Skips the test where this machine or user cannot have it."""

    def __init__(self, folder: Path) -> None:
        self.disk, self.switch, self.hosts = folder / "disk", f"ramify{os.getpid()}", list[Host]()

    def __enter__(self) -> Self:
        if os.geteuid() or not all(map(shutil.which, ("ip", "unshare", "nsenter"))):
            pytest.skip("hosts in namespaces need root, ip, unshare and nsenter")
        self.disk.mkdir()
        _forget_dead()
        try:
            _ip("netns", "add", self.switch)
            _ip("-n", self.switch, "link", "add", "br0", "type", "bridge", "forward_delay", "0")
            _ip("-n", self.switch, "link", "set", "br0", "up")
        except OSError as error:
            self.__exit__()
            pytest.skip(f"no network namespaces here: {error}")
        return self

    def host(self, name: str, hostname: str = "") -> Host:
        """One more, which runs. `hostname`: what it calls itself, if that is not `name`."""
        host = Host(self, name, len(self.hosts) + 2, hostname or name)
        try:
            host.boot()
        except OSError as error:
            pytest.skip(f"no hosts in namespaces here: {error}")
        self.hosts.append(host)
        return host

    def __exit__(self, *_: object) -> None:
        for host in self.hosts:
            host.power_off()
            subprocess.run(["ip", "netns", "del", f"{self.switch}-{host.name}"], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "del", self.switch], capture_output=True, check=False)
