"""Fills the columns of a list: from labelled lines, then by the LLM, whose values must stand in the document."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial

from shared.errors import RamifyError
from shared.language import reader_sentence
from shared.language.document_fields import entries
from shared.language.field_names import field_stem, other_forms, synonyms
from shared.language.sentences import sentences
from shared.language.text import plain, value_key
from shared.models import Cost
from shared.models.degraded import Degradation
from shared.models.enumeration import MAX_VALUE, ListRow
from shared.providers.fallbacks import fell_back, note_reason
from shared.providers.llm.client import LLM, spent
from shared.providers.llm.prompts import extract_prompt
from shared.providers.llm.replies import parse_rows
from shared.providers.llm.room import NO_ROOM, batches, room_beside
from shared.providers.time_shares import LEAST_S
from shared.settings import Settings
from shared.store.fields import FIELDS
from workers.display import plain_line
from workers.enumerate.document import ListedDocument
from workers.labelled import labelled, split_values

_LABEL_END = " *_|\t"


def columns_of(
    document: ListedDocument, columns: Sequence[str], also_called: Mapping[str, Sequence[str]] | None = None
) -> dict[str, str]:
    """Column -> value, for the columns that the document labels: the first label counts, or what lists may ask for."""
    wanted = {value_key(column): column for column in columns}
    others = {key: column for column, keys in (also_called or {}).items() for key in keys}
    wanted = _also_called(wanted) | others | wanted
    found: dict[str, str] = {}
    for chunk in document.in_order():
        if (column := wanted.get(value_key(chunk.heading.rpartition(">")[2]))) and column not in found:
            _put(found, column, next((one for one in sentences(chunk.text) if not one.lstrip().startswith("#")), ""))
        for line in chunk.text.splitlines() if len(found) < len(wanted) else ():
            for name, value in labelled(line):
                if (column := wanted.get(value_key(name))) and column not in found:
                    _put(found, column, value)
    for column, values in _stored(document, wanted).items():
        if not all(value in found.get(column, "") for value in values):
            found.pop(column, None)
            _put(found, column, reader_sentence("comma", values[0]).join(values))
    return found


def _also_called(wanted: Mapping[str, str]) -> dict[str, str]:
    """Key of another name of the same field -> column: "Owned by" for the column owner."""
    found: dict[str, str] = {}
    for key, column in wanted.items():
        for name in (*synonyms().get(key, ()), *other_forms(key), field_stem(key)):
            found.setdefault(name, column)
    return found


def _stored(document: ListedDocument, wanted: Mapping[str, str]) -> dict[str, list[str]]:
    """Column -> values among the fields of the document. Parts of a value, as "Ada" of "Ada and Bo", are left out."""
    found: dict[str, list[str]] = {}
    for name, value in entries(document.first.get(FIELDS) or ()):
        if column := wanted.get(value_key(name)):
            values = found.setdefault(column, [])
            if not any(value in split_values(other)[1:] for other in values):
                values.append(value)
    return found


def _put(found: dict[str, str], column: str, value: str) -> None:
    line = plain_line(value).strip(_LABEL_END)
    if line:
        found[column] = line if len(line) <= MAX_VALUE else f"{line[: MAX_VALUE - 1]}…"


class Extraction:
    """Fills one shard's rows by the LLM; counts the cost, the values that were dropped, and the warnings."""

    def __init__(self, llm: LLM, timeout_s: float, settings: Settings) -> None:
        self._llm, self._size, self._tokens = llm, settings.enumeration.llm_batch, settings.llm_prompt_tokens
        self._end = time.monotonic() + timeout_s
        self.cost, self.dropped = Cost(), 0
        self.warnings: list[str] = []

    def fill(self, rows: Sequence[tuple[ListRow, str]], columns: Sequence[str]) -> list[ListRow]:
        """The rows, each given with its text, with the LLM's values. A failed call ends it with a warning."""
        filled = [row for row, _ in rows]
        room, start, cut = room_beside(extract_prompt((), columns), self._tokens), 0, 0
        for texts in batches([text for _, text in rows], room, self._size):
            batch = rows[start : start + len(texts)]
            cut += sum(len(text) < len(whole) for text, (_, whole) in zip(texts, batch, strict=True))
            if time.monotonic() > self._end - LEAST_S:
                note_reason(Degradation.OUT_OF_TIME)
                self.warnings.append(f"No time was left to read the columns of {len(rows) - start} rows with the LLM.")
                break
            try:
                prompt = extract_prompt(texts, columns)
                read = partial(parse_rows, documents=len(batch), columns=len(columns))
                reply = self._llm.complete(prompt, timeout_s=self._end - time.monotonic(), check=read)
                self.cost += reply.cost
                found = read(reply.text)
            except RamifyError as error:
                fell_back("llm", error)
                self.cost += spent(error).cost
                reason = str(error).rstrip(".")
                self.warnings.append(f"The columns of {len(rows) - start} rows could not be read by the LLM: {reason}.")
                break
            for number, (row, text) in enumerate(batch, 1):
                filled[start + number - 1] = self._filled(row, text, number, found, columns)
            start += len(texts)
        if cut:
            self.warnings.append(f"Columns of {cut} rows were read without the ends of their texts: {NO_ROOM}.")
        return filled

    def _filled(
        self, row: ListRow, text: str, number: int, found: dict[tuple[int, int], str], columns: Sequence[str]
    ) -> ListRow:
        comparable, fields = _comparable(text), dict(row.fields)
        for place, column in enumerate(columns, 1):
            value = found.get((number, place))
            if value is None or column in fields:
                continue
            if len(value) <= MAX_VALUE and _comparable(value) in comparable:
                fields[column] = plain_line(value)
            else:
                self.dropped += 1
        return row.model_copy(update={"fields": fields})


def _comparable(text: str) -> str:
    return " ".join(plain(text).split())
