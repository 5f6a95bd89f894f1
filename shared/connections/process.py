"""Tells a process from a later one that was given the same pid, so that the wrong one is never signalled."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")


def identity(pid: int) -> str | None:
    """An opaque mark of the living process `pid`; None when there is none, or only its zombie.

    On Linux: boot id and start time in ticks since boot, which a step of the wall clock does not move.
    """
    try:
        if Path("/proc/self/stat").exists():
            fields = stat_fields(pid)
            return None if fields[0] in "ZX" else f"{_BOOT_ID.read_text().strip()}:{fields[19]}"
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else str(process.create_time())
    except (OSError, psutil.Error):
        return None


def stopped(pid: int) -> bool:
    """True for a process that a signal has stopped, as SIGSTOP does, until SIGCONT."""
    try:
        return psutil.Process(pid).status() in {psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP}
    except psutil.Error:
        return False


def stat_fields(pid: int) -> list[str]:
    """Fields 3 and up of Linux' /proc/PID/stat. Raises: OSError."""
    # Field 2, the name in parentheses, may hold anything.
    return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()


def pid_namespace() -> int:
    """The inode of this process's pid namespace: pids mean something only inside one. 0 where there are none."""
    try:
        return _NAMESPACE.stat().st_ino
    except OSError:
        return 0


def alive(pid: int, mark: str) -> bool:
    """True while the process that had `mark` lives."""
    return pid > 0 and bool(mark) and identity(pid) == mark


def signal_process(pid: int, mark: str, signum: int, *, group: bool = False) -> bool:
    """Send `signum` to the process (or to the group that it leads); False when it is gone."""
    if not alive(pid, mark):
        return False
    with suppress(ProcessLookupError):
        (os.killpg if group else os.kill)(pid, signum)
        return True
    return False


def wait_gone(processes: Iterable[tuple[int, str]], seconds: float) -> list[tuple[int, str]]:
    """Wait until all (pid, mark) are gone, at most `seconds`; returns those that still live."""
    left, until = list(processes), time.monotonic() + seconds
    while left := [(pid, mark) for pid, mark in left if alive(pid, mark)]:
        if time.monotonic() >= until:
            break
        time.sleep(0.05)
    return left
