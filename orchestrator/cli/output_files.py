"""The files that commands write: fresh ones, readable by their owner alone, put in the place of what was there.

Follows no link that another user could have planted.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from shared.errors import InputError

_MOST_LINKS = 40


def replace(path: Path, text: str) -> None:
    """Write a whole file in one step: what was there stays until the new one is complete. Raises: OSError."""
    with replacing(path) as file:
        file.write(text.encode("utf-8", "replace"))


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A fresh file that takes the place of `path`, a link too, when the block ends without an error.

    A device or pipe is written as it is. Raises: OSError.
    """
    if is_device(path):
        with _device(path) as device:
            yield device
        return
    handle, name = _temporary(path)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(handle)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def fresh(path: Path) -> IO[bytes]:
    """An empty file in the place of `path`, a link too, that grows there. Raises: OSError."""
    if is_device(path):
        return _device(path)
    handle, name = _temporary(path)
    Path(name).replace(path)
    return os.fdopen(handle, "wb")


def growing(option: str, path: Path) -> IO[bytes]:
    """A file to read and append to, made if need be; a link of one's own is followed.

    Raises: OSError; InputError for a link or a file of another user, and for one with a second name.
    """
    target = followed(option, path)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    handle = os.open(target, flags, 0o600)
    if fault := _fault(os.fstat(handle)):
        os.close(handle)
        raise InputError(option, str(path), f"{fault}: name another file")
    return os.fdopen(handle, "a+b", buffering=0)


def _fault(found: os.stat_result) -> str:
    if not stat.S_ISREG(found.st_mode):
        return "it is a pipe or a device"
    if found.st_uid != os.geteuid():
        return "it belongs to another user"
    return "it has another name as well (a hard link)" if found.st_nlink > 1 else ""


def followed(option: str, path: Path) -> Path:
    """Where a chain of links leads. Raises: InputError for a link of another user in it, or on the way to it."""
    for _ in range(_MOST_LINKS):
        check_folders(option, path)
        if not path.is_symlink():
            return path
        _check_link(option, path)
        path = path.parent / path.readlink()
    raise InputError(option, str(path), "its links lead in a circle: name the file itself")


def check_folders(option: str, path: Path) -> None:
    """Raises: InputError when a folder on the way to the file is a link of another user."""
    for folder in path.absolute().parents:
        if folder.is_symlink():
            _check_link(option, folder)


def _check_link(option: str, link: Path) -> None:
    if link.lstat().st_uid not in {os.geteuid(), 0}:
        raise InputError(option, str(link), "it is a link of another user: name what it leads to")


def _temporary(path: Path) -> tuple[int, str]:
    return tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:50]}.")


def _device(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_CLOEXEC), "wb", buffering=0)


def is_device(path: Path) -> bool:
    """True for pipes and devices, and for the names of the system for open files, such as /dev/stdout."""
    folder = os.path.realpath(path.parent)
    if folder == "/dev" or folder.startswith("/proc/"):
        return True
    return path.exists() and not path.is_symlink() and not path.is_file()
