"""The fields of a document: what its front matter says, and its `Key: value` lines at its head or in blocks of such.

Prose with a colon is no field: a name has few words, a value few characters, and what is fenced is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from shared.language import derived, languages
from shared.language.text import is_han, value_key
from shared.store.fields import LOOKED_FOR, entry
from workers.display import plain_line
from workers.labelled import MAX_NAME, Labelled, is_rule, labelled, pairs_of_table, split_values

#: Values of one field, and entries of one document.
_MOST_VALUES, _MOST_ENTRIES = 16, 48
#: Characters of a field of the front matter that are looked at.
_MOST_CHARS = 320
#: Lines that are looked at; rows of a table that says something of its document.
_MOST_LINES, _MOST_ROWS = 2000, 12
#: A line in the middle of a text is a field only where its value is no sentence.
_SHORT_VALUE, _SHORT_WORDS = 60, 7
_SENTENCE_END = re.compile(r"[.!?。！？；;]$|[.!?]\s|[。！？]")
_FENCE = re.compile(r"\s{0,3}(?:>\s?)*(`{3,}|~{3,})")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")


def fields_of(front: Mapping[str, object], text: str) -> tuple[str, ...]:
    """The entries of a document to be stored; `front` is what of its front matter is nothing else, such as a tag."""
    found = _Fields({value_key(name) for name in _never()})
    found.add(Labelled(name, value) for name, given in front.items() for value in _texts(name, given))
    found.close()
    for block in _blocks(text):
        found.add(block)
        found.close()
    return (LOOKED_FOR, *found.entries)


@derived
def _never() -> tuple[str, ...]:
    """Names that stand for what every document has of its own: a value of them tells nothing of others."""
    tables = (language.words.sections.keys for language in languages())
    return tuple(name for keys in tables for field in ("title", "date") for name in keys.get(field, ()))


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


def _texts(name: str, given: object) -> Iterator[str]:
    """The texts of a field of the front matter; what is nested deeper is none."""
    if len(name) > MAX_NAME:
        return
    for value in given if isinstance(given, Sequence) and not isinstance(given, str) else [given]:
        if isinstance(value, bool):
            yield str(value).lower()
        elif isinstance(value, str | int | float):
            yield plain_line(str(value)[:_MOST_CHARS])


def _blocks(text: str) -> Iterator[list[Labelled]]:
    """The fields of each block of a text that is one; the first is its head, which may have gaps."""
    head, at_head, first = list[Labelled](), True, True
    for lines in _paragraphs(text):
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


def _runs(lines: Sequence[str], *, title: bool, head: bool) -> tuple[list[Labelled], list[Labelled], bool]:
    """The fields at the beginning and at the end of a paragraph, and whether it has nothing else."""
    if lines[0].lstrip().startswith("|"):
        return (pairs_of_table(lines) if len(lines) <= _MOST_ROWS else []), [], True
    fits = _is_phrase if head else _is_short
    each = [[pair for pair in labelled(line) if fits(pair.value)] for line in lines]
    if title and len(each) > 1 and not each[0]:
        del each[0]
    first = next((place for place, pairs in enumerate(each) if not pairs), len(each))
    last = next((place for place in range(len(each), first, -1) if not each[place - 1]), first)
    leading = each[:first] if head or first > 1 or first == len(each) else []
    trailing = [[pair for pair in pairs if _is_short(pair.value)] for pairs in each[last:]]
    return [*chain.from_iterable(leading)], [*chain.from_iterable(trailing)], first == len(each)


def _is_phrase(value: str) -> bool:
    return _words(value) <= _SHORT_WORDS or not _SENTENCE_END.search(value)


def _is_short(value: str) -> bool:
    return len(value) <= _SHORT_VALUE and _words(value) <= _SHORT_WORDS and not _SENTENCE_END.search(value)


def _words(value: str) -> float:
    """How many words it has; two Han characters count as one."""
    return len(value.split()) + sum(map(is_han, value)) / 2


def _paragraphs(text: str) -> Iterator[list[str]]:
    """Runs of lines between empty lines, headings, rules and fences; a table is one of its own."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n", _MOST_LINES)[:_MOST_LINES]:
        if mark := _FENCE.match(line):
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        table = line.lstrip().startswith("|")
        ends = bool(mark or fence) or not line.strip() or bool(_HEADING.match(line)) or (is_rule(line) and not table)
        if lines and (ends or table != lines[0].lstrip().startswith("|")):
            yield lines
            lines = []
        if not ends:
            lines.append(line)
    if lines:
        yield lines
