"""Cuts one block that is too wide for a chunk. Never loses a character and never leaves a fence open."""

from __future__ import annotations

import re
from collections.abc import Iterable

from workers.index.blocks import Block, Kind
from workers.index.widths import width

#: Code stays whole up to this many times `max_chars`.
_CODE_FACTOR = 4
#: A table's head is repeated over each part if it takes no more than this share of `max_chars`.
_HEAD_SHARE = 4
_MAX_INFO = 200
_FENCE = re.compile(r"(?P<before>[^`~]*)(?P<marker>`{3,}|~{3,})(?P<info>.*)", re.DOTALL)
_AFTER_SENTENCE = re.compile(
    r"[。！？；…][」』”’）】]*+(?![。！？；…])|(?<=[.!?])\s+|(?<=[.!?][\"')\]”’])\s+",
)
_AFTER_LINE = re.compile(r"\n")
_AFTER_CLAUSE = re.compile(r"[，、：,;:]|\s+")
_CUTS = (_AFTER_SENTENCE, _AFTER_LINE, _AFTER_CLAUSE)


def split_block(block: Block, target: int, limit: int) -> list[str]:
    """Parts of `block` in order. Text parts are verbatim: joined without separator they are the block again.

    `target` is the aimed width of a part and `limit` (>= target) the width up to which a block stays whole.
    """
    size = width(block.text)
    if size <= limit or (block.kind in {Kind.FENCE, Kind.CODE} and size <= _CODE_FACTOR * limit):
        return [block.text]
    if block.kind is Kind.FENCE:
        return _split_fence(block.text, limit)
    if block.kind is Kind.CODE:
        return _group(_lines(block.text, limit), limit)
    if block.kind is Kind.TABLE:
        return _split_table(block.text, limit)
    return _group(_spans(block.text, limit), target)


def _split_fence(text: str, limit: int) -> list[str]:
    """At line ends, each part fenced as the whole was; in a list or quote with the same prefix."""
    opening, *rest = text.split("\n")
    found = _FENCE.match(opening)
    if found is None:
        return _group(_lines(text, limit), limit)
    before, marker, info = found["before"], found["marker"], found["info"]
    body = rest[:-1] if rest and rest[-1].strip().strip("> ").startswith(marker) else rest
    if len(info) > _MAX_INFO:
        body, info = [info, *body], ""
    # A list's bullet opens the first part only; the others keep its indent.
    indent = re.sub(r"[^>\s]", " ", before)
    parts = [part.removesuffix("\n") for part in _group(_lines("\n".join(body), limit), limit)]
    heads = [before, *[indent] * (len(parts) - 1)]
    return [f"{head}{marker}{info}\n{part}\n{indent}{marker}" for head, part in zip(heads, parts, strict=True)]


def _split_table(text: str, limit: int) -> list[str]:
    head = "".join(line + "\n" for line in text.split("\n", 2)[:2])
    if width(head) > limit // _HEAD_SHARE:
        return _group(_lines(text, limit), limit)
    rows = _group(_lines(text[len(head) :], limit - width(head)), limit - width(head))
    return [head + part for part in rows]


def _lines(text: str, limit: int) -> list[str]:
    """Lines with their ends; a line wider than `limit` in several pieces."""
    lines = [line for line in re.split(r"(?<=\n)", text) if line]
    return [piece for line in lines for piece in ([line] if width(line) <= limit else _hard(line, limit))]


def _spans(text: str, limit: int, level: int = 0) -> list[str]:
    """Sentences; a sentence wider than `limit` as lines, a line as clauses, a clause cut anywhere."""
    if width(text) <= limit and level:
        return [text]
    if level == len(_CUTS):
        return _hard(text, limit)
    ends = [found.end() for found in _CUTS[level].finditer(text)]
    starts = [0, *ends]
    pieces = [text[start:end] for start, end in zip(starts, [*ends, len(text)], strict=True)]
    return [span for piece in pieces if piece for span in _spans(piece, limit, level + 1)]


def _hard(text: str, limit: int) -> list[str]:
    step = limit if text.isascii() else max(limit // 2, 1)
    return [text[start : start + step] for start in range(0, len(text), step)]


def _group(pieces: Iterable[str], size: int) -> list[str]:
    """Neighbours joined while they are no wider than `size`."""
    groups: list[list[str]] = []
    total = 0
    for piece in pieces:
        wide = width(piece)
        if groups and total + wide <= size:
            groups[-1].append(piece)
            total += wide
        else:
            groups.append([piece])
            total = wide
    return ["".join(group) for group in groups]
