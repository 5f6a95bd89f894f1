"""Standing questions, kept, listed, explained, forgotten; and what people say of answers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from orchestrator.access.caller import Scope
from orchestrator.client import Ramify
from orchestrator.intake import as_request
from orchestrator.operations.operation import HttpRoute, Operation
from shared.jobs import reachable
from shared.models import Filters, SearchMode
from shared.models.base import Model
from shared.models.judgement import Judged, Judgement
from shared.models.request import Name, QuestionText
from shared.models.standing import (
    MAX_EVERY_S,
    MIN_EVERY_S,
    Notice,
    Notify,
    NotifyBy,
    StandingQuestion,
    StandingStatus,
)
from shared.models.webhook import WebhookUrl

_NOTICES = 20


class StandingInput(Model):
    """A question that is to be asked again, with the options that decide its answer. `webhook` is told of notices."""

    question: QuestionText
    mode: SearchMode | None = None
    strategy: Name | None = None
    decompose: bool = True
    summary: bool | None = None
    top_n: int | None = Field(default=None, ge=1, le=200)
    filters: Filters = Filters()
    every_s: float | None = Field(
        default=None, ge=MIN_EVERY_S, le=MAX_EVERY_S,
        description="asked anew each so many seconds; none: when the corpus changes what its answer is written from",
    )  # fmt: skip
    webhook: WebhookUrl | None = None


class StandingId(Model):
    """One standing question."""

    id: Annotated[str, Field(min_length=1, max_length=100)] = Field(description="of a standing question")


class StandingNothing(Model):
    """Nothing is asked for besides."""


class StandingList(Model):
    """Standing questions, the oldest first."""

    standing: tuple[StandingStatus, ...]


class StandingWhy(StandingStatus):
    """How far a standing question is, and its last notices, the newest first."""

    last_notices: tuple[Notice, ...] = ()


def _add(client: Ramify, given: StandingInput) -> StandingQuestion:
    own = given.model_fields_set - {"every_s", "webhook"}
    request = as_request({name: getattr(given, name) for name in own})
    notify = Notify(by=NotifyBy.WEBHOOK, target=given.webhook) if given.webhook else None
    return client.watch(request, every_s=given.every_s, notify=notify)


def _list(client: Ramify, _: StandingNothing) -> StandingList:
    with reachable(client.settings):
        return StandingList(standing=tuple(client.standing.all()))


def _why(client: Ramify, given: StandingId) -> StandingWhy:
    with reachable(client.settings):
        found = client.standing.get(given.id)
        return StandingWhy(**dict(found), last_notices=tuple(client.standing.notices(given.id, _NOTICES)))


def _remove(client: Ramify, given: StandingId) -> StandingStatus:
    with reachable(client.settings):
        return client.standing.remove(given.id)


class JudgeInput(Model):
    """What is said of an answer, or of `documents`: numbers of citations, or ids, paths or titles of results."""

    id: Annotated[str, Field(min_length=1, max_length=100)] = Field(description="of a job")
    verdict: Judged
    documents: tuple[Annotated[str, Field(min_length=1, max_length=1000)], ...] = Field(default=(), max_length=100)


def _judge(client: Ramify, given: JudgeInput) -> Judgement:
    return client.judge(given.id, given.verdict, documents=given.documents)


OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "watch_add", StandingInput, StandingQuestion, _add, Scope.ASK, command="watch add", idempotent=False,
        routes=(HttpRoute("POST", "/v1/standing", 201),),
    ),
    Operation(
        "watch_list", StandingNothing, StandingList, _list, command="watch list",
        routes=(HttpRoute("GET", "/v1/standing"),),
    ),
    Operation(
        "watch_why", StandingId, StandingWhy, _why, command="watch why",
        routes=(HttpRoute("GET", "/v1/standing/{id}"),),
    ),
    Operation(
        "watch_remove", StandingId, StandingStatus, _remove, Scope.ASK, command="watch remove",
        routes=(HttpRoute("DELETE", "/v1/standing/{id}"),),
    ),
    Operation(
        "judge", JudgeInput, Judgement, _judge, Scope.ASK, command="judge",
        routes=(HttpRoute("POST", "/v1/jobs/{id}/judgements"),),
    ),
)  # fmt: skip
