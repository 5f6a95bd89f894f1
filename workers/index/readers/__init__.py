"""One reader a file, found by suffix. A file that cannot be read becomes a failed outcome, never an exception."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from shared.models import DocumentOutcome, RawDocument
from shared.models.ingest import CODE_SUFFIXES, FORMATS
from shared.plugins import suffixes_of_readers
from workers.index.documents import Document
from workers.index.readers.base import Reader, UnreadableError, failed
from workers.index.readers.formats import Parse, parsers, read_format
from workers.index.readers.jsonl import read_jsonl
from workers.index.readers.markdown import read_markdown
from workers.index.readers.text import read_code, read_rst, read_text

__all__ = ["READERS", "Reader", "UnreadableError", "is_parsed", "read_all", "read_documents"]

#: Blank files up to this size have nothing to find, and are no failures: many a list of a package is one line break.
_BLANK_BYTES = 64
#: A file and what became of it.
ReadFile = tuple[RawDocument, list[Document | DocumentOutcome]]

#: Suffix, lower case with its dot -> reader.
READERS: Mapping[str, Reader] = {
    ".md": read_markdown,
    ".markdown": read_markdown,
    **dict.fromkeys((".txt", ".text", ".adoc", ".asciidoc", ".org", ".tex", ".log"), read_text),
    ".rst": read_rst,
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    **dict.fromkeys(sorted(CODE_SUFFIXES), read_code),
    **dict.fromkeys(FORMATS, read_format),
}


def read_all(batch: Sequence[RawDocument], max_bytes: int) -> list[ReadFile]:
    """Each file with what `read_documents` makes of it; what processes parse, several at a time."""
    parsed = [raw for raw in batch if is_parsed(raw)]
    if len(parsed) < 2:
        return [(raw, read_documents(raw, max_bytes)) for raw in batch]
    with ThreadPoolExecutor(min(parsers().size, len(parsed))) as threads:
        waiting = {id(raw): threads.submit(read_documents, raw, max_bytes) for raw in parsed}
        return [
            (raw, waiting[id(raw)].result() if id(raw) in waiting else read_documents(raw, max_bytes)) for raw in batch
        ]


def is_parsed(raw: RawDocument) -> bool:
    """True for what a parser reads in a process of its own."""
    return _reader_of(raw) is read_format


def read_documents(raw: RawDocument, max_bytes: int, parse: Parse | None = None) -> list[Document | DocumentOutcome]:
    """The documents of a file, in its order, and failed outcomes for what cannot be read; of a small blank one none.

    `parse` reads what is no text; None: the processes do.
    """
    reader = _reader_of(raw)
    if reader is None:
        return [failed(raw, f"no reader for {raw.suffix or 'a file without suffix'}: there is {', '.join(READERS)}")]
    if len(raw.content) > max_bytes:
        size = f"is {len(raw.content)} bytes, more than {max_bytes}"
        return [failed(raw, f"{size}: split it, or raise chunking.max_document_bytes")]
    if len(raw.content) <= _BLANK_BYTES and not raw.content.strip():
        return []
    try:
        return list(read_format(raw, parse) if reader is read_format else reader(raw))
    except UnreadableError as error:
        return [failed(raw, str(error))]


def _reader_of(raw: RawDocument) -> Reader | None:
    suffix = raw.suffix.lower()
    return read_format if suffix in suffixes_of_readers() else READERS.get(suffix)
