"""Where Redis is, and how long anything waits for it."""

from __future__ import annotations

import re

from pydantic import Field, SecretStr, field_validator, model_validator

from shared.settings.section import Section


class Redis(Section):
    """Broker, result backend and job store. Empty `url`: the one that `ramify up` starts."""

    url: SecretStr = Field(
        default=SecretStr(""), description="redis://[user:password@]host:port/db of the job store; rediss:// for TLS"
    )
    broker_url: SecretStr = Field(default=SecretStr(""), description="Celery broker, if it is another")
    result_url: SecretStr = Field(default=SecretStr(""), description="Celery result backend, if it is another")
    sentinels: tuple[str, ...] = Field(
        default=(), description='["host:port", ...] of Sentinels, which name the master in place of the host of url'
    )
    sentinel_master: str = Field(default="", description="name of the master that the Sentinels watch")
    sentinel_username: str = Field(default="", description="login of the Sentinels themselves, if they want one")
    sentinel_password: SecretStr = Field(default=SecretStr(""), description="password of the Sentinels themselves")
    port: int = Field(default=0, ge=0, le=65_535, description="embedded: port; 0 = 6390, or a free one")
    timeout_s: float = Field(default=5.0, gt=0, description="seconds to connect and for one command")

    @field_validator("sentinels")
    @classmethod
    def _addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            if not re.fullmatch(r"([\w.\-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?", one):
                raise ValueError(f'"{one}" is no "host:port"')
        return value

    @model_validator(mode="before")
    @classmethod
    def _found_by_sentinel(cls, data: object) -> object:
        """With Sentinels no URL is needed, unless for a login, a database or TLS: its host is not used."""
        if isinstance(data, dict) and data.get("sentinels") and not data.get("url"):
            return {**data, "url": "redis://sentinel:0/0"}
        return data

    @model_validator(mode="after")
    def _named(self) -> Redis:
        if self.sentinels and not self.sentinel_master:
            raise ValueError("sentinels need sentinel_master, the name that they watch the master by")
        return self
