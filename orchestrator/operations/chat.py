"""Chat completions: a conversation asks the corpus. `run` waits for the job; the server follows it instead."""

from __future__ import annotations

import time
from typing import Any, NamedTuple
from uuid import uuid4

from orchestrator.access.caller import Scope
from orchestrator.client import Ramify
from orchestrator.operations.chat_reply import (
    ChatAbout,
    ChatChoice,
    ChatCompletion,
    ChatModel,
    ChatModels,
    ChatReply,
    about,
    nothing_to_look_up,
    reply_of,
    usage_of,
)  # fmt: skip
from orchestrator.operations.chat_request import ChatRequest, asked, model_names
from orchestrator.operations.operation import HttpRoute, Operation
from orchestrator.planning.intent import no_retrieval_reason
from shared.errors import NotFoundError
from shared.models import MAX_QUESTION_CHARS, Cost
from shared.models.base import Model


class ChatJob(NamedTuple):
    """What became of a request: the job that answers it, or at once the reply of one that needs none.

    `id`: of the completion; `question`: as it was asked, `namespace`: where it is looked up; `read`: what reading the
    conversation has cost; `base_url`: of the server that shows cited passages.
    """

    id: str
    model: str
    created: int
    question: str
    namespace: str
    job_id: str | None = None
    reply: ChatReply | None = None
    read: Cost = Cost()
    base_url: str = ""


class NoModelsInput(Model):
    """Nothing."""


class ChatModelInput(Model):
    """One model."""

    model: str


def begin(client: Ramify, given: ChatRequest) -> ChatJob:
    """Read the conversation and submit its question. Raises: InputError, NotFoundError, LaneFullError, RamifyError."""
    wanted = asked(given, client.settings.strategies)
    made = ChatJob(
        f"chatcmpl-{uuid4().hex}", given.model, int(time.time()), wanted.question, _namespace(wanted.options)
    )
    if no_retrieval_reason(wanted.question):
        return made._replace(reply=ChatReply(content=nothing_to_look_up(wanted.question)))
    question = wanted.question
    if wanted.session:
        intent = client.read_question(question, wanted.session)
        made = made._replace(read=intent.cost)
        if not intent.retrieval:
            return made._replace(reply=ChatReply(content=intent.reason))
        question = intent.standalone if len(intent.standalone) <= MAX_QUESTION_CHARS else question
    job_id = client.submit(question, **wanted.options)
    return made._replace(job_id=job_id, id=f"chatcmpl-{job_id}")


def completed(client: Ramify, job: ChatJob) -> ChatCompletion:
    """The completion of a job that has ended. Raises: RamifyError where it ended without an answer."""
    if job.job_id is None or job.reply is not None:
        reply, cost, said = job.reply or ChatReply(content=""), job.read, ChatAbout(question=job.question)
    else:
        answer = client.result(job.job_id)
        reply = reply_of(answer, job.question, job.namespace, job.base_url)
        cost, said = job.read + answer.cost, about(answer)
    choice = ChatChoice(message=reply)
    return ChatCompletion(
        id=job.id, created=job.created, model=job.model, choices=(choice,), usage=usage_of(cost), ramify=said
    )


def _namespace(options: Any) -> str:
    filters = options.get("filters")
    return str(filters.get("namespace", "default")) if isinstance(filters, dict) else "default"


def _chat(client: Ramify, given: ChatRequest) -> ChatCompletion:
    job = begin(client, given)
    if job.job_id:
        client.wait(job.job_id)
    return completed(client, job)


def _models(client: Ramify, _: NoModelsInput) -> ChatModels:
    return ChatModels(data=tuple(ChatModel(id=name) for name in model_names(client.settings.strategies)))


def _model(client: Ramify, given: ChatModelInput) -> ChatModel:
    if given.model not in model_names(client.settings.strategies):
        raise NotFoundError("model", given.model, "there is no such model: /v1/models lists all")
    return ChatModel(id=given.model)


OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "chat", ChatRequest, ChatCompletion, _chat, Scope.ASK, idempotent=False,
        routes=(HttpRoute("POST", "/v1/chat/completions", by_hand=True),),
    ),
    Operation("models", NoModelsInput, ChatModels, _models, routes=(HttpRoute("GET", "/v1/models", by_hand=True),)),
    Operation(
        "model", ChatModelInput, ChatModel, _model, routes=(HttpRoute("GET", "/v1/models/{model:path}", by_hand=True),)
    ),
)  # fmt: skip
