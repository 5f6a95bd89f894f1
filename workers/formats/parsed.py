"""What a format's parser gives, and the parts that several formats share. No third-party imports."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Any

#: As `shared.models.place.LineBox`.
LineBox = tuple[int, int, int, int, int]
#: Characters of text that one file may give: as many as a text file may have bytes.
MAX_TEXT_CHARS = 10_000_000
#: What is said of a page that has nothing to read.
NO_TEXT = "has no text"
#: Rows of one table of a sheet.
_SHEET_ROWS = 20
_SPACES = re.compile(r"[ \t\u00a0]+")
_LINES = re.compile(r"\n{3,}")
_LIKE_HEADING = re.compile(r"#{1,6}[ \t][^`\n]*+")
_CONTROLS = dict.fromkeys((*range(0x09), *range(0x0B, 0x20)))
_CONTROL_CHARACTERS = tuple(map(chr, _CONTROLS))


class FormatError(Exception):
    """A file cannot be read. The message is one sentence that ends in what to do."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """A passage of a file and its place in it: a page, a slide, a sheet with its rows; "" where there is none.

    `boxes` are those of the lines of a page: the offset in the text, left, bottom, right, top (`shared.models.place`).
    `gap` stands between it and the part before it.
    """

    text: str
    place: str = ""
    boxes: tuple[LineBox, ...] = ()
    gap: str = "\n\n"


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file as Markdown. `places` are (offset in the text, place) in order, `boxes` as in `FilePart`.

    `plain`: it is no Markdown, but lines as they are. `notes` say what was left out. `part` names it within its file,
    where that holds several documents, such as the messages of a box. `fields` are what the file says of itself beside
    title and date.
    """

    text: str
    title: str = ""
    date: str = ""
    places: tuple[tuple[int, str], ...] = ()
    boxes: tuple[LineBox, ...] = ()
    notes: tuple[str, ...] = ()
    fields: dict[str, str] = field(default_factory=dict)
    part: str = ""
    plain: bool = False
    #: Why a part of the file could not be read; such a one has no text.
    unread: str = ""

    def noted(self, note: str) -> Parsed:
        """The same with one more note."""
        return replace(self, notes=(note, *self.notes))

    def as_json(self) -> dict[str, Any]:
        """What travels from the parser's process."""
        return asdict(self)

    @classmethod
    def of_json(cls, sent: dict[str, Any]) -> Parsed:
        """What came from there. Raises: TypeError, ValueError or KeyError for anything else."""
        places = tuple((int(place), str(name)) for place, name in sent["places"])
        boxes = tuple((int(at), int(x), int(y), int(right), int(top)) for at, x, y, right, top in sent["boxes"])
        return cls(**{**sent, "places": places, "boxes": boxes, "notes": tuple(map(str, sent["notes"]))})


#: Bytes of a file and its name -> what it says, or its documents. Raises: FormatError.
Parser = Callable[[bytes, str], Parsed | Sequence[Parsed]]


def joined(parts: Iterable[FilePart], **about: Any) -> Parsed:
    """The parts, made tidy, one below the other. Raises: FormatError for too much text."""
    return assembled((replace(part, text=tidy(part.text)) for part in parts), **about)


def assembled(parts: Iterable[FilePart], **about: Any) -> Parsed:
    """Tidy parts one below the other, with the place at which each begins. Raises: FormatError for too much text."""
    text: list[str] = []
    places: list[tuple[int, str]] = []
    boxes: list[LineBox] = []
    length = 0
    for part in parts:
        body = part.text
        if not body:
            continue
        gap = part.gap if text else ""
        length += len(gap)
        if not places or places[-1][1] != part.place:
            places.append((length, part.place))
        boxes += [(length + line[0], *line[1:]) for line in part.boxes]
        text.append(gap + body)
        length += len(body)
        if length > MAX_TEXT_CHARS:
            raise FormatError(f"holds more than {MAX_TEXT_CHARS:,} characters of text: split it")
    named = tuple(place for place in places if place[1] or len(places) > 1)
    return Parsed("".join(text), places=named, boxes=tuple(boxes), **about)


#: When the empty files were written that python-docx and python-pptx begin with.
_TEMPLATES = frozenset({datetime(2013, 12, 23, 23, 15), datetime(2013, 1, 27, 9, 15, 58)})  # noqa: DTZ001 - as they say it


def about(properties: Any) -> dict[str, str]:
    """Title and day of the properties that an office file has of itself; the day of a library's template is none."""
    moment = properties.modified or properties.created
    moment = None if moment and moment.replace(tzinfo=None) in _TEMPLATES else moment
    return {"title": (properties.title or "").strip(), "date": moment.date().isoformat() if moment else ""}


def sheet_parts(name: str, rows: Iterable[tuple[int, Sequence[str]]]) -> Iterator[FilePart]:
    """A sheet below its name, as tables of a few rows each; each has the head, and its place says which rows."""
    title = heading(2, name)
    for first, last, text in tables_of(rows, _SHEET_ROWS):
        yield FilePart("\n\n".join(filter(None, (title, text))), f"sheet {name}, rows {first}-{last}")
        title = ""


def tidy(text: str) -> str:
    """Without control characters, trailing blanks, and runs of empty lines."""
    shown = text.replace("\r\n", "\n").replace("\r", "\n")
    if any(map(shown.__contains__, _CONTROL_CHARACTERS)):  # a look for each takes less than a pass for all
        shown = shown.translate(_CONTROLS)
    kept = "\n".join(line.rstrip() for line in shown.split("\n")).strip("\n")
    return _LINES.sub("\n\n", kept) if "\n\n\n" in kept else kept


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a Markdown table, the first one its head; rows shorter than the head are filled up."""
    width = max((len(row) for row in rows), default=0)
    if not width:
        return ""
    head, *body = [[cell(value) for value in row] + [""] * (width - len(row)) for row in rows]
    return "\n".join([_row(head), _row(["---"] * width), *map(_row, body)])


def cell(value: object) -> str:
    """One cell as a line of Markdown."""
    return _SPACES.sub(" ", str("" if value is None else value).replace("\n", " ").replace("|", "\\|")).strip()


def heading(level: int, text: str) -> str:
    """A Markdown heading; "" for none."""
    line = " ".join(text.split())
    return f"{'#' * min(max(level, 1), 6)} {line}" if line else ""


def unmarked(text: str) -> str:
    """A paragraph; one that would read as a heading, such as a command behind the prompt of root, as code."""
    return f"`{text}`" if _LIKE_HEADING.fullmatch(text) else text


def quoted(text: str, *said: str) -> str:
    """A comment as a quote; `said` is what stands before it, such as who wrote it. "" for one without text."""
    before = ", ".join(filter(None, (" ".join(one.split()) for one in said)))
    lines = f"{before}: {text.strip()}".removeprefix(": ").split("\n")
    return "\n".join(f"> {line}" for line in lines) if text.strip() else ""


def tables_of(rows: Iterable[tuple[int, Sequence[str]]], size: int) -> Iterator[tuple[int, int, str]]:
    """Tables of at most `size` rows each below the same head: the numbers of first and last row, and the table.

    `rows` are (number, cells), the first one the head.
    """
    listed = iter(rows)
    head = next(listed, None)
    if head is None:
        return
    held = list(islice(listed, size))
    if not held:
        yield head[0], head[0], table([head[1]])
    while held:
        yield held[0][0], held[-1][0], table([head[1], *(cells for _, cells in held)])
        held = list(islice(listed, size))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
