"""Reads the columns that no line of a document names with the LLM. A value must stand in its document."""

from __future__ import annotations

import time
from collections.abc import Sequence

from shared.errors import RamifyError
from shared.llm.client import LLM, spent
from shared.llm.prompts import extract_prompt
from shared.llm.replies import parse_rows
from shared.models import Cost
from shared.models.enumeration import MAX_VALUE, Row
from shared.plain import plain
from shared.settings import Settings
from workers.merge.display import one_line

_LEAST_TIME_S = 0.5


class Extraction:
    """The reading of one shard's rows: what it cost, what was left out, what went wrong."""

    def __init__(self, llm: LLM, timeout_s: float, settings: Settings) -> None:
        self._llm, self._size = llm, settings.enumeration.llm_batch
        self._end = time.monotonic() + timeout_s
        self.cost, self.dropped = Cost(), 0
        self.warnings: list[str] = []

    def fill(self, rows: Sequence[tuple[Row, str]], columns: Sequence[str]) -> list[Row]:
        """The rows, each given with its text, with what the model found. A failed call ends it with a warning."""
        filled = [row for row, _ in rows]
        for start in range(0, len(rows), self._size):
            batch = rows[start : start + self._size]
            if time.monotonic() > self._end - _LEAST_TIME_S:
                self.warnings.append(f"No time was left to read the columns of {len(rows) - start} rows with the LLM.")
                break
            try:
                found = self._ask([text for _, text in batch], columns)
            except RamifyError as error:
                reason = str(error).rstrip(".")
                self.warnings.append(f"The columns of {len(rows) - start} rows could not be read by the LLM: {reason}.")
                break
            for number, (row, text) in enumerate(batch, 1):
                filled[start + number - 1] = self._filled(row, text, number, found, columns)
        return filled

    def _filled(
        self, row: Row, text: str, number: int, found: dict[tuple[int, int], str], columns: Sequence[str]
    ) -> Row:
        stands = _plain(text)
        fields = dict(row.fields)
        for place, column in enumerate(columns, 1):
            value = found.get((number, place))
            if value is None or column in fields:
                continue
            if len(value) <= MAX_VALUE and _plain(value) in stands:
                fields[column] = one_line(value)
            else:
                self.dropped += 1
        return row.model_copy(update={"fields": fields})

    def _ask(self, texts: Sequence[str], columns: Sequence[str]) -> dict[tuple[int, int], str]:
        try:
            reply = self._llm.complete(extract_prompt(texts, columns), timeout_s=self._end - time.monotonic())
        except RamifyError as error:
            self.cost += spent(error).cost
            raise
        self.cost += reply.cost
        return parse_rows(reply.text, len(texts), len(columns))


def _plain(text: str) -> str:
    return " ".join(plain(text).split())
