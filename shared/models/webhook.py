"""Webhooks: URLs that are told of the ends of jobs and batches, and what is sent to them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from shared.errors import InputError
from shared.models.base import Model

MAX_URL_CHARS = 2000


class WebhookEvent(StrEnum):
    """What an endpoint can be told of. `job.done`: with an answer, be it partial or degraded."""

    JOB_DONE = "job.done"
    JOB_FAILED = "job.failed"
    JOB_EXPIRED = "job.expired"
    JOB_CANCELLED = "job.cancelled"
    BATCH_DONE = "batch.done"
    NOTICE = "standing.notice"


class DeliveryState(StrEnum):
    """`waiting`: it is tried until it was taken, or `webhooks.give_up_s` is over."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


def _as_webhook(given: str) -> str:
    """The URL. Where it leads is checked when it is called; here, that it is a URL without a login."""
    if not given.isascii() or not given.isprintable() or any(c in given for c in ' "<>\\^`{|}'):
        raise ValueError("holds characters that no URL has: percent-encode them, and write its host in ASCII")
    try:
        parts = urlsplit(given)
        port_works = parts.port != 0
    except ValueError:
        port_works, parts = False, urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.hostname or not port_works:
        raise ValueError("is no URL of a web server: write https://host/path")
    if "@" in parts.netloc:
        raise ValueError("holds a login: leave it out, the receiver checks the signature")
    if "#" in given:
        raise ValueError("holds a #, which is sent to no server: leave it out")
    return given


#: An address of a receiver, as requests and endpoints name it.
WebhookUrl = Annotated[
    str,
    Field(max_length=MAX_URL_CHARS, json_schema_extra={"pattern": r"^https?://[a-z0-9.\-]+(:[0-9]{1,5})?(/[!-~]*)?$"}),
    AfterValidator(_as_webhook),
]


class WebhookEndpoint(Model):
    """A registered endpoint, without its secret. Times are Unix seconds.

    `tenant` None: the operator's, which hears of all tenants. `off`: why it was switched off, None while it is on.
    `delivered` and `failed` count tries; `failing_since`: of the first that failed since one was taken.
    """

    id: str
    tenant: str | None = None
    url: str
    events: tuple[WebhookEvent, ...]
    created_at: float
    off: str | None = None
    delivered: int = 0
    failed: int = 0
    failing_since: float | None = None
    waiting: int = 0


class WebhookDelivery(Model):
    """One delivery. Times are Unix seconds. `number` counts the deliveries of its target, without gaps.

    `id` is the header `webhook-id`, the same at each try. `endpoint` None: its URL was named by the request. `status`
    and `error` are of the last try.
    """

    id: str
    endpoint: str | None = None
    tenant: str | None = None
    url: str
    event: WebhookEvent
    subject: str = Field(description="id of the job or batch")
    number: int
    state: DeliveryState
    tries: int = 0
    created_at: float
    next_at: float | None = None
    last_at: float | None = None
    status: int | None = None
    error: str | None = None


_URL: TypeAdapter[str] = TypeAdapter(WebhookUrl)


def webhook_url(given: str) -> str:
    """`given`, as a URL of a receiver. Raises: InputError."""
    try:
        return _URL.validate_python(given, strict=True)
    except ValidationError as error:
        fix = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise InputError("webhook", given, f"it {fix}" if fix.startswith(("is ", "holds ")) else fix) from None
