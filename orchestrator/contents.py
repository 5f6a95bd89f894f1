"""Reads files of unknown making: never a pipe, never through a link, never more than is allowed at a time."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

#: JSON Lines files travel in pieces of whole lines of about this size.
PIECE_BYTES = 1_000_000


class Piece(NamedTuple):
    """Some of a file's bytes with the number of lines before them; `fault` says why they were left out."""

    line_offset: int
    content: bytes
    fault: str = ""


def whole(file: Path, max_bytes: int) -> Iterator[Piece]:
    """The file as one piece, or the fault that it has more than `max_bytes`: then nothing was read.

    Raises: OSError.
    """
    with _opened(file) as handle:
        size = os.fstat(handle.fileno()).st_size
        content = b"" if size > max_bytes else handle.read(max_bytes + 1)
        if size > max_bytes or len(content) > max_bytes:  # it may have grown since
            size = max(size, len(content))
            yield Piece(0, b"", f"has {size} bytes, more than chunking.max_document_bytes ({max_bytes}): split it")
        else:
            yield Piece(0, content)


def lines(file: Path, max_bytes: int) -> Iterator[Piece]:
    """Whole lines in pieces of up to PIECE_BYTES, or of one longer line; a fault for a line over `max_bytes`.

    Raises: OSError.
    """
    most = min(PIECE_BYTES, max_bytes)
    with _opened(file) as handle:
        before, number = 0, 0
        waiting: list[bytes] = []
        size = 0
        while line := handle.readline(max_bytes + 1):
            fits = len(line) <= max_bytes
            if waiting and (size + len(line) > most or not fits):
                yield Piece(before, b"".join(waiting))
                waiting, size, before = [], 0, number
            number += 1
            if fits:
                waiting.append(line)
                size += len(line)
                continue
            _skip_line(handle, line)
            before = number
            yield Piece(
                number - 1, b"", f"line {number}: has more than chunking.max_document_bytes ({max_bytes}): split it"
            )
        if waiting or not number:
            yield Piece(before, b"".join(waiting))


def _skip_line(handle: BinaryIO, line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = handle.readline(PIECE_BYTES)


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    """The file, if it still is one: a pipe that took its place would never open or never end."""
    opened = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(opened, "rb") as handle:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, not a file")
        yield handle
