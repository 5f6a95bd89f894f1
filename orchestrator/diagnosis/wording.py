"""Words for numbers and workers, and who serves a queue. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from shared.connections.heartbeat import SilentWorker, WorkerBeat
from shared.contract import POOL_QUEUES, Queue, TaskName
from shared.models.degraded import Degradation
from shared.models.status import Postponement
from shared.providers.gates.gate import time_of_day

_WORKER = re.compile(r"(?P<pool>[^@]*)@(?P<host>[^:]+):(?P<pid>\d+):.*")
#: Steps of the whole job, and how they are done without an LLM.
_STEPS = {
    TaskName.PLAN_JOB.value: "planning",
    TaskName.MERGE_TREE.value: "merge",
    TaskName.RERANK_ROOT.value: "order of the results",
    TaskName.MERGE_SUMMARISE.value: "summary",
}
_LLM = (Degradation.LLM_UNAVAILABLE.value, Degradation.LLM_REPLY_UNUSABLE.value)
_INSTEAD = {
    **{(TaskName.PLAN_JOB.value, reason): "planned by rules" for reason in _LLM},
    **{(TaskName.MERGE_SUMMARISE.value, reason): "summary from extracts" for reason in _LLM},
}
_MOST_LEAVES = 3
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


def degraded_parts(degraded: Sequence[str], at: Mapping[str, Sequence[str]]) -> str:
    """Reasons with the parts of the work that they are about: llm_unavailable (planned by rules, leaves 0.1, 0.2)."""
    items = defaultdict[str, list[str]](list)
    for item, reasons in sorted(at.items()):
        for reason in reasons:
            items[reason].append(item)
    said = ((reason, _parts(reason, items[reason])) for reason in degraded)
    return ", ".join(f"{reason} ({parts})" if parts else reason for reason, parts in said)


def _parts(reason: str, items: Sequence[str]) -> str:
    steps = [_INSTEAD.get((item, reason)) or _STEPS[item] for item in items if item in _STEPS]
    leaves = [item for item in items if item not in _STEPS]
    if leaves:
        more = f" and {len(leaves) - _MOST_LEAVES} more" if len(leaves) > _MOST_LEAVES else ""
        steps.append(f"{'leaf' if len(leaves) == 1 else 'leaves'} {', '.join(leaves[:_MOST_LEAVES])}{more}")
    return ", ".join(steps)


def waiting_for(wait: Postponement, now: float) -> str:
    """What an item waits for, and until when. `now` in Unix seconds."""
    again = f"at {time_of_day(wait.until)}" if wait.until > now else "when its breaker, pause or rate limit lets it"
    return f"{wait.why.rstrip('.')}; tried again {again}, goes on without it at {time_of_day(wait.goes_on_at)}"


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
