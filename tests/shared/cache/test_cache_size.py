"""The cache is bounded in bytes: the oldest entries go. It can be looked at, and emptied."""

from __future__ import annotations

import json

import pytest
import redis
from pydantic import Field
from typer.testing import CliRunner

from orchestrator.cli.main import app
from shared.cache import Cache
from shared.cache_entries import AGES, SIZES, STATS
from shared.models.base import Model
from shared.settings import Settings


class Words(Model):
    words: list[str] = Field(default_factory=list)


def put(cache: Cache, number: int, kind: str = "embedding") -> bool:
    """True when it had to be computed. Entries are about 2 kB."""
    value = Words(words=[f"{number * n * 7919 % 1_000_003:x}" for n in range(600)])
    parts = {"tenant": "t", "number": number}
    return not cache.get_or_compute(kind, parts, Words, lambda: value, wait_s=1)[1].reused


@pytest.fixture
def cache(client: redis.Redis, settings: Settings) -> Cache:
    made = Cache(client, settings)
    made.entries._most_bytes = 10_000
    return made


def test_given_more_entries_than_fit_when_stored_then_the_oldest_go_and_the_account_is_right(
    cache: Cache, client: redis.Redis
) -> None:
    for number in range(20):
        assert put(cache, number)
        client.zincrby(AGES, -20 + number, client.zrange(AGES, -1, -1)[0])  # they are seconds apart
    stored = {key: client.strlen(key) for key in client.keys("ramify:cache:embedding:*}")}
    assert 3 <= len(stored) < 20
    assert sum(stored.values()) <= 10_000
    assert cache.sizes() == {"embedding": (len(stored), sum(stored.values()))}
    assert int(client.hget(SIZES, "total") or 0) == sum(stored.values())
    assert [put(cache, number) for number in (19, 0)] == [False, True]


def test_given_entries_that_have_expired_when_one_is_stored_then_they_are_taken_off_the_account(
    cache: Cache, client: redis.Redis
) -> None:
    for number in range(3):
        put(cache, number)
    for name in client.zrange(AGES, 0, -1):
        client.zadd(AGES, {name: 1})
    client.delete(*client.keys("ramify:cache:embedding:*}"))
    put(cache, 9)
    ((key, size),) = [(key, client.strlen(key)) for key in client.keys("ramify:cache:embedding:*}")]
    assert (client.zrange(AGES, 0, -1), int(client.hget(SIZES, "total") or 0)) == ([key], size)


def test_given_accounts_of_another_type_when_one_is_stored_then_it_is_stored_all_the_same(
    cache: Cache, client: redis.Redis
) -> None:
    client.set(AGES, "x")
    client.set(SIZES, "x")
    assert [put(cache, 1), put(cache, 1)] == [True, False]
    assert cache.sizes()["embedding"][0] == 1


def test_given_a_cache_when_asked_on_the_command_line_then_it_is_shown_by_kind_and_emptied(
    cache: Cache, client: redis.Redis, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(cache, 1)
    put(cache, 1)
    put(cache, 2, "rerank")
    client.set("ramify:other", "stays")
    monkeypatch.setenv("RAMIFY_REDIS__URL", redis_url)
    shown = json.loads(CliRunner().invoke(app, ["cache", "show", "--json"]).stdout)
    assert [(row["kind"], row["entries"], row["asked"], row["reused"]) for row in shown["kinds"]] == [
        ("embedding", 1, 2, 0.5), ("rerank", 1, 1, 0.0),
    ]  # fmt: skip
    assert shown["kinds"][0]["bytes"] == client.strlen(client.keys("ramify:cache:embedding:*}")[0])
    assert "1 entry" in CliRunner().invoke(app, ["cache", "show"]).stdout
    assert json.loads(CliRunner().invoke(app, ["cache", "clear", "--json"]).stdout) == {"deleted": 2}
    assert cache.sizes() == {}
    left = {
        key.decode() for key in client.keys("ramify:*") if not key.startswith(b"ramify:worker")
    }  # others' heartbeats
    assert left == {STATS, "ramify:other"}
