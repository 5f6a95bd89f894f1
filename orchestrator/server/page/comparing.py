"""Two answers side by side: their records' differences, and their texts with what only one of them says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from http import HTTPStatus

from fastapi import APIRouter
from fastapi.responses import Response

from orchestrator.client import Ramify
from orchestrator.records.causes import compared
from orchestrator.records.diff import AnswerDifference
from orchestrator.server.page.markup import unmarked
from orchestrator.server.page.visitor import PageRoute, ReadVisitor
from shared.errors import NotRunningError, RamifyError
from shared.models import Answer

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_RECENT = 50
#: Words and marks of a text that are compared, at most: the comparison is quadratic.
_MOST_WORDS = 4_000
_WORDS = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+|\s+|.", re.DOTALL)
Pieces = tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class SideBySide:
    """Two runs. `texts`: both answers in pieces, each with whether only this one has it."""

    answers: tuple[Answer, Answer]
    texts: tuple[Pieces, Pieces]
    difference: AnswerDifference


def side_by_side(client: Ramify, one: str, other: str) -> SideBySide:
    """The answers of two jobs. Raises: NotFoundError; RamifyError where one has no answer."""
    a, b = client.result(one), client.result(other)
    found = compared(client.manifest(one), client.manifest(other))
    return SideBySide((a, b), differing(unmarked(a.summary.text), unmarked(b.summary.text)), found)


def differing(one: str, other: str) -> tuple[Pieces, Pieces]:
    """Both texts in pieces, each with whether only that text has it; by words, in Chinese by characters."""
    first, second = _WORDS.findall(one), _WORDS.findall(other)
    if max(len(first), len(second)) > _MOST_WORDS:
        return ((one, one != other),) if one else (), ((other, one != other),) if other else ()
    left, right = list[tuple[str, bool]](), list[tuple[str, bool]]()
    for tag, a, b, c, d in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        left += [("".join(first[a:b]), tag != "equal")] if b > a else []
        right += [("".join(second[c:d]), tag != "equal")] if d > c else []
    return tuple(left), tuple(right)


@router.get("/compare")
def compare(visitor: ReadVisitor, a: str = "", b: str = "") -> Response:
    """A form for two jobs, and what differs between their answers."""
    found, error, client = None, "", visitor.client
    if a and b:
        try:
            found = side_by_side(client, a.strip(), b.strip())
        except NotRunningError:
            raise
        except RamifyError as fault:
            error = str(fault)
    recent = [job for job in client.jobs(_RECENT, state="done") if job.ingest is None]
    status = HTTPStatus.UNPROCESSABLE_ENTITY if error else HTTPStatus.OK
    return visitor.page("compare.html", a=a, b=b, found=found, error=error, recent=recent, status=status)
