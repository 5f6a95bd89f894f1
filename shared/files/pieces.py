"""Hashes and reads the files of an ingest; never parses them.

Reads no pipe, follows no link, and holds no more than `max_bytes` of a file at a time.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import BinaryIO, NamedTuple

from shared.files.found import FoundFile, open_path
from shared.models import DocumentOutcome, DocumentStatus, RawDocument
from shared.models.ingest import BOXES, LINES, FileHash, FileHashes, FileSpan

#: JSON Lines files and boxes of mail travel in pieces of whole lines and messages of about this size.
PIECE_BYTES = 1_000_000
#: Files whose hashes are sent together; the reply comes while the files of the group before are sent.
GROUP_FILES = 500
#: How a message of a box begins, behind an empty line: sender, time of day, year. A sentence may begin with From, too.
FROM_LINE = re.compile(rb"From (?=[^\n]{0,300}\d:\d\d)(?=[^\n]{0,300}\d{4})\S")


class FilePiece(NamedTuple):
    """Some of a file's bytes, where they begin, and the lines before them; `fault` says why they were left out.

    `whole`: the file has no other piece.
    """

    line_offset: int
    content: bytes
    fault: str = ""
    start: int = 0
    whole: bool = False


class FileUnit(NamedTuple):
    """A line or a message, and of how many lines it is."""

    content: bytes
    lines: int


@dataclass(frozen=True)
class FileGroup:
    """Files of one root, hashes of the pieces of those that can be read, and identities of the others.

    `spans`: of each hash, where those bytes stand, and `sizes` how many they are.
    """

    files: Sequence[FoundFile]
    hashes: FileHashes
    unhashed: frozenset[str]
    spans: Sequence[FileSpan]
    sizes: Sequence[int]


def read(found: FoundFile, tenant: str, namespace: str, max_bytes: int) -> Iterator[RawDocument | DocumentOutcome]:
    """A file's documents as bytes: one, or the pieces of one of many documents; or why something cannot be read."""
    try:
        for piece in pieces(found, max_bytes):
            if piece.fault:
                yield _failed(found, piece.fault)
                continue
            yield _raw(found, piece, tenant, namespace)
    except OSError as error:
        yield _failed(found, f"cannot be read: {error.strerror}")


def _raw(found: FoundFile, piece: FilePiece, tenant: str, namespace: str) -> RawDocument:
    return RawDocument(
        source=str(found.source),
        path=found.shown,
        identity=str(found.file),
        suffix=found.file.suffix.lower(),
        content=piece.content,
        namespace=namespace,
        tenant=tenant,
        line_offset=piece.line_offset,
        whole=piece.whole,
    )


def pieces(found: FoundFile, max_bytes: int) -> Iterator[FilePiece]:
    """What of a file travels as one: all of it, or some lines of a JSON Lines file, or some messages of a box.

    Raises: OSError.
    """
    suffix = found.file.suffix.lower()
    if suffix in LINES or suffix in BOXES:
        return _parts(found.file, max_bytes, _messages if suffix in BOXES else _lines)
    return _whole(found.file, max_bytes)


def _whole(file: Path, max_bytes: int) -> Iterator[FilePiece]:
    """The file as one piece, or the fault that it has more than `max_bytes`: then nothing was read."""
    with _opened(file) as handle:
        size = os.fstat(handle.fileno()).st_size
        content = b"" if size > max_bytes else handle.read(max_bytes + 1)
        if size > max_bytes or len(content) > max_bytes:  # it may have grown since
            size = max(size, len(content))
            yield FilePiece(0, b"", f"has {size} bytes, more than chunking.max_document_bytes ({max_bytes}): split it")
        else:
            yield FilePiece(0, content, whole=True)


def _parts(file: Path, max_bytes: int, units: Callable[[BinaryIO, int], Iterator[FileUnit]]) -> Iterator[FilePiece]:
    """Whole units in pieces of up to PIECE_BYTES, or of one longer unit; a fault for a unit over `max_bytes`."""
    most = min(PIECE_BYTES, max_bytes)
    with _opened(file) as handle:
        before, number, start, whole = 0, 0, 0, True
        waiting: list[bytes] = []
        size = 0
        for content, lines in units(handle, max_bytes):
            fits = len(content) <= max_bytes
            if waiting and (size + len(content) > most or not fits):
                yield FilePiece(before, b"".join(waiting), start=start)
                waiting, size, before, start, whole = [], 0, number, start + size, False
            number += lines
            if fits:
                waiting.append(content)
                size += len(content)
                continue
            before = number  # where it begins does not matter: a file with a fault is read whole
            first, whole = number - lines, False
            yield FilePiece(
                first, b"", f"line {first + 1}: has more than chunking.max_document_bytes ({max_bytes}): split it"
            )
        if waiting or not number:
            yield FilePiece(before, b"".join(waiting), start=start, whole=whole)


def _lines(handle: BinaryIO, max_bytes: int) -> Iterator[FileUnit]:
    """Line by line; of one over `max_bytes` its beginning, which is longer than that."""
    while line := handle.readline(max_bytes + 1):
        yield FileUnit(line, 1)
        while line and not line.endswith(b"\n") and len(line) > max_bytes:
            line = handle.readline(max_bytes + 1)


def _messages(handle: BinaryIO, max_bytes: int) -> Iterator[FileUnit]:
    """Message by message of a box: each begins with a line From behind an empty one."""
    held: list[bytes] = []
    size, lines, blank = 0, 0, True
    while line := handle.readline(PIECE_BYTES):
        if blank and held and FROM_LINE.match(line):
            yield FileUnit(b"".join(held), lines)
            held, size, lines = [], 0, 0
        if size <= max_bytes:
            held.append(line)
            size += len(line)
        lines += line.endswith(b"\n")
        blank = not line.strip()
    if held:
        yield FileUnit(b"".join(held), lines)


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    """The file, if it still is one: a pipe that took its place would never open or never end."""
    opened = open_path(file, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(opened, "rb") as handle:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, not a file")
        yield handle


def groups(files: Sequence[FoundFile], namespace: str, max_bytes: int) -> Iterator[FileGroup]:
    """`files`, grouped by root, each with a hash of every piece of it. Reads them once, a piece at a time."""
    for _, members in groupby(files, key=lambda found: found.source):
        of_source = list(members)
        for start in range(0, len(of_source), GROUP_FILES):
            yield hashed(of_source[start : start + GROUP_FILES], namespace, max_bytes)


def hashed(files: Sequence[FoundFile], namespace: str, max_bytes: int) -> FileGroup:
    """Files of one root with their hashes."""
    found = {str(one.file): _hashes(one, max_bytes) for one in files}
    unhashed = frozenset(identity for identity, pieces in found.items() if not pieces)
    rows = list(chain.from_iterable(found.values()))
    hashes = FileHashes(source=str(files[0].source), namespace=namespace, files=tuple(row[0] for row in rows))
    return FileGroup(files, hashes, unhashed, [row[1] for row in rows], [row[2] for row in rows])


def _hashes(found: FoundFile, max_bytes: int) -> list[tuple[FileHash, FileSpan, int]]:
    """Hash, place and size of each piece; none for a file with a fault, which is told when the file is read."""
    rows, identity = [], str(found.file)
    try:
        for piece in pieces(found, max_bytes):
            if piece.fault:
                return []
            digest, size = hashlib.sha256(piece.content).hexdigest(), len(piece.content)
            hashed_piece = FileHash(identity=identity, digest=digest, line_offset=piece.line_offset)
            span = FileSpan(file=identity, start=piece.start, size=size, line_offset=piece.line_offset, ends=False)
            rows.append((hashed_piece, span, size))
    except OSError:
        return []
    if len(rows) == 1:
        return [(rows[0][0], FileSpan(file=identity), rows[0][2])]
    return [*rows[:-1], (rows[-1][0], rows[-1][1].model_copy(update={"ends": True}), rows[-1][2])]


def read_span(
    found: FoundFile, span: FileSpan, tenant: str, namespace: str, max_bytes: int
) -> Iterator[RawDocument | DocumentOutcome]:
    """The documents of a file, or those lines of it, as bytes; or why it cannot be read."""
    if span.size is None:
        yield from read(found, tenant, namespace, max_bytes)
        return
    try:
        with _opened(found.file) as handle:
            handle.seek(span.start)
            yield _raw(found, FilePiece(span.line_offset, handle.read(span.size)), tenant, namespace)
    except OSError as error:
        yield _failed(found, f"cannot be read: {error.strerror}")


def _failed(found: FoundFile, reason: str) -> DocumentOutcome:
    return DocumentOutcome(path=found.shown, status=DocumentStatus.FAILED, reason=reason)
