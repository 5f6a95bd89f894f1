"""Documents as a process makes them of files: read, cut and with keyword vectors. Its replies, and how they are held.

The functions that a process is asked for (`workers.formats.process`) are `make` and `encode`. A parser may be taken
over by the file that it reads: what it says of a document's id is held against the file, and its text is bytes like
those of the file itself.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from shared.models import Chunk, DocumentOutcome, DocumentStatus, RawDocument
from shared.models.base import Model
from shared.models.corpus import DocumentSize
from shared.models.ingest import LINES
from shared.settings.sections import ChunkingSettings
from workers.formats.process import parsed
from workers.index.cutting import CutDocument, cut
from workers.index.documents import Document, chunk_id, document_hash, document_id, file_id, prune_scope
from workers.index.given_metadata import with_given
from workers.index.keywords import KeywordEncoders, packed, unpacked
from workers.index.readers import read_documents

_LENGTH = struct.Struct("<Q")
#: Chunks that are encoded where they were made.
_ENCODED = 256
#: What is made of files: of each its documents and failed outcomes, and how the documents are cut, by their ids.
MadeFiles = tuple[list[list[Document | DocumentOutcome]], dict[str, CutDocument]]


class _MadeDocument(Model):
    """A document without its text, and its CutDocument without vectors."""

    document: Document
    content_hash: str
    chunks: tuple[Chunk, ...]
    fault: str
    rests: tuple[tuple[tuple[int, str], ...], ...]
    size: DocumentSize


class _MadeReply(Model):
    """Of each file its items."""

    files: tuple[tuple[_MadeDocument | DocumentOutcome, ...], ...]


def asked_of(
    raws: Sequence[RawDocument], parsers: int, sizes: ChunkingSettings, encoders: KeywordEncoders | None
) -> tuple[dict[str, Any], bytes]:
    """What `make` is asked, and the contents. `parsers`: how many of the files a parser reads."""
    asked = {
        "raws": [raw.model_dump(mode="json", exclude={"content"}) for raw in raws],
        "lengths": [len(raw.content) for raw in raws],
        "files": parsers,
        "sizes": sizes.model_dump(mode="json"),
        "encoders": _said(encoders),
    }
    return asked, b"".join(raw.content for raw in raws)


def make(asked: Mapping[str, Any], content: bytes, /, *, is_read: Callable[[], None]) -> Sequence[bytes]:
    """In the process: the documents of files, cut, and their keyword vectors if it is told the encoders.

    Not those of more chunks than _ENCODED: these are for several processes.
    """
    sizes, rest = ChunkingSettings.model_validate(asked["sizes"]), memoryview(content)
    read = []
    for said, length in zip(asked["raws"], asked["lengths"], strict=True):
        raw = RawDocument(content=content if length == len(content) else bytes(rest[:length]), **said)
        rest = rest[length:]
        read.append(with_given(raw, read_documents(raw, sizes.max_document_bytes, parsed)))
    is_read()
    files = [[_made(item, sizes) if isinstance(item, Document) else item for item in items] for items in read]
    vectors = b""
    chunks = [chunk for items in files for one in items if isinstance(one, _MadeDocument) for chunk in one.chunks]
    if (encoders := _encoders(asked["encoders"])) and len(chunks) <= _ENCODED:
        vectors = packed(encoders.vectors(chunk.full_text) for chunk in chunks)
    made = _MadeReply.model_construct(files=tuple(map(tuple, files)))
    reply = made.__pydantic_serializer__.to_json(made, exclude_defaults=True)
    return _LENGTH.pack(len(reply)), reply, vectors


def made_files(raws: Sequence[RawDocument], reply: memoryview) -> MadeFiles:
    """What a process says to have made of these files. Raises: ValueError for what it cannot have."""
    (length,), start = _LENGTH.unpack_from(reply), _LENGTH.size
    said = _MadeReply.model_validate_json(bytes(reply[start : start + length]))
    vectors = unpacked(reply[start + length :])
    with_vectors, cuts = bool(vectors), dict[str, CutDocument]()
    left, files = iter(vectors), list[list[Document | DocumentOutcome]]()
    for raw, items in zip(raws, said.files, strict=True):
        files.append([_checked(raw, item) for item in items])
        for one in items:
            if isinstance(one, _MadeDocument):
                own = tuple(islice(left, len(one.chunks)))
                if (with_vectors and len(own) != len(one.chunks)) or len(one.rests) != len(one.chunks):
                    raise ValueError("vectors are missing")
                cuts[one.document.doc_id] = CutDocument(
                    one.content_hash, one.chunks, one.fault, one.rests, one.size, own
                )
    return files, cuts


def encode(asked: Mapping[str, Any], content: bytes, /, *, is_read: Callable[[], None]) -> Sequence[bytes]:
    """In the process: the keyword vectors of passages."""
    encoders = _encoders(asked["encoders"])
    assert encoders is not None  # noqa: S101 - who asks has some
    texts = json.loads(content)
    is_read()
    return (packed(map(encoders.vectors, texts)),)


def asked_to_encode(texts: Sequence[str], encoders: KeywordEncoders) -> tuple[dict[str, Any], bytes]:
    """What `encode` is asked, and the passages."""
    return {"files": 0, "encoders": _said(encoders)}, json.dumps(texts).encode()


def _made(document: Document, sizes: ChunkingSettings) -> _MadeDocument:
    found = cut(document, document_hash(document, sizes), sizes)
    return _MadeDocument.model_construct(
        document=document.but(text="", places=(), boxes=()),
        content_hash=found.content_hash,
        chunks=found.chunks,
        fault=found.fault,
        rests=found.rests,
        size=found.size,
    )


def _checked(raw: RawDocument, item: _MadeDocument | DocumentOutcome) -> Document | DocumentOutcome:
    """An item of this file. Raises: ValueError for what is of another one."""
    if isinstance(item, DocumentOutcome):
        if item.status is not DocumentStatus.FAILED or item.path != raw.path:
            raise ValueError("an outcome of another file")
        return item
    document, part = item.document, item.document.identity.removeprefix(raw.identity)
    own = {
        "doc_id": document_id(raw.identity + part, raw.namespace, raw.tenant),
        "identity": raw.identity + part,
        "file_id": file_id(raw) if part else "",
        "namespace": raw.namespace,
        "source": prune_scope(raw.source, raw.namespace),
        "path": document.path if raw.suffix.lower() in LINES else raw.path + part,
    }
    if any(getattr(document, name) != value for name, value in own.items()) or part[:1] not in ("", "#", ":"):
        raise ValueError("a document of another file")
    told = (document.doc_id, document.path, document.namespace)
    for number, chunk in enumerate(item.chunks):
        if (chunk.doc_id, chunk.path, chunk.namespace) != told or chunk.ordinal != number:
            raise ValueError("a chunk of another document")
        if chunk.chunk_id != chunk_id(document.doc_id, number, chunk.text):
            raise ValueError("a chunk with another's id")
    return document


def _said(encoders: KeywordEncoders | None) -> dict[str, Any] | None:
    return {"avg_len": encoders.sparse.avg_len, "trigrams": encoders.trigrams is not None} if encoders else None


def _encoders(said: Mapping[str, Any] | None) -> KeywordEncoders | None:
    return KeywordEncoders.of(said["avg_len"], trigrams=said["trigrams"]) if said else None
