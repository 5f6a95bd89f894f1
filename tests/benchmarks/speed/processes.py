"""Processor time and memory of the processes of a stack, by name."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import psutil

_MB = 1 << 20


def stack_processes(folder: Path) -> dict[int, str]:
    """pid -> name of what belongs to the stack of a data folder: pools, Flower, supervisor, template; not Redis."""
    found = {}
    for process in psutil.process_iter():
        try:
            if process.environ().get("RAMIFY_DATA_DIR") == str(folder):
                found[process.pid] = _name(process.cmdline())
        except psutil.Error:
            continue
    return found


def _name(command: list[str]) -> str:
    line = " ".join(command)
    if "-n" in command:
        return command[command.index("-n") + 1].partition("@")[0]
    known = {"orchestrator.monitor": "flower", "orchestrator.local.template": "template"}
    return next((name for part, name in known.items() if part in line), "supervisor")


def cpu_seconds(processes: Mapping[int, str]) -> Counter[str]:
    """User and system time so far, by name; of this process as "client"."""
    spent = Counter({"client": _cpu(psutil.Process(os.getpid()))})
    for pid, name in processes.items():
        try:
            spent[name] += _cpu(psutil.Process(pid))
        except psutil.Error:
            continue
    return spent


def own_mb(processes: Mapping[int, str]) -> dict[str, float]:
    """MB that are each process's own, without mapped files."""
    found: Counter[str] = Counter()
    for pid, name in processes.items():
        try:
            info = psutil.Process(pid).memory_info()
        except psutil.Error:
            continue
        found[name] += (info.rss - info.shared) / _MB
    return {name: round(size, 1) for name, size in found.items()}


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
