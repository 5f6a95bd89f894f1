"""What is told of a running system: metrics, traces and logs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr, field_validator

from shared.settings.sections import SettingsSection
from shared.settings.server_url import ServerUrl


class TelemetrySettings(SettingsSection):
    """Metrics at `/metrics`, traces over OTLP, the form of the logs."""

    metrics_token: SecretStr = Field(
        default=SecretStr(""), description="bearer token that may read /metrics and nothing else; else an admin key"
    )
    metrics_tenants: int = Field(
        default=20, ge=0, le=200, description="tenants with series of their own in /metrics; the rest is `other`"
    )
    otlp_url: ServerUrl | None = Field(
        default=None, description="base of OTLP over HTTP, e.g. http://collector:4318; empty = no traces"
    )
    otlp_headers: SecretStr = Field(
        default=SecretStr(""), description="headers for it, NAME=VALUE with commas between, e.g. its API key"
    )
    sample: float = Field(default=1.0, ge=0, le=1, description="share of the jobs that are traced")
    content: bool = Field(default=False, description="put questions and subquestions into spans")
    logs: Literal["text", "json"] = Field(default="text", description="text, or json: one object a line, with ids")

    @field_validator("otlp_headers")
    @classmethod
    def _named(cls, value: SecretStr) -> SecretStr:
        if any("=" not in part for part in value.get_secret_value().split(",") if part.strip()):
            raise ValueError("write NAME=VALUE, with commas between several")
        return value
