"""The fields of a document: what its front matter says, and its `Key: value` lines at its head or in blocks of such.

Prose with a colon is no field: a name has few words, a value few characters, and what is fenced is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from shared.language import derived, languages
from shared.language.document_fields import LOOKED_FOR, entry
from shared.language.text import is_han, value_key
from workers.display import plain_line
from workers.index.paragraphs import paragraphs
from workers.labelled import (
    MAX_NAME,
    Labelled,
    field,
    is_known,
    labelled,
    loosely_labelled,
    may_be_labelled,
    pairs_of_table,
    split_values,
    without_marks,
)

#: Values of one field, and entries of one document.
_MOST_VALUES, _MOST_ENTRIES = 16, 48
#: Mappings inside of each other in the front matter; what a mapping calls itself is the value of the field it is in.
_DEEPEST, _NAME_OF_IT = 2, "name"
#: Characters of a field of the front matter that are looked at.
_MOST_CHARS = 320
#: Rows of a table that says something of its document.
_MOST_ROWS = 12
#: A line in the middle of a text is a field only where its value is no sentence.
_SHORT_VALUE, _SHORT_WORDS = 60, 7
_SENTENCE_END = re.compile(r"[.!?。！？；;]$|[.!?]\s|[。！？]")
_FULL_STOP = re.compile(r"[.。]$")
#: Words of a value that stands below a heading that may be of any text, or in a list.
_FEW_WORDS = 4


def fields_of(front: Mapping[str, object], text: str) -> tuple[str, ...]:
    """The entries of a document to be stored; `front` is what of its front matter is nothing else, such as a tag."""
    found = _Fields(set(_never()))
    found.add(pair for name, given in front.items() for pair in _texts(name, given))
    found.close()
    for block in _blocks(text):
        found.add(block)
        found.close()
    return (LOOKED_FOR, *found.entries)


def said_at_head(text: str) -> dict[str, str]:
    """What the head of a text says in fields: name -> value, the first of each name."""
    return dict(reversed(next(_blocks(text), [])))


@derived
def _never() -> frozenset[str]:
    """Keys of names that stand for what every document has of its own: a value of them tells nothing of others."""
    tables = (language.words.sections.keys for language in languages())
    return frozenset(value_key(name) for keys in tables for field in ("title", "date") for name in keys.get(field, ()))


class _Fields:
    """Entries so far. The block that names a field first says what it is: later ones speak of parts."""

    def __init__(self, taken: set[str]) -> None:
        self._taken, self._here = taken, dict[str, int]()
        self.entries: dict[str, None] = {}

    def add(self, pairs: Iterable[Labelled]) -> None:
        """The fields of one block."""
        for name, value in pairs:
            key = value_key(name)
            if not key or key in self._taken:
                continue
            for each in split_values(value):
                if self._here.get(key, 0) < _MOST_VALUES and len(self.entries) < _MOST_ENTRIES:
                    self._here[key] = self._here.get(key, 0) + 1
                    self.entries.setdefault(entry(name, each))

    def close(self) -> None:
        """The block has ended."""
        self._taken |= self._here.keys()
        self._here.clear()


def _texts(name: str, given: object, depth: int = 0) -> Iterator[Labelled]:
    """The fields that one of the front matter holds: its values, and those of a mapping in it."""
    if len(name) > MAX_NAME:
        return
    for value in given if isinstance(given, Sequence) and not isinstance(given, str) else [given]:
        if isinstance(value, Mapping) and depth < _DEEPEST:
            for inner, part in value.items():
                yield from _texts(name if value_key(str(inner)) == _NAME_OF_IT else str(inner), part, depth + 1)
        elif isinstance(value, bool):
            yield Labelled(name, str(value).lower())
        elif isinstance(value, str | int | float):
            yield Labelled(name, plain_line(str(value)[:_MOST_CHARS]))


def _blocks(text: str) -> Iterator[list[Labelled]]:
    """The fields of each block of a text that is one; the first is its head, which may have gaps."""
    head, at_head, first = list[Labelled](), True, True
    for heading, lines in paragraphs(text):
        if below := _below(heading, lines):
            yield from (head, below)
            head = []
            continue
        leading, trailing, whole = _runs(lines, title=first, head=at_head)
        if at_head:
            head += leading
            at_head = whole or (first and len(lines) == 1)  # a title without a mark
            if not at_head:
                yield head
        elif leading:
            yield leading
        if trailing:
            yield trailing
        first = False
    if at_head:
        yield head


def _below(heading: str, lines: Sequence[str]) -> list[Labelled]:
    """The field that a heading names, where nothing but its value stands directly below: a phrase, or a list."""
    if not heading:
        return []
    values = [without_marks(line) for line in lines]
    if any(len(value) > _SHORT_VALUE + 1 or not value[:1].isalnum() for value in values) or any(map(labelled, lines)):
        return []
    fits = all(_words(value) <= _FEW_WORDS for value in values)
    if is_known(heading):
        values = [_FULL_STOP.sub("", value) for value in values]
        fits = fits or len(values) == 1
    else:
        fits = fits and values == [lines[0].strip()]
    fits = fits and all(map(_is_short, values))
    return [pair for value in values for pair in (field(heading, value),) if pair] if fits else []


def _runs(lines: Sequence[str], *, title: bool, head: bool) -> tuple[list[Labelled], list[Labelled], bool]:
    """The fields at the beginning of a paragraph, those behind it, and whether it has nothing else.

    In the middle of it a line is one where its name is known.
    """
    if lines[0].lstrip().startswith("|"):
        return (pairs_of_table(lines) if len(lines) <= _MOST_ROWS else []), [], True
    if not any(map(may_be_labelled, lines)):
        return [], [], False
    fits = _is_phrase if head else _is_short
    each = [[pair for pair in labelled(line) if fits(pair.value)] for line in lines]
    each = _with_loose(lines, each)
    if title and len(each) > 1 and not each[0]:
        del each[0]
    first = next((place for place, pairs in enumerate(each) if not pairs), len(each))
    last = next((place for place in range(len(each), first, -1) if not each[place - 1]), first)
    known = first > 0 and is_known(each[0][0].name)
    leading = each[:first] if head or known or first > 1 or first == len(each) else []
    middle = ([pair for pair in pairs if is_known(pair.name)] for pairs in each[first:last])
    trailing = [pair for pairs in (*middle, *each[last:]) for pair in pairs if _is_short(pair.value)]
    return [*chain.from_iterable(leading)], trailing, first == len(each)


def _with_loose(lines: Sequence[str], each: list[list[Labelled]]) -> list[list[Labelled]]:
    """The same with lines such as "Owner - Ada", where the name of one that stands beside them is known."""
    loose = [loosely_labelled(line) if not pairs else None for line, pairs in zip(lines, each, strict=True)]
    if not any(pair and is_known(pair.name) and _is_short(pair.value) for pair in loose):
        return each
    return [[pair] if pair and _is_short(pair.value) else pairs for pair, pairs in zip(loose, each, strict=True)]


def _is_phrase(value: str) -> bool:
    return _words(value) <= _SHORT_WORDS or not _SENTENCE_END.search(value)


def _is_short(value: str) -> bool:
    return len(value) <= _SHORT_VALUE and _words(value) <= _SHORT_WORDS and not _SENTENCE_END.search(value)


def _words(value: str) -> float:
    """How many words it has; two Han characters count as one."""
    return len(value.split()) + sum(map(is_han, value)) / 2
