"""Tells a process from a later one that was given the same pid, so that a stranger is never signalled."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress

from shared.process import identity

__all__ = ["alive", "identity", "signal_process", "wait_gone"]


def alive(pid: int, mark: str) -> bool:
    """True while the process that had `mark` lives."""
    return pid > 0 and bool(mark) and identity(pid) == mark


def signal_process(pid: int, mark: str, signum: int, *, group: bool = False) -> bool:
    """Send `signum` to the process (or to the group that it leads); False when it is gone."""
    if not alive(pid, mark):
        return False
    with suppress(ProcessLookupError):
        if group:
            os.killpg(pid, signum)
        else:
            os.kill(pid, signum)
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
