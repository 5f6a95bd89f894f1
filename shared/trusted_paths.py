"""Opens paths that other users may have had a hand in. Follows links of the user's own and of root alone.

As the kernel walks a path, but from each open folder to the next: what is swapped meanwhile leads nowhere else.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MOST_LINKS = 40
#: A folder on the way, which need not be readable; O_PATH is Linux's.
SEARCHED = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class UntrustedPathError(OSError):
    """A part of a path that another user owns or can change; `strerror` names it, and the fix."""

    def __init__(self, reason: str) -> None:
        super().__init__(errno.EPERM, reason)


@contextmanager
def place(path: Path, *, closed: bool = False, follow: bool = True) -> Iterator[tuple[int, str]]:
    """The open folder that a path leads to, and the name in it, which may not be there yet.

    `follow`: the last part may be a link, else the name may be one. `closed`: nobody else can change a folder on
    the way.
    Raises: OSError; UntrustedPathError for a link of another user, and for a folder that is not closed.
    """
    walk = _Walk(path.absolute(), closed=closed, follow=follow)
    try:
        name = walk.to_end()
        yield walk.folder, name
    finally:
        os.close(walk.folder)


def opened(path: Path, flags: int, *, closed: bool = False) -> int:
    """A descriptor of what a path leads to, which is no link; a new file is its owner's alone. Raises: as `place`."""
    with place(path, closed=closed) as (folder, name):
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)


def own_bytes(path: Path, most: int) -> bytes | None:
    """Up to `most` bytes of a file that the user owns and no other may use; None for any other, and for a link."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
        return file.read(most) if own else None


def user_name(uid: int) -> str:
    """The name of a user, or the number of one without."""
    import pwd  # noqa: PLC0415 - only for a sentence

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def trusted(uid: int) -> bool:
    """True for the user and root."""
    return uid in {os.geteuid(), 0}


class _Walk:
    """`folder`: the one that is open now, `shown`: its path as it was walked."""

    def __init__(self, path: Path, *, closed: bool, follow: bool) -> None:
        self._todo, self._links = [*reversed(path.parts[1:])], 0
        self._closed, self._follow = closed, follow
        self._shown, self.folder = Path("/"), os.open("/", SEARCHED)

    def to_end(self) -> str:
        """Walk to the last folder; returns the name in it."""
        self._check_folder()
        while self._todo:
            name = self._todo.pop()
            try:
                found = os.stat(name, dir_fd=self.folder, follow_symlinks=False)
            except FileNotFoundError:
                if self._todo:
                    raise
                return name
            if stat.S_ISLNK(found.st_mode) and (self._todo or self._follow):
                self._follow_link(name, found.st_uid)
            elif self._todo:
                self._enter(self._shown / name, os.open(name, SEARCHED, dir_fd=self.folder))
            else:
                return name
        return "."

    def _follow_link(self, name: str, owner: int) -> None:
        link = self._shown / name
        if not trusted(owner):
            raise UntrustedPathError(f"{link} is a link of another user ({user_name(owner)}): name what it leads to")
        self._links += 1
        if self._links > _MOST_LINKS:
            raise OSError(errno.ELOOP, f"the links of {link} lead in a circle")
        target = os.readlink(name, dir_fd=self.folder)
        if target.startswith("/"):
            self._enter(Path("/"), os.open("/", SEARCHED))
        self._todo += [part for part in reversed(target.split("/")) if part not in {"", "."}]

    def _enter(self, shown: Path, folder: int) -> None:
        os.close(self.folder)
        self._shown, self.folder = shown, folder
        self._check_folder()

    def _check_folder(self) -> None:
        found = os.fstat(self.folder)
        if not self._closed:
            return
        # In a user namespace the owner of / may have no number; whoever it is can change all below it.
        if not trusted(found.st_uid) and found.st_uid != Path("/").stat().st_uid:
            raise UntrustedPathError(
                f"{self._shown} belongs to {user_name(found.st_uid)}, who can exchange what is in it: "
                "name a path below folders of your own"
            )
        if _others_write(found):
            raise UntrustedPathError(f"other users can write {self._shown}: chmod go-w {self._shown}")


def _others_write(folder: os.stat_result) -> bool:
    """True unless its owner alone can exchange what is in it; in a sticky folder everybody only what is theirs."""
    if folder.st_mode & stat.S_ISVTX:
        return False
    return bool(folder.st_mode & stat.S_IWOTH) or bool(
        folder.st_mode & stat.S_IWGRP and not _is_group_of_one(folder.st_gid, folder.st_uid)
    )


def _is_group_of_one(gid: int, uid: int) -> bool:
    """True for a group that many systems make for each user, who is then its only member."""
    import grp  # noqa: PLC0415 - only for folders that a group can write

    try:
        group = grp.getgrgid(gid)
    except KeyError:
        return False
    own = user_name(uid)
    return group.gr_name == own and not set(group.gr_mem) - {own}
