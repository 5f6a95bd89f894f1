"""Words for numbers and workers, and who serves a queue. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from shared.connections.heartbeat import SilentWorker, WorkerBeat
from shared.contract import POOL_QUEUES, Queue

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


def silence(worker: SilentWorker) -> str:
    """How a worker stands that is there and does not answer."""
    how = "it is stopped" if worker.stopped else f"it has been silent for {duration(worker.silent_s)}"
    return f"{worker_name(worker.worker)} is there, but {how}"


def remedy(workers: Sequence[SilentWorker]) -> str:
    """The command that brings silent workers back: those that are stopped go on, others are killed and restarted."""
    halted = [str(worker.pid) for worker in workers if worker.stopped]
    signal, pids = ("-CONT", halted) if halted else ("-KILL", [str(worker.pid) for worker in workers])
    return f"kill {signal} {' '.join(pids)}"


def serving(beats: Sequence[WorkerBeat], silent: Sequence[SilentWorker], queue: Queue) -> int:
    """How many workers take from the queue: those that are stopped do not."""
    stopped = {worker.worker for worker in silent if worker.stopped}
    return sum(queue.value in beat.queues and beat.worker not in stopped for beat in beats)


def unserved(silent: Sequence[SilentWorker], queue: Queue) -> tuple[str, str]:
    """Of a queue that no worker serves: which one would, as the end of a sentence, and the command that helps."""
    would = [worker for worker in silent if queue in POOL_QUEUES.get(worker.pool, ())]
    return (f": {'; '.join(map(silence, would))}", remedy(would)) if would else ("", "ramify doctor")


def worker_name(worker: str) -> str:
    """`search@host pid 12` of a worker's id."""
    found = _WORKER.fullmatch(worker)
    return f"{found['pool'] or 'a worker'}@{found['host']} pid {found['pid']}" if found else worker
