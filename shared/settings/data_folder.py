"""The data folder belongs to one user: what stands in it, such as the address of the running stack, is believed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from shared.errors import InputError
from shared.settings import Settings
from shared.trusted_paths import place, user_name


def made(settings: Settings, *folders: str) -> None:
    """Make the data folder and these folders in it, closed to other users. Raises: InputError when that cannot be."""
    checked(settings, *folders)  # before anything is made behind a link
    try:
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in folders:
            (settings.data_dir / name).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        fix = f"name a folder that can be written ({error.strerror})"
        raise InputError("data_dir", str(settings.data_dir), fix) from None
    checked(settings, *folders)


def checked(settings: Settings, *folders: str) -> None:
    """Raises: InputError when another user owns, uses or exchanges one of these, or owns what is in them."""
    if fault := fault_of(settings, *folders):
        raise InputError("data_dir", str(settings.data_dir), fault)


def fault_of(settings: Settings, *folders: str) -> str:
    """What `checked` refuses, and the fix; empty where nothing is wrong, or there are no such folders."""
    whole = settings.data_dir.absolute()
    try:
        faults = (_fault_of(folder) for folder in (whole, *(whole / name for name in folders)))
        return next(filter(None, faults), "") or next(_planted(whole), "")
    except OSError as error:
        return error.strerror or str(error)


def _fault_of(folder: Path) -> str:
    """Raises: OSError for a way that others can change."""
    try:
        with place(folder, closed=True) as (parent, name):
            found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    if found.st_uid != os.geteuid():
        return f"{folder} belongs to {user_name(found.st_uid)}: name a folder of your own, or make that one yours"
    mode = stat.S_IMODE(found.st_mode)
    return f"other users may use {folder} (mode {mode:04o}): chmod 700 {folder}" if mode & 0o077 else ""


def _planted(whole: Path) -> Iterator[str]:
    """What others have left while a folder was open to them: entries that they own, and second names of files."""
    for entry in _entries(whole):
        yield from _fault_of_entry(entry)
        for inner in _entries(Path(entry)):
            yield from _fault_of_entry(inner)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []


def _fault_of_entry(entry: os.DirEntry[str]) -> Iterator[str]:
    with suppress(FileNotFoundError):
        found = entry.stat(follow_symlinks=False)
        if found.st_uid != os.geteuid():
            yield f"{entry.path} belongs to {user_name(found.st_uid)}: remove it"
        elif stat.S_ISREG(found.st_mode) and os.lstat(entry.path).st_nlink > 1:
            yield f"{entry.path} has another name as well (a hard link): replace it by a copy"
