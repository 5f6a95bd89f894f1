"""Pages of batches: their accounts, their lines, filtered and page by page, and their answers as a file."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import RedirectResponse, Response

from orchestrator.access.caller import Scope
from orchestrator.answered_lines import answered_lines
from orchestrator.client import Ramify
from orchestrator.out_formats import format_of
from orchestrator.server.page.questions import download
from orchestrator.server.page.visitor import AskVisitor, PageRoute, ReadVisitor, Visitor
from orchestrator.server.routes import client_of
from shared.models.batch import LineReport

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_BATCHES, _PAGE = 50, 50
#: Batches of all tenants among which an operator's are sought.
_LOOKED_THROUGH = 500
#: Lines that one page of a filtered list looks at, and how many of them are read at a time.
_LOOKED_AT, _STRIDE = 5_000, 500


def _operator(visitor: Visitor) -> Ramify | None:
    """A client of all tenants, for who operates them."""
    caller = visitor.caller
    return client_of(visitor.request, caller, Scope.ADMIN) if Scope.ADMIN in caller.scopes else None


def _client(visitor: Visitor, batch_id: str) -> Ramify:
    """For operators of all tenants where the batch is nobody's, as `ramify batch` opens them, and on this machine."""
    operator = _operator(visitor)
    if operator is None or (visitor.caller.remote and operator.batch_status(batch_id).tenant is not None):
        return visitor.client
    return operator


@router.get("/batches")
def listed(visitor: ReadVisitor) -> Response:
    """The newest batches."""
    operator = _operator(visitor)
    if operator is None:
        found = visitor.client.batches(_BATCHES)
    elif visitor.caller.remote:
        some = operator.batches(_LOOKED_THROUGH)
        found = [batch for batch in some if batch.tenant in {None, visitor.caller.tenant}][:_BATCHES]
    else:
        found = operator.batches(_BATCHES)
    return visitor.page("batches.html", batches=[visitor.told(batch) for batch in found])


@router.get("/batches/{batch_id}")
def one(
    visitor: ReadVisitor, batch_id: str, only: str = "", first: Annotated[int, Query(alias="from", ge=1, le=10**9)] = 1
) -> Response:
    """A batch's accounts, and its lines from `from` on, of one outcome or kind."""
    client = _client(visitor, batch_id)
    status = visitor.told(client.batch_status(batch_id))
    lines, following = _lines(client, batch_id, only, first, status.lines)
    return visitor.page("batch.html", batch=status, lines=lines, chosen=only, first=first, following=following)


def _lines(client: Ramify, batch_id: str, only: str, first: int, last: int) -> tuple[list[LineReport], int]:
    """Up to a page of lines, and the number of the line with which the next page begins (0: none)."""
    found = list[LineReport]()
    stride = _STRIDE if only else _PAGE
    for begin in range(first, min(last + 1, first + _LOOKED_AT), stride):
        for line in client.batch_report(batch_id, range(begin, min(last + 1, begin + stride))):
            if len(found) == _PAGE:
                return found, line.line
            if _wanted(line, only):
                found.append(line)
    behind = first + _LOOKED_AT
    return found, behind if behind <= last else 0


def _wanted(line: LineReport, only: str) -> bool:
    if only == "open":
        return line.job_id is not None and line.outcome is None
    return not only or only in {line.kind.value, line.state, line.outcome}


@router.get("/batches/{batch_id}/answers.{ending}")
def answers(visitor: ReadVisitor, batch_id: str, ending: str) -> Response:
    """All lines with their answers as a file: jsonl, csv or md."""
    written, client = format_of(Path(f"answers.{ending}")), _client(visitor, batch_id)
    found = answered_lines(client, batch_id)
    first = list(islice(found, 1))  # what is wrong with the batch is said before the file begins

    def lines() -> Iterator[str]:
        yield written.head(batch_id)
        for line in first:
            yield written.record(line)
        for line in found:
            yield written.record(line)

    return download(lines(), f"{batch_id}.{ending}", ending)


@router.get("/batches/{batch_id}/why")
def why(visitor: ReadVisitor, batch_id: str) -> Response:
    """What a batch waits for."""
    return visitor.page(
        "why.html", found=visitor.told(_client(visitor, batch_id).why(batch_id)), back=f"/batches/{batch_id}"
    )


@router.post("/batches/{batch_id}/cancel")
def cancel(visitor: AskVisitor, batch_id: str) -> Response:
    """End all open jobs of a batch."""
    _client(visitor, batch_id).cancel_batch(batch_id)
    return RedirectResponse(f"/batches/{batch_id}", HTTPStatus.SEE_OTHER)


@router.post("/batches/{batch_id}/retry")
def retry(visitor: AskVisitor, batch_id: str, *, degraded: bool = False) -> Response:
    """Try again what has no complete answer, or what was made without something; go to the new batch."""
    made = _client(visitor, batch_id).retry(batch_id, degraded=degraded)
    return RedirectResponse(f"/batches/{made.batch_id}", HTTPStatus.SEE_OTHER)
