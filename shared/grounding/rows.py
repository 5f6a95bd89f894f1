"""A passage's tables, told row by row: what a claim says of one row is not held against the cells of another. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from shared.grounding.nearness import is_year
from shared.grounding.numbers import has_number
from shared.grounding.texts import TokenText, light_words
from shared.grounding.tokens import tokens_of
from shared.language import claim_pattern, derived, languages

_TABLE = re.compile(r"^[ \t]*\|.*\|[ \t]*\n[ \t]*\|[ \t:|-]+\|[ \t]*\n(?:[ \t]*\|.*(?:\n|\Z))+", re.MULTILINE)
_CELLS = re.compile(r"(?<!\\)\|")
_TWO = 2
#: Rows and columns that are read of one table.
_MOST_ROWS, _MOST_COLUMNS = 200, 24


class _Table(NamedTuple):
    """`text[start:end]` of a passage: the cells of the first row, and of those below it."""

    start: int
    end: int
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class _Named(NamedTuple):
    """A row that a claim names, by the claim's tokens `start`..`end`."""

    start: int
    end: int
    row: tuple[str, ...]


class Row(NamedTuple):
    """A passage with the rows that a claim names alone; what is wrong with them; whether they say all of the claim."""

    text: str
    objection: str = ""
    worked_out: bool = False


def told_by_rows(claim: TokenText, passage: str) -> Row:
    """The passage with those rows of its tables alone that the claim names, as sentences."""
    said, read, objection, worked_out = [], 0, "", False
    for table in _tables(passage) if "|" in passage else ():
        if not (named := _named(claim, table)):
            continue
        compared, worked_out = _compared(claim, table, named)
        objection = objection or _other_row(claim, named) or compared
        said += [passage[read : table.start], *(f"{_sentence(table.head, row)}\n" for row in _distinct(named))]
        read = table.end
    return Row("".join((*said, passage[read:])), objection, worked_out)


@lru_cache(maxsize=256)
def _tables(text: str) -> tuple[_Table, ...]:
    return tuple(_table(found) for found in _TABLE.finditer(text))


def table_rows(text: str) -> Iterator[tuple[int, int, str]]:
    """The rows of a text's tables as `text[start:end]`, each told as a sentence; of two columns without their heads."""
    for found in _TABLE.finditer(f"{text}\n"):
        start = found.start()
        table = _table(found)
        for number, line in enumerate(found[0].splitlines(keepends=True)[: len(table.rows) + _TWO]):
            if number >= _TWO:
                row = table.rows[number - _TWO]
                told = f"{': '.join(row)}." if len(row) <= _TWO else _sentence(table.head, row)
                yield start, start + len(line.rstrip()), told
            start += len(line)


def _table(found: re.Match[str]) -> _Table:
    lines = found[0].strip().split("\n")[: _MOST_ROWS + _TWO]
    head, rows = _cells(lines[0]), tuple(_cells(line) for line in lines[_TWO:])
    return _Table(*found.span(), head, rows)


def _cells(line: str) -> tuple[str, ...]:
    line = line.strip().removeprefix("|").removesuffix("|")
    return tuple(cell.strip() for cell in _CELLS.split(line)[:_MOST_COLUMNS])


def _named(claim: TokenText, table: _Table) -> list[_Named]:
    """The rows that a claim names by the first column of which it has a cell, in the claim's order."""
    for column in range(len(table.head)):
        found = [
            _Named(start, start + len(key.keys), row)
            for row in table.rows
            if column < len(row) and (key := tokens_of(row[column])).tokens and _names(key, column)
            for start in _places(claim.keys, key.keys)
        ]
        longest = [one for one in found if not any(_within(one, other) for other in found)]
        if longest:
            return sorted(longest)
    return []


def _names(key: TokenText, column: int) -> bool:
    """Whether a cell may name its row: by a word, or in the first column by a year."""
    values = [token.value for token in key.tokens]
    if all(value is not None for value in values):
        return not column and len(values) == 1 and values[0] is not None and is_year(values[0])
    return not column or any(token.name for token in key.tokens)


def _places(keys: Sequence[str], wanted: Sequence[str]) -> Iterator[int]:
    return (n for n in range(len(keys) - len(wanted) + 1) if keys[n : n + len(wanted)] == wanted)


def _within(one: _Named, other: _Named) -> bool:
    return other.start <= one.start and one.end <= other.end and one.end - one.start < other.end - other.start


def _distinct(named: Sequence[_Named]) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(one.row for one in named))


def _sentence(head: Sequence[str], row: Sequence[str]) -> str:
    """A row with the head of each cell before it."""
    return f"{row[0]}: {', '.join(f'{name.lower()} {cell}' for name, cell in zip(head[1:], row[1:], strict=False))}."


def _other_row(claim: TokenText, named: Sequence[_Named]) -> str:
    """Of several rows that a claim names, each number stands in the row named before it, or in their order."""
    rows, keys = _distinct(named), _keys(named)
    numbers = [n for n, token in enumerate(claim.tokens) if token.value is not None and n not in keys]
    listed = len(numbers) == len(named) and numbers[0] >= named[-1].end
    for count, place in enumerate(numbers if len(rows) > 1 else ()):
        holding = [row for row in rows if any(has_number(claim, place, tokens_of(cell)) for cell in row)]
        before = [one for one in named if one.end <= place]
        own = named[count] if listed else (before or named)[-1 if before else 0]
        if holding and own.row not in holding:
            token = claim.tokens[place]
            return f"{claim.text[token.start : token.end]} stands in the row of “{holding[0][0]}”"
    return ""


def _keys(named: Sequence[_Named]) -> set[int]:
    return {place for one in named for place in range(one.start, one.end)}


def _compared(claim: TokenText, table: _Table, named: Sequence[_Named]) -> tuple[str, bool]:
    """What is wrong where a claim sets one row against another or against all; whether that is all it says."""
    rows = _distinct(named)
    word, wanted = _degree(claim.low, most=len(rows) == 1)
    units = {claim.units[n] for n in range(len(claim.units)) if n not in _keys(named)} - {""}
    columns = _columns(table, units, claim.low)
    if word is None or len(columns) != 1 or len(rows) > _TWO or any(token.denies for token in claim.tokens):
        return "", False
    values = [_value(row, columns[0]) for row in (rows[0], *(rows[1:] or table.rows))]
    known = [value for value in values if value is not None]
    if len(known) < len(values) or len({value.dimension for value in known}) > 1:
        return "", False
    one, others = known[0].base, [value.base for value in known[1:]]
    name = table.head[columns[0]]
    if any((other > one) if wanted else (other < one) for other in others) or (len(rows) > 1 and one in others):
        return f"by “{name}” it is not “{word[0]}”", False
    spoken = {unit for unit in tokens_of(f"{word[0]} {table.head[0]} {name}").units if unit}
    rest = {unit for unit in units - spoken if unit not in light_words()}
    return "", all(_same_measure(unit, name) for unit in rest)


def _degree(low: str, *, most: bool) -> tuple[re.Match[str] | None, bool]:
    """The one word of a text that says that something is more or less, or most or least, and whether it is more."""
    names = ("greatest", "smallest") if most else ("greater", "lesser")
    found = [(word, name == names[0]) for name in names for word in [claim_pattern(name).search(low)] if word]
    return found[0] if len(found) == 1 else (None, False)


def _columns(table: _Table, units: set[str], low: str) -> list[int]:
    """The columns that a claim names by a word of their head, or else by one of the same measure."""
    heads = [(n, name) for n, name in enumerate(table.head) if n]
    named = [n for n, name in heads if not units.isdisjoint(unit for unit in tokens_of(name).units if unit)]
    return named or [n for n, name in heads if _same_measure(low, name)]


def _same_measure(low: str, name: str) -> bool:
    return any(words.search(low) and words.search(name.lower()) for words in _measures())


class _Value(NamedTuple):
    dimension: str
    base: Decimal


def _value(row: Sequence[str], column: int) -> _Value | None:
    """The one number of a cell, in the base of its unit."""
    cell = tokens_of(row[column]) if column < len(row) else tokens_of("")
    places = [n for n, token in enumerate(cell.tokens) if token.value is not None]
    value = cell.tokens[places[0]].value if len(places) == 1 else None
    unit = cell.counted.get(places[0]) if len(places) == 1 else None
    if value is None:
        return None
    return _Value(unit.dimension, value * unit.factor) if unit else _Value("", value)


@derived
def _measures() -> list[re.Pattern[str]]:
    return [re.compile(words) for language in languages() for words in language.claims.measured]
