"""PDF by pypdfium2: text in reading order, page by page. A page without text is named, since it needs OCR."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pypdfium2 as pdfium

from workers.formats.parsed import FilePart, FormatError, Parsed, joined

_MAX_PAGES = 5_000
_MOST_NAMED = 8
_HYPHEN = re.compile(r"(?<=[a-z])[\u00ad\ufffe-]\n(?=[a-z])")
_CJK = "\u3000-\u303f\u3400-\u9fff\uff00-\uffef"
_CJK_BREAK = re.compile(rf"(?<=[{_CJK}])\n(?=[{_CJK}])")
_BREAK = re.compile(r"(?<=[^\n.!?:;。！？：；])\n(?=[a-z(])")
_DATE = re.compile(r"D?:?(\d{4})(\d{2})(\d{2})")
#: A line at the edge of so many pages, and of this share of them, is a running head.
_RUNNING_PAGES, _RUNNING_SHARE = 4, 0.5
_LONGEST_EDGE = 80
_SENTENCE_ENDS = (".", "!", "?", ":", ";", ",", "\u3002", "\uff01", "\uff1f")
_DIGITS = re.compile(r"\d+")


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
        if len(document) > _MAX_PAGES:
            raise FormatError(f"has {len(document):,} pages, more than {_MAX_PAGES:,}: split it")
        pages = [_text_of(document, number) for number in range(len(document))]
        about = document.get_metadata_dict()
    finally:
        document.close()
    silent = [number for number, text in enumerate(pages, start=1) if not text.strip()]
    if len(silent) == len(pages):
        raise FormatError("has no text, only pictures: it needs OCR (for example ocrmypdf)")
    parts = (FilePart(_flowing(text), f"p. {number}") for number, text in enumerate(_without_running(pages), start=1))
    date = _DATE.match(about.get("CreationDate", "") or "")
    return joined(
        parts,
        title=about.get("Title", "").strip(),
        date="-".join(date.groups()) if date else "",
        notes=(_needs_ocr(silent),) if silent else (),
    )


def _text_of(document: pdfium.PdfDocument, number: int) -> str:
    page = document[number]
    try:
        text = page.get_textpage()
        try:
            return str(text.get_text_bounded()).replace("\r\n", "\n")
        finally:
            text.close()
    except pdfium.PdfiumError:
        return ""
    finally:
        page.close()


def _without_running(pages: list[str]) -> Iterator[str]:
    """The pages without the lines that stand at the head or foot of most of them, page numbers included."""
    lines = [page.strip("\n").split("\n") for page in pages]
    edges = Counter(key for page in lines for key in {_edge(page[0]), _edge(page[-1])} if key)
    least = max(_RUNNING_PAGES, _RUNNING_SHARE * len(pages))
    running = {edge for edge, count in edges.items() if count >= least}
    for page in lines:
        first, last = 0, len(page)
        while last - first > 1 and _edge(page[first]) in running:
            first += 1
        while last - first > 1 and _edge(page[last - 1]) in running:
            last -= 1
        yield "\n".join(page[first:last])


def _edge(line: str) -> str:
    """What is the same in a running head on all pages; "" for what is a sentence."""
    line = line.strip()
    return "" if len(line) > _LONGEST_EDGE or line.endswith(_SENTENCE_ENDS) else _DIGITS.sub("#", line)


def _flowing(text: str) -> str:
    """Paragraphs whose lines the page broke, joined; a word that a hyphen parted is whole again."""
    text = _CJK_BREAK.sub("", _HYPHEN.sub("", text.replace("\ufffe", "-")))
    return _BREAK.sub(" ", text)


def _needs_ocr(pages: list[int]) -> str:
    named = ", ".join(str(number) for number in pages[:_MOST_NAMED])
    more = f" and {len(pages) - _MOST_NAMED} more" if len(pages) > _MOST_NAMED else ""
    return f"page {named}{more} without text: needs OCR"
