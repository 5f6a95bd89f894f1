"""Batches: listed, and told line by line: what became of each, what it cost, and its answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Annotated, Any

from pydantic import Field

from orchestrator.answered_lines import answered_lines
from orchestrator.client import Ramify
from orchestrator.operations.jobs import Id, Limit
from orchestrator.operations.operation import HttpRoute, Operation
from orchestrator.out_formats import AnsweredLine
from shared.errors import InputError
from shared.jobs.job_list import OPEN, STATES
from shared.models import BatchStatus
from shared.models.base import Model
from shared.models.batch import LineKind, LineRecord, LineReport

_NAMES = tuple(dict.fromkeys([*STATES, *LineKind]))


class BatchesInput(Model):
    """How many batches are listed."""

    limit: Limit = Field(default=20, description="how many")


class BatchList(Model):
    """Batches with their accounts, newest first."""

    batches: tuple[BatchStatus, ...]


class BatchId(Model):
    """One batch."""

    id: Id = Field(description="of a batch")


class ReportInput(BatchId):
    """Which lines are reported."""

    state: tuple[Annotated[str, Field(json_schema_extra={"enum": list(_NAMES)})], ...] = Field(
        default=(), max_length=20, description="whose job is in one of these states, or ended so: failed, open ..."
    )


def check_states(field: str, states: Iterable[str]) -> None:
    """Raises: InputError for what is neither a state, nor an outcome, nor a kind of line."""
    for state in states:
        if state not in _NAMES:
            raise InputError(field, state, f"choose from {', '.join(_NAMES)}")


def wanted(lines: Iterable[LineReport], states: Collection[str]) -> Iterator[LineReport]:
    """Those that one of `states` fits; all, if there is none."""
    for line in lines:
        is_open = line.job_id is not None and line.outcome is None
        if not states or not {line.kind, line.state, line.outcome, OPEN if is_open else ""}.isdisjoint(states):
            yield line


def _batches(client: Ramify, given: BatchesInput) -> BatchList:
    return BatchList(batches=tuple(client.batches(given.limit)))


def _report(client: Ramify, given: ReportInput) -> Iterator[LineReport]:
    check_states("state", given.state)
    return wanted(client.batch_report(given.id), given.state)


def _lines(client: Ramify, given: BatchId) -> Iterator[LineRecord]:
    return client.batch_lines(given.id)


def _results(client: Ramify, given: BatchId) -> Iterator[AnsweredLine]:
    return answered_lines(client, given.id)


OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "batches", BatchesInput, BatchList, _batches, command="batches", routes=(HttpRoute("GET", "/v1/batches"),)
    ),
    Operation(
        "batch_report", ReportInput, LineReport, _report, command="batch report", rows=True,
        routes=(HttpRoute("GET", "/v1/batches/{id}/report"),),
    ),
    Operation(
        "batch_lines", BatchId, LineRecord, _lines, rows=True, routes=(HttpRoute("GET", "/v1/batches/{id}/lines"),)
    ),
    Operation(
        "batch_results", BatchId, AnsweredLine, _results, command="result", rows=True,
        routes=(HttpRoute("GET", "/v1/batches/{id}/results"),),
    ),
)  # fmt: skip
