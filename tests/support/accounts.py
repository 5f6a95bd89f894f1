"""Whether the accounts of a batch add up, read from Redis alone."""

from __future__ import annotations

import json
from collections import Counter

import redis

from shared.jobs import Outcome
from shared.jobs.keys import BatchKeys

LINES = ("enqueued", "known", "duplicate", "rejected")


def assert_adds_up(client: redis.Redis, batch_id: str) -> dict[str, int]:
    """The laws of a batch, and that its counts are those of its lines, its own jobs and the known ones."""
    keys = BatchKeys(batch_id)
    with client.pipeline(transaction=True) as pipe:  # one moment
        pipe.hgetall(keys.batch)
        pipe.hgetall(keys.members)
        pipe.hgetall(keys.known)
        pipe.hgetall(keys.lines)
        batch, members, known, lines = pipe.execute()
    counts = {name.decode(): int(value) for name, value in batch.items() if value.isdigit()}
    kinds = Counter(json.loads(line)["kind"] for line in lines.values())
    ends = Counter(outcome.decode() or "open" for outcome in members.values())
    said = f"{batch_id}: {counts}; {kinds}; {ends}"
    assert counts["lines"] == sum(counts[name] for name in (*LINES, "blank")), said
    assert {name: counts[name] for name in LINES if counts[name]} == dict(kinds), said
    assert counts["enqueued"] == counts["open"] + sum(counts[name] for name in Outcome) == len(members), said
    assert {name: counts[name] for name in ("open", *Outcome) if counts[name]} == dict(ends), said
    assert counts["finished"] == counts["enqueued"] - counts["open"], said
    assert counts["known_open"] == sum(not outcome for outcome in known.values()), said
    assert counts["known"] == len(known), said
    answered = {json.loads(line)["job_id"].encode() for line in lines.values() if b'"job_id"' in line}
    assert answered == members.keys() | known.keys(), said
    return counts
