"""Checks what callers hand in: questions, batches of them as JSON Lines, and budgets. Submits nothing."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn

from pydantic import Field, ValidationError

from orchestrator.planning.plan_file import as_plan, plan_fields
from shared.errors import InputError, LaneFullError
from shared.models import JobRequest, Lane
from shared.models.base import Model
from shared.models.batch import BatchPosition, LineId
from shared.models.cost import Budget
from shared.providers.metering import Kind, no_price, price
from shared.settings import Settings
from shared.settings.faults import json_fault, request_fault
from shared.tenants import bound_tenant

MAX_LINE_BYTES = 64_000
#: Of what a caller gives back with a line's answer, as JSON.
MAX_ID_BYTES, MAX_META_BYTES = 400, 8_000
_MOST_BYTES = {"id": MAX_ID_BYTES, "meta": MAX_META_BYTES}
#: Characters of a line that are shown.
_START = 200
_READ = 1 << 16
_NO_NUMBERS = frozenset({"NaN", "Infinity", "-Infinity"})
_PIECE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


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

    `lines`: the numbers of those that were not taken, up to where reading stopped; each is counted as rejected.
    """

    def __init__(self, reason: str, batch_id: str, lines: tuple[int, ...]) -> None:
        self.reason, self.batch_id, self.lines = reason, batch_id, lines
        super().__init__(f"{reason}; batch {batch_id} holds what was taken before", [])


class BatchLine(NamedTuple):
    """A line that was read: its number from 1, the digest of all lines up to it, and its question, if it has one.

    Without a request and a rejection it is blank. `id`, `meta`: what the caller wrote beside the question.
    """

    line: int
    digest: str
    request: JobRequest | None = None
    rejected: Rejected | None = None
    id: LineId | None = None
    meta: dict[str, Any] | None = None


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
        return _of_tenant(_of_caller(question), tenant)
    if isinstance(question, str):
        fields: dict[str, Any] = {**(defaults or {}), "question": question}
    elif isinstance(question, Mapping):
        fields = {**(defaults or {}), **question}
    else:
        raise InputError("question", question, "give a string or an object with a question")
    fields = _with_plan(fields)
    try:
        return _of_tenant(_of_caller(JobRequest.model_validate(fields)), tenant)
    except ValidationError as error:
        raise request_fault(error) from None


def _of_caller(request: JobRequest) -> JobRequest:
    """Raises: InputError for a request to put documents in, or to replay: the client makes those itself."""
    if request.replay is not None:
        raise InputError("replay", request.replay.of, "an answer is replayed by `ramify replay`")
    if request.ingest is not None:
        raise InputError(
            "ingest", request.ingest.sources, "documents come in by `ramify ingest`, `upsert` and `delete`"
        )
    return request


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
) -> Iterator[BatchLine]:
    """Every line of a file, blank ones too. Lines use the batch lane by default. `tenant` as for `as_request`."""
    digest = ""
    for number, raw in enumerate(lines, 1):
        digest = _chained(digest, raw)
        if _is_blank(raw):
            yield BatchLine(line=number, digest=digest)
            continue
        start = raw[:_START].decode("utf-8", errors="replace").rstrip("\r\n")
        try:
            value = _question(raw)
        except InputError as error:
            yield _rejected(number, digest, error, start)
        else:
            yield _line(number, digest, value, start, defaults, tenant)


def until_question(lines: Iterator[BatchLine], most: int | None = None) -> tuple[list[BatchLine], bool]:
    """The next lines up to the first question, and whether it came; `most` lines without one count as if it would."""
    before = list[BatchLine]()
    for line in lines:
        before.append(line)
        if line.request or len(before) == most:
            return before, True
    return before, False


def _is_blank(raw: bytes) -> bool:
    """Nothing but white space of any script."""
    return not raw.strip() or not raw.decode("utf-8-sig", "replace").strip()


def number_questions(
    questions: Iterable[QuestionInput], defaults: Mapping[str, Any], after: BatchPosition, tenant: str | None = None
) -> Iterator[BatchLine]:
    """Questions of a program as lines behind those that were read before. The rest as for `read_questions`."""
    digest = after.digest
    for number, item in enumerate(questions, after.read + 1):
        shown = item.written() if isinstance(item, JobRequest) else json.dumps(item, default=str)
        digest = _chained(digest, shown.encode("utf-8", "replace"))
        yield _line(number, digest, item, shown[:_START], defaults, tenant)


def _line(  # noqa: PLR0913, PLR0917 - what a line is made of
    number: int,
    digest: str,
    value: QuestionInput,
    start: str,
    defaults: Mapping[str, Any] | None,
    tenant: str | None,
) -> BatchLine:
    mine: dict[str, Any] = {}
    try:
        if isinstance(value, Mapping):
            value, mine = _without_own(value)
        request = as_request(value, {"lane": Lane.BATCH, **(defaults or {})}, tenant)
    except InputError as error:
        return _rejected(number, digest, error, start, **mine)
    return BatchLine(line=number, digest=digest, request=request, **mine)


def _rejected(number: int, digest: str, error: InputError, start: str, **mine: Any) -> BatchLine:
    rejected = Rejected(line=number, reason=str(error), text=start.encode("utf-8", "replace").decode())
    return BatchLine(line=number, digest=digest, rejected=rejected, **mine)


def _without_own(fields: Mapping[str, Any]) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """The fields of a request, and the caller's own `id` and `meta`. Raises: InputError for one that cannot be kept."""
    mine = {name: fields[name] for name in _MOST_BYTES if fields.get(name) is not None}
    if not mine:
        return {name: value for name, value in fields.items() if name not in _MOST_BYTES}, mine
    own_id, meta = mine.get("id", ""), mine.get("meta", {})
    is_number = isinstance(own_id, int | float) and not isinstance(own_id, bool)
    if not is_number and not isinstance(own_id, str):
        raise InputError("id", own_id, "write a text or a number")
    if not isinstance(meta, Mapping):
        raise InputError("meta", meta, "write an object")
    for name, value in mine.items():
        try:
            written = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
            size = len(value.encode()) if isinstance(value, str) else len(written)
        except (ValueError, TypeError, RecursionError):  # half a surrogate pair, infinity, an object of Python's
            raise InputError(name, value, "it cannot be written as JSON in UTF-8") from None
        if size > _MOST_BYTES[name]:
            raise InputError(name, f"{size} bytes", f"it may have {_MOST_BYTES[name]} bytes")
    return {name: value for name, value in fields.items() if name not in _MOST_BYTES}, mine


def _chained(digest: str, raw: bytes) -> str:
    """The digest of all lines, from that of the lines before and this one."""
    return hashlib.sha256(digest.encode() + raw).hexdigest()[:32]


def _question(raw: bytes) -> str | Mapping[str, Any]:
    """One line: a JSON object, a JSON string, or else a plain question as it stands."""
    if len(raw) > MAX_LINE_BYTES:
        raise InputError("line", f"{len(raw)} bytes", f"a line may have {MAX_LINE_BYTES} bytes")
    try:
        text = raw.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise InputError("line", f"byte {error.start}", "it is not UTF-8: convert the file with iconv") from None
    if text[:1] not in _JSON_BEGINS:
        return text
    try:
        value = _JSON.decode(text)
    except (ValueError, RecursionError) as error:
        if text in _NO_NUMBERS:
            raise _no_question(text) from None
        if text[:1] not in '{["':
            return text
        fault = str(error) if isinstance(error, _NoNumberError) else json_fault(error)
        raise InputError("line", text, f"write valid JSON ({fault})") from None
    if isinstance(value, str | dict):
        return value
    raise _no_question(text)


def _no_question(text: str) -> InputError:
    return InputError("line", text, 'it is no question: write a sentence, or an object with a "question"')


class _NoNumberError(ValueError):
    """NaN or Infinity, which Python reads beside JSON."""


def _no_number(name: str) -> NoReturn:
    raise _NoNumberError(f"{name} is no number in JSON")


_JSON = json.JSONDecoder(parse_constant=_no_number)
#: What a value in JSON may begin with.
_JSON_BEGINS = frozenset('{["-0123456789tfnNI')


def bounded_lines(handle: Any, most_bytes: int = MAX_LINE_BYTES) -> Iterator[bytes]:
    """Lines of a binary file with flat memory, whatever ends them (LF, CRLF, CR).

    Of a line of more than `most_bytes` only the beginning is kept, which is one byte longer.
    """
    line, carried = bytearray(), b""  # grows in place: bytes would be copied for each block
    while block := handle.read1(_READ):
        data = carried + block
        carried = b"\r" if data.endswith(b"\r") else b""  # an LF may follow
        for piece in _PIECE.findall(data.removesuffix(carried)):
            line += piece[: most_bytes + 1 - len(line)]
            if piece.endswith((b"\r", b"\n")):
                yield bytes(line)
                line.clear()
    if line or carried:
        yield bytes(line) + carried


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
