"""An answer's text as blocks of sentences, each with its citations and what became of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Literal

from shared.models.support import AnswerSentence

_CITED = re.compile(r"\[(\d{1,4})\]")
_HEADING = re.compile(r"#{1,6} +")
_ITEM = re.compile(r"\s*(?:[-*•]|(\d{1,3})[.)])\s+")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})\s*[\w+#.-]*\s*")
_RULED = re.compile(r"(?:\|\s*)?:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?")
Kind = Literal["heading", "item", "numbered", "paragraph", "code", "row"]


@dataclass(frozen=True)
class Piece:
    """Some characters of an answer, or the mark of a citation (`number`).

    `sentence`: where the sentence of the mark begins in the answer, if that has a quote of its own.
    """

    text: str
    number: int | None = None
    sentence: int | None = None


@dataclass(frozen=True)
class TextSentence:
    """A sentence in pieces. `span` says what it rests on; None: nothing was held against a source."""

    pieces: tuple[Piece, ...]
    span: AnswerSentence | None = None

    @property
    def support(self) -> str:
        """The code of `Support`; empty without one."""
        return self.span.support.name.lower() if self.span else ""


@dataclass(frozen=True)
class TextBlock:
    """A line of the text, or the lines of a code block. `number`: of a numbered item. `cells`: of a row of a table."""

    kind: Kind
    sentences: tuple[TextSentence, ...] = ()
    number: str = ""
    cells: tuple[tuple[TextSentence, ...], ...] = ()


def blocks(text: str, spans: Sequence[AnswerSentence], numbers: frozenset[int]) -> list[TextBlock]:
    """The lines of an answer that are not blank. `numbers`: of its citations; any other `[7]` is plain text.

    Of Markdown's blocks these are known: headings, lists, code between fences, tables with a ruled second line.
    """
    return list(_Lines(text, sorted(spans, key=lambda span: span.start), numbers).blocks())


def groups(found: Iterable[TextBlock]) -> list[tuple[Kind, list[TextBlock]]]:
    """Blocks, neighbours of one kind together."""
    return [(kind, list(some)) for kind, some in groupby(found, key=lambda block: block.kind)]


def pieces(text: str, numbers: frozenset[int], span: AnswerSentence | None = None) -> tuple[Piece, ...]:
    """`text`, of the sentence `span`, with its citation marks lifted out."""
    quoted = {quote.number for quote in span.quotes} if span else frozenset[int]()
    found, at = list[Piece](), 0
    for mark in _CITED.finditer(text):
        if (number := int(mark[1])) in numbers:
            found += [Piece(text[at : mark.start()])] if mark.start() > at else []
            found.append(Piece(mark[0], number, span.start if span and number in quoted else None))
            at = mark.end()
    return (*found, Piece(text[at:])) if at < len(text) else tuple(found)


def sentences(text: str, spans: Sequence[AnswerSentence], numbers: frozenset[int]) -> tuple[TextSentence, ...]:
    """A text without blocks, parted at the sentences that were checked."""
    return tuple(_sentences(text, 0, len(text), sorted(spans, key=lambda span: span.start), numbers))


class _Lines:
    """The lines of one text, with the offsets at which they begin."""

    def __init__(self, text: str, spans: Sequence[AnswerSentence], numbers: frozenset[int]) -> None:
        self._text, self._spans, self._numbers = text, spans, numbers
        self._lines = text.split("\n")
        self._begins = list(accumulate((len(line) + 1 for line in self._lines), initial=0))

    def blocks(self) -> Iterator[TextBlock]:
        """From the first line on."""
        at = 0
        while at < len(self._lines):
            if (end := self._fence_end(at)) is not None:
                yield TextBlock("code", (TextSentence((Piece("\n".join(self._lines[at + 1 : end])),)),))
                at = end + 1
            elif self._begins_table(at):
                yield self._row(at)
                at += 2
                while at < len(self._lines) and _cells(self._lines[at]):
                    yield self._row(at)
                    at += 1
            else:
                if self._lines[at].strip():
                    yield self._line(at)
                at += 1

    def _fence_end(self, at: int) -> int | None:
        """The line that closes a block of code that begins `at`."""
        opened = _FENCE.fullmatch(self._lines[at])
        if opened is None:
            return None
        closing = (line for line in range(at + 1, len(self._lines)) if self._lines[line].strip() == opened[1])
        return next(closing, None)

    def _begins_table(self, at: int) -> bool:
        following = self._lines[at + 1] if at + 1 < len(self._lines) else ""
        return bool(_cells(self._lines[at])) and "|" in following and _RULED.fullmatch(following.strip()) is not None

    def _row(self, at: int) -> TextBlock:
        begin = self._begins[at]
        cells = (tuple(self._sentences(begin + first, begin + last)) for first, last in _cells(self._lines[at]))
        return TextBlock("row", cells=tuple(cells))

    def _line(self, at: int) -> TextBlock:
        line, begin = self._lines[at], self._begins[at]
        kind, mark, number = _kind(line)
        return TextBlock(kind, tuple(self._sentences(begin + mark, begin + len(line))), number)

    def _sentences(self, begin: int, end: int) -> Iterator[TextSentence]:
        return _sentences(self._text, begin, end, self._spans, self._numbers)


def _cells(line: str) -> list[tuple[int, int]]:
    """Where the cells of a row `| a | b |` begin and end; none of another line."""
    inside = line.strip()
    if len(inside) < 3 or not (inside.startswith("|") and inside.endswith("|")):
        return []
    begin, found = line.index("|") + 1, list[tuple[int, int]]()
    for cell in inside[1:-1].split("|"):
        blank = len(cell) - len(cell.lstrip())
        found.append((begin + blank, begin + max(blank, len(cell.rstrip()))))
        begin += len(cell) + 1
    return found


def _kind(line: str) -> tuple[Kind, int, str]:
    """What a line is, how many characters of it only say that, and its number in a list."""
    if heading := _HEADING.match(line):
        return "heading", heading.end(), ""
    item = _ITEM.match(line)
    if item is None or item.end() == len(line):
        return "paragraph", 0, ""
    return ("numbered", item.end(), item[1]) if item[1] else ("item", item.end(), "")


def _sentences(
    text: str, begin: int, end: int, spans: Sequence[AnswerSentence], numbers: frozenset[int]
) -> Iterator[TextSentence]:
    """`text[begin:end]` parted at the sentences that were checked."""
    at = begin
    for span in spans:
        first, last = max(span.start, at), min(span.end, end)
        if first >= last:
            continue
        if first > at:
            yield TextSentence(pieces(text[at:first], numbers))
        yield TextSentence(pieces(text[first:last], numbers, span), span)
        at = last
    if at < end:
        yield TextSentence(pieces(text[at:end], numbers))
