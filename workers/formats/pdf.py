"""PDF by pypdfium2: text in reading order, page by page, each line with its box. A page without text needs OCR."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from ctypes import CFUNCTYPE, byref, c_double, c_int, c_ushort, c_void_p, cast, sizeof
from dataclasses import replace
from itertools import pairwise
from math import ceil, floor
from typing import NamedTuple

import pypdfium2 as pdfium
from pypdfium2 import raw

from workers.formats import ocr
from workers.formats.parsed import FilePart, FormatError, LineBox, Parsed, assembled, tidy

_MOST_NAMED = 8
# A pattern that begins with what it seeks is found without a look behind every character.
_HYPHEN = re.compile(r"[\u00ad\ufffe-]\n(?<=[a-z].\n)(?=[a-z])")
_CJK = "\u3000-\u303f\u3400-\u9fff\uff00-\uffef"
_CJK_BREAK = re.compile(rf"\n(?<=[{_CJK}]\n)(?=[{_CJK}])")
_BULLETS = "•◦▪‣●∙"
_BULLET = re.compile(rf"^[ \t]*+[{_BULLETS}][ \t]++", re.MULTILINE)
_TORN = re.compile(r"[\w,]\n[a-z(]")
_CJK_TORN = re.compile(rf"[\u3400-\u9fff，、]\n[{_CJK}]")
_BREAK = re.compile(r"\n(?<=[^\n.!?:;。！？：；]\n)(?=[a-z(])")
_DATE = re.compile(r"D?:?(\d{4})(\d{2})(\d{2})")
#: A line at the edge of so many pages, and of this share of them, is a running head.
_RUNNING_PAGES, _RUNNING_SHARE = 4, 0.5
_LONGEST_EDGE = 80
_SENTENCE_ENDS = (".", "!", "?", ":", ";", ",", "\u3002", "\uff01", "\uff1f")
_DIGITS = re.compile(r"\d+")
#: Where pdfium has joined two lines whose word a hyphen parted.
_JOINED = "\x02"
#: Characters of a line by which it is found in the flowing text, and within which of the line before.
_ANCHOR, _WINDOW = 32, 400
#: Room between two lines beyond which they are two paragraphs: times the middle one of the page, and points.
_MOST_GAP, _SLACK = 1.4, 3
#: Line ends, a page without a character, and the end of a text: what the text of a page may have beyond two for each.
_MORE = 64
#: A line in more parts than that is measured at its ends and in its middle.
_MOST_RECTS = 3
Box = tuple[int, int, int, int]


class _Line(NamedTuple):
    text: str
    box: Box | None


def parse(content: bytes, name: str) -> Parsed:
    """Raises: FormatError for an encrypted, broken or endless file, and for one that has no text at all."""
    del name
    try:
        document = pdfium.PdfDocument(content)
    except pdfium.PdfiumError as error:
        if "password" in str(error).lower():
            raise FormatError("is encrypted: save a copy without a password") from None
        raise FormatError("is no PDF that can be read (broken or truncated): save it anew") from None
    try:
        read = [_lines_of(document, number) for number in range(len(document))]
        silent = [n for n, lines in enumerate(read, start=1) if lines == [] and not _is_blank(document, n - 1)]
        seen = ocr.texts_of(document, silent) if silent and ocr.installed() else {}
        about = document.get_metadata_dict()
    finally:
        document.close()
    pages = [lines or [] for lines in read]
    for number, text in seen.items():
        pages[number - 1] = [_Line(line, None) for line in text.split("\n") if line]
    broken = [number for number, lines in enumerate(read, start=1) if lines is None]
    notes = _notes([number for number in silent if number not in seen], broken, len(pages), len(seen))
    if not any(pages):
        raise FormatError(notes[0] if notes else "has pages without text: leave it out")
    parts = _running_on(_page(lines, number) for number, lines in enumerate(_without_running(pages), start=1))
    date = _DATE.match(about.get("CreationDate", "") or "")
    return assembled(
        parts,
        plain=True,
        title=about.get("Title", "").strip(),
        date="-".join(date.groups()) if date else "",
        notes=notes,
    )


def _lines_of(document: pdfium.PdfDocument, number: int) -> list[_Line] | None:
    """None for a page that is broken."""
    try:
        page = document[number]
    except pdfium.PdfiumError:
        return None
    try:
        text = page.get_textpage()
        try:
            return _boxed(text, _within_page(text))
        finally:
            text.close()
    except pdfium.PdfiumError:
        return None
    finally:
        page.close()


def _within_page(page: pdfium.PdfTextPage) -> str:
    """What `get_text_bounded` gives; that has pdfium make the text twice, the first time to know its length."""
    most = 2 * page.count_chars() + _MORE
    written = (c_ushort * most)()
    left, bottom, right, top = page.page.get_bbox()
    length = raw.FPDFText_GetBoundedText(page.raw, left, top, right, bottom, written, most)
    if length >= most:
        return str(page.get_text_bounded())
    return bytes(memoryview(written)[:length]).decode("utf-16-le", "ignore").rstrip("\0")


def _is_blank(document: pdfium.PdfDocument, number: int) -> bool:
    """True for a page that holds nothing, not even a picture, such as those between the chapters of a book."""
    page = document[number]
    try:
        return int(raw.FPDFPage_CountObjects(page.raw)) == 0
    finally:
        page.close()


def _boxed(page: pdfium.PdfTextPage, within: str) -> list[_Line]:
    """The lines of a page's text with their boxes on it; none where there is no text."""
    if not within.strip():
        return []
    text, reached, found, around = str(page.get_text_range()), 0, list[_Line](), _Boxes(page).around
    lines = within.replace("\r\n", "\n").strip("\n")
    shown = lines.replace(_JOINED, "\ufffe") if _JOINED in lines else lines
    for line, same in zip(lines.split("\n"), shown.split("\n"), strict=True):
        length = len(line)
        start = -1 if not line or line.isspace() else text.find(same, reached, reached + _WINDOW + length)
        if start >= 0:
            reached = start + length
        found.append(_Line(line, around(start, length) if start >= 0 else None))
    return found


#: pdfium's own functions, unchecked: numbers and addresses that are made once take ctypes a third of the time.
_count_rects = CFUNCTYPE(c_int)(cast(raw.FPDFText_CountRects, c_void_p).value or 0)
_get_rect = CFUNCTYPE(c_int)(cast(raw.FPDFText_GetRect, c_void_p).value or 0)


class _Boxes:
    """Where the characters of a page's text stand on it."""

    def __init__(self, page: pdfium.PdfTextPage) -> None:
        self._raw, self._page = page.raw, byref(page.raw.contents)
        edges = (c_double * 4)()  # as in Box; pdfium wants to know where left, top, right and bottom go
        self._edges = memoryview(edges).cast("B").cast("d")
        self._into = [byref(edges, place * sizeof(c_double)) for place in (0, 3, 2, 1)]
        last = page.count_chars() - 1
        # Characters are in the text in their order: where the last one has its own number, all have.
        self._all_shown = raw.FPDFText_GetCharIndexFromTextIndex(self._raw, last) == last

    def around(self, start: int, length: int) -> Box | None:
        """Around characters of the text, in whole points."""
        page, edges, into = self._page, self._edges, self._into
        first = start if self._all_shown else raw.FPDFText_GetCharIndexFromTextIndex(self._raw, start)
        count = _count_rects(page, first, length) if first >= 0 else 0
        if not count or not _get_rect(page, 0, *into):
            return None
        left, bottom, right, top = edges.tolist()
        for index in range(1, count) if count <= _MOST_RECTS else (count // 2, count - 1):
            if _get_rect(page, index, *into):
                x, y, until, above = edges.tolist()
                left, bottom = min(left, x), min(bottom, y)
                right, top = max(right, until), max(top, above)
        return floor(left), floor(bottom), ceil(right), ceil(top)


def _without_running(pages: list[list[_Line]]) -> Iterator[list[_Line]]:
    """The pages without the lines that stand at the head or foot of most of them, page numbers included."""
    edges = Counter(key for page in pages if page for key in {_edge(page[0].text), _edge(page[-1].text)} if key)
    least = max(_RUNNING_PAGES, _RUNNING_SHARE * len(pages))
    running = {edge for edge, count in edges.items() if count >= least}
    for page in pages:
        first, last = 0, len(page)
        while last - first > 1 and _edge(page[first].text) in running:
            first += 1
        while last - first > 1 and _edge(page[last - 1].text) in running:
            last -= 1
        yield page[first:last]


def _page(lines: list[_Line], number: int) -> FilePart:
    """A page as flowing text, with the box of each line that is found in it."""
    text, reached = tidy(_flowing(_with_gaps(lines))), 0
    boxes: list[LineBox] = []
    for line in lines:
        words = line.text.strip()
        words = (_BULLET.sub("", words) if words[:1] in _BULLETS else words)[:_ANCHOR]
        words = words.partition(_JOINED)[0].rstrip("\u00ad\ufffe-").rstrip()
        place = text.find(words, reached, reached + _WINDOW + len(line.text)) if words else -1
        if place >= 0:
            reached = place + len(words)
            if line.box is not None:
                boxes.append((place, *line.box))
    return FilePart(text, f"p. {number}", tuple(boxes))


def _with_gaps(lines: list[_Line]) -> str:
    """The lines, with an empty one where the page leaves more room than between most: behind a heading, a paragraph.

    Blanks at their ends would stand within a sentence, where two columns of a table are told by them.
    """
    gaps = [
        above.box[1] - below.box[3] if above.box is not None and below.box is not None else None
        for above, below in pairwise(lines)
    ]
    known = sorted(gap for gap in gaps if gap is not None and gap >= 0)
    widest = _MOST_GAP * known[(len(known) - 1) // 2] + _SLACK if known else 0
    parted = ["\n\n" if gap is not None and gap > widest else "\n" for gap in gaps]
    return "".join(line.text.rstrip() + gap for line, gap in zip(lines, [*parted, ""], strict=False))


def _edge(line: str) -> str:
    """What is the same in a running head on all pages; "" for what is a sentence."""
    line = line.strip()
    return "" if len(line) > _LONGEST_EDGE or line.endswith(_SENTENCE_ENDS) else _DIGITS.sub("#", line)


def _flowing(text: str) -> str:
    """Paragraphs whose lines the page broke, joined; a word that a hyphen parted is whole again, bullets are items."""
    text = _CJK_BREAK.sub("", _HYPHEN.sub("", text.replace("\ufffe", "-")))
    text = _BREAK.sub(" ", text)
    return _BULLET.sub("- ", text) if any(map(text.__contains__, _BULLETS)) else text


def _running_on(parts: Iterable[FilePart]) -> Iterator[FilePart]:
    """The pages; a sentence that goes on with the next page is not torn."""
    before = ""
    for part in parts:
        edge = f"{before[-1:]}\n{part.text[:1]}"
        before = part.text or before
        yield replace(part, gap="" if _CJK_TORN.match(edge) else " " if _TORN.match(edge) else part.gap)


def _notes(silent: list[int], broken: list[int], pages: int, read: int) -> tuple[str, ...]:
    """What is to be said of pages that are pictures, by whether OCR has read them, and of broken ones."""
    found = [f"{read} of {pages} pages were read by OCR"] if read else []
    if broken:
        found.insert(0, f"{len(broken)} of {pages} pages are broken ({_named(broken)}): save it anew")
    if silent:
        what = "there was no time for them: split it" if ocr.installed() else ocr.EXTRA
        found.insert(0, f"needs OCR: {len(silent)} of {pages} pages have no text ({_named(silent)}): {what}")
    return tuple(found)


def _named(pages: list[int]) -> str:
    more = f" and {len(pages) - _MOST_NAMED} more" if len(pages) > _MOST_NAMED else ""
    return f"page {', '.join(map(str, pages[:_MOST_NAMED]))}{more}"
