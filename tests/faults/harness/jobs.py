"""Jobs after a round, as a plain Redis client reads them, and the times that work took to come back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import redis

from shared.jobs.events import events_of
from tests.faults.harness.kills import LEAF_TASKS, Kill, Piece

TERMINAL = ("done", "failed", "cancelled", "expired")


@dataclass
class Seen:
    """One job: its hash, its nodes' states, who is at its work, its events as (seconds, fields)."""

    job_id: str
    fields: dict[str, str]
    leaves: dict[str, str]
    work: dict[str, str]
    events: list[tuple[float, dict[str, str]]]
    has_answer: bool

    @property
    def state(self) -> str:
        """As it stands; empty when there is no such job."""
        return self.fields.get("state", "")

    def of_type(self, kind: str) -> list[tuple[float, dict[str, str]]]:
        """Its events of one type."""
        return [(at, event) for at, event in self.events if event["type"] == kind]


@dataclass
class Recovery:
    """Seconds from kills to what proves that the work was done again."""

    leaves: list[float] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    redriven: Counter[str] = field(default_factory=Counter)  # why -> pieces of work that were sent again
    dropped: int = 0  # held work whose job ended otherwise: cancelled, say


def seen(client: redis.Redis, job_ids: Iterable[str]) -> dict[str, Seen]:
    """All that is known of these jobs."""
    found = {}
    for job_id in job_ids:
        tag = f"ramify:{{{job_id}}}"
        with client.pipeline(transaction=True) as pipe:
            pipe.hgetall(f"{tag}:job")
            pipe.hgetall(f"{tag}:leaves")
            pipe.hgetall(f"{tag}:work")
            pipe.xrange(f"{tag}:events")
            pipe.exists(f"{tag}:answer")
            fields, leaves, work, events, answered = pipe.execute()
        read = [(int(entry.split(b"-")[0]) / 1000, told) for entry, data in events for told in events_of(data)]
        found[job_id] = Seen(job_id, _plain(fields), _plain(leaves), _plain(work), read, bool(answered))
    return found


def states(client: redis.Redis, job_ids: Iterable[str]) -> dict[str, str]:
    """Job id -> state, empty where there is no such job."""
    ids = list(job_ids)
    with client.pipeline(transaction=False) as pipe:
        for job_id in ids:
            pipe.hget(f"ramify:{{{job_id}}}:job", "state")
        rows = pipe.execute()
    return {job_id: row.decode() if row else "" for job_id, row in zip(ids, rows, strict=True)}


def _plain(raw: dict[bytes, bytes]) -> dict[str, str]:
    return {name.decode(): value.decode(errors="replace") for name, value in raw.items()}


def recovery(kills: list[Kill], jobs: dict[str, Seen]) -> Recovery:
    """From each kill to the record of each leaf that it took, or to the next state of a job whose step it took."""
    found = Recovery()
    for kill in kills:
        for piece in kill.held:
            job = jobs.get(piece.job_id)
            came = _came_back(job, piece, kill.at) if job else None
            if came is None:
                found.dropped += 1
            else:
                (found.leaves if piece.task in LEAF_TASKS else found.steps).append(came - kill.at)
    for _, event in (event for job in jobs.values() for event in job.of_type("redriven")):
        found.redriven[event.get("why", "")] += len(_items(event))
    return found


def _came_back(job: Seen, piece: Piece, after: float) -> float | None:
    if piece.task in LEAF_TASKS:
        leaf = [(at, event) for at, event in job.of_type("leaf") if event["id"] == piece.node]
        ends = (at for at, event in leaf if event["status"] in {"done", "failed"})
    else:
        ends = (at for at, event in job.events if event["type"] in {"state", "node"})
    return next((at for at in ends if at > after), None)


def _items(event: dict[str, str]) -> list[str]:
    items = json.loads(event.get("items", "[]"))
    return items if isinstance(items, list) else [items]
