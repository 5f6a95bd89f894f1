"""What comes or goes as a stream: events, batches of any size. Over HTTP their routes are written by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import Field

from orchestrator.access.caller import Scope
from orchestrator.client import Ramify
from orchestrator.operations.batch_post import BatchPost, PostedBatch, PostedOptions
from orchestrator.operations.jobs import Id
from orchestrator.operations.operation import HttpRoute, Operation
from shared.models import JobEvent
from shared.models.base import Model

_LAST_EVENT = {"after": "Last-Event-ID"}
_KEY = {"idempotency_key": "Idempotency-Key"}


class EventsInput(Model):
    """The events of one job or batch."""

    id: Id
    after: str = Field(default="", max_length=64, description="the id of the last event that is known")


class BatchInput(PostedOptions):
    """Questions, each a text or an object, and what holds for all of them."""

    questions: tuple[str | dict[str, Any], ...] = Field(
        min_length=1, description="over HTTP also as JSON Lines of any size"
    )
    idempotency_key: str | None = Field(default=None, min_length=1, max_length=200)


def _events(client: Ramify, given: EventsInput) -> Iterator[JobEvent]:
    return client.stream(given.id)


def _batch(client: Ramify, given: BatchInput) -> PostedBatch:
    options = PostedOptions(**{name: getattr(given, name) for name in PostedOptions.model_fields})
    lines = (json.dumps(question).encode() + b"\n" for question in given.questions)
    return BatchPost(client, options, given.idempotency_key).take(lines)


OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "events", EventsInput, JobEvent, _events, rows=True,
        routes=(
            HttpRoute("GET", "/v1/jobs/{id}/events", headers=_LAST_EVENT, by_hand=True),
            HttpRoute("GET", "/v1/batches/{id}/events", headers=_LAST_EVENT, by_hand=True),
        ),
    ),
    Operation(
        "batch", BatchInput, PostedBatch, _batch, Scope.ASK, command="batch", idempotent=False, long=True,
        routes=(
            HttpRoute("POST", "/v1/batches", 202, headers=_KEY, location="/v1/batches/{batch_id}", by_hand=True),
        ),
    ),
)  # fmt: skip
