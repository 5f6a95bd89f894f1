"""All rows of a list on stdout, one at a time (E3): JSON lines, or CSV that a spreadsheet opens without running it."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING

from orchestrator.cli import output
from orchestrator.cli.wording import clean

if TYPE_CHECKING:
    from orchestrator.client import Ramify
    from shared.models.enumeration import Row

_HEAD = ("number", "title", "path", "uri", "date", "kind", "tags", "sentence", "copy_of")
#: A cell that begins so is a formula to a spreadsheet.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_rows(client: Ramify, job_id: str, *, as_csv: bool) -> None:
    """Stream the rows of a job's list. Raises: NotFoundError, RamifyError without a list."""
    rows = client.rows(job_id)
    if not as_csv:
        for row in rows:
            output.line(row.model_dump(mode="json", exclude={"digest"}))
        return
    columns: tuple[str, ...] = ()
    table = client.result(job_id).table
    if table is not None:
        columns = table.columns
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([*_HEAD, *map(_cell, columns)])
    for number, row in enumerate(rows, 1):
        writer.writerow([str(number), *_cells(row), *(_cell(row.fields.get(column, "")) for column in columns)])


def _cells(row: Row) -> list[str]:
    copy_of = "" if row.copy_of is None else str(row.copy_of)
    texts = (row.title, row.path, row.uri, row.date or "", row.kind, "; ".join(row.tags), row.sentence, copy_of)
    return [_cell(text) for text in texts]


def _cell(text: str) -> str:
    said = " ".join(clean(text).split())
    return f"'{said}" if said.startswith(_FORMULA) else said
