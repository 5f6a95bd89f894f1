"""Who is at which piece of a job's work, since when, and whom it has killed: the marks that the reaper goes by.

An item is a node's id, or the name of a step of the whole job. Its fields in the hash `work`:
`sent:<item>` when its message was sent (Unix seconds), and the word "again" when that was by the reaper;
`busy:<item>` who is at it: "<begun at> <worker> <task>";
`dead:<item>` how many workers have died at it, `alone:<item>` how many of these were at nothing else; `proof:<item>`
their marks, one a line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redis import Redis

from shared.connections.clock import Clock
from shared.connections.heartbeat import worker_id
from shared.contract import TaskName
from shared.jobs.codec import text
from shared.jobs.job import FIELDS, Job, read_job
from shared.jobs.keys import AdmissionKeys, JobKeys
from shared.jobs.scripts import Scripts
from shared.settings import Settings

#: Steps of the whole job that one task claims: the claim's name in the job's hash.
CLAIMS = {
    TaskName.PLAN_JOB.value: "planning",
    TaskName.MERGE_TREE.value: "merging",
    TaskName.MERGE_SUMMARISE.value: "summarising",
}


#: Deaths at which the item was its worker's only one that retire it; by what it takes when it was one of several.
_ALONE, _IN_COMPANY = 2, 3


def too_many_deaths(deaths: int, alone: int, most: int) -> bool:
    """True when an item is a poison message, and not to be tried any more: `most` deaths, two of them alone.

    Beside other items it takes three times `most`: one count for both retired innocent work, which had been at workers
    that were killed from outside (docs/faults.md).
    """
    return (deaths >= most and alone >= min(_ALONE, most)) or deaths >= _IN_COMPANY * most


@dataclass(frozen=True)
class Attempt:
    """Who began a piece of work: Unix seconds, the worker's id, the task's name."""

    begun_at: float
    worker: str
    task: str

    def __str__(self) -> str:
        return f"{self.begun_at:.6f} {self.worker} {self.task}"


def read_attempt(value: str) -> Attempt | None:
    """A mark as it is stored; None for what is none (it may have been written by hand)."""
    parts = value.split(" ")
    try:
        return Attempt(float(parts[0]), parts[1], parts[2])
    except (ValueError, IndexError):
        return None


@dataclass(frozen=True)
class WorkItem:
    """One piece of work as its marks tell."""

    sent_at: float | None = None
    again: bool = False
    busy: Attempt | None = None
    deaths: int = 0
    alone: int = 0
    proof: tuple[Attempt, ...] = ()
    sent_raw: str = ""
    busy_raw: str = ""


@dataclass(frozen=True)
class StartedWork:
    """A piece of work that was begun. `before`: who had begun it and not ended; `node_state`: of its node, if any.

    `sent_at`: when its message was sent last; `again`: by the reaper, so that this may be an earlier message.
    """

    job: Job | None
    mark: Attempt
    before: str = ""
    deaths: int = 0
    alone: int = 0
    sent_at: float | None = None
    again: bool = False
    node_state: str = ""


class WorkLog:
    """The marks of all jobs. May raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings, clock: Clock) -> None:
        self._client, self._settings, self._clock = client, settings, clock
        self._run = Scripts(client)

    def attempt(self, task: str) -> Attempt:
        """What this process begins now."""
        return Attempt(self._clock.now(), worker_id(), task)

    def begin(self, job_id: str, item: str, task: str, mark: Attempt | None = None) -> StartedWork:
        """This process begins an item: read its job and leave a mark, in one step. The same mark again is harmless."""
        keys, mark = JobKeys(job_id), mark or self.attempt(task)
        args = [self._settings.jobs.ttl_s, item, str(mark), *FIELDS]
        out = self._run("begin", [keys.job, keys.leaves, keys.work], args)
        if not out:
            return StartedWork(None, mark)
        before, deaths, alone, sent, node_state = (text(value) for value in out[:5])
        values = (text(value) if value is not None else None for value in out[5:])
        job = read_job(job_id, dict(zip(FIELDS, values, strict=True)), mark.begun_at)
        return StartedWork(job, mark, before, int(deaths), int(alone), *_sent(sent), node_state)

    def end(self, job_id: str, item: str, mark: Attempt) -> None:
        """This process has ended the item."""
        self._run("end_step", [JobKeys(job_id).work], [item, str(mark)])

    def record_death(self, job_id: str, item: str, mark: str, *, overtaken: bool = False, alone: bool = False) -> int:
        """Count the death of the worker with that mark. Returns all deaths of the item; -1 when it was counted before.

        `overtaken`: another worker has begun the item since, so that the mark stands there no more. `alone`: the worker
        was at nothing else.
        """
        keys, found = JobKeys(job_id), read_attempt(mark)
        claim = CLAIMS.get(found.task, "") if found else ""
        args = [self._settings.jobs.ttl_s, item, mark, claim, int(overtaken), int(alone)]
        return int(self._run("died", [keys.job, keys.work], args))

    def items(self, job_id: str) -> dict[str, WorkItem]:
        """All items of a job that have marks."""
        return read_work(self._client.hgetall(JobKeys(job_id).work))

    def note_taken(self, queue: str, priority: int, sent_at: float) -> None:
        """A message that was sent then has been taken from a queue: none that was sent before is there any more."""
        with self._client.pipeline(transaction=False) as pipe:
            pipe.hset(AdmissionKeys.latest_taken, f"{queue}:{priority}", f"{sent_at:.3f}")
            pipe.expire(AdmissionKeys.latest_taken, self._settings.jobs.ttl_s)
            pipe.execute()

    def latest_taken(self) -> dict[str, float]:
        """`<queue>:<priority>` -> when the message that was taken there last had been sent."""
        found = {}
        for name, value in self._client.hgetall(AdmissionKeys.latest_taken).items():
            try:
                found[text(name)] = float(value)
            except ValueError:
                continue
        return found


def read_work(raw: Mapping[Any, Any]) -> dict[str, WorkItem]:
    """The hash `work` by items. Fields that are no marks of ours are passed over."""
    by_item: dict[str, dict[str, str]] = {}
    for name, value in raw.items():
        kind, _, item = text(name).partition(":")
        by_item.setdefault(item, {})[kind] = text(value)
    return {item: _item(marks) for item, marks in by_item.items()}


def _item(marks: Mapping[str, str]) -> WorkItem:
    sent, dead, alone = marks.get("sent", ""), marks.get("dead", "0"), marks.get("alone", "0")
    proof: Sequence[Attempt | None] = [read_attempt(line) for line in marks.get("proof", "").splitlines()]
    sent_at, again = _sent(sent)
    return WorkItem(
        sent_at=sent_at,
        again=again,
        busy=read_attempt(marks.get("busy", "")),
        deaths=int(dead) if dead.isdecimal() else 0,
        alone=int(alone) if alone.isdecimal() else 0,
        proof=tuple(mark for mark in proof if mark is not None),
        sent_raw=sent,
        busy_raw=marks.get("busy", ""),
    )


def _sent(value: str) -> tuple[float | None, bool]:
    """When a message was sent, and whether the reaper did that."""
    at, _, by = value.partition(" ")
    try:
        return (float(at) if at else None), by == "again"
    except ValueError:
        return None, False
