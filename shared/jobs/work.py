"""Which worker is at which piece of a job's work, since when, and how many have died at it: what the reaper reads.

An item is a node's id, or the name of a task of the whole job. Its fields in the hash `work`:
`sent:<item>` when its message was sent (Unix seconds), and the word "again" when that was by the reaper;
`busy:<item>` the attempt under way: "<begun at> <worker> <task>", empty where there is none;
`postponed:<item>` it waits for a server that failed: "<until> <goes on without at> <server> <how it failed>";
`waits:<item>` how often it has waited so;
`anew:<item>` what its search had left was lost, and it was searched once more;
`dead:<item>` how many workers have died at it, `alone:<item>` how many of these were at nothing else; `proof:<item>`
their attempts, one a line.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from redis import Redis

from shared.connections.clock import ServerClock
from shared.connections.heartbeat import worker_id
from shared.contract import TaskName
from shared.jobs.codec import text
from shared.jobs.fields import Fields, damage_named
from shared.jobs.job import FIELDS, Job, read_job
from shared.jobs.keys import AdmissionKeys, JobKeys
from shared.jobs.scripts import Scripts
from shared.jobs.states import State
from shared.models.status import Postponement
from shared.settings import Settings

#: Tasks of the whole job that one worker claims: the claim's name in the job's hash.
CLAIMS = {
    TaskName.PLAN_JOB.value: "planning",
    TaskName.MERGE_TREE.value: "merging",
    TaskName.RERANK_ROOT.value: "reranking",
    TaskName.MERGE_SUMMARISE.value: "summarising",
    TaskName.INDEX_FINISH.value: "finishing",
}
#: Those that have their claim from their beginning on: the state that the job must be in.
_CLAIMED_IN = {TaskName.RERANK_ROOT.value: State.MERGING, TaskName.MERGE_SUMMARISE.value: State.SUMMARISING}
#: Tasks that go on with what a search has left.
_GO_ON = frozenset({TaskName.RERANK_LEAF.value, TaskName.RERANK_COLUMNS.value})
#: Deaths while the item was its worker's only one that retire it.
_MIN_SOLE_DEATHS = 2
#: A count with more digits was not written by us.
_MOST_DIGITS = 9
#: How many times as many deaths it takes beside other items.
_SHARED_DEATHS_FACTOR = 3
#: Seconds that an item waits for a server after its first failure, doubled with each one up to the second number.
_FIRST_WAIT_S, _MOST_WAIT_S = 4.0, 60.0
#: The same where the server asks for more.
LONGEST_WAIT_S = 600.0
_MAX_REASON_CHARS = 300


def too_many_deaths(deaths: int, sole_deaths: int, most: int) -> bool:
    """True when an item is a poison message, and not to be tried any more: `most` deaths, two of them its own.

    Its own are those of workers that were at nothing else.
    Beside other items it takes three times `most`: one count for both retired innocent work, which had been at workers
    that were killed from outside (docs/faults.md).
    """
    return (deaths >= most and sole_deaths >= min(_MIN_SOLE_DEATHS, most)) or deaths >= _SHARED_DEATHS_FACTOR * most


@dataclass(frozen=True)
class Attempt:
    """A worker's try at an item: begun at (Unix seconds), the worker's id, the task's name."""

    begun_at: float
    worker: str
    task: str

    def __str__(self) -> str:
        return f"{self.begun_at:.6f} {self.worker} {self.task}"


def read_attempt(value: str) -> Attempt | None:
    """An attempt as it is stored; None for anything else (it may have been written by hand)."""
    begun_at, _, rest = value.partition(" ")
    worker, _, task = rest.partition(" ")
    at = _seconds(begun_at)
    return Attempt(at, worker, task) if at is not None and worker and task else None


@dataclass(frozen=True)
class WorkItem:
    """One item as its fields tell. `sent_raw`, `busy_raw`: as stored, to be compared in scripts.

    `sent_at`: when its message was sent last; `again`: by the reaper, so that an earlier message may come too.
    """

    sent_at: float | None = None
    again: bool = False
    busy: Attempt | None = None
    deaths: int = 0
    sole_deaths: int = 0
    proof: tuple[Attempt, ...] = ()
    sent_raw: str = ""
    busy_raw: str = ""
    postponed: Postponement | None = None


@dataclass(frozen=True)
class StartedWork:
    """An attempt that has begun. `before`: the item as it was until then.

    `node_state` and `node` (JSON): of its node, if any. `candidates` (blob): for a task that goes on with them.
    """

    job: Job | None
    attempt: Attempt
    before: WorkItem = WorkItem()
    node_state: str = ""
    node: str = ""
    candidates: bytes | None = None
    #: The claim that its task needs is this attempt's.
    claimed: bool = False
    #: Set when a change of the task has removed the mark already.
    ended: Event = field(default_factory=Event, compare=False)


class WorkLog:
    """The items of all jobs. May raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings, clock: ServerClock) -> None:
        self._client, self._settings, self._clock = client, settings, clock
        self._run = Scripts(client)

    def attempt(self, task: str) -> Attempt:
        """An attempt of this process that begins now."""
        return Attempt(self._clock.now(), worker_id(), task)

    def begin(
        self, job_id: str, item: str, task: str, attempt: Attempt | None = None, claimant: str = ""
    ) -> StartedWork:
        """Read an item's job, note the attempt and claim what the task needs, in one step.

        Repeating it with the same attempt and claimant (a task id) is harmless.
        Raises: DamagedError when the job cannot be read; the attempt is noted all the same.
        """
        keys, attempt = JobKeys(job_id), attempt or self.attempt(task)
        claim = (CLAIMS[task], _CLAIMED_IN[task].value) if task in _CLAIMED_IN else ("", "")
        stale_s, now = self._settings.jobs.redrive_after_s, f"{attempt.begun_at:.6f}"
        args = [self._settings.jobs.ttl_s, item, str(attempt), int(task in _GO_ON), *claim, claimant, stale_s, now]
        with damage_named():
            out = self._run("begin_work", [keys.job, keys.leaves, keys.work, keys.nodes, keys.candidates], args)
        if not out:
            return StartedWork(None, attempt)
        names = ("busy", "dead", "alone", "sent", "postponed", "node_state", "node", "claimed")
        of_item = Fields(dict(zip(names, out, strict=False)), [])
        found, *fields = out[len(names) :]
        job = read_job(job_id, dict(zip(FIELDS, fields, strict=True)), attempt.begun_at)
        before = _item({name: of_item.text(name) for name in names})
        node_state, node, claimed = (of_item.text(name) for name in ("node_state", "node", "claimed"))
        return StartedWork(job, attempt, before, node_state, node, found or None, claimed == "1")

    def end(self, job_id: str, item: str, attempt: Attempt) -> None:
        """The attempt has ended. Raises: DamagedError when the marks are no hash."""
        with damage_named():
            self._run("end_work", [JobKeys(job_id).work], [item, str(attempt)])

    def drop(self, job_id: str, fields: Sequence[bytes]) -> None:
        """Delete fields that say nothing (see `unreadable_work`)."""
        if fields:
            self._client.hdel(JobKeys(job_id).work, *fields)

    def postpone(self, job: Job, item: str, provider: str, why: str, at_least_s: float) -> bool:
        """Note that an item waits for a server, `at_least_s` seconds and longer each time, within the job's `wait_s`.

        False when the job has ended meanwhile.
        """
        keys, jobs, now = JobKeys(job.id), self._settings.jobs, self._clock.now()
        spread = random.uniform(0.5, 1.0)  # noqa: S311 - so that jobs that failed together do not come back together
        args = [
            f"{now:.6f}", jobs.ttl_s, jobs.max_events, item, f"{_FIRST_WAIT_S * spread:.3f}",
            f"{_MOST_WAIT_S * spread:.3f}", f"{min(at_least_s, LONGEST_WAIT_S):.3f}", f"{now + job.wait_s:.3f}",
            provider, why[:_MAX_REASON_CHARS],
        ]  # fmt: skip
        return bool(self._run("postpone", [keys.job, keys.work, keys.events], args))

    def search_once_more(self, job_id: str, node_id: str) -> bool:
        """Drop what the search of a node has left, so that the reaper sends it again. False where it was so before."""
        keys = JobKeys(job_id)
        return bool(self._run("search_once_more", [keys.leaves, keys.candidates, keys.work], [node_id]))

    def record_death(
        self, job_id: str, item: str, attempt: str, *, overtaken: bool = False, alone: bool = False
    ) -> int:
        """Count the death of the worker of `attempt`. Returns all deaths of the item; -1 when it was counted before.

        `overtaken`: another worker has begun the item since. `alone`: the worker was at nothing else.
        """
        keys, found = JobKeys(job_id), read_attempt(attempt)
        claim = CLAIMS.get(found.task, "") if found else ""
        args = [self._settings.jobs.ttl_s, item, attempt, claim, int(overtaken), int(alone)]
        return int(self._run("record_death", [keys.job, keys.work], args))

    def items(self, job_id: str) -> dict[str, WorkItem]:
        """All items of a job that have fields."""
        return read_work(self._client.hgetall(JobKeys(job_id).work))

    def note_taken(self, queue: str, priority: int, sent_at: float) -> None:
        """A message that was sent then has been taken from a queue: none that was sent before is there any more."""
        if self._client.hset(AdmissionKeys.latest_taken, f"{queue}:{priority}", f"{sent_at:.3f}"):
            self._client.expire(AdmissionKeys.latest_taken, self._settings.jobs.ttl_s)

    def latest_taken(self) -> dict[str, float]:
        """`<queue>:<priority>` -> when the message that was taken there last had been sent."""
        found = {}
        for name, value in self._client.hgetall(AdmissionKeys.latest_taken).items():
            with suppress(ValueError):
                found[text(name)] = float(value)
        return found


def read_work(raw: Mapping[Any, Any]) -> dict[str, WorkItem]:
    """The hash `work` by items. Fields of other names, and those that cannot be read, are passed over."""
    by_item: dict[str, dict[str, str]] = {}
    for name, value in raw.items():
        if _readable(name, value):
            kind, _, item = text(name).partition(":")
            by_item.setdefault(item, {})[kind] = text(value)
    return {item: _item(fields) for item, fields in by_item.items()}


def unreadable_work(raw: Mapping[Any, Any]) -> tuple[Any, ...]:
    """The names of the fields that `read_work` passes over since they cannot be read: to be deleted.

    A mark of nobody would keep its item from being sent again.
    """
    return tuple(name for name, value in raw.items() if not _readable(name, value))


def _readable(name: Any, value: Any) -> bool:
    kind, said = text(name).partition(":")[0], text(value)
    if "\ufffd" in kind or "\ufffd" in said:
        return False
    if kind == "sent":
        return _seconds(said.partition(" ")[0]) is not None
    return kind != "busy" or not said or read_attempt(said) is not None


def _seconds(said: str) -> float | None:
    """A time as it is stored; None for anything else."""
    try:
        found = float(said)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def _count(said: str) -> int:
    return int(said) if said.isdecimal() and len(said) < _MOST_DIGITS else 0


def _postponement(value: str, waits: str) -> Postponement | None:
    """As it is stored; None for anything else (it may have been written by hand)."""
    times, _, rest = value.partition(" ")
    goes_on, _, rest = rest.partition(" ")
    provider, _, why = rest.partition(" ")
    until, goes_on_at = _seconds(times), _seconds(goes_on)
    if until is None or goes_on_at is None:
        return None
    number = max(1, _count(waits))
    return Postponement(until=until, goes_on_at=goes_on_at, provider=provider, why=why, waits=number)


def _item(fields: Mapping[str, str]) -> WorkItem:
    sent, busy, dead, alone = (fields.get(name, "") for name in ("sent", "busy", "dead", "alone"))
    proof = (read_attempt(line) for line in fields.get("proof", "").splitlines())
    sent_at, _, by = sent.partition(" ")
    at = _seconds(sent_at)
    return WorkItem(
        sent_at=at, again=at is not None and by == "again", busy=read_attempt(busy), sent_raw=sent, busy_raw=busy,
        deaths=_count(dead), sole_deaths=_count(alone),
        proof=tuple(attempt for attempt in proof if attempt is not None),
        postponed=_postponement(fields.get("postponed", ""), fields.get("waits", "")),
    )  # fmt: skip
