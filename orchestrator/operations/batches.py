"""BatchList: listed, and told line by line: what became of each, what it cost, and its answer."""

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
from shared.models.batch import LineId, LineKind, LineReport

_NAMES = tuple(dict.fromkeys([*STATES, *LineKind]))


class BatchesInput(Model):
    """How many batches are listed."""

    limit: Limit = Field(default=20, description="how many")


class BatchList(Model):
    """BatchList with their accounts, newest first."""

    batches: tuple[BatchStatus, ...]


class BatchId(Model):
    """One batch."""

    id: Id = Field(description="of a batch")


class EnteredLine(Model):
    """What became of a line of a batch when it was entered, and which job answers it. The fields are as in its report.

    `reason`: why it was rejected; `text`: how it begins.
    """

    line: int
    kind: LineKind
    job_id: str | None = None
    id: LineId | None = None
    meta: dict[str, Any] | None = None
    key: str | None = None
    reason: str | None = None
    text: str | None = None


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


def _lines(client: Ramify, given: BatchId) -> Iterator[EnteredLine]:
    for record in client.batch_lines(given.id):
        fields = dict(record)
        yield EnteredLine(line=fields.pop("number"), **fields)


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
        "batch_lines", BatchId, EnteredLine, _lines, rows=True, routes=(HttpRoute("GET", "/v1/batches/{id}/lines"),)
    ),
    Operation(
        "batch_results", BatchId, AnsweredLine, _results, command="result", rows=True,
        routes=(HttpRoute("GET", "/v1/batches/{id}/results"),),
    ),
)  # fmt: skip
