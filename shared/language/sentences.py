"""Sentences of Markdown or plain text as spans, so that a quote is always a verbatim slice. Pure and linear."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from shared.language import alternatives, derived
from shared.language.text import has_cjk

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(\s|$)")
_MARKER = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,3}[.)、])[ \t]+(?:\[[ xX]\][ \t]+)?)?(?:>[ \t]?)*")
_RULE = re.compile(r"[ \t]*(?:[-*_=][ \t]*){3,}$")
# Always matches once it starts, and is judged in code afterwards: no backtracking over "......x".
_END = re.compile(r"[.!?。！？…]+[\"'”’」』）)\]*_]*")
_WIDE_END = frozenset("。！？")
_LOOK_BACK = 12
_INLINE_ITEM = re.compile(r"(?:(?<=[\s:;,。])|^)\(?\d{1,2}[)、]\s*")


class BlockKind(StrEnum):
    """What a span of text is. Only prose is cut into sentences; the others stay whole."""

    PROSE = "prose"
    HEADING = "heading"
    FENCE = "fence"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class TextSpan:
    """`text[start:end]`, stripped of white space at both ends."""

    kind: BlockKind
    start: int
    end: int


def sentences(text: str) -> list[str]:
    """The sentences of `text` in order. Fences, tables and headings come whole, as one entry each.

    A sentence may hold the line breaks of a hard-wrapped paragraph; list and quote markers before it are left out.
    Neither "3.5" nor "e.g. this" nor "J. Smith" ends a sentence; 。！？ always do.
    """
    return [text[span.start : span.end] for span in sentence_spans(text)]


def sentence_spans(text: str) -> Iterator[TextSpan]:
    """As `sentences`, with the kind and place of each."""
    for block in blocks(text):
        if block.kind is BlockKind.PROSE:
            yield from _split(text, block)
        else:
            yield block


def blocks(text: str) -> Iterator[TextSpan]:
    """Paragraphs, list items, headings, fences and tables of `text`, in order. An unclosed fence runs to the end."""
    pending: TextSpan | None = None
    fence = ""
    end = -1
    for line in text.split("\n"):
        start, end = end + 1, end + 1 + len(line)
        kind = _kind(line, fence)
        opened = _FENCE.match(line)
        if fence:
            closing = opened is not None and opened.group(1).startswith(fence) and not line.strip(" \t`~")
            fence = "" if closing else fence
            pending = TextSpan(BlockKind.FENCE, pending.start if pending else start, end)
            if closing:
                yield from _trimmed(text, pending)
                pending = None
            continue
        body = start + _marker_length(line) if kind is BlockKind.PROSE else start
        joins = pending is not None and kind is pending.kind and kind is not BlockKind.HEADING and body == start
        if pending is not None and not joins:
            yield from _trimmed(text, pending)
        pending = None if kind is None else TextSpan(kind, pending.start if joins and pending else body, end)
        if kind is BlockKind.FENCE and opened:
            fence = opened.group(1)
    if pending is not None:
        yield from _trimmed(text, pending)


def _kind(line: str, fence: str) -> BlockKind | None:
    """The kind of one line; None for blank lines and rules, which only separate."""
    if fence or _FENCE.match(line):
        return BlockKind.FENCE
    if not line.strip() or _RULE.match(line):
        return None
    if _HEADING.match(line):
        return BlockKind.HEADING
    return BlockKind.TABLE if line.lstrip().startswith("|") else BlockKind.PROSE


def _marker_length(line: str) -> int:
    """Length of a list or quote marker; 0 for a line that only goes on with its paragraph."""
    match = _MARKER.match(line)
    return match.end() if match and match.group().strip() else 0


def _split(text: str, block: TextSpan) -> Iterator[TextSpan]:
    start = block.start
    for match in _END.finditer(text, block.start, block.end):
        if _ends(text, match, block.end):
            yield from _trimmed(text, TextSpan(BlockKind.PROSE, start, match.end()))
            start = match.end()
    yield from _trimmed(text, TextSpan(BlockKind.PROSE, start, block.end))


def _ends(text: str, match: re.Match[str], limit: int) -> bool:
    mark, at = match.group(), match.end()
    if at >= limit:
        return False  # the rest of the block is a sentence anyway
    if not _WIDE_END.isdisjoint(mark):
        return True
    follower = text[at]
    if not follower.isspace():
        return mark[0] in "!?" and has_cjk(follower)
    after = text[at : at + _LOOK_BACK].lstrip()[:1]
    if mark.startswith("…") or after.islower():
        return False
    return not (mark == "." and _abbreviation().search(text, max(0, match.start() - _LOOK_BACK), match.start()))


@derived
def _abbreviation() -> re.Pattern[str]:
    """What may stand before a full stop that ends no sentence: an abbreviation, or one letter."""
    known = alternatives(lambda language: language.words.abbreviations)
    return re.compile(rf"(?:^|[\s(\"'“])(?:[A-Za-z]|(?:[A-Za-z]\.)+[A-Za-z]|{known})$", re.IGNORECASE)


def _trimmed(text: str, span: TextSpan) -> Iterator[TextSpan]:
    whole = text[span.start : span.end].rstrip()
    if shown := whole.lstrip():
        end = span.start + len(whole)
        yield TextSpan(span.kind, end - len(shown), end)


def question_sentences(text: str) -> list[str]:
    """The sentences of `text` in order, each with the mark that ends it, without numbering and bullets.

    Numbered items within a line ("1) ... 2) ...") count as sentences when there are at least two. Full stops within
    names and numbers (node.js, 3.11) and after abbreviations end nothing.
    """
    if len(_INLINE_ITEM.findall(text)) > 1:
        text = _INLINE_ITEM.sub("\n", text)
    found: list[str] = []
    start = 0
    for end in _question_end().finditer(text):
        # only the tail before the mark matters to the abbreviations: a slice keeps this linear
        if end[0] == "." and _question_abbreviation().search(text[max(start, end.start() - 8) : end.start()]):
            continue
        found.append(text[start : end.end()])
        start = end.end()
    found.append(text[start:])
    cleaned = (" ".join(_item_start().sub("", sentence).split()) for sentence in found)
    return [sentence for sentence in cleaned if any(char.isalnum() for char in sentence)]


@derived
def _item_start() -> re.Pattern[str]:
    numerals = alternatives(lambda language: language.words.sections.numerals)
    return re.compile(rf"^\s*(?:[-*•·]|\(?\d{{1,2}}[.)、](?!\d)|(?:{numerals})、)\s*")


@derived
def _question_end() -> re.Pattern[str]:
    """A full stop before a small letter ends nothing unless a question starts there; "?" may stand in a title."""
    openers = alternatives(lambda language: language.words.openers)
    either = alternatives(lambda language: language.words.or_)
    return re.compile(
        rf"[。\n]++|(?<![?!;])[?!;]++(?=[\s\"')\]]|$|[^\x00-\x7f])(?!\s*\(|\s+(?:{either})\b)"
        rf"|\.(?=\s*$|\s+(?:[^a-z\s]|(?:{openers})\b))"
    )


@derived
def _question_abbreviation() -> re.Pattern[str]:
    known = alternatives(lambda language: language.words.abbreviations)
    return re.compile(rf"(?:\b(?:{known})|\b[a-z]|^\d{{1,2}})$", re.IGNORECASE)
