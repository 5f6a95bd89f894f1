"""PDF by pypdfium2: text in reading order, page by page. A page without text is named, since it needs OCR."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pypdfium2 as pdfium

from workers.index.formats.parsed import FormatError, Parsed, Part, joined

_MAX_PAGES = 5_000
_MOST_NAMED = 8
_HYPHEN = re.compile(r"(?<=[a-z])[\u00ad\ufffe-]\n(?=[a-z])")
_CJK = "\u3000-\u303f\u3400-\u9fff\uff00-\uffef"
_CJK_BREAK = re.compile(rf"(?<=[{_CJK}])\n(?=[{_CJK}])")
_BREAK = re.compile(r"(?<=[^\n.!?:;。！？：；])\n(?=[a-z(])")
_DATE = re.compile(r"D?:?(\d{4})(\d{2})(\d{2})")
#: A line at the edge of so many pages, and of this share of them, is a running head.
_RUNNING_PAGES, _RUNNING_SHARE = 4, 0.5
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
    parts = (Part(_flowing(text), f"p. {number}") for number, text in enumerate(_without_running(pages), start=1))
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
    """The pages without the line that stands at the head or foot of most of them, page numbers included."""
    lines = [page.strip("\n").split("\n") for page in pages]
    edges = Counter(_DIGITS.sub("#", edge.strip()) for page in lines for edge in {page[0], page[-1]} if edge.strip())
    least = max(_RUNNING_PAGES, _RUNNING_SHARE * len(pages))
    running = {edge for edge, count in edges.items() if count >= least}
    for page in lines:
        while page and _DIGITS.sub("#", page[0].strip()) in running:
            page = page[1:]
        while page and _DIGITS.sub("#", page[-1].strip()) in running:
            page = page[:-1]
        yield "\n".join(page)


def _flowing(text: str) -> str:
    """Paragraphs whose lines the page broke, joined; a word that a hyphen parted is whole again."""
    text = _CJK_BREAK.sub("", _HYPHEN.sub("", text.replace("\ufffe", "-")))
    return _BREAK.sub(" ", text)


def _needs_ocr(pages: list[int]) -> str:
    named = ", ".join(str(number) for number in pages[:_MOST_NAMED])
    more = f" and {len(pages) - _MOST_NAMED} more" if len(pages) > _MOST_NAMED else ""
    return f"page {named}{more} without text: needs OCR"
