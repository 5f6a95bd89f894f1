"""Asks for the columns of a table and reads the reply (E3). The reply is untrusted: what cannot be read is refused."""

from __future__ import annotations

from collections.abc import Sequence

from shared.errors import ReplyError, shown
from shared.llm.prompts import escaped, filled
from shared.llm.xml_element import read_element


def extract_prompt(documents: Sequence[str], columns: Sequence[str]) -> str:
    """Asks for `columns` of `documents`, both numbered from 1."""
    return filled(
        "extract",
        {
            "columns": "\n".join(
                f'<column number="{number}">{escaped(column)}</column>' for number, column in enumerate(columns, 1)
            ),
            "documents": "\n".join(
                f'<document id="{number}">{escaped(text)}</document>' for number, text in enumerate(documents, 1)
            ),
        },
    )


def parse_rows(text: str, documents: int, columns: int) -> dict[tuple[int, int], str]:
    """(document, column), both from 1, -> value. Fields without a value, and repeated ones, are passed over.

    Raises: ReplyError when there is no <rows> element that can be read, or one names what was not asked for.
    """
    found: dict[tuple[int, int], str] = {}
    for row in read_element(text, "rows", "row"):
        document = _number(row.get("id"), documents, "row")
        for field in row:
            place = (document, _number(field.get("column"), columns, "field"))
            value = " ".join((field.text or "").split())
            if value:
                found.setdefault(place, value)
    return found


def _number(given: str | None, most: int, what: str) -> int:
    if given is None or not given.isdecimal() or len(given) > 4 or not 1 <= int(given) <= most:
        raise ReplyError(f"a <{what}> has the number {shown(given)}, but there are 1 to {most}")
    return int(given)
