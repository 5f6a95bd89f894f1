"""What must hold of everything else after a round: batches add up, keys were honoured, and nothing is left lying."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

import redis

from orchestrator.client import Ramify
from shared.contract import PRIORITY_STEPS, Queue
from shared.errors import RamifyError
from tests.faults.harness.jobs import states
from tests.faults.harness.rig import Rig
from tests.faults.harness.traffic import Sent
from tests.support.waiting import last

#: Keys without a TTL that docs/redis.md tells of: kombu's names of its queues.
_KEPT = re.compile(r"_kombu\.binding")
_PAGE = 1000


def left_over(client: redis.Redis) -> list[str]:
    """What is not done yet, in words; empty when all is quiet."""
    found = []
    if active := client.zrange("ramify:active", 0, 4):
        found.append(f"ramify:active still names {client.zcard('ramify:active')} jobs, {active[0].decode()} first")
    for queue in Queue:
        for step in PRIORITY_STEPS:
            name = queue.value if step == 0 else f"{queue.value}\x06\x16{step}"
            if waiting := client.llen(name):
                found.append(f"{waiting} messages wait in queue {queue.value}, priority {step}")
    return found


def until_quiet(client: redis.Redis, seconds: float) -> list[str]:
    """Wait until nothing is left; what still is after `seconds`."""
    last(lambda: not left_over(client), seconds, 0.2)
    return left_over(client)


def keys_without_end(client: redis.Redis) -> list[str]:
    """Keys that never expire and are no documented ones."""
    found = []
    cursor: Any = 0
    while True:
        cursor, page = client.scan(cursor, count=_PAGE)
        with client.pipeline(transaction=False) as pipe:
            for key in page:
                pipe.ttl(key)
            ends = pipe.execute()
        found += [key.decode() for key, end in zip(page, ends, strict=True) if end == -1]
        if not cursor:
            return sorted(key for key in found if not _KEPT.match(key))


def batch_faults(client: Ramify, sent: Sent) -> Iterator[str]:
    """Every batch: all of it ended, and its counts are those of its jobs."""
    for batch_id in sent.batches:
        try:
            status, members = client.batch_status(batch_id), client.batch_jobs(batch_id)
        except RamifyError as error:
            yield f"batch {batch_id}: {error}"
            continue
        if not status.enqueued == status.finished == sum(status.outcomes().values()) == len(members):
            yield f"batch {batch_id} does not add up: {status}, {len(members)} members"


def key_faults(sent: Sent, forgotten: AbstractSet[str]) -> Iterator[str]:
    """One job a key, however often it was sent, and no job twice otherwise. `forgotten`: by Redis' death, lawfully."""
    for first, second in sent.twice:
        if first != second and first not in forgotten:
            yield f"a second submit with the same key gave {second}, the first {first}"
    for job_id, times in Counter(ack.job_id for ack in sent.jobs).items():
        if times > 1:
            yield f"job {job_id} was given for {times} submits"


def unknown_jobs(rig: Rig, known: set[str]) -> dict[str, str]:
    """Jobs that nobody was given an id for (their submit was refused half way) -> state."""
    listed = {key.decode() for key in rig.redis.zrange("ramify:jobs", 0, -1)}
    return states(rig.redis, listed - known)
