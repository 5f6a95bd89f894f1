"""A passage of a document, marked; of a PDF whose file is at hand the page, with the passage framed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi.responses import Response

from orchestrator.server.page.pdf_page import PageImage, page_image
from orchestrator.server.page.visitor import Visitor
from shared.models.corpus import Passage, PassageMark, StoredDocument

_SUFFIX = ".pdf"


def passage_page(visitor: Visitor, passage: Passage, *, whole: bool = False, back: str = "") -> Response:
    """The page of a passage."""
    image = image_of(visitor, passage)
    context: dict[str, Any] = {"image": "", "image_size": (0, 0)}
    if image is not None:
        box = ",".join(map(str, passage.place.box or ()))
        address = f"/corpus/documents/{quote(passage.document.doc_id, safe='')}/pages/{passage.place.page}.png"
        context = {"image": f"{address}?box={box}", "image_size": image.size}
    pieces = list(marked(passage.text, passage.start, passage.marks))
    return visitor.page("passage.html", passage=passage, marked=pieces, whole=whole, back=back, **context)


def marked(text: str, start: int, marks: tuple[PassageMark, ...]) -> Iterator[tuple[str, bool]]:
    """`text`, which begins at the document's offset `start`, parted into what is marked and what is not."""
    at = 0
    for mark in sorted(marks, key=lambda mark: mark.start):
        first, last = max(at, mark.start - start), min(len(text), mark.end - start)
        if first >= last:
            continue
        if first > at:
            yield text[at:first], False
        yield text[first:last], True
        at = last
    if at < len(text):
        yield text[at:], False


def image_of(visitor: Visitor, passage: Passage) -> PageImage | None:
    """The page on which a passage begins; None where its file is none of this machine, or cannot be drawn."""
    place, file = passage.place, original(visitor, passage.document)
    return page_image(file, place.page, place.box) if file and place.page else None


def original(visitor: Visitor, document: StoredDocument) -> Path | None:
    """The PDF that a document was read from. A remote caller is shown no files of this machine.

    The path is put together of what the store has; it must not lead out of the folder that was ingested.
    """
    root, below = Path(document.source.removeprefix(f"{document.namespace}:")), document.path.partition("/")[2]
    if visitor.caller.remote or document.suffix != _SUFFIX or not root.is_absolute():
        return None
    with suppress(OSError, ValueError):
        file = (root / below if root.is_dir() else root).resolve(strict=True)
        if file.is_file() and file.suffix.lower() == _SUFFIX and file.is_relative_to(root.resolve()):
            return file
    return None
