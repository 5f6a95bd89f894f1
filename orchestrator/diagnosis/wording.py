"""Words for numbers and workers. Pure."""

from __future__ import annotations

import re

_WORKER = re.compile(r"(?P<pool>[^@]*)@(?P<host>[^:]+):(?P<pid>\d+):.*")
_NTH = {1: "st", 2: "nd", 3: "rd"}


def duration(seconds: float) -> str:
    """0.4 s, 12 s, 3 min, 2 h 05 min, 3 d."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02d} min" if hours < 48 else f"{hours / 24:.0f} d"


def nth(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 21st."""
    ending = "th" if number % 100 in {11, 12, 13} else _NTH.get(number % 10, "th")
    return f"{number}{ending}"


def jobs(number: int) -> str:
    """1 job, 2 jobs."""
    return "1 job" if number == 1 else f"{number:,} jobs"


def worker_name(worker: str) -> str:
    """`search@host pid 12` of a worker's id."""
    found = _WORKER.fullmatch(worker)
    return f"{found['pool'] or 'a worker'}@{found['host']} pid {found['pid']}" if found else worker
