"""Registered endpoints, the secrets that sign for them, and their deliveries, as people and programs ask for them."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pydantic import SecretStr
from redis import Redis

from orchestrator.webhooks.addresses import check_url
from shared.connections.clock import ServerClock
from shared.errors import ConflictError, InputError, NotFoundError
from shared.jobs.codec import text
from shared.jobs.keys import WebhookKeys
from shared.jobs.scripts import Scripts
from shared.models.webhook import DeliveryState, WebhookDelivery, WebhookEndpoint, WebhookEvent, webhook_url
from shared.settings import Settings
from shared.tenants import DEFAULT_TENANT

#: Stands for the tenant of what is the operator's.
OPERATOR = "*"
#: How ids of endpoints begin, and no other target does.
ENDPOINT_PREFIX = "we_"
_MOST_ENDPOINTS, _MOST_LISTED = 1000, 1000
_SECRET_BYTES, _ID_BYTES = 32, 8


class NewEndpoint(NamedTuple):
    """An endpoint that was registered now. `secret` (`whsec_...`) is told once."""

    endpoint: WebhookEndpoint
    secret: SecretStr


class Webhooks:
    """The endpoints and deliveries of `tenant`; None: the operator's view, of all of them.

    May raise redis.exceptions.RedisError.
    """

    def __init__(self, client: Redis, settings: Settings, tenant: str | None = None) -> None:
        self._client, self._settings, self._tenant = client, settings, tenant
        self._run = Scripts(client, __package__ or "")
        self._clock = ServerClock(client)

    def add(self, url: str, events: Iterable[str] = ()) -> NewEndpoint:
        """Register a URL for `events` (none: all). Raises: InputError."""
        check_url(webhook_url(url), self._settings.webhooks)
        wanted = _checked_events(list(events))
        if self._client.zcard(WebhookKeys.endpoints) >= _MOST_ENDPOINTS:
            fix = f"there are {_MOST_ENDPOINTS:,} endpoints: remove some with `ramify webhooks remove ID`"
            raise ConflictError("url", url, fix)
        endpoint_id, now, secret = f"{ENDPOINT_PREFIX}{secrets.token_hex(_ID_BYTES)}", self._clock.now(), _new_secret()
        owner = self._tenant or OPERATOR
        between_commas = f",{','.join(wanted)},"
        fields: dict[Any, Any] = {"url": url, "events": between_commas, "secret": secret, "tenant": owner}
        fields["created_at"] = f"{now:.3f}"
        with self._client.pipeline(transaction=True) as pipe:
            pipe.hset(WebhookKeys.target + endpoint_id, mapping=fields)
            pipe.hset(WebhookKeys.wanted + owner, endpoint_id, between_commas)
            pipe.zadd(WebhookKeys.endpoints, {endpoint_id: now})
            pipe.execute()
        return NewEndpoint(self.get(endpoint_id), SecretStr(secret))

    def get(self, endpoint_id: str) -> WebhookEndpoint:
        """One endpoint. Raises: NotFoundError."""
        if found := self._read([endpoint_id]):
            return found[0]
        raise NotFoundError("endpoint id", endpoint_id, "there is no such endpoint; `ramify webhooks list` shows them")

    def endpoints(self) -> list[WebhookEndpoint]:
        """The endpoints, the newest first."""
        return self._read([text(one) for one in self._client.zrevrange(WebhookKeys.endpoints, 0, -1)])

    def _read(self, ids: Sequence[str]) -> list[WebhookEndpoint]:
        with self._client.pipeline(transaction=False) as pipe:
            for one in ids:
                pipe.hgetall(WebhookKeys.target + one)
                pipe.zcard(WebhookKeys.waiting + one)
            replies: Any = pipe.execute()
        rows = [_pairs(row) for row in replies[::2]]
        return [
            _endpoint(one, row, waiting)
            for one, row, waiting in zip(ids, rows, replies[1::2], strict=True)
            if "events" in row and self._tenant in {None, row["tenant"]}
        ]

    def remove(self, endpoint_id: str) -> WebhookEndpoint:
        """Forget an endpoint, and what waits for it. Raises: NotFoundError."""
        endpoint = self.get(endpoint_id)
        with self._client.pipeline(transaction=True) as pipe:
            pipe.hdel(WebhookKeys.wanted + (endpoint.tenant or OPERATOR), endpoint_id)
            pipe.zrem(WebhookKeys.endpoints, endpoint_id)
            pipe.zrem(WebhookKeys.due, endpoint_id)
            pipe.delete(WebhookKeys.target + endpoint_id, WebhookKeys.waiting + endpoint_id)
            pipe.execute()
        return endpoint

    def enable(self, endpoint_id: str) -> WebhookEndpoint:
        """Switch an endpoint on that was switched off; what waits for it is tried at once. Raises: NotFoundError."""
        endpoint = self.get(endpoint_id)
        with self._client.pipeline(transaction=True) as pipe:
            pipe.hdel(WebhookKeys.target + endpoint_id, "off", "strikes", "pause_until", "failing_since")
            pipe.hset(WebhookKeys.wanted + (endpoint.tenant or OPERATOR), endpoint_id, f",{','.join(endpoint.events)},")
            pipe.zadd(WebhookKeys.due, {endpoint_id: self._clock.now()})
            pipe.expire(WebhookKeys.due, self._settings.jobs.ttl_s)
            pipe.execute()
        return self.get(endpoint_id)

    def check_named(self, url: str) -> None:
        """Whether a request may name this URL. Raises: InputError."""
        check_url(webhook_url(url), self._settings.webhooks)
        tenant = self._tenant or DEFAULT_TENANT
        if not self._client.hexists(WebhookKeys.secrets, tenant):
            of = "" if tenant == DEFAULT_TENANT else f" --tenant {tenant}"
            fix = f"there is no secret to sign with: `ramify webhooks secret{of}` makes one for your receiver"
            raise InputError("webhook", url, fix)

    def new_secret(self) -> SecretStr:
        """A new secret for what goes to URLs that requests of the tenant name. It is told once; the old one ends."""
        secret = _new_secret()
        self._client.hset(WebhookKeys.secrets, self._tenant or DEFAULT_TENANT, secret)
        return SecretStr(secret)

    def deliveries(self, limit: int = 20, endpoint_id: str | None = None) -> list[WebhookDelivery]:
        """The newest deliveries, the newest first; of one endpoint, if one is named. Raises: NotFoundError."""
        if endpoint_id is not None:
            self.get(endpoint_id)
        found = list[WebhookDelivery]()
        for owner in [self._tenant] if self._tenant else self._owners():
            ids = [text(one) for one in self._client.zrevrange(WebhookKeys.log + owner, 0, _MOST_LISTED - 1)]
            found += [one for one in self._read_deliveries(ids) if endpoint_id in {None, one.endpoint}]
        return sorted(found, key=lambda one: (one.created_at, one.number), reverse=True)[:limit]

    def _owners(self) -> list[str]:
        names = self._client.scan_iter(match=f"{_escaped(WebhookKeys.log)}*", count=_MOST_LISTED)
        return [text(name).removeprefix(WebhookKeys.log) for name in names]

    def delivery(self, delivery_id: str) -> WebhookDelivery:
        """One delivery. Raises: NotFoundError."""
        found = self._read_deliveries([delivery_id])
        if not found or self._tenant not in {None, found[0].tenant}:
            fix = "there is no such delivery, or it has expired; `ramify webhooks deliveries` shows them"
            raise NotFoundError("delivery id", delivery_id, fix)
        return found[0]

    def redeliver(self, delivery_id: str) -> WebhookDelivery:
        """Send a delivery again, under the same id. Raises: NotFoundError; ConflictError where its endpoint is off."""
        delivery = self.delivery(delivery_id)
        if delivery.endpoint and (endpoint := self.get(delivery.endpoint)).off:
            fix = f"`ramify webhooks enable {endpoint.id}` switches it on"
            raise ConflictError("endpoint id", endpoint.id, f"it is off, since {endpoint.off}: {fix}")
        target = text(self._client.hget(WebhookKeys.delivery + delivery_id, "target"))
        keys = [WebhookKeys.delivery + delivery_id, WebhookKeys.target + target, WebhookKeys.waiting + target]
        self._run("redeliver", keys, [delivery_id, f"{self._clock.now():.3f}", self._settings.jobs.ttl_s])
        return self.delivery(delivery_id)

    def _read_deliveries(self, ids: Sequence[str]) -> list[WebhookDelivery]:
        with self._client.pipeline(transaction=False) as pipe:
            for one in ids:
                pipe.hgetall(WebhookKeys.delivery + one)
            rows: Any = pipe.execute()
        read = [(one, _pairs(row)) for one, row in zip(ids, rows, strict=True) if row]
        with self._client.pipeline(transaction=False) as pipe:
            for one, row in read:
                pipe.zscore(WebhookKeys.waiting + row["target"], one)
            times: Any = pipe.execute()
        return [_delivery(one, row, at) for (one, row), at in zip(read, times, strict=True)]


def _new_secret() -> str:
    return f"whsec_{base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()}"


def _checked_events(given: Sequence[str]) -> list[str]:
    known = [event.value for event in WebhookEvent]
    if wrong := next((one for one in given if one not in known), None):
        raise InputError("events", wrong, f"choose from {', '.join(known)}")
    return [event for event in known if event in given or not given]


def _escaped(name: str) -> str:
    """A name of a key as a pattern that fits it alone."""
    return "".join(f"\\{c}" if c in "*?[]\\" else c for c in name)


def _pairs(row: Any) -> dict[str, str]:
    return {text(name): text(value) for name, value in row.items()}


def _endpoint(endpoint_id: str, row: dict[str, str], waiting: int) -> WebhookEndpoint:
    return WebhookEndpoint(
        id=endpoint_id, tenant=_owner(row), url=row["url"], created_at=float(row["created_at"]), waiting=waiting,
        events=tuple(WebhookEvent(one) for one in row["events"].strip(",").split(",")), off=row.get("off"),
        delivered=int(row.get("delivered", 0)), failed=int(row.get("failed", 0)),
        failing_since=float(row["failing_since"]) if "failing_since" in row else None,
    )  # fmt: skip


def _delivery(delivery_id: str, row: dict[str, str], next_at: float | None) -> WebhookDelivery:
    target, state = row["target"], DeliveryState(row["state"])
    return WebhookDelivery(
        id=delivery_id, tenant=_owner(row), url=row["url"],
        endpoint=target if target.startswith(ENDPOINT_PREFIX) else None,
        event=WebhookEvent(row["event"]), subject=row["subject"], number=int(row["number"]), state=state,
        tries=int(row["tries"]), created_at=float(row["created_at"]),
        next_at=next_at if state is DeliveryState.WAITING else None,
        last_at=float(row["last_at"]) if "last_at" in row else None,
        status=int(row["status"]) if row.get("status") else None, error=row.get("error") or None,
    )  # fmt: skip


def _owner(row: dict[str, str]) -> str | None:
    return None if row["tenant"] == OPERATOR else row["tenant"]
