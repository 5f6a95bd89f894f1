"""Where the text of a chunk stands in its document's text, character by character, and what no chunk holds. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from shared.models import Chunk

#: A tuple that begins with an offset.
Mark = TypeVar("Mark", bound=tuple[Any, ...])
#: A line that is not verbatim (a heading without its emphasis) is sought in so many characters behind its beginning.
_WINDOW = 2000
#: A longer line that is not verbatim has no offsets.
_MAX_ALIGNED = 500


class Span(NamedTuple):
    """`length` characters that are the same: from `at` in the one text and from `start` in the other."""

    at: int
    start: int
    length: int


def spans_of(text: str, source: str, start: int) -> tuple[Span, ...]:
    """Spans of `text`, taken from `source` at `start`: one where it is verbatim, else what of its lines is found."""
    if source.startswith(text, start):
        return (Span(0, start, len(text)),)
    head, end, last = text.rpartition("\n")
    if end and source.startswith(head + end, start):  # a fence that got its closing line
        return (Span(0, start, len(head) + 1), *_moved(_line_spans(last, source, start + len(head) + 1), len(head) + 1))
    found: list[Span] = []
    at = 0
    for line in text.split("\n"):
        found += _moved(_line_spans(line, source, start), at)
        start = found[-1].start + found[-1].length if found else start
        at += len(line) + 1
    return tuple(found)


def _line_spans(line: str, source: str, start: int) -> Iterator[Span]:
    place = source.find(line, start, start + len(line) + _WINDOW) if line else -1
    if place >= 0:
        yield Span(0, place, len(line))
    elif len(line) <= _MAX_ALIGNED:
        yield from _alike(line, source, start)


def _alike(line: str, source: str, start: int) -> Iterator[Span]:
    """Runs of characters of a line that follow each other in the source, with others between them."""
    at = 0
    while at < len(line):
        place = source.find(line[at], start, start + _WINDOW)
        if place < 0:
            return
        length = 1
        while at + length < len(line) and source[place + length : place + length + 1] == line[at + length]:
            length += 1
        yield Span(at, place, length)
        at, start = at + length, place + length


def through(inner: Iterable[Span], outer: Sequence[Span]) -> Iterator[Span]:
    """Spans of a part in its block, and of the block in the document, as spans of the part in the document."""
    for at, start, length in inner:
        for begin, target, size in outer:
            first, last = max(start, begin), min(start + length, begin + size)
            if first < last:
                yield Span(at + first - start, target + first - begin, last - first)


def joined(spans: Iterable[Span], text: str, source: str) -> list[Span]:
    """Spans in their order, with those made one that only have the same characters between them in both texts."""
    found: list[Span] = []
    for span in spans:
        if found:
            at, start, length = found[-1]
            between = span.at - at - length
            same = span.start - start == span.at - at and between >= 0
            if same and text[at + length : span.at] == source[start + length : span.start]:
                found[-1] = Span(at, start, length + between + span.length)
                continue
        found.append(span)
    return found


def clipped(spans: Iterable[Span], first: int, last: int) -> Iterator[Span]:
    """Spans of the slice [first:last] of a text."""
    return (
        Span(max(at, first) - first, start + max(first - at, 0), min(at + length, last) - max(at, first))
        for at, start, length in spans
        if at < last and at + length > first
    )


def _moved(spans: Iterable[Span], by: int) -> Iterator[Span]:
    return (Span(at + by, start, length) for at, start, length in spans)


def as_fields(text: str, spans: Sequence[Span]) -> dict[str, Any]:
    """The fields of a chunk that say where it stands. `spans` only where it is not one slice of the document.

    A chunk of which nothing stands there (a heading that is all marks) has an empty span.
    """
    spans = spans or [Span(0, 0, 0)]
    start, end = min(span.start for span in spans), max(span.start + span.length for span in spans)
    whole = len(spans) == 1 and spans[0].length == len(text)
    return {"start": start, "end": end, "spans": () if whole else tuple(map(tuple, spans))}


def marks_in(spans: Sequence[Span], marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """What is marked in a chunk's text, of what is marked in the document's; both in order, each with its offset first.

    The first mark is at 0. What begins between two spans begins with the second one.
    """
    if not spans or not marks:
        return ()
    first, end = spans[0].start, max(span.start + span.length for span in spans)
    begun = bisect_right(marks, first, key=itemgetter(0))
    found: dict[int, Any] = {0: (0, *marks[begun - 1][1:])} if begun else {}
    own = marks[begun : bisect_left(marks, end, lo=begun, key=itemgetter(0))]
    if len(spans) == 1:  # most chunks, and each has dozens of marks
        back = spans[0].at - first
        return (*found.values(), *((mark[0] + back, *mark[1:]) for mark in own))
    for mark in own:
        span = next((span for span in spans if span.start + span.length > mark[0]), None)
        if span is not None:
            at = span.at + max(mark[0] - span.start, 0)
            found[at] = (at, *mark[1:])
    return tuple(found[at] for at in sorted(found))


def between(text: str, chunks: Sequence[Chunk]) -> list[tuple[tuple[int, str], ...]]:
    """What of a document's text stands in none of its chunks, with its offset: for each chunk what follows it.

    What stands before all is the first one's. With the chunks it is the whole text (`shared.store.texts`).
    """
    held = sorted((start, end, number) for number, one in enumerate(chunks) for start, end in one.in_document())
    left: list[list[tuple[int, str]]] = [[] for _ in chunks]
    reached, last = 0, 0
    for start, end, number in [*held, (len(text), len(text), 0)]:
        if start > reached:
            left[last].append((reached, text[reached:start]))
        if end > reached:
            reached, last = end, number
    return [tuple(own) for own in left]
