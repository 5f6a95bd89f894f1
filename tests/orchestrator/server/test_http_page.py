"""docs/http.md has every route, with the sentence of its operation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from orchestrator.operations.registry import OPERATIONS

PAGE = Path(__file__).parents[3] / "docs" / "http.md"


def route_table() -> Iterator[str]:
    """The rows of the table of routes, by path."""
    rows = [(route, one) for one in OPERATIONS.values() for route in one.routes]
    for route, one in sorted(rows, key=lambda row: (row[0].path, row[0].method)):
        lines = ", as JSON lines" if one.rows and not route.by_hand else ""
        yield f"| `{route.method} {route.path.replace(':path', '')}` | {one.scope} | {one.description}{lines} |"


def test_the_page_has_each_route_with_its_scope_and_sentence() -> None:
    page = PAGE.read_text("utf-8")
    begin, end = page.index("| route |"), page.index("\n\n", page.index("| route |"))
    assert page[begin:end].splitlines()[2:] == list(route_table())
