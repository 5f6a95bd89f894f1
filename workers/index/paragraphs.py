"""Cuts a text into runs of lines that stand together, each with the heading right above, for its fields. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from workers.labelled import is_known, is_rule, labelled, opened

#: Lines that are looked at, and characters of one.
_MOST_LINES, _MOST_CHARS = 2000, 500
#: Items of a list below a name that are its values.
_MOST_ITEMS = 16
_FENCE = re.compile(r"\s{0,3}(?:>\s?)*(`{3,}|~{3,15}(?!~))")
_HEADING = re.compile(r"\s{0,3}(#{1,6})\s++((?:[^\s#:：]++|[\s#:：]++(?=[^\s#:：]))*+)[\s#:：]*+")
_UNDERLINE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}\s*")
_BORDER = re.compile(r"\s*=+(?: +=+)+\s*")
_GRID = re.compile(r"\s*\+(?:[-=]+\+)+\s*")
_COMMENT = re.compile(r"^\s*<!--+|(?<!-)--+>\s*$")
_ITEM = re.compile(r"\s*[-*+•]\s")
_DEFINITION = re.compile(r"\s{0,3}:\s+(?=\S)")


class Paragraph(NamedTuple):
    """Lines between empty ones, and the heading right above them, which is "" for the title of the text."""

    heading: str
    lines: Sequence[str]


def paragraphs(text: str) -> Iterator[Paragraph]:
    """Runs of lines between empty lines, headings, rules and fences; a table is one of its own."""
    cutter = _Cutter()
    for line in _lines(text):
        if not cutter.goes_on(line):
            yield from cutter.add(line)
    yield from cutter.end()


class _Cutter:
    """One pass over the lines."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._fence = self._heading = ""
        self._titled = False

    def goes_on(self, line: str) -> bool:
        """True for a line that begins without a mark, as most do: it is taken, and no paragraph ends before it."""
        if self._fence or not line.lstrip()[:1].isalnum() or (self._lines and self._in_table()):
            return False
        self._lines.append(line)
        return True

    def _in_table(self) -> bool:
        return self._lines[0].lstrip().startswith("|")

    def add(self, line: str) -> Iterator[Paragraph]:
        """The paragraph that ends with this line, if one does."""
        if not self._fence and line.lstrip()[:1].isalnum():  # what all below begins with a mark
            yield from self.end()
            self._lines.append(line)
            return
        if not (self._fence or line.strip()):
            yield from self.end()
            return
        if self._underlines(line):
            self._heading = self._lines.pop().strip() if self._titled else ""
            self._lines, self._titled = [], True
            return
        if mark := _FENCE.match(line):
            self._fence = "" if self._fence and mark[1].startswith(self._fence) else self._fence or mark[1]
        table = line.lstrip().startswith("|")
        level = None if self._fence else _HEADING.fullmatch(line)
        rule = is_rule(line) and not table
        if self._lines and rule and self._in_table() and _GRID.fullmatch(line):
            return
        ends = bool(mark or self._fence or level or rule)
        if self._lines and (ends or table != self._in_table()):
            yield from self.end()
        if level:
            self._heading, self._titled = (level[2] if len(level[1]) > 1 else ""), True
        elif mark or self._fence or rule:
            self._heading = ""
        elif not ends:
            self._lines.append(line)

    def end(self) -> Iterator[Paragraph]:
        """What was read so far, if anything. A last line such as "Owners:" is the heading of what follows."""
        if not self._lines:
            return
        text = "\n".join(self._lines)
        lines = list(_joined(self._lines)) if ":" in text or "：" in text else self._lines
        heading, self._heading, self._lines = self._heading, "", []
        if name := opened(lines[-1]):
            self._heading = name if is_known(name) else ""
            lines.pop()
        if lines:
            yield Paragraph(heading, lines)

    def _underlines(self, line: str) -> bool:
        """True for the line below a title, as Setext and reStructuredText have it."""
        if len(self._lines) != 1 or self._fence or _UNDERLINE.fullmatch(line) is None:
            return False
        title = self._lines[0].strip()
        fence = _FENCE.match(line) is not None
        return not labelled(title) and not title.startswith("|") and (not fence or len(line.strip()) >= len(title))


def _joined(lines: Sequence[str]) -> Iterator[str]:
    """The lines; a name with its value below it, as lists of definitions and of fields have it, on one line."""
    place = 0
    while place < len(lines):
        line, values = lines[place], list[str]()
        name = opened(line)
        if not name and not (place + 1 < len(lines) and lines[place + 1].lstrip().startswith(":")):
            yield line
            place += 1
            continue
        indent = len(line) - len(line.lstrip())
        for below in lines[place + 1 : place + 1 + _MOST_ITEMS]:
            deeper = len(below) - len(below.lstrip()) > indent
            item = _ITEM.match(below)
            if name and (deeper or (item and not _ITEM.match(line))) and not labelled(below):
                values.append(below[item.end() if item else 0 :].strip())
            elif not name and (said := _DEFINITION.match(below)):
                values.append(below[said.end() :].strip())
            else:
                break
        joint = " " if name else ": "
        yield f"{line.rstrip()}{joint}{'; '.join(values)}" if values else line
        place += 1 + len(values)


def _lines(text: str) -> Iterator[str]:
    """The lines without the marks of comments; simple tables of reStructuredText with bars between their cells."""
    starts: list[int] = []
    for whole in text.split("\n", _MOST_LINES)[:_MOST_LINES]:
        line = whole[:_MOST_CHARS]
        if "=" in line and _BORDER.fullmatch(line):
            starts = [found.start() for found in re.finditer("=+", line)]
            yield "|-|-|"
        elif starts and line.strip():
            cells = (line[start:stop].strip() for start, stop in zip(starts, [*starts[1:], None], strict=True))
            yield f"| {' | '.join(cells)} |"
        else:
            starts = []
            yield _COMMENT.sub("", line) if "--" in line else line
