"""Sentences of Markdown or plain text as spans, so that a quote is always a verbatim slice. Pure and linear."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, islice

from shared.language import alternatives, derived
from shared.language.text import has_cjk

#: A longer line of tildes is a ruler, or underlines a title of plain text.
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,15}(?!~))")
_HEADING = re.compile(r" {0,3}#{1,6}(\s|$)")
_MARKER = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,3}[.)、]|#\.)[ \t]+(?:\[[ xX]\][ \t]+)?)?(?:>[ \t]?)*")
_EXPLICIT = re.compile(r"\s*\.\.(?:\s|$)")
_DIRECTIVE = re.compile(r"\s*\.\. ([\w:.+-]{1,80}?)::(?:\s+(.*))?$")
_ADMONITION = re.compile(
    r"\s*\.\. (?:note|warning|tip|important|caution|danger|attention|hint|error|seealso|admonition)::[ \t]*"
)
_CODE_DIRECTIVES = frozenset({
    "code", "code-block", "sourcecode", "parsed-literal", "prompt", "ipython",
    "doctest", "testcode", "testsetup", "testoutput", "testcleanup",
})  # fmt: skip
_HIDDEN_DIRECTIVES = frozenset({
    "toctree", "contents", "image", "figure", "include", "literalinclude", "raw", "index", "highlight", "module",
    "currentmodule", "default-domain", "meta", "only", "tabs",
})  # fmt: skip
_TABLE_DIRECTIVES = frozenset({"list-table", "csv-table"})
_FIELD = re.compile(r"\s*:(?! )[^:`\n]{1,60}:(?:\s|$)")
_ADORNMENT = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}")
_BORDER = re.compile(r"=++(?: ++=++)++")
_GRID = re.compile(r"\+(?:[-=]++\+)++\s*$")
_SETEXT = 3
_MAX_ROWS = 400
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
            yield from split_block(text, block)
        else:
            yield block


def blocks(text: str) -> Iterator[TextSpan]:
    """Paragraphs, list items, headings, fences and tables of `text`, in order. An unclosed fence runs to the end.

    Literal blocks, directives with code, underlined headings and tables of reStructuredText are read as what they are.
    """
    lines = _Lines(text)
    pending: TextSpan | None = None
    for number, line in enumerate(lines.lines):
        start, end = lines.starts[number], lines.starts[number] + len(line)
        kind, opens = lines.kind(number, in_prose=pending is not None and pending.kind is BlockKind.PROSE)
        body = start + _marker_length(line) if kind is BlockKind.PROSE else start
        joins = pending is not None and kind is pending.kind and body == start and not opens
        if pending is not None and not joins:
            yield from _trimmed(text, pending)
        pending = None if kind is None else TextSpan(kind, pending.start if joins and pending else body, end)
    if pending is not None:
        yield from _trimmed(text, pending)


class _Lines:
    """The kinds of the lines of a text, asked for in order."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.starts = [0, *accumulate(len(line) + 1 for line in self.lines)]
        self._fence = ""
        self._closed = False
        self._table_until, self._under = 0, -1
        #: Lines that are indented by more than this belong to a literal block, or to one that is not shown.
        self._literal: int | None = None
        self._hidden = self._rows = False

    def kind(self, number: int, *, in_prose: bool) -> tuple[BlockKind | None, bool]:
        """The kind of a line (None for what only separates), and whether it begins a block of its own."""
        line = self.lines[number]
        if number == self._under:
            return None, False
        if found := self._fenced(line) or self._in_literal(number):
            return found
        if number < self._table_until or self._opens_table(number):
            return BlockKind.TABLE, False
        if not line.strip() or _RULE.match(line) or _ADORNMENT.fullmatch(line.rstrip()) or line.strip() == "::":
            self._opens_literal(number)
            return None, False
        if _EXPLICIT.match(line):
            return self._directive(line)
        return self._text(number, in_prose=in_prose)

    def _text(self, number: int, *, in_prose: bool) -> tuple[BlockKind, bool]:
        line = self.lines[number]
        if not in_prose and self._underlined(number):
            self._under = number + 1
            return BlockKind.HEADING, True
        if _HEADING.match(line):
            return BlockKind.HEADING, True
        if line.lstrip().startswith("|") or _GRID.match(line.lstrip()):
            return BlockKind.TABLE, False
        self._opens_literal(number)
        return BlockKind.PROSE, _FIELD.match(line) is not None

    def _opens_literal(self, number: int) -> None:
        """A paragraph that ends with `::` has a literal block below it."""
        line = self.lines[number]
        if line.rstrip().endswith("::") and not self._below(number).strip():
            self._literal, self._hidden, self._rows = _indent(line), False, False

    def _in_literal(self, number: int) -> tuple[BlockKind | None, bool] | None:
        line = self.lines[number]
        if self._literal is None:
            return None
        if line.strip() and _indent(line) <= self._literal:
            self._literal = None
            return None
        option = _FIELD.match(line) is not None and self._above(number).startswith("..")
        shown = BlockKind.TABLE if self._rows else BlockKind.FENCE
        return (None if self._hidden or option else shown), False

    def _fenced(self, line: str) -> tuple[BlockKind | None, bool] | None:
        opened = _FENCE.match(line) if self._literal is None else None
        if self._fence:
            if opened and opened.group(1).startswith(self._fence) and not line.strip(" \t`~"):
                self._fence, self._closed = "", True
            return BlockKind.FENCE, False
        after, self._closed = self._closed, False
        if opened is None:
            return None
        self._fence = opened.group(1)
        return BlockKind.FENCE, after

    def _directive(self, line: str) -> tuple[BlockKind | None, bool]:
        found = _DIRECTIVE.match(line)
        name = found[1].lower().rpartition(":")[2] if found else ""
        if name in _CODE_DIRECTIVES or name in _HIDDEN_DIRECTIVES:
            self._literal, self._hidden, self._rows = _indent(line), name in _HIDDEN_DIRECTIVES, False
        elif name in _TABLE_DIRECTIVES:
            self._literal, self._hidden, self._rows = _indent(line), False, True
        shown = found is not None and self._literal is None and bool((found[2] or "").strip())
        return (BlockKind.PROSE if shown else None), True

    def _opens_table(self, number: int) -> bool:
        """True for the border of a simple table; its lines are then known to its second border, or its third."""
        if not _BORDER.fullmatch(self.lines[number].rstrip()):
            return False
        nearby = range(number + 1, min(len(self.lines), number + _MAX_ROWS))
        ends = [*islice((one for one in nearby if _BORDER.fullmatch(self.lines[one].rstrip())), 2)]
        if not ends:
            return False
        self._table_until = (ends[0] if not self._below(ends[0]).strip() else ends[-1]) + 1
        return True

    def _underlined(self, number: int) -> bool:
        title, under = self.lines[number].strip(), self._below(number).rstrip()
        if not _ADORNMENT.fullmatch(under) or _marker_length(self.lines[number]):
            return False
        return len(under) >= (_SETEXT if under[0] in "=-" else max(_SETEXT, len(title)))

    def _above(self, number: int) -> str:
        """The nearest line above that is no option of a directive."""
        while number > 0 and _FIELD.match(self.lines[number]):
            number -= 1
        return self.lines[number].lstrip()

    def _below(self, number: int) -> str:
        return self.lines[number + 1] if number + 1 < len(self.lines) else ""


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _marker_length(line: str) -> int:
    """Length of a list or quote marker, or of an admonition's; 0 for a line that only goes on with its paragraph."""
    if admonition := _ADMONITION.match(line):
        return admonition.end()
    match = _MARKER.match(line)
    return match.end() if match and match.group().strip() else 0


def split_block(text: str, block: TextSpan) -> Iterator[TextSpan]:
    """The sentences of a block of prose."""
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
    return not (mark == "." and abbreviation().search(text, max(0, match.start() - _LOOK_BACK), match.start()))


@derived
def abbreviation() -> re.Pattern[str]:
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
