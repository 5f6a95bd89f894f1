"""An answer's text as blocks of sentences, each with its citations and what became of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from shared.models.support import AnswerSentence

_CITED = re.compile(r"\[(\d{1,4})\]")
_HEADING = re.compile(r"#{1,6} +")
_ITEM = re.compile(r"\s*[-*•]\s+")
Kind = Literal["heading", "item", "paragraph"]


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
    """A line of the text."""

    kind: Kind
    sentences: tuple[TextSentence, ...]


def blocks(text: str, spans: Sequence[AnswerSentence], numbers: frozenset[int]) -> list[TextBlock]:
    """The lines of an answer that are not blank. `numbers`: of its citations; any other `[7]` is plain text."""
    found, begin = list[TextBlock](), 0
    ordered = sorted(spans, key=lambda span: span.start)
    for line in text.split("\n"):
        if line.strip():
            kind, mark = _kind(line)
            sentences = tuple(_sentences(text, begin + mark, begin + len(line), ordered, numbers))
            found.append(TextBlock(kind, sentences))
        begin += len(line) + 1
    return found


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


def _kind(line: str) -> tuple[Kind, int]:
    """What a line is, and how many characters of it only say that."""
    if heading := _HEADING.match(line):
        return "heading", heading.end()
    item = _ITEM.match(line)
    return ("item", item.end()) if item and item.end() < len(line) else ("paragraph", 0)


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
