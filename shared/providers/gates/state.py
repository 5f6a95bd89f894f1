"""Reads the state of the configured providers' gates from Redis, for people. Changes nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from pydantic import Field
from redis import Redis

from shared.models.base import Model
from shared.providers.gates.gate import host_of
from shared.providers.gates.gate_store import key_of
from shared.settings import Settings
from shared.settings.services import ProviderKind

#: Times beyond the year 2096 (ms) are nonsense.
_MOST = 4e12


class Provider(NamedTuple):
    """A kind of server at one host (with its port)."""

    kind: ProviderKind
    host: str


class GateState(Model):
    """One gate now; times are Unix seconds of Redis' clock.

    `state`: open since `since` until `until`; half-open: the next call is a probe, or one is under way (`probing`).
    `failures` in a row, the last of
    them `why`. `tokens`: requests that may go at once of `requests_per_minute`; None without a limit.
    """

    provider: ProviderKind
    host: str
    state: Literal["closed", "open", "half-open"] = "closed"
    since: float | None = None
    until: float | None = None
    probing: bool = False
    failures: int = Field(default=0, ge=0)
    why: str = ""
    paused_until: float | None = None
    requests_per_minute: float = 0
    tokens: int | None = None


def providers(settings: Settings) -> Iterator[Provider]:
    """The providers that these settings name."""
    named: tuple[tuple[ProviderKind, bool, object], ...] = (
        ("llm", settings.has_llm, settings.llm_base_url),
        ("embedding", settings.embedding.traits.server, settings.embedding.base_url),
        ("rerank", settings.rerank.traits.server, settings.rerank.base_url),
        ("qdrant", settings.store.kind == "server", settings.store.url),
    )
    return (Provider(kind, host_of(str(url))) for kind, used, url in named if used)


def read_gates(client: Redis, settings: Settings) -> list[GateState]:
    """How each stands, in the order of `providers`. Raises: redis.exceptions.RedisError."""
    found = list(providers(settings))
    if not found:
        return []
    with client.pipeline(transaction=False) as pipe:
        pipe.time()
        for provider in found:
            pipe.hgetall(key_of(f"{provider.kind}:{provider.host}"))
        (seconds, micros), *hashes = pipe.execute()
    now = seconds + micros / 1e6
    return [_state(provider, fields, settings, now) for provider, fields in zip(found, hashes, strict=True)]


def _state(provider: Provider, fields: dict[Any, Any], settings: Settings, now: float) -> GateState:
    read = {name.decode("utf-8", "replace"): value for name, value in fields.items()}
    limit, breaker = settings.providers.limit(provider.kind), settings.providers.breaker
    opened, until, paused = (_seconds(read.get(name)) for name in ("opened_at", "open_until", "pause_until"))
    is_open = until is not None and breaker.failures > 0
    tokens = None
    if limit.requests_per_minute:
        ahead = max(0.0, (_seconds(read.get("tat")) or 0.0) - now)
        tokens = max(0, math.floor(limit.burst - ahead * limit.requests_per_minute / 60 + 1e-6))
    return GateState(
        provider=provider.kind,
        host=provider.host,
        state="closed" if until is None or not is_open else "open" if until > now else "half-open",
        since=opened if is_open else None,
        until=until if is_open else None,
        probing=is_open and "probe" in read and (_seconds(read.get("probe_until")) or 0.0) > now,
        failures=int(_number(read.get("fails"))),
        why=read.get("why", b"").decode("utf-8", "replace"),
        paused_until=paused if paused and paused > now else None,
        requests_per_minute=limit.requests_per_minute,
        tokens=tokens,
    )


def _seconds(value: bytes | None) -> float | None:
    return _number(value) / 1000 or None


def _number(value: bytes | None) -> float:
    """A number as a script wrote it; 0 for nonsense."""
    try:
        number = float(value or 0)
    except ValueError:
        return 0.0
    return min(max(number, 0.0), _MOST) if math.isfinite(number) else 0.0
