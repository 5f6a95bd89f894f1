"""Puts questions into batches: each line is entered once, with its job, however often a client is killed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import Context, copy_context
from functools import partial
from typing import Any

from orchestrator.intake import (
    BatchFullError,
    BatchLine,
    QuestionInput,
    as_budget,
    as_request,
    check_prices,
    number_questions,
)  # fmt: skip
from orchestrator.retries.retry import pages
from orchestrator.submitting import Submitter
from orchestrator.webhooks.endpoints import Webhooks
from shared.errors import InputError
from shared.jobs import JobStore, new_id
from shared.jobs.admission import KEY_OF_ANOTHER
from shared.jobs.lines import NewLine, Page
from shared.models.batch import BatchPosition, BatchSource, LineKind, LineRecord
from shared.models.cost import Budget
from shared.settings import Settings
from shared.tracing.spans import span

_SHOWN = 200
#: Lines that one script enters: it keeps Redis for a few milliseconds.
_PAGE = 200
_PageUnderWay = tuple[Page, Callable[[], list[LineRecord]]]


class BatchIntake:
    """Fills batches. Those that it opens are `tenant`'s (None: nobody's): all that is put into them is of that tenant.

    Every method may raise redis.exceptions.RedisError.
    """

    def __init__(self, jobs: JobStore, submitter: Submitter, settings: Settings, tenant: str | None) -> None:
        self._jobs, self._submitter, self._settings, self._tenant = jobs, submitter, settings, tenant

    def open(
        self,
        budget: Budget | Mapping[str, Any] | None,
        source: BatchSource | None,
        webhook: str | None = None,
        key: str | None = None,
    ) -> str:
        """An empty batch, or the one that has this key.

        Raises: InputError for a budget that cannot be kept, or a webhook that cannot be called.
        """
        limits = as_budget(budget or {})
        check_prices(limits, self._settings)
        if webhook is not None:
            Webhooks(self._jobs.client, self._settings, self._tenant).check_named(webhook)
        return self._jobs.batches.open(new_id(), limits, source, key=key, tenant=self._tenant, webhook=webhook)

    def add(
        self, batch_id: str, questions: Iterable[QuestionInput], defaults: Mapping[str, Any]
    ) -> Iterator[LineRecord]:
        """Enter questions of a program, as lines behind those that are there. As `read`."""
        position = self._jobs.batches.position(batch_id)
        lines = number_questions(questions, defaults, position, position.tenant)
        yield from self._enter(batch_id, position, lines)

    def read(self, batch_id: str, lines: Iterable[BatchLine]) -> Iterator[LineRecord]:
        """Enter the lines of a file, from its first one on: those that were entered before are passed over.

        Page by page with flat memory; yields the record of each line that is not blank, in their order. Raises:
        NotFoundError, InputError when the lines are not those that were entered before, BatchCancelledError,
        BatchFullError when too many jobs wait.
        """
        position = self._jobs.batches.position(batch_id)
        yield from self._enter(batch_id, position, _following(batch_id, position, lines))

    def _enter(self, batch_id: str, position: BatchPosition, lines: Iterable[BatchLine]) -> Iterator[LineRecord]:
        """Page by page: while Redis takes one, the next one is read and checked."""
        under_way: _PageUnderWay | None = None
        try:
            for page, context in self._pages(batch_id, position, lines):
                before, under_way = under_way, None
                yield from _entered(batch_id, before)
                under_way = page, partial(context.run, context.run(self._submitter.send, batch_id, page))
        finally:  # where the lines break off, what was sent before is told all the same
            yield from _entered(batch_id, under_way)

    def _pages(
        self, batch_id: str, position: BatchPosition, lines: Iterable[BatchLine]
    ) -> Iterator[tuple[Page, Context]]:
        """Each page with the context of its span, which its jobs link to and in which it is sent."""
        read, digest = position.read, position.digest
        for page in pages(lines, _PAGE):
            with span("batch page", attributes={"ramify.batch_id": batch_id, "ramify.lines": len(page)}):
                new = [self._new(batch_id, line, position.tenant) for line in page if line.request or line.rejected]
                context = copy_context()
            last = page[-1]
            yield Page(read, digest, last.line, last.digest, new, blank=len(page) - len(new)), context
            read, digest = last.line, last.digest

    def _new(self, batch_id: str, line: BatchLine, tenant: str | None) -> NewLine:
        number, own_id, meta = line.line, line.id, line.meta
        if line.rejected:
            return NewLine(number, None, own_id, meta, reason=line.rejected.reason, text=line.rejected.text)
        if line.request is None:
            return NewLine(number, None, own_id, meta)
        key = line.request.idempotency_key
        try:
            request = self._submitter.checked(as_request(line.request, tenant=tenant))
        except InputError as error:
            return NewLine(number, None, own_id, meta, key, str(error), line.request.question[:_SHOWN])
        return NewLine(number, self._jobs.new_job(new_id(), request, batch_id=batch_id), own_id, meta, key)


def _entered(batch_id: str, under_way: _PageUnderWay | None) -> Iterator[LineRecord]:
    """The records of a page, once it is entered. Raises: BatchFullError behind them, and what entering it raised."""
    if under_way is None:
        return
    page, entering = under_way
    records = entering()
    yield from records
    refused = [
        record
        for line, record in zip(page.lines, records, strict=True)
        if line.job and record.kind is LineKind.REJECTED and record.reason != KEY_OF_ANOTHER
    ]
    if refused:
        raise BatchFullError(refused[0].reason or "", batch_id, tuple(record.line for record in refused))


def _following(batch_id: str, position: BatchPosition, lines: Iterable[BatchLine]) -> Iterator[BatchLine]:
    """The lines that were not entered before. Raises: InputError when those before them are others."""
    last = 0
    for line in lines:
        last = line.line
        if last == position.read and line.digest != position.digest:
            raise _other_lines(batch_id, position)
        if last > position.read:
            yield line
    if last < position.read:
        raise _other_lines(batch_id, position)


def _other_lines(batch_id: str, position: BatchPosition) -> InputError:
    fix = f"its first {position.read} lines are not those that batch {batch_id} was made of: go on with the same lines"
    return InputError("lines", position.source.name, fix)
