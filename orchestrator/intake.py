"""Checks what callers hand in: questions, batches of them as JSON Lines, and budgets. Submits nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import Field, ValidationError

from orchestrator.planning.plan_file import as_plan, plan_fields
from shared.errors import InputError, LaneFullError
from shared.models import JobRequest, Lane
from shared.models.base import Model
from shared.models.cost import Budget
from shared.providers.metering import Kind, no_price, price
from shared.settings import Settings
from shared.settings.faults import json_fault, request_fault
from shared.tenants import bound_tenant

MAX_LINE_BYTES = 64_000
_READ = 1 << 16


class Rejected(Model):
    """A line that cannot be taken: its number (from 1), why, and how it begins."""

    line: int = Field(ge=1)
    reason: str
    text: str


class Submitted(Model):
    """A batch as it was taken: its id, the job ids in order, and the questions that were refused.

    `warning`: that jobs of it will expire while they wait, see `Ramify.too_slow`.
    """

    batch_id: str
    job_ids: tuple[str, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    warning: str | None = None


class BatchFullError(LaneFullError):
    """Too many jobs waited before all of a batch was taken; what was taken before stays, in batch `batch_id`.

    `places`: which requests were not taken (from 0), up to where reading stopped.
    """

    def __init__(self, error: LaneFullError, batch_id: str, places: tuple[int, ...]) -> None:
        self.batch_id, self.places = batch_id, places
        super().__init__(f"{error}; batch {batch_id} holds what was taken before", error.refused)
        self.reason = str(error)


QuestionInput = str | Mapping[str, Any] | JobRequest


def as_request(
    question: QuestionInput, defaults: Mapping[str, Any] | None = None, tenant: str | None = None
) -> JobRequest:
    """A checked request from a plain string, an object or a request.

    Its `plan` (a PlanFile or the same as an object) gives subqueries, and what else of the request is not given.
    `tenant`: the only one that it may be of; None: any.
    Raises: InputError naming the field, the value and the fix.
    """
    if isinstance(question, JobRequest):
        return _of_tenant(question, tenant)
    if isinstance(question, str):
        fields: dict[str, Any] = {**(defaults or {}), "question": question}
    elif isinstance(question, Mapping):
        fields = {**(defaults or {}), **question}
    else:
        raise InputError("question", question, "give a string or an object with a question")
    fields = _with_plan(fields)
    try:
        return _of_tenant(JobRequest.model_validate(fields), tenant)
    except ValidationError as error:
        raise request_fault(error) from None


def _of_tenant(request: JobRequest, tenant: str | None) -> JobRequest:
    """The request as `tenant`'s, which it is where it names none. Raises: InputError when it names another one."""
    if tenant is None:
        return request
    named = request.tenant if "tenant" in request.model_fields_set else None
    return request.model_copy(update={"tenant": bound_tenant(tenant, named)})


def _with_plan(fields: dict[str, Any]) -> dict[str, Any]:
    given = fields.pop("plan", None)
    if given is None:
        return fields
    if fields.get("subqueries"):
        raise InputError("subqueries", fields["subqueries"], "there is a plan beside them: give one of the two")
    return {**plan_fields(as_plan(given)), **fields}


def read_questions(
    lines: Iterable[bytes], defaults: Mapping[str, Any] | None = None, tenant: str | None = None
) -> Iterator[tuple[int, JobRequest | Rejected]]:
    """(line number, request or rejection) for every line that is not blank. Lines use the batch lane by default.

    `tenant` as for `as_request`.
    """
    base = {"lane": Lane.BATCH, **(defaults or {})}
    for number, raw in enumerate(lines, 1):
        if not raw.strip():
            continue
        try:
            yield number, as_request(_question(raw), base, tenant)
        except InputError as error:
            start = raw[:200].decode("utf-8", errors="replace").rstrip("\r\n")
            yield number, Rejected(line=number, reason=str(error), text=start)


def _question(raw: bytes) -> str | Mapping[str, Any]:
    """One line: a JSON object, a JSON string, or else a plain question as it stands."""
    if len(raw) > MAX_LINE_BYTES:
        raise InputError("line", f"{len(raw)} bytes", f"a line may have {MAX_LINE_BYTES} bytes")
    try:
        text = raw.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise InputError("line", f"byte {error.start}", "it is not UTF-8: convert the file with iconv") from None
    if text[:1] not in '{["':
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("line", text, f"write valid JSON ({json_fault(error)})") from None
    if isinstance(value, str | dict):
        return value
    raise InputError("line", text, 'write an object with a "question", or a plain question')


def bounded_lines(handle: Any) -> Iterator[bytes]:
    """Lines of a binary file with flat memory: of a line that is too long only the beginning is kept."""
    while line := handle.readline(MAX_LINE_BYTES + 1):
        if not line.endswith(b"\n") and len(line) > MAX_LINE_BYTES:
            while (rest := handle.readline(_READ)) and not rest.endswith(b"\n"):
                pass
        yield line


def as_budget(given: Budget | Mapping[str, Any]) -> Budget:
    """A checked budget. Raises: InputError naming the limit."""
    if isinstance(given, Budget):
        return given
    try:
        return Budget.model_validate(given)
    except ValidationError as error:
        raise request_fault(error, "batch budget ") from None


def paid_models(settings: Settings) -> Iterator[tuple[Kind, str]]:
    """What a job may call on servers, by kind and model. Models that run in the workers cost nothing."""
    if settings.has_llm:
        yield "llm", settings.llm_model
        if settings.rerank.traits.llm and settings.rerank.model:
            yield "llm", settings.rerank.model
    if settings.embedding.traits.server:
        yield "embedding", settings.embedding.model
    if settings.rerank.traits.server:
        yield "rerank", settings.rerank.model


def check_prices(budget: Budget, settings: Settings) -> None:
    """Raises: InputError when money is limited and a model that may be called has no price."""
    if budget.max_cost is None:
        return
    for kind, model in paid_models(settings):
        if price(settings.prices, kind, model, (1, 1, 1)) is None:
            raise InputError("max_cost", budget.max_cost, no_price(kind, model))
