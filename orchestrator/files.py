"""Finds the files of an ingest. Reads them, never parses them."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.contents import Piece, lines, whole
from shared.errors import InputError
from shared.models import DocumentOutcome, DocumentStatus, RawDocument
from shared.models.ingest import SUFFIXES

#: Folders in one another; Python walks them by recursion, and 1,000 end it.
_MOST_FOLDERS = 100
_NO_TEXT = "its name is not UTF-8 or holds control characters: rename it"
LINES = frozenset({".jsonl", ".ndjson"})
#: Folders of fetched packages and caches: passed over in silence, as hidden ones are.
FETCHED_FOLDERS = frozenset({"node_modules", "bower_components", "site-packages", "venv", "__pycache__"})
#: Folders that a build fills: passed over beside one of MANIFESTS, and named, since a person may use these words, too.
BUILT_FOLDERS = frozenset({"build", "dist", "target", "vendor"})
MANIFESTS = frozenset({
    "pyproject.toml", "setup.py", "package.json", "go.mod", "Cargo.toml", "pom.xml", "build.gradle", "build.gradle.kts",
})  # fmt: skip


@dataclass(frozen=True)
class Found:
    """A file to ingest: `source` is the root it was found under, the scope of a prune."""

    source: Path
    file: Path

    @property
    def shown(self) -> str:
        """The path that people read: from the root's own name on."""
        if self.file == self.source:
            return self.file.name
        return (Path(self.source.name) / self.file.relative_to(self.source)).as_posix()


def find(paths: Sequence[Path]) -> tuple[list[Found], list[str]]:
    """All files below `paths` with a suffix that has a reader, sorted, and what was passed over.

    Links are not followed below a root: they may lead out of it or in circles. Hidden files are passed over, and so
    are folders of what was fetched or built (FETCHED_FOLDERS, BUILT_FOLDERS; a root may be one), pipes and devices,
    which may never end, and names that are not text, which no answer could cite.
    Raises: InputError for a path that does not exist, is not text, or is a file without a reader.
    """
    found: dict[Path, Found] = {}
    passed: list[str] = []
    for path in paths:
        if not path.exists():
            raise InputError("PATH", str(path), "there is no such file or folder")
        root = path.resolve()
        if not _is_text(root):
            raise InputError("PATH", _printable(root), _NO_TEXT)
        if root.is_dir():
            for file in _walk(root, passed):
                found.setdefault(file, Found(root, file))
        elif not root.is_file():
            raise InputError("PATH", str(path), "it is neither a file nor a folder")
        elif root.suffix.lower() in SUFFIXES:
            found.setdefault(root, Found(root, root))
        else:
            raise InputError("PATH", str(path), f"there is no reader for it; readers: {', '.join(sorted(SUFFIXES))}")
    return sorted(found.values(), key=lambda item: (str(item.source), str(item.file))), passed


def _walk(root: Path, passed: list[str]) -> Iterator[Path]:
    def unreadable(error: OSError) -> None:
        passed.append(f"{_printable(Path(error.filename))}: {error.strerror}")

    for folder, folders, files in os.walk(root, onerror=unreadable):
        built = BUILT_FOLDERS.intersection(folders) if MANIFESTS.intersection(files) else frozenset()
        passed += [f"{_printable(Path(folder) / name)}: is what a build made" for name in sorted(built)]
        others = FETCHED_FOLDERS | built
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in others)
        if folders and len(Path(folder).relative_to(root).parts) >= _MOST_FOLDERS:
            passed.append(f"{_printable(Path(folder))}: its folders are nested more than {_MOST_FOLDERS} deep")
            folders.clear()
        for name in sorted(files):
            file = Path(folder) / name
            if name.startswith(".") or file.suffix.lower() not in SUFFIXES:
                continue
            if reason := _reason_against(file):
                passed.append(f"{_printable(file)}: {reason}")
            else:
                yield file


def _reason_against(file: Path) -> str:
    if file.is_symlink():
        return "is a link, and links are not followed"
    if not _is_text(file):
        return _NO_TEXT
    return "" if file.is_file() else "is a pipe or a device, not a file"


def _is_text(path: Path) -> bool:
    return _printable(path) == str(path)


def _printable(path: Path) -> str:
    """The path with what is no text replaced, control characters too: what can be shown, stored and sent."""
    return "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) == "Cc" else c for c in _decoded(path))


def _decoded(path: Path) -> str:
    return os.fsencode(path).decode("utf-8", "replace")


def read(found: Found, tenant: str, namespace: str, max_bytes: int) -> Iterator[RawDocument | DocumentOutcome]:
    """A file's documents as bytes: one, or the pieces of a JSON Lines file; or why something cannot be read."""
    try:
        for piece in pieces(found, max_bytes):
            if piece.fault:
                yield _failed(found, piece.fault)
                continue
            yield RawDocument(
                source=str(found.source),
                path=found.shown,
                identity=str(found.file),
                suffix=found.file.suffix.lower(),
                content=piece.content,
                namespace=namespace,
                tenant=tenant,
                line_offset=piece.line_offset,
            )
    except OSError as error:
        yield _failed(found, f"cannot be read: {error.strerror}")


def pieces(found: Found, max_bytes: int) -> Iterator[Piece]:
    """What of a file travels as one: all of it, or some lines of a JSON Lines file.

    Raises: OSError.
    """
    by_lines = found.file.suffix.lower() in LINES
    return lines(found.file, max_bytes) if by_lines else whole(found.file, max_bytes)


def _failed(found: Found, reason: str) -> DocumentOutcome:
    return DocumentOutcome(path=found.shown, status=DocumentStatus.FAILED, reason=reason)
