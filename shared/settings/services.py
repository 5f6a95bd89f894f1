"""Servers that Ramify calls: rate limits, circuit breaker and pauses; where Redis is; prices and budgets; Flower."""

from __future__ import annotations

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from shared.settings.sections import SettingsSection

#: The kinds of servers that are called; a provider is one of these at one host.
ProviderKind = Literal["llm", "embedding", "rerank", "qdrant"]


_LAST_PORT = 65_535
#: Schemes of Celery's servers: of others it imports the module that they name, or takes messages out of files.
_RESULTS = ("redis", "rediss", "sentinel")
_FORM = "write redis://[user:password@]host:port/db, rediss:// for TLS, with special characters percent-encoded"


class RateLimit(SettingsSection):
    """The limit of one kind, for each host of it, held by all workers together."""

    requests_per_minute: float = Field(
        default=0, ge=0, le=1_000_000, allow_inf_nan=False, description="of all workers together; 0 = no limit"
    )
    burst: int = Field(default=10, ge=1, le=100_000, description="requests that may go at once after a quiet time")


class Breaker(SettingsSection):
    """When a server that fails is left alone, and for how long."""

    failures: int = Field(default=5, ge=0, le=1000, description="failures in a row that open it; 0 = never")
    open_s: float = Field(default=5.0, gt=0, le=3600, description="seconds that it stays open; doubled each time")
    longest_open_s: float = Field(default=60.0, gt=0, le=3600, description="the most that it stays open")
    slow_s: float = Field(
        default=15.0, gt=0, le=3600, description="a call cut off by its job's time is a failure if it had this long"
    )

    @model_validator(mode="after")
    def _ordered(self) -> Breaker:
        if self.longest_open_s < self.open_s:
            raise ValueError("longest_open_s must not be below open_s: raise it, or lower open_s")
        return self


class ProviderSettings(SettingsSection):
    """All of it, for the LLM, embedding and rerank servers and Qdrant."""

    llm: RateLimit = RateLimit()
    embedding: RateLimit = RateLimit()
    rerank: RateLimit = RateLimit()
    qdrant: RateLimit = RateLimit()
    breaker: Breaker = Breaker()
    pause_s: float = Field(
        default=0.5, gt=0, le=60, description="pause of all workers after a 429 without Retry-After; doubled each time"
    )
    longest_pause_s: float = Field(default=120.0, gt=0, le=3600, description="the most that Retry-After is obeyed for")
    interactive_reserve: float = Field(
        default=0.25, ge=0, lt=1, description="share of a limit's burst that batch calls leave to interactive ones"
    )
    batch_share: float = Field(
        default=0.2, ge=0, le=1,
        description="share of a rate limit that waiting batch calls keep, however many interactive calls there are",
    )  # fmt: skip
    qdrant_attempts: int = Field(default=3, ge=1, le=10, description="tries of one call of Qdrant on transient errors")
    qdrant_patience_s: float = Field(
        default=60.0, ge=0, le=3600,
        description="a search tries on this long while Qdrant is down, a seventh of its leaf's time at most",
    )  # fmt: skip

    def limit(self, kind: ProviderKind) -> RateLimit:
        """The rate limit of a kind."""
        limit: RateLimit = getattr(self, kind)
        return limit


class RedisSettings(SettingsSection):
    """The job store, and unless others are named broker and result backend. Empty `url`: that of `ramify up`."""

    url: SecretStr = Field(
        default=SecretStr(""), description="redis://[user:password@]host:port/db of the job store; rediss:// for TLS"
    )
    result_url: SecretStr = Field(default=SecretStr(""), description="Celery result backend, if it is another")
    sentinels: tuple[str, ...] = Field(
        default=(), description='["host:port", ...] of Sentinels, which name the master in place of the host of url'
    )
    sentinel_master: str = Field(default="", description="name of the master that the Sentinels watch")
    sentinel_username: str = Field(default="", description="login of the Sentinels themselves, if they want one")
    sentinel_password: SecretStr = Field(default=SecretStr(""), description="password of the Sentinels themselves")
    port: int = Field(default=0, ge=0, le=65_535, description="embedded: port; 0 = 6390, or a free one")
    timeout_s: float = Field(default=5.0, gt=0, description="seconds to connect and for one command")

    @field_validator("url")
    @classmethod
    def _redis_url(cls, value: SecretStr) -> SecretStr:
        """A login with a "/" or "#" in it would be read as something else."""
        try:
            parts = urlsplit(value.get_secret_value())
            _ = parts.port  # it raises for a port that is none
        except ValueError:
            raise ValueError(_FORM) from None
        known = parts.scheme in {"redis", "rediss"} and not parts.fragment and re.fullmatch(r"(/\d*)?", parts.path)
        if value.get_secret_value() and not known:
            raise ValueError(_FORM)
        return value

    @field_validator("result_url")
    @classmethod
    def _readable(cls, value: SecretStr) -> SecretStr:
        try:
            found = [urlsplit(one) for one in value.get_secret_value().split(";") if value.get_secret_value()]
            _ = [one.port for one in found]
        except ValueError:
            raise ValueError("it is no URL: percent-encode what is special in its login, and check its port") from None
        if any(one.scheme not in _RESULTS for one in found):
            raise ValueError(f"begin it with one of {', '.join(f'{scheme}://' for scheme in _RESULTS)}")
        return value

    @field_validator("sentinels")
    @classmethod
    def _addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            found = re.fullmatch(r"([\w.\-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?", one)
            if not found or int(found[2] or 0) > _LAST_PORT:
                raise ValueError('one of them is no "host:port"; a login stands in url and sentinel_password')
        return value

    @model_validator(mode="before")
    @classmethod
    def _found_by_sentinel(cls, data: object) -> object:
        """With Sentinels no URL is needed, unless for a login, a database or TLS: its host is not used."""
        if isinstance(data, dict) and data.get("sentinels") and not data.get("url"):
            return {**data, "url": "redis://sentinel:0/0"}
        return data

    @model_validator(mode="after")
    def _named(self) -> RedisSettings:
        if self.sentinels and not self.sentinel_master:
            raise ValueError("sentinels need sentinel_master, the name that they watch the master by")
        return self


_Price = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


class Prices(SettingsSection):
    """Money by model name. A budget of money needs the price of every model that is called; a free one costs 0."""

    currency: str = Field(default="USD", max_length=10, description="what money is called")
    llm_input: dict[str, _Price] = Field(
        default_factory=dict, description='LLM: money per 1M tokens read, "gpt-4o-mini" = 0.15'
    )
    llm_output: dict[str, _Price] = Field(default_factory=dict, description="LLM: money per 1M tokens written")
    embedding: dict[str, _Price] = Field(default_factory=dict, description="embedding server: money per 1M tokens")
    rerank: dict[str, _Price] = Field(default_factory=dict, description="rerank server: money per 1,000 calls")

    @model_validator(mode="after")
    def _both(self) -> Prices:
        for name in {*self.llm_input} ^ {*self.llm_output}:
            lacking = "llm_output" if name in self.llm_input else "llm_input"
            raise ValueError(f"the model {name!r} has no price in {lacking}: give both (0 if it is free)")
        return self


class BudgetDefaults(SettingsSection):
    """The budget of a job that names none, limit by limit. Without a value: no limit."""

    max_calls: int | None = Field(default=None, ge=0, description="LLM calls of a job; 0 = no LLM at all")
    max_tokens: int | None = Field(default=None, ge=0, description="tokens of LLM and embedding of a job")
    max_seconds: float | None = Field(default=None, gt=0, le=86_400, description="seconds of a job, from its turn")
    max_cost: float | None = Field(default=None, ge=0, description="money of a job; needs prices")


#: The names of this machine for itself.
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class FlowerSettings(SettingsSection):
    """The pool monitor."""

    enabled: bool = Field(default=True, description="start Flower with `ramify up`")
    host: str = Field(default="127.0.0.1", description="address to listen on; beyond loopback basic_auth is required")
    port: int = Field(default=0, ge=0, le=65_535, description="port; 0 = 5555, or a free one")
    hosts: tuple[str, ...] = Field(
        default=(), description='["flower.example"]: names that it answers to besides host and those of loopback'
    )
    basic_auth: SecretStr = Field(
        default=SecretStr(""), description="user:password; else `ramify up` makes one and says where it stands"
    )

    @field_validator("basic_auth")
    @classmethod
    def _one_login(cls, value: SecretStr) -> SecretStr:
        if "," in value.get_secret_value():
            raise ValueError("leave out commas: Flower takes them for two logins")
        return value

    @model_validator(mode="after")
    def _guarded(self) -> FlowerSettings:
        if self.host not in LOOPBACK and ":" not in self.basic_auth.get_secret_value():
            raise ValueError('a host beyond loopback needs basic_auth = "user:password"')
        return self


class ServerSettings(SettingsSection):
    """Ramify over HTTP: `ramify serve`, and a part of `ramify up`."""

    enabled: bool = Field(default=True, description="start it with `ramify up`, where the extra server is installed")
    host: str = Field(default="127.0.0.1", description="address to listen on")
    port: int = Field(default=0, ge=0, le=65_535, description="port; 0 = 8321, or a free one")
    hosts: tuple[str, ...] = Field(
        default=(), description='["ramify.example"]: names that it answers to besides host and those of loopback'
    )
    origins: tuple[str, ...] = Field(
        default=(), description='["https://app.example"]: sites whose pages may call it from a browser, with a key'
    )
    max_body_bytes: int = Field(
        default=1_000_000, ge=10_000, le=100_000_000, description="bytes of a request's body; streams have no bound"
    )
    body_timeout_s: float = Field(
        default=15.0, gt=0, le=600, description="seconds without any byte of a body; a whole one has four times that"
    )
    idle_timeout_s: int = Field(
        default=10, ge=1, le=600, description="seconds for a request's head, and between two requests of a connection"
    )
    connections: int = Field(
        default=1_000,
        ge=10,
        le=100_000,
        description="connections at once; a new one ends an idle one, or gets a 503",
    )
    threads: int = Field(default=40, ge=4, le=500, description="requests worked on at once; half may wait for pools")
    max_listeners: int = Field(default=800, ge=1, le=100_000, description="streams of events at once; more get a 429")
    max_upload_bytes: int = Field(
        default=1_000_000_000, ge=10_000, description="bytes of one request that puts documents in, or of one batch"
    )
    cancel_chats: bool = Field(default=True, description="cancel a chat completion's job when its client goes away")
    access_log: bool = Field(default=False, description="log each request: address, path with its query, status")


class McpSettings(SettingsSection):
    """Ramify for MCP clients: `ramify mcp`, and /mcp of the server."""

    wait_s: float = Field(
        default=20.0, ge=0, le=600, description="seconds that ask, result and ingest wait for a job; below the client's"
    )
    waiting: int = Field(default=64, ge=1, le=1000, description="calls that wait at once; the next ones do not wait")
    max_chars: int = Field(
        default=24_000, ge=2_000, le=1_000_000, description="characters of a result or a document's part, about"
    )
    page: int = Field(default=100, ge=1, le=500, description="documents of one page of the list of resources")
