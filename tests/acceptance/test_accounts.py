"""A client that reads nothing but Redis waits for a batch whose lines name the jobs of another one."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest
import redis

from orchestrator.client import Ramify
from orchestrator.intake import bounded_lines, read_questions
from tests.support.accounts import assert_adds_up
from tests.support.waiting import until


@pytest.fixture
def poller(ramify: Ramify) -> Iterator[redis.Redis]:
    client = redis.Redis.from_url(ramify.settings.redis.url.get_secret_value())
    yield client
    client.close()


def lines(first: int, last: int) -> bytes:
    asked = {f"part {n}": f"What do we know about part {n}?" for n in range(first, last)}
    return "\n".join(json.dumps({"question": text, "idempotency_key": key}) for key, text in asked.items()).encode()


def enter(ramify: Ramify, content: bytes, most: int | None = None) -> str:
    """A client that ends after `most` lines does not come back."""
    batch = ramify.open_batch()
    reading = ramify.read_into_batch(batch, read_questions(bounded_lines(io.BytesIO(content))))
    for count, _ in enumerate(reading, 1):
        if count == most:
            break
    reading.close()  # type: ignore[attr-defined]
    return batch


def test_a_poller_of_redis_alone_sees_both_batches_end_and_add_up(ramify: Ramify, poller: redis.Redis) -> None:
    first = enter(ramify, lines(0, 60))
    content = b"\n".join([lines(20, 84)] * 4) + b"\n\nnull\n"
    second = enter(ramify, content, most=30)

    def ended(batch: str) -> bool:
        counts = assert_adds_up(poller, batch)
        return not counts["open"] and not counts["known_open"]

    assert not ended(second)
    assert len(list(ramify.read_into_batch(second, read_questions(bounded_lines(io.BytesIO(content)))))) == 57
    until(lambda: ended(first) & ended(second), 100, "both batches end", 0.2)
    own, other = assert_adds_up(poller, first), assert_adds_up(poller, second)
    assert (own["lines"], own["enqueued"], own["done"]) == (60, 60, 60)
    kinds = {name: other[name] for name in ("lines", "enqueued", "known", "duplicate", "rejected", "blank")}
    assert kinds == {"lines": 258, "enqueued": 24, "known": 40, "duplicate": 192, "rejected": 1, "blank": 1}
    assert other["done"] == 24
    assert poller.keys("*named_by*") == []
    rows = list(ramify.batch_report(second))
    assert {row.outcome for row in rows} == {"done", None}
    assert [row.line for row in rows if row.outcome is None] == [258]
    assert all(row.leaves_done == row.leaves_total > 0 for row in rows if row.job_id)
