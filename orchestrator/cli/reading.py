"""Reads what comes from a file or from stdin, and checks files before anything is done with them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from shared.errors import InputError

STDIN = "-"
_MAX_STDIN_BYTES = 100_000


def text_argument(name: str, given: str) -> str:
    """The argument itself, or stdin for "-". Raises: InputError for what is no UTF-8; its length is checked later."""
    if given != STDIN:
        return given
    raw = sys.stdin.buffer.read(_MAX_STDIN_BYTES)
    try:
        return raw.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise InputError(name, f"byte {error.start} of stdin", "write it in UTF-8") from None


@contextmanager
def lines_of(name: str) -> Iterator[tuple[IO[bytes], int | None]]:
    """A file (or stdin for "-") open for reading, and its size in bytes where it has one.

    Raises: InputError for a folder, a missing file or one that cannot be read.
    """
    if name == STDIN:
        yield sys.stdin.buffer, None
        return
    path = Path(name)
    if path.is_dir():
        raise InputError("FILE", name, "it is a folder: name a JSON Lines file")
    if not path.exists():
        raise InputError("FILE", name, "there is no such file")
    try:
        handle = path.open("rb")
    except OSError as error:
        raise InputError("FILE", name, f"it cannot be read ({error.strerror})") from None
    with handle:
        yield handle, path.stat().st_size if path.is_file() else None


def writable(option: str, path: Path, source: str = STDIN) -> Path:
    """`path`, if a file can be written there. Raises: InputError when it cannot."""
    if path.is_dir():
        raise InputError(option, str(path), "it is a folder: name a file in it")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InputError(option, str(path), f"there is no folder {folder}: create it first")
    target = path if path.exists() else folder
    if not os.access(target, os.W_OK):
        raise InputError(option, str(path), "it cannot be written: name a file in another folder")
    if source != STDIN and path.exists() and Path(source).exists() and path.samefile(source):
        raise InputError(option, str(path), "it is the file that is read: name another")
    return path
