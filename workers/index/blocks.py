"""Text as a list of blocks, each whole lines of the source. Never drops text; a rule (`---`) is a block without any.

Markdown is read by its block structure alone: inline parsing is switched off, it costs much and decides no cut.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, pairwise
from typing import TypeVar

from markdown_it import MarkdownIt
from markdown_it.token import Token

from shared.language import derived, languages
from shared.models.hits import PagePart
from workers.index.documents import Markup
from workers.index.metadata import labels, printable_line
from workers.markdown_rules import compiled

#: A CJK character or emoji, which counts as two.
_WIDE = re.compile(
    "[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6"
    "\U0001f300-\U0001faff\U00020000-\U0003fffd]+"
)
#: Link definitions stay text: as a rule of their own they would leave no token.
_PARSER = compiled(MarkdownIt("commonmark").enable("table").disable(["inline", "reference"]))
#: A longer "heading" is a paragraph with a # before it.
_MAX_HEADING = 200
#: Characters within which a title is sought.
_TITLE_WITHIN = 20_000
T = TypeVar("T")
#: A line of its own that opens the timeline whatever follows.
_SENTINELS = frozenset({"<!-- timeline -->", "--- timeline ---"})
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")


def width(text: str) -> int:
    """Characters of `text`, wide ones counted twice."""
    if text.isascii():
        return len(text)
    return len(text) + sum(map(len, _WIDE.findall(text)))


def cut_anywhere(text: str, limit: int) -> list[str]:
    """`text` in parts that are no wider than `limit`."""
    step = limit if text.isascii() else max(limit // 2, 1)
    return [text[start : start + step] for start in range(0, len(text), step)]


def join_neighbours(
    items: Iterable[T], size_of: Callable[[T], int], fits: Callable[[T, int, int], bool]
) -> list[list[T]]:
    """Neighbours in groups: an item joins the group before it if `fits(item, the group's size, its size with it)`."""
    groups: list[list[T]] = []
    total = 0
    for item in items:
        before, total = total, total + size_of(item)
        if groups and fits(item, before, total):
            groups[-1].append(item)
        else:
            groups.append([item])
            total -= before
    return groups


class BlockType(StrEnum):
    """What a block is, as far as cutting goes. CODE is an indented block."""

    HEADING = "heading"
    FENCE = "fence"
    CODE = "code"
    TABLE = "table"
    TEXT = "text"
    RULE = "rule"


class SourceLines(list[str]):
    """The lines of a text, and the offset in it at which each begins."""

    def __init__(self, text: str) -> None:
        super().__init__(text.split("\n"))
        self.starts = array("q", accumulate((len(line) + 1 for line in self), initial=0))


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines. `loose` is True when an empty line parts it from the block before; `level` is a heading's, 1-6.

    `source` is a heading as written: its `text` has lost emphasis and link targets. `labels` are names of this place.
    `start` is the offset in the source at which it begins.
    """

    kind: BlockType
    text: str
    loose: bool = True
    level: int = 0
    source: str = ""
    labels: tuple[str, ...] = ()
    start: int = 0


_UNCUT = {"fence": BlockType.FENCE, "code_block": BlockType.CODE, "table_open": BlockType.TABLE}


def blocks_of(text: str, markup: Markup, max_chars: int) -> list[Block]:
    """Blocks in order. A list or quote wider than `max_chars` is given as the blocks inside it."""
    lines = SourceLines(text)
    if markup is Markup.TEXT:
        return _paragraphs(lines)
    tokens = _PARSER.parse(text)
    tops = [index for index, token in enumerate(tokens) if token.level == 0 and token.map and token.nesting >= 0]
    return [block for index in tops for block in _top_level(tokens, index, lines, max_chars)]


def first_title(text: str) -> str | None:
    """The first level-1 heading of a Markdown text, if it stands near the beginning: the rest is not read twice."""
    text = text[:_TITLE_WITHIN]
    blocks = blocks_of(text, Markup.MARKDOWN, len(text) * 2)
    return next((block.text for block in blocks if block.level == 1 and block.text), None)


def _top_level(tokens: list[Token], index: int, lines: SourceLines, max_chars: int) -> Iterator[Block]:
    token = tokens[index]
    start, end = token.map or (0, 0)
    if token.type == "heading_open":
        title = _heading_text(tokens[index + 1].content)
        if len(title) <= _MAX_HEADING:
            source = tokens[index + 1].content
            yield Block(BlockType.HEADING, title, level=int(token.tag[1]), source=source, start=lines.starts[start])
            return
    if token.type == "hr":
        yield Block(BlockType.RULE, "")
        return
    block = _block(lines, start, end, _UNCUT.get(token.type, BlockType.TEXT))
    if block.kind is BlockType.FENCE:
        yield _with_closing_fence(block, token.markup)
    elif token.type in {"bullet_list_open", "ordered_list_open", "blockquote_open"} and width(block.text) > max_chars:
        yield from _inner_blocks(tokens, index, lines)
    elif block.text:
        yield block


def _inner_blocks(tokens: list[Token], index: int, lines: SourceLines) -> Iterator[Block]:
    """The blocks inside a list or quote: cut before every item and paragraph, never inside code or a table."""
    first, last = tokens[index].map or (0, 0)
    kinds: dict[int, BlockType] = {first: BlockType.TEXT}
    uncut_end = first
    for token in tokens[index + 1 :]:
        if token.level == 0:
            break
        if not token.map or token.nesting < 0 or token.type == "inline":
            continue
        start, end = token.map
        if start < uncut_end:
            continue
        kinds.setdefault(start, BlockType.TEXT)
        if token.type in _UNCUT:
            kinds[start] = _UNCUT[token.type]
            kinds.setdefault(end, BlockType.TEXT)
            uncut_end = end
    starts = sorted(start for start in kinds if start < last)
    for start, end in zip(starts, [*starts[1:], last], strict=True):
        block = _block(lines, start, end, kinds[start])
        if block.text:
            yield block


def _paragraphs(lines: SourceLines) -> list[Block]:
    """Plain text, cut at empty lines."""
    blank = [-1, *(number for number, line in enumerate(lines) if not line.strip()), len(lines)]
    return [_block(lines, a + 1, b, BlockType.TEXT) for a, b in pairwise(blank) if b > a + 1]


def _block(lines: SourceLines, start: int, end: int, kind: BlockType) -> Block:
    while end > start and not lines[end - 1].strip():
        end -= 1
    loose = start == 0 or not lines[start - 1].strip()
    return Block(kind, "\n".join(lines[start:end]), loose, start=lines.starts[start])


def _with_closing_fence(block: Block, marker: str) -> Block:
    """A fence that runs to the end of the document gets its closing line."""
    last = block.text.rpartition("\n")[2].strip() if "\n" in block.text else ""
    if len(last) >= len(marker) and set(last) == set(marker):
        return block
    return Block(block.kind, f"{block.text}\n{marker}", block.loose, start=block.start)


def _heading_text(title: str) -> str:
    """A heading without its emphasis, code marks and link targets."""
    return printable_line(_LINK.sub(r"\1", title).replace("*", "").replace("`", ""))


def part_of(title: str, headings: Sequence[str]) -> PagePart | None:
    """The part that a heading path names, the deepest heading first; None when no heading says so.

    The document's own title may make it all a timeline ("Changelog"), never all truth.
    """
    if part := next(filter(None, map(_named_part, reversed(headings))), None):
        return part
    return PagePart.TIMELINE if _named_part(title) is PagePart.TIMELINE else None


def timeline_start(blocks: Sequence[Block]) -> int | None:
    """The index of the block with which the page's timeline begins, None when nothing parts it from the rest.

    That is a rule (`---`) with a timeline heading or a dated entry right behind it, or a line `<!-- timeline -->`.
    Everything above is compiled truth then.
    """
    for place, block in enumerate(blocks):
        if block.kind is BlockType.TEXT and block.text.strip().casefold() in _SENTINELS:
            return place
        if block.kind is BlockType.RULE and place + 1 < len(blocks):
            following = blocks[place + 1]
            titled = following.kind is BlockType.HEADING and _named_part(following.text) is PagePart.TIMELINE
            if titled or (following.kind in {BlockType.HEADING, BlockType.TEXT} and _dated().match(following.text)):
                return place
    return None


def _named_part(heading: str) -> PagePart | None:
    return next((part for label in labels(heading) if (part := _headings().get(label))), None)


@derived
def _headings() -> dict[str, PagePart]:
    sections = [language.words.sections for language in languages()]
    timeline = {heading: PagePart.TIMELINE for section in sections for heading in section.timeline}
    return timeline | {heading: PagePart.TRUTH for section in sections for heading in section.truth}


@derived
def _dated() -> re.Pattern[str]:
    """A line that begins with a day or a month, behind a list's mark, a number or a bracket."""
    dates = (r"\d{4}[-/.]\d{1,2}(?:[-/.]\d{1,2})?", *(form for each in languages() for form in each.dates.headings))
    return re.compile(rf"(?:[-*+]|\d{{1,3}}[.)]|>)?\s{{0,3}}(?:\*\*|__|\[|【|\|)?\s?(?:{'|'.join(dates)})(?!\d)")
