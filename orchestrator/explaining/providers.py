"""Which model servers are left alone now, by their gates in Redis (A9)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from redis import Redis

from shared.clock import ServerClock
from shared.gates.gate import NAMES, host_of
from shared.gates.shared_board import key_of
from shared.job_store.codec import text
from shared.settings import Settings
from shared.settings.providers import ProviderKind

_FIELDS = ("open_until", "pause_until", "fails", "why")


def _used(settings: Settings) -> Iterator[tuple[ProviderKind, object]]:
    """Kind and address, where there is one."""
    if settings.has_llm:
        yield "llm", settings.llm_base_url
    if settings.embedding.provider == "endpoint":
        yield "embedding", settings.embedding.base_url
    if settings.rerank.provider == "endpoint":
        yield "rerank", settings.rerank.base_url
    if settings.store.kind == "server":
        yield "qdrant", settings.store.url


def left_alone(client: Redis, settings: Settings) -> tuple[str, ...]:
    """A sentence for each provider that the settings name and that is paused, or whose breaker is open.

    Raises: redis.exceptions.RedisError, ValueError for a gate that somebody wrote by hand.
    """
    used = [(kind, host_of(str(url))) for kind, url in _used(settings) if url]
    with client.pipeline(transaction=False) as pipe:
        for kind, host in used:
            pipe.hmget(key_of(f"{kind}:{host}"), list(_FIELDS))
        rows = pipe.execute() if used else []
    now_ms = 1000 * ServerClock(client).now() if used else 0.0
    said = []
    for (kind, host), values in zip(used, rows, strict=True):
        opened, paused, fails, why = (text(value) if value is not None else "" for value in values)
        name = f"the {NAMES[kind]} at {host}" if kind != "qdrant" else f"{NAMES[kind]} at {host}"
        if float(opened or 0) > now_ms:
            said.append(f"{name} is left alone until {_clock(opened)} after {fails} failures in a row: it {why}")
        elif float(paused or 0) > now_ms:
            said.append(f"{name} wants no request until {_clock(paused)}")
    return tuple(said)


def _clock(ms: str) -> str:
    return f"{datetime.fromtimestamp(float(ms) / 1000, UTC):%H:%M:%S} UTC"
