"""Takes a batch that is sent: reads its lines as they come, enters them page by page, and goes on where it was cut."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol

from pydantic import Field

from orchestrator.client import Ramify
from orchestrator.intake import (
    BatchFullError,
    BatchLine,
    Rejected,
    as_budget,
    as_request,
    bounded_lines,
    check_prices,
    read_questions,
    until_question,
)  # fmt: skip
from shared.errors import InputError
from shared.models import Lane
from shared.models.base import Model
from shared.models.batch import BatchPosition, BatchSource, LineRecord
from shared.settings.faults import json_fault

#: Rejected lines that a response lists; the report of the batch has all.
MOST_REJECTS = 100
#: Lines without a question that are read before there is a batch, and that one post may have.
_LOOKED_AT, _MOST_USELESS = 1_000, 100_000
_NO_DEFAULTS = {"question", "idempotency_key", "plan", "subqueries", "typed"}


class PostedBatch(Model):
    """What was made of a posted batch. Of its `lines` each is `enqueued`, `known`, `duplicate`, `rejected` or `blank`.

    `entered_before`: lines that an earlier post with the same key had entered. `rejects`: the first of those that this
    post brought; `rejects_left_out` more are in the batch's report. `warning`: jobs will expire while they wait.
    """

    batch_id: str
    lines: int
    enqueued: int
    known: int
    duplicate: int
    rejected: int
    blank: int
    entered_before: int = 0
    rejects: tuple[Rejected, ...] = ()
    rejects_left_out: int = 0
    warning: str | None = None


class FullBatchError(BatchFullError):
    """As `BatchFullError`, with what was `taken`."""

    def __init__(self, full: BatchFullError, taken: PostedBatch, *, key: bool) -> None:
        self.taken = taken
        last = full.lines[-1] if full.lines else taken.lines
        way = f"post it again with the same Idempotency-Key: it goes on behind line {last:,}"
        super().__init__(full.reason, full.batch_id, full.lines)
        self.args = (f"{self}; {way}" if key else str(self),)


class PostedOptions(Model):
    """What holds for a whole batch: fields of each question that does not say otherwise, and what all may spend."""

    options: dict[str, Any] = Field(default_factory=dict, description="fields of a question, for each line")
    budget: dict[str, Any] = Field(default_factory=dict, description="what all of it may spend: max_calls ...")
    name: str = Field(default="", max_length=200, description="what the batch is called")
    webhook: str | None = Field(default=None, max_length=2_000, description="is told when all of its jobs have ended")

    def check(self, client: Ramify) -> None:
        """Raises: InputError for an option that no line could take, and for a budget that cannot be kept."""
        for name in _NO_DEFAULTS & self.options.keys():
            raise InputError(name, self.options[name], "it stands with each line, not with the batch")
        check_prices(as_request("?", {"lane": Lane.BATCH, **self.options}, client.tenant), client.settings)
        check_prices(as_budget(self.budget), client.settings)


class Readable(Protocol):
    """What lines are read from."""

    def read1(self, size: int = -1, /) -> bytes:
        """Some bytes; none at the end."""


def json_lines(body: bytes) -> tuple[list[bytes], Mapping[str, Any]]:
    """The questions of a JSON body as lines, and what stands beside them: an array, or an object with `questions`.

    Raises: InputError.
    """
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InputError("body", "JSON", f"write valid JSON ({json_fault(error)})") from None
    beside = {name: value for name, value in given.items() if name != "questions"} if isinstance(given, dict) else {}
    questions = given.get("questions") if isinstance(given, dict) else given
    if not isinstance(questions, list):
        raise InputError("questions", questions, 'write an array of questions, or {"questions": [...]}')
    return [json.dumps(question).encode() + b"\n" for question in questions], beside


@dataclass
class BatchPost:
    """One post of a batch. `key`: with the same one the same batch goes on."""

    client: Ramify
    given: PostedOptions
    key: str | None = None
    _rejects: list[Rejected] = field(default_factory=list)
    _refused: int = 0

    def read(self, body: Readable) -> PostedBatch:
        """Enter JSON Lines as they come. Raises: as `take`."""
        return self.take(bounded_lines(body))

    def take(self, raw_lines: Iterable[bytes]) -> PostedBatch:
        """Enter lines as they come.

        Whatever it raises before the end leaves an open batch with what was entered. Raises: InputError,
        BatchCancelledError, FullBatchError.
        """
        self.given.check(self.client)
        lines = _with_question(_few_useless(read_questions(raw_lines, self.given.options, self.client.tenant)))
        source = BatchSource(name=self.given.name, defaults=self.given.options, options={"posted": True})
        batch_id = self.client.open_batch(self.given.budget, source, self.given.webhook, idempotency_key=self.key)
        before = self.client.resume_batch(batch_id)
        if before.source.defaults != source.defaults:
            fix = f"batch {batch_id} has this key and other options: repeat those, or choose another key"
            raise InputError("Idempotency-Key", self.key, fix)
        closed = self.client.batch_status(batch_id).closed_at is not None
        try:
            for record in self.client.read_into_batch(batch_id, _no_more(batch_id, before, lines) if closed else lines):
                self._note(record)
        except BatchFullError as full:
            raise FullBatchError(full, self._taken(batch_id, before.read), key=self.key is not None) from None
        if not closed:
            self.client.close_batch(batch_id)
        return self._taken(batch_id, before.read, self.client.too_slow(batch_id))

    def _note(self, record: LineRecord) -> None:
        if record.job_id:
            return
        self._refused += 1
        if len(self._rejects) < MOST_REJECTS:
            rejected = Rejected(line=record.line, reason=record.reason or "", text=record.text or "")
            self._rejects.append(rejected)

    def _taken(self, batch_id: str, before: int, warning: str | None = None) -> PostedBatch:
        status = self.client.batch_status(batch_id)
        names = ("lines", "enqueued", "known", "duplicate", "rejected", "blank")
        return PostedBatch(
            batch_id=batch_id,
            **{name: getattr(status, name) for name in names},
            entered_before=before,
            rejects=tuple(self._rejects),
            rejects_left_out=self._refused - len(self._rejects),
            warning=warning,
        )


def _few_useless(lines: Iterator[BatchLine]) -> Iterator[BatchLine]:
    """The same lines. Raises: InputError behind too many that are no question: some bytes of gzip are millions."""
    useless = 0
    for line in lines:
        useless += line.request is None
        if useless > _MOST_USELESS:
            fix = f"{_MOST_USELESS:,} of the lines before it are blank or no question: send others"
            raise InputError("body", f"line {line.line}", fix)
        yield line


def _with_question(lines: Iterator[BatchLine]) -> Iterator[BatchLine]:
    """The same lines. Raises: InputError, before there is a batch, where none of them is a question."""
    looked_at, found = until_question(lines, _LOOKED_AT)
    if found:
        return chain(looked_at, lines)
    first = next((line.rejected for line in looked_at if line.rejected), None)
    if first is None:
        raise InputError("body", "", "it holds no question: write one question or one JSON object a line")
    fix = f"none of its {len(looked_at)} lines is a question; line {first.line}: {first.reason}"
    raise InputError("body", first.text, fix)


def _no_more(batch_id: str, before: BatchPosition, lines: Iterator[BatchLine]) -> Iterator[BatchLine]:
    """The lines of a batch that was read to its end. Raises: InputError when there are more."""
    for line in lines:
        if line.line > before.read:
            fix = f"batch {batch_id} has this key and ends with line {before.read}: choose another key for more lines"
            raise InputError("body", f"line {line.line}", fix)
        yield line
