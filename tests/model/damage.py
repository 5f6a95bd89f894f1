"""Damages single fields and keys of jobs in every way, as a stray program, a torn disk or another release would."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import redis

from orchestrator.reaper.reaper import Reaper
from shared.jobs import TERMINAL, State
from shared.jobs.codec import text
from shared.jobs.keys import JobKeys
from tests.model.broker import Parcel
from tests.model.world import World

#: What a field may hold instead of its value; None: it is missing.
VALUES: dict[str, bytes | None] = {
    "missing": None,
    "empty": b"",
    "no UTF-8": b"\xff\xfe\x00",
    "garbage": b"x",
    "unknown word": b"postponed",
    "huge": b"9" * 5000,
}
#: What a key may be instead.
KEYS = ("gone", "another type")


@dataclass(frozen=True)
class Damage:
    """`value`: what the field holds instead, or what the key is. `field` empty: the key as a whole."""

    key: str
    field: bytes
    value: str

    def __str__(self) -> str:
        return f"{self.key} {self.field.decode(errors='replace')}: {self.value}"


def damages(client: redis.Redis, job_id: str) -> Iterator[Damage]:
    """All that can be done to a job as it is now."""
    for name, key in vars(JobKeys(job_id)).items():
        kind = text(client.type(key))
        if kind != "none":
            yield from (Damage(name, b"", value) for value in KEYS)
        if kind == "hash":
            yield from (Damage(name, field, value) for field in sorted(client.hkeys(key)) for value in VALUES)
        elif kind == "string":
            yield from (Damage(name, b"", value) for value in VALUES if VALUES[value] is not None)


def do(client: redis.Redis, job_id: str, damage: Damage) -> None:
    """Damage a job."""
    key, value = vars(JobKeys(job_id))[damage.key], VALUES.get(damage.value)
    if damage.value == "gone":
        client.delete(key)
    elif damage.value == "another type":
        (was,) = {text(client.type(key))}
        client.delete(key)
        if was == "string":
            client.rpush(key, "x")
        else:
            client.set(key, "x")
    elif not damage.field:
        client.set(key, value or b"")
    elif value is None:
        client.hdel(key, damage.field)
    else:
        client.hset(key, damage.field, value)


class StrictWorld(World):
    """Whatever a task or the reaper raises ends the test: nothing is lost here but what is stored."""

    def _carry_out(self, parcel: Parcel) -> None:
        done = self.stage.run(parcel)
        self.point()
        self.broker.follow(done)
        self.broker.ack(parcel)

    def _look(self) -> None:
        Reaper(self.stage.app, self.jobs).run()

    def ends(self) -> dict[str, State | None]:
        """Job id -> how it ended; None for one that has not, or that nobody can tell."""
        found = dict[str, State | None]()
        for job_id in self.shapes:
            key = JobKeys(job_id).job
            state = text(self.wire.hget(key, "state") or b"") if self.wire.type(key) == b"hash" else ""
            found[job_id] = State(state) if state in TERMINAL else None
        return found
