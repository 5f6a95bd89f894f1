"""EPUB: the chapters in the order of the book's spine."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote
from zipfile import ZipFile

from defusedxml.ElementTree import ParseError, fromstring

from workers.formats.archive import checked_archive, member
from workers.formats.html import title_of, tree_of, whole_text
from workers.formats.parsed import FilePart, FormatError, Parsed, joined

_CONTAINER = "META-INF/container.xml"


def parse(content: bytes, name: str) -> Parsed:
    """Raises: FormatError for a book that is locked or has no chapters."""
    del name
    archive = checked_archive(content)
    if member(archive, "META-INF/encryption.xml") and member(archive, "META-INF/rights.xml"):
        raise FormatError("is locked by DRM: ingest a copy without it")
    root = _xml(member(archive, _CONTAINER), _CONTAINER).find(".//{*}rootfile")
    path = root.get("full-path", "") if root is not None else ""
    book = _xml(member(archive, path), path or "the package file")
    title, date = (book.findtext(f".//{{*}}{tag}") or "" for tag in ("title", "date"))
    return joined(_chapters(archive, path, book), title=title.strip(), date=date[:10] if date[4:5] == "-" else "")


def _chapters(archive: ZipFile, path: str, book: Any) -> Iterator[FilePart]:
    items = {item.get("id"): item.get("href", "") for item in book.iterfind(".//{*}manifest/{*}item")}
    spine = [items.get(ref.get("idref"), "") for ref in book.iterfind(".//{*}spine/{*}itemref")]
    for number, href in enumerate(spine, start=1):
        content = member(archive, posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(href))))
        if content.strip():
            name = title_of(tree_of(content))
            yield FilePart(whole_text(content), f"chapter {number}{f' ({name})' if name else ''}")


def _xml(content: bytes, name: str) -> Any:
    try:
        return fromstring(content)
    except (ParseError, ValueError):
        raise FormatError(f"its {name} cannot be read: save the book anew") from None
