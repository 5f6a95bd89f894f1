"""The data folder belongs to one user: what stands in it, such as the address of the running stack, is believed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from shared.errors import InputError
from shared.settings import Settings
from shared.settings.sources import user_name


def made(settings: Settings, *folders: str) -> None:
    """Make the data folder and these folders in it, closed to other users. Raises: InputError when that cannot be."""
    try:
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in folders:
            (settings.data_dir / name).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        fix = f"name a folder that can be written ({error.strerror})"
        raise InputError("data_dir", str(settings.data_dir), fix) from None
    checked(settings, *folders)


def checked(settings: Settings, *folders: str) -> None:
    """Raises: InputError when another user owns one of these that is there, or may read or write it."""
    whole = settings.data_dir.absolute()
    for folder in (whole, *(whole / name for name in folders)):
        if fault := fault_of(folder):
            raise InputError("data_dir", str(settings.data_dir), fault)


def fault_of(folder: Path) -> str:
    """What is wrong with the owner or mode of a folder, and the fix; empty where nothing is, or there is none."""
    try:
        link, found = folder.lstat(), folder.stat()
    except OSError:
        return ""
    for owner in (link.st_uid, found.st_uid):
        if owner != os.geteuid():
            return f"{folder} belongs to {user_name(owner)}: name a folder of your own, or make that one yours"
    mode = stat.S_IMODE(found.st_mode)
    return f"other users may use {folder} (mode {mode:04o}): chmod 700 {folder}" if mode & 0o077 else ""
