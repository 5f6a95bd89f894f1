"""Tables of API keys, and of webhooks: their endpoints and deliveries."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from orchestrator.access.keys import ApiKey
from orchestrator.cli.text import columns, plain, snippet, when
from shared.models.webhook import WebhookDelivery, WebhookEndpoint, WebhookEvent

#: Characters of a URL that are shown.
_URL = 60


def draw_keys(keys: Sequence[ApiKey], now: float) -> RenderableType:
    """One line a key."""
    table = columns("id", "tenant", "scopes", "a minute", "open jobs", "used", "state", "name", whole=("id",))
    for key in keys:
        used = when(key.used_at) if key.used_at else "never"
        table.add_row(
            key.id, plain(key.tenant), ", ".join(key.scopes), f"{key.requests_per_minute:,}", f"{key.open_jobs:,}",
            used, plain(_state(key, now)), plain(key.name),
        )  # fmt: skip
    return table


def _state(key: ApiKey, now: float) -> str:
    if key.revoked_at is not None:
        return f"revoked {when(key.revoked_at)}"
    if key.expires_at is None:
        return "active"
    return f"{'active until' if key.expires_at > now else 'expired'} {when(key.expires_at)}"


def draw_endpoints(endpoints: Sequence[WebhookEndpoint]) -> RenderableType:
    """One line an endpoint."""
    table = columns("id", "tenant", "url", "events", "tries", "waiting", "state", whole=("id",))
    for one in endpoints:
        failing = f"failing since {when(one.failing_since)}" if one.failing_since else "on"
        table.add_row(
            one.id, plain(one.tenant or "all"), snippet(one.url, _URL), _events(one),
            f"{one.delivered:,} taken, {one.failed:,} failed", f"{one.waiting:,}",
            plain(f"off: {one.off}" if one.off else failing),
        )  # fmt: skip
    return table


def _events(endpoint: WebhookEndpoint) -> str:
    return "all" if len(endpoint.events) == len(WebhookEvent) else ", ".join(endpoint.events)


def draw_deliveries(deliveries: Sequence[WebhookDelivery]) -> RenderableType:
    """One line a delivery."""
    table = columns("id", "when", "event", "of", "to", "tries", "state", whole=("id",))
    for one in deliveries:
        why = f": {one.error}" if one.error else ""
        table.add_row(
            one.id, when(one.created_at), one.event.value, plain(one.subject), snippet(one.endpoint or one.url, _URL),
            str(one.tries), plain(f"{one.state.value}{why}"),
        )  # fmt: skip
    return table
