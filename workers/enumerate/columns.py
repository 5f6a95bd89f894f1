"""Reads columns off a document's own lines: "Owner: Ada", "| 负责人 | 张三 |", what stands below a heading. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from shared.models.enumeration import MAX_VALUE
from shared.plain import key
from shared.text import sentences
from workers.enumerate.document import Document
from workers.merge.display import one_line

_MAX_LINE = 400
_LABELLED = re.compile(
    r"[\s>*\-+|]{0,8}[*_]{0,2}(?P<name>[^:：|*_\n]{1,40})[*_]{0,2}\s?[:：|]\s?[*_]{0,2}\s?(?P<value>[^|\n]{1,300})"
)
_LABEL_END = " *_|\t"


def columns_of(document: Document, columns: Sequence[str]) -> dict[str, str]:
    """Column -> value, for the columns that the document labels; the first label counts."""
    wanted = {key(column): column for column in columns}
    found: dict[str, str] = {}
    for piece in document.in_order():
        if (column := wanted.get(key(piece.heading.rpartition(">")[2]))) and column not in found:
            _put(found, column, next((said for said in sentences(piece.text) if not said.lstrip().startswith("#")), ""))
        for line in piece.text.splitlines():
            if len(found) == len(wanted):
                return found
            labelled = _LABELLED.match(line[:_MAX_LINE])
            if labelled and (column := wanted.get(key(labelled["name"]))) and column not in found:
                _put(found, column, labelled["value"])
    return found


def _put(found: dict[str, str], column: str, value: str) -> None:
    line = one_line(value).strip(_LABEL_END)
    if line:
        found[column] = line if len(line) <= MAX_VALUE else f"{line[: MAX_VALUE - 1]}…"
