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

#: What `epub:type` says of pages that are no chapters, and of those that are.
_FRONT = frozenset({"titlepage", "cover", "frontmatter", "toc", "copyright-page", "halftitlepage"})
_CHAPTERS = frozenset({"bodymatter", "chapter", "part", "preface", "introduction", "prologue", "foreword"})
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
    number = 0
    for href in spine:
        content = member(archive, posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(href))))
        if content.strip():
            tree = tree_of(content)
            name, front = _name_of(tree, href), _is_front(tree)
            number += not front
            place = f"{'front matter' if front else f'chapter {number}'}{f' ({name})' if name else ''}"
            yield FilePart(whole_text(content), place)


def _name_of(tree: Any, href: str) -> str:
    """What a chapter calls itself; pandoc gives it the name of its file as a title, so that its heading counts."""
    title = title_of(tree)
    if title != posixpath.basename(unquote(href)):
        return title
    first = next(tree.iter("h1", "h2", "h3"), None)
    return " ".join(first.text_content().split()) if first is not None else ""


def _is_front(tree: Any) -> bool:
    """True for a title page, a cover or a table of contents, as their sections are marked; no chapter of the book."""
    kinds = {kind for each in tree.iter("body", "section", "nav") for kind in (each.get("epub:type") or "").split()}
    return bool(kinds & _FRONT) and not kinds & _CHAPTERS


def _xml(content: bytes, name: str) -> Any:
    try:
        return fromstring(content)
    except (ParseError, ValueError):
        raise FormatError(f"its {name} cannot be read: save the book anew") from None
