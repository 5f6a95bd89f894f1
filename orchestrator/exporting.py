"""Exports of a job or a batch, streamed, through a client."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.answered_lines import answered_lines
from orchestrator.client import Ramify
from orchestrator.records.export import KINDS, ExportFormat, ExportKind
from orchestrator.retries.retry import job_or_batch
from shared.errors import InputError
from shared.models import BatchStatus


def kind_of(given: str) -> ExportKind:
    """How a format is written. Raises: InputError with the known ones."""
    try:
        return KINDS[ExportFormat(given)]
    except ValueError:
        raise InputError("format", given, f"choose from {', '.join(ExportFormat)}") from None


def exported(client: Ramify, id_: str, kind: ExportKind) -> Iterator[str]:
    """The text of an export, in pieces. Raises: NotFoundError, NoAnswerError for a job without an answer."""
    found = job_or_batch(id_, client.status, client.batch_status)
    if isinstance(found, BatchStatus):
        yield from kind.batch(id_, answered_lines(client, id_))
    else:
        yield kind.answer(client.result(id_))
