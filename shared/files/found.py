"""A file of an ingest, its name as text, and how it is opened: no link is followed on the way."""

from __future__ import annotations

import os
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from shared.trusted_paths import SEARCHED

BAD_NAME = "its name is not UTF-8 or holds control characters: rename it"


@dataclass(frozen=True)
class FoundFile:
    """A file to ingest: `source` is the root it was found under, the scope of a prune."""

    source: Path
    file: Path

    @property
    def shown(self) -> str:
        """The path that people read: from the root's own name on."""
        if self.file == self.source:
            return self.file.name
        return (Path(self.source.name) / self.file.relative_to(self.source)).as_posix()


def is_text(path: Path) -> bool:
    return printable(path) == str(path)


def printable(path: Path) -> str:
    """The path with what is no text replaced, control characters too: what can be shown, stored and sent."""
    decoded = os.fsencode(path).decode("utf-8", "replace")
    return "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) == "Cc" else c for c in decoded)


def open_path(path: Path, flags: int) -> int:
    """Opens an absolute path part by part: none may have become a link since it was resolved. Raises: OSError."""
    folder = os.open("/", SEARCHED)
    try:
        for name in path.parts[1:-1]:
            inner = os.open(name, SEARCHED, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(path.name or "/", flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)
