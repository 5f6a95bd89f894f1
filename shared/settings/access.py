"""Who may call the interfaces of the server, and where webhooks may go."""

from __future__ import annotations

from ipaddress import ip_network

from pydantic import Field, field_validator

from shared.settings.sections import SettingsSection


class KeySettings(SettingsSection):
    """API keys: who needs one, what one has that was made without naming it, how long a login of the page lasts."""

    required: bool = Field(default=False, description="also for callers on this machine; elsewhere they are anyway")
    requests_per_minute: int = Field(
        default=600, ge=1, le=1_000_000, description="requests a minute of a key that names no limit"
    )
    open_jobs: int = Field(
        default=100, ge=1, le=10_000, description="open jobs and batches of a key that names no limit"
    )
    login_s: float = Field(default=43_200.0, ge=60, le=2_592_000, description="seconds that a login of the page lasts")


class WebhookSettings(SettingsSection):
    """Notices of ended jobs and batches, sent by the ops pool."""

    enabled: bool = Field(default=True, description="send webhooks; false: they wait in Redis")
    allow_http: bool = Field(default=False, description="also URLs that begin with http://")
    allow_networks: tuple[str, ...] = Field(
        default=(), description='["10.1.0.0/16"]: networks that are not public and may be called nevertheless'
    )
    timeout_s: float = Field(default=10.0, gt=0, le=30, description="seconds of one delivery, all in all")
    first_wait_s: float = Field(default=5.0, gt=0, le=3600, description="wait before the second try; doubled each time")
    longest_wait_s: float = Field(default=3600.0, gt=0, le=86_400, description="the most that is waited for a try")
    give_up_s: float = Field(
        default=86_400.0, gt=0, le=604_800, description="seconds that a delivery is tried; an endpoint that has failed "
        "for so long is switched off",
    )  # fmt: skip
    threads: int = Field(default=8, ge=1, le=64, description="deliveries under way in one ops worker")

    @field_validator("allow_networks")
    @classmethod
    def _networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            try:
                ip_network(one)
            except ValueError:
                raise ValueError(f"{one!r} is no network: write 10.1.0.0/16, or one address") from None
        return value
