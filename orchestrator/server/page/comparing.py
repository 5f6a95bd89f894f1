"""Two answers side by side: what differs in text, plan and results. The comparison is pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from http import HTTPStatus

from fastapi import APIRouter
from fastapi.responses import Response

from orchestrator.server.page.visitor import PageRoute, Reader
from orchestrator.text_lines import one_line
from shared.errors import NotRunningError, RamifyError
from shared.models import Answer, MergedHit, NodeKind

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_RECENT = 50
#: Words and marks of a text that are compared, at most: the comparison is quadratic.
_MOST_WORDS = 4_000
_WORDS = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+|\s+|.", re.DOTALL)
_ORDER = {"went": 0, "came": 1, "moved": 2, "same": 3}
Pieces = tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class Side:
    """One of the two runs."""

    job_id: str
    question: str
    strategy: str
    planner: str
    coverage: str
    ms: float | None
    calls: int
    tokens: int


@dataclass(frozen=True)
class ResultChange:
    """One passage: its places (from 1) in both runs; None: it is not in that one."""

    change: str
    chunk_id: str
    doc_id: str
    title: str
    path: str
    before: int | None
    after: int | None


@dataclass(frozen=True)
class Comparison:
    """Two runs. `texts`: both answers in pieces, each with whether only this one has it; `queries` by what changed."""

    sides: tuple[Side, Side]
    texts: tuple[Pieces, Pieces]
    queries: list[tuple[str, str]]
    results: list[ResultChange]

    @property
    def counts(self) -> dict[str, int]:
        """How many results came, went, moved and stayed."""
        counter = Counter(one.change for one in self.results)
        return {name: counter[name] for name in _ORDER}


def compared(one: Answer, other: Answer) -> Comparison:
    """The comparison of two answers."""
    return Comparison(
        sides=(_side(one), _side(other)),
        texts=differing(one.summary.text, other.summary.text),
        queries=_queries(_asked(one), _asked(other)),
        results=_results(one.results, other.results),
    )


def _side(answer: Answer) -> Side:
    cost, route = answer.cost, answer.route
    return Side(
        answer.job_id, answer.question, route.strategy if route else "", route.planner.value if route else "",
        answer.coverage, answer.timings_ms.get("total"), cost.llm_calls,
        cost.llm_tokens_in + cost.llm_tokens_out + cost.embed_tokens,
    )  # fmt: skip


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


def _asked(answer: Answer) -> list[str]:
    """What its leaves searched."""
    return list(dict.fromkeys(one_line(node.query) for node in answer.tree if node.kind is NodeKind.LEAF))


def _queries(before: Sequence[str], after: Sequence[str]) -> list[tuple[str, str]]:
    found = [("same" if query in after else "went", query) for query in before]
    return found + [("came", query) for query in after if query not in before]


def _results(before: Sequence[MergedHit], after: Sequence[MergedHit]) -> list[ResultChange]:
    return sorted(_changes(before, after), key=lambda one: (_ORDER[one.change], one.after or one.before or 0))


def _changes(before: Sequence[MergedHit], after: Sequence[MergedHit]) -> Iterator[ResultChange]:
    places = [{hit.chunk_id: place for place, hit in enumerate(hits, 1)} for hits in (before, after)]
    for hit in {hit.chunk_id: hit for hit in (*before, *after)}.values():
        old, new = places[0].get(hit.chunk_id), places[1].get(hit.chunk_id)
        change = "came" if old is None else "went" if new is None else "same" if old == new else "moved"
        yield ResultChange(change, hit.chunk_id, hit.doc_id, hit.title, hit.path, old, new)


@router.get("/compare")
def compare(visitor: Reader, a: str = "", b: str = "") -> Response:
    """A form for two jobs, and what differs between their answers."""
    found, error, client = None, "", visitor.client
    if a and b:
        try:
            found = compared(client.result(a.strip()), client.result(b.strip()))
        except NotRunningError:
            raise
        except RamifyError as fault:
            error = str(fault)
    recent = [job for job in client.jobs(_RECENT, state="done") if job.ingest is None]
    status = HTTPStatus.UNPROCESSABLE_ENTITY if error else HTTPStatus.OK
    return visitor.page("compare.html", a=a, b=b, found=found, error=error, recent=recent, status=status)
