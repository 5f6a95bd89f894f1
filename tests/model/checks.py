"""What must hold after every single step, whatever happened: read from Redis alone, as any client could."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import redis

from orchestrator.reaper.rules import FORCE_AFTER_S
from shared.jobs import TERMINAL, TRANSITIONS, Outcome, State
from shared.jobs.codec import texts
from shared.jobs.keys import AdmissionKeys, BatchKeys, JobKeys
from shared.jobs.states import outcome_of
from shared.models import Lane
from shared.models.degraded import codes

_DONE = {"done", "failed"}
_BRANCH = {"open", "grown"}


@dataclass
class Seen:
    """What was seen of one job so far."""

    state: State = State.QUEUED
    last: str = "-"
    recorded: set[str] = field(default_factory=set)
    ends: int = 0
    fence: int = 0


class Checks:
    """Holds the history of a world's jobs. Every method raises AssertionError."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self.seen = dict[str, Seen]()
        #: False once the clock was set: then times say nothing of what came before what.
        self.clock_runs_true = True

    def jobs(self, job_ids: Iterable[str]) -> None:
        """Those that are given; what has ended and been seen so is only looked at for changes."""
        wanted = list(job_ids)
        with self._client.pipeline(transaction=True) as pipe:
            for job_id in wanted:
                keys, seen = JobKeys(job_id), self.seen.setdefault(job_id, Seen())
                pipe.hgetall(keys.job)
                pipe.hgetall(keys.leaves)
                pipe.hkeys(keys.results)
                pipe.hkeys(keys.candidates)
                pipe.exists(keys.answer)
                pipe.xrange(keys.events, min=seen.last if seen.last == "-" else f"({seen.last}")
            rows = pipe.execute()
        for place, job_id in enumerate(wanted):
            fields, leaves, results, candidates, answer, events = rows[6 * place : 6 * place + 6]
            if fields:
                self._job(job_id, _text(fields), _text(leaves), _names(results), _names(candidates), bool(answer))
                self._events(job_id, State(fields[b"state"].decode()), events)
                self._fence(job_id, int(fields.get(b"fence", b"0")))

    def _job(  # noqa: PLR0913, PLR0917 - what is read of it
        self, job_id: str, job: Mapping[str, str], leaves: Mapping[str, str], results: set[str],
        candidates: set[str], answer: bool,
    ) -> None:  # fmt: skip
        counts = Counter(leaves.values())
        assert int(job["leaves_total"]) == len(leaves) - counts["open"] - counts["grown"], (job_id, job, leaves)
        assert int(job["leaves_done"]) == counts["done"], (job_id, job, leaves)
        assert int(job["leaves_failed"]) == counts["failed"], (job_id, job, leaves)
        assert int(job.get("open", 0)) == sum(state not in {*_DONE, "grown"} for state in leaves.values()), leaves
        recorded = {node for node, state in leaves.items() if state in _DONE}
        assert results == (set() if answer else recorded), (job_id, results, leaves)
        searched = {node for node, state in leaves.items() if state == "searched"}
        assert candidates - {""} <= searched | recorded, (job_id, candidates)
        if (
            self.clock_runs_true
            and "merging_at" in job
            and float(job["merging_at"]) < float(job.get("deadline_at", 0)) + FORCE_AFTER_S
        ):
            assert int(job["open"]) == 0, f"{job_id} was merged before its time: {leaves}"
        assert answer == (job["state"] == "done"), (job_id, job["state"], "answer" if answer else "no answer")

    def _events(self, job_id: str, state: State, events: list[Any]) -> None:
        seen = self.seen[job_id]
        for entry_id, raw in events:
            seen.last, event = entry_id.decode(), _text(raw)
            if event["type"] == "state":
                new = State(event["state"])
                first = seen.state is new is State.QUEUED
                assert first or new in TRANSITIONS[seen.state], f"{job_id}: {seen.state} -> {new}"
                seen.state = new
                seen.ends += new in TERMINAL
            if event["type"] == "leaf" and event["status"] in _DONE:
                assert event["id"] not in seen.recorded, f"{job_id}: leaf {event['id']} was recorded twice"
                seen.recorded.add(event["id"])
        assert seen.state is state, f"{job_id}: the events say {seen.state}, the job says {state}"
        assert seen.ends == (state in TERMINAL), f"{job_id} ended {seen.ends} times"

    def _fence(self, job_id: str, fence: int) -> None:
        seen = self.seen[job_id]
        assert fence >= seen.fence, f"{job_id}: a former reaper, of token {fence}, sent work after {seen.fence} had"
        seen.fence = fence

    def lines(self, lane: Lane, tenants: Iterable[str], window: int | None = None) -> None:
        """The counters of a lane say what is in its lines. `window`: most that may be under way."""
        keys = AdmissionKeys(lane.value)
        wanted = list(tenants)
        with self._client.pipeline(transaction=True) as pipe:
            pipe.hgetall(keys.counts)
            pipe.hgetall(keys.held)
            pipe.lrange(keys.ring, 0, -1)
            pipe.hgetall(keys.under_way)
            for tenant in wanted:
                pipe.zcard(keys.waiting + tenant)
            counts, held, ring, under_way, *lengths = pipe.execute()
        waiting, owners = dict(zip(wanted, lengths, strict=True)), _owners(under_way, lane)
        said = {name: int(value) for name, value in _text(counts).items()}
        assert said.get("waiting", 0) == sum(lengths), (lane, said, waiting)
        assert said.get("held", 0) == sum(owners.values()), (lane, said, owners)
        assert {name: int(value) for name, value in _text(held).items()} == dict(owners), (lane, held, owners)
        names = [tenant.decode() for tenant in ring]
        assert len(names) == len(set(names)), f"{lane}: a tenant stands in the ring twice: {names}"
        assert {tenant for tenant, length in waiting.items() if length} <= set(names), (lane, names, waiting)
        if window is not None:
            assert sum(owners.values()) <= window, (lane, owners)

    def batch(self, batch_id: str) -> None:
        """Its counts add up, and nobody is counted under another state than its own."""
        keys = BatchKeys(batch_id)
        batch, members = (_text(self._client.hgetall(key)) for key in (keys.batch, keys.members))
        ended = Counter(state for state in members.values() if state)
        assert int(batch["enqueued"]) == len(members), (batch, members)
        assert int(batch["finished"]) == sum(ended.values()), (batch, members)
        assert int(batch["open"]) == len(members) - sum(ended.values()), (batch, members)
        assert {name: int(batch[name]) for name in Outcome if int(batch[name])} == ended, batch
        for job_id, outcome in members.items():
            if outcome:
                state, partial, degraded = texts(
                    self._client.hmget(JobKeys(job_id).job, ["state", "partial", "degraded"])
                )
                assert state, job_id
                own = outcome_of(State(state), partial=partial == "1", degraded=codes(degraded))
                assert own == outcome, (job_id, own, outcome)


def _owners(under_way: Mapping[bytes, bytes], lane: Lane) -> Counter[str]:
    entries = (value.decode().partition(" ") for value in under_way.values())
    return Counter(tenant for name, _, tenant in entries if name == lane.value)


def _text(raw: Mapping[bytes, bytes]) -> dict[str, str]:
    return {key.decode(): value.decode(errors="replace") for key, value in raw.items()}


def _names(raw: Iterable[bytes]) -> set[str]:
    return {value.decode() for value in raw}
