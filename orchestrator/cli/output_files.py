"""The files that commands write: fresh ones, readable by their owner alone, put in the place of what was there.

Follows no link that another user could have planted.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from shared.errors import InputError
from shared.trusted_paths import UntrustedPathError, opened, place


def replace(option: str, path: Path, text: str) -> None:
    """Write a whole file in one step: what was there stays until the new one is complete. Raises: InputError."""
    try:
        with replacing(path) as file:
            file.write(text.encode("utf-8", "replace"))
    except OSError as error:
        raise InputError(option, str(path), f"it cannot be written ({error.strerror})") from None


@contextmanager
def replacing(path: Path, *, follow: bool = False) -> Iterator[IO[bytes]]:
    """A fresh file that takes the place of `path` when the block ends without an error.

    A link is replaced too, or (`follow`) what it leads to. A device or pipe is written as it is. Raises: OSError.
    """
    if is_device(path):
        with _device(path) as device:
            yield device
        return
    with place(path, follow=follow) as (folder, name):
        handle, temporary = _temporary(folder, name)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(handle)
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            raise


def fresh(path: Path) -> IO[bytes]:
    """An empty file in the place of `path`, a link too, that grows there. Raises: OSError."""
    if is_device(path):
        return _device(path)
    with place(path, follow=False) as (folder, name):
        handle, temporary = _temporary(folder, name)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    return os.fdopen(handle, "wb")


def growing(option: str, path: Path) -> IO[bytes]:
    """A file to read and append to, made if need be; a link of one's own is followed.

    Raises: OSError; InputError for a link or a file of another user, and for one with a second name.
    """
    handle = opened(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK)
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


def check_way(option: str, path: Path, *, follow: bool) -> None:
    """Raises: InputError when a link of another user stands on the way to the file, or (`follow`) in its place."""
    try:
        with place(path, follow=follow):
            pass
    except UntrustedPathError as error:
        raise InputError(option, str(path), str(error.strerror)) from None
    except OSError:
        return  # the write says so


def _temporary(folder: int, name: str) -> tuple[int, str]:
    """A new file in an open folder, which its owner alone may read, and its name."""
    temporary = f".{name[:50]}.{secrets.token_hex(8)}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(temporary, flags, 0o600, dir_fd=folder), temporary


def _device(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_CLOEXEC), "wb", buffering=0)


def is_device(path: Path) -> bool:
    """True for pipes and devices, and for the names of the system for open files, such as /dev/stdout."""
    folder = os.path.realpath(path.parent)
    if folder == "/dev" or folder.startswith("/proc/"):
        return True
    return path.exists() and not path.is_symlink() and not path.is_file()
