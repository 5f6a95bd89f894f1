"""reStructuredText as a list of blocks, each whole lines of the source. Never fails: what is odd stays text.

Written here, since docutils executes directives (include, raw, csv-table open files). No directive is followed here.
Headings as docutils defines them: a line of one punctuation character below a title, or below and above it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace

from workers.index.blocks import Block, BlockType, SourceLines, width
from workers.index.metadata import printable_line

_MAX_HEADING = 200
#: Shorter than the title, an adornment of this many characters makes a heading all the same, as in docutils.
_MIN_ADORNMENT = 4
#: Targets in a row that one place is called by; what is beyond stays text.
_MAX_LABELS = 16
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*+")
_BULLET = re.compile(
    r"(?:[-+*•‣⁃]|\(?(?:\d{1,9}+|#|[A-Za-z])[.)]|\.\.(?: (?:[\w+.-]{1,80}+:)?[\w+.-]{1,80}+::)?)[ \t]++"
)
#: A line that begins with one of these is no title, whatever is below it.
_NOT_A_TITLE = re.compile(r"[-+*•‣⁃](?:\s|$)|\.\.(?:\s|$)|__(?:\s|$)|\|(?:\s|$)|>>>|:(?![: ])[^:\n]{1,200}+:(?:\s|$)")
_BORDER = re.compile(r"=++(?: ++=++)++")
_GRID = re.compile(r"\+(?:[-=]++\+)++")
_DIRECTIVE = re.compile(r"\.\. (?:[\w+.-]{1,80}+:)?([\w+.-]{1,80}+)::(?:\s|$)")
_CODE = frozenset({
    "code", "code-block", "sourcecode", "parsed-literal", "prompt", "ipython",
    "doctest", "testcode", "testsetup", "testoutput", "testcleanup",
})  # fmt: skip
#: Directives that show nothing: a target above one belongs to what is below it.
_SHOWS_NOTHING = frozenset({"index", "highlight", "currentmodule", "module", "default-domain", "meta"})
_LABEL = re.compile(r"\.\. _(?!_)(?:`([^`\n]{1,200}+)`|((?:[^:\\`\n]|\\.|:(?!\s|$)){1,200}+)):")
_QUOTE = re.compile(r"[!-/:-@\[-`{-~]")
_ROLE = re.compile(r"(?<!`)(?:(?::[\w+.-]{1,80}+){1,3}:)?`([^`<>]{0,200}+)(?:<[^`<>]{0,1000}+>)?`(?!`)_{0,2}")
_ESCAPE = re.compile(r"\\(.)")


def rst_blocks(text: str) -> Iterator[Block]:
    """Blocks in order, lazily. Code is CODE; `labels` of a block are the targets (`.. _name:`) right above it."""
    return _Scan(SourceLines(text)).blocks()


def first_heading(text: str) -> str | None:
    """The text of the first section heading."""
    return next((block.text for block in rst_blocks(text) if block.kind is BlockType.HEADING), None)


def prose_of(text: str) -> Iterator[str]:
    """The text outside code, block by block; headings as written."""
    for block in rst_blocks(text):
        if block.kind is not BlockType.CODE:
            yield block.source or block.text


class _Scan:
    """One pass over the lines. `_literal_indent` is that of a paragraph that ends with `::`."""

    def __init__(self, lines: SourceLines) -> None:
        self._lines = lines
        self._styles: list[tuple[str, bool]] = []
        self._borders = [place for place, line in enumerate(lines) if _BORDER.fullmatch(line.rstrip())]
        self._literal_indent: int | None = None

    def blocks(self) -> Iterator[Block]:
        place, first, waiting, targets = 0, 0, list[str](), list[str]()
        while place < len(self._lines):
            if not self._lines[place].strip():
                place += 1
                continue
            label = self._label(place) if len(waiting) < _MAX_LABELS else None
            if label is not None:
                waiting.append(label)
                targets.append(self._lines[place])
                first = first if len(targets) > 1 else place
                place, self._literal_indent = place + 1, None
                continue
            block, place = self._block(place)
            if waiting and not _shows_nothing(block):
                block = replace(block, labels=tuple(waiting))
                waiting, targets = [], []
            yield block
        if targets:
            yield Block(BlockType.TEXT, "\n".join(targets), start=self._lines.starts[first])

    def _block(self, start: int) -> tuple[Block, int]:
        """The block that begins with a line, and the line behind it."""
        after, self._literal_indent = self._literal_indent, None
        if after is not None and (end := self._literal(start, after)):
            return self._lines_of(start, end, BlockType.CODE), end
        line = self._lines[start]
        indent = _indent(line)
        if not indent:
            if found := self._heading(start):
                return found
            if len(line.rstrip()) >= _MIN_ADORNMENT and _ADORNMENT.fullmatch(line.rstrip()) and self._blank(start + 1):
                return Block(BlockType.RULE, ""), start + 1
            if end := self._table(start):
                return self._lines_of(start, end, BlockType.TABLE), end
        directive = _DIRECTIVE.match(line, indent)
        if directive and directive[1].lower() in _CODE:
            end = self._indented(start + 1, indent)
            return self._lines_of(start, end, BlockType.CODE), end
        end = self._paragraph(start, indent)
        text = line.lstrip()
        kind = BlockType.CODE if text.startswith(">>> ") else BlockType.TEXT
        kind = BlockType.TABLE if _GRID.fullmatch(text.rstrip()) else kind
        last = self._lines[end - 1]
        bare = last.strip()
        if kind is BlockType.TEXT and bare.endswith("::") and not _DIRECTIVE.fullmatch(bare):
            self._literal_indent = _text_indent(last)
        return self._lines_of(start, end, kind), end

    def _heading(self, start: int) -> tuple[Block, int] | None:
        line = self._lines[start].rstrip()
        over = _ADORNMENT.fullmatch(line) is not None
        if over and (self._blank(start + 1) or self._line(start + 2).rstrip() != line):
            return None
        title = self._line(start + over).strip()
        under = self._line(start + 1 + over).rstrip()
        if not under or not _ADORNMENT.fullmatch(under) or _ADORNMENT.fullmatch(title) or len(title) > _MAX_HEADING:
            return None
        if (len(under) < _MIN_ADORNMENT and width(title) > len(under)) or (not over and _NOT_A_TITLE.match(title)):
            return None
        style = (under[0], over)
        if style not in self._styles:
            self._styles.append(style)
        loose = start == 0 or self._blank(start - 1)
        level = self._styles.index(style) + 1
        place = self._lines.starts[start + over]
        return Block(BlockType.HEADING, _heading_text(title), loose, level, title, start=place), start + 2 + over

    def _label(self, start: int) -> str | None:
        """The name of a target on a line of its own; one with an address, or in a literal block, is none."""
        line = self._lines[start]
        indent = _indent(line)
        found = _LABEL.fullmatch(line.strip())
        if found is None or (self._literal_indent is not None and indent > self._literal_indent):
            return None
        below = self._line(start + 1)
        if below.strip() and _indent(below) > indent:
            return None
        return printable_line(_ESCAPE.sub(r"\1", found[1] or found[2])) or None

    def _literal(self, start: int, after: int) -> int:
        """Where the literal block ends that begins here, 0 if none does: it is indented, or every line is quoted."""
        if _indent(self._lines[start]) > after:
            return self._indented(start, after)
        sign = self._lines[start][after : after + 1]
        if not self._blank(start - 1) or not _QUOTE.match(sign):
            return 0
        end = start
        while not self._blank(end):
            if self._lines[end][after : after + 1] != sign:
                return 0
            end += 1
        return end

    def _table(self, start: int) -> int:
        """Where a simple table ends: at its second border that nothing follows, or its third. 0 for no table."""
        first = bisect_right(self._borders, start) - 1
        if first < 0 or self._borders[first] != start:
            return 0
        others = self._borders[first + 1 : first + 3]
        end = next((place for place in others if self._blank(place + 1)), others[-1] if others else -1)
        return end + 1

    def _indented(self, place: int, indent: int) -> int:
        """Behind the last line that is indented by more."""
        end = place
        while place < len(self._lines):
            if self._lines[place].strip():
                if _indent(self._lines[place]) <= indent:
                    break
                end = place + 1
            place += 1
        return end

    def _paragraph(self, start: int, indent: int) -> int:
        """Up to an empty line; markup and indented text up to the margin, too."""
        inside = indent or self._lines[start].startswith(".. ") or self._lines[start].rstrip() == ".."
        end = start + 1
        while not self._blank(end) and not (inside and not _indent(self._lines[end])):
            end += 1
        return end

    def _line(self, place: int) -> str:
        return self._lines[place] if place < len(self._lines) else ""

    def _blank(self, place: int) -> bool:
        return not self._line(place).strip()

    def _lines_of(self, start: int, end: int, kind: BlockType) -> Block:
        loose = start == 0 or self._blank(start - 1)
        return Block(kind, "\n".join(self._lines[start:end]), loose, start=self._lines.starts[start])


def _shows_nothing(block: Block) -> bool:
    """True for comments and directives that show nothing."""
    text = block.text.lstrip()
    if block.kind is not BlockType.TEXT or not text.startswith(".. "):
        return False
    directive = _DIRECTIVE.match(text)
    return directive[1].lower() in _SHOWS_NOTHING if directive else text[3:4] not in {"_", "[", "|"}


def _indent(line: str) -> int:
    """Spaces and tabs alone: an ideographic space is text."""
    return len(line) - len(line.lstrip(" \t"))


def _text_indent(line: str) -> int:
    """Where the text of a line begins, behind the bullets before it."""
    place = _indent(line)
    while place < len(line) and (found := _BULLET.match(line, place)):
        place = found.end()
    return place


def _heading_text(title: str) -> str:
    """A heading without roles, link targets, emphasis and code marks."""
    shown = _ROLE.sub(lambda found: found[1].strip() or found[0], title)
    return printable_line(_ESCAPE.sub(r"\1", shown.replace("`", "").replace("*", ""))) or title
