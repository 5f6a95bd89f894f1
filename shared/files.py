"""Finds, hashes and reads the files of an ingest; never parses them.

Reads no pipe, follows no link, and holds no more than `max_bytes` of a file at a time.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain, groupby
from pathlib import Path
from typing import BinaryIO, NamedTuple

from shared.errors import InputError
from shared.models import DocumentOutcome, DocumentStatus, RawDocument
from shared.models.ingest import (
    BOXES,
    CODE_SUFFIXES,
    FORMAT_PACKAGES,
    FORMATS,
    LINES,
    SUFFIXES,
    FileHash,
    FileHashes,
    FileSpan,
)
from shared.plugins import suffixes_of_readers
from shared.trusted_paths import SEARCHED

#: Folders in one another; Python walks them by recursion, and 1,000 end it.
_MAX_DEPTH = 100
_BAD_NAME = "its name is not UTF-8 or holds control characters: rename it"
#: How to read what no reader of the plain install reads.
EXTRA = "pip install 'ramify[documents]'"
#: How what is not read becomes what is.
_OFFICE = "convert them with soffice --headless --convert-to"
CONVERSIONS = {
    ".doc": f"{_OFFICE} docx", ".dot": f"{_OFFICE} docx", ".rtf": f"{_OFFICE} docx", ".xls": f"{_OFFICE} xlsx",
    ".ppt": f"{_OFFICE} pptx", ".zip": "unpack them", ".7z": "unpack them", ".rar": "unpack them",
    ".gz": "unpack them", ".bz2": "unpack them", ".xz": "unpack them", ".tar": "unpack them", ".tgz": "unpack them",
    ".msg": "save them as .eml", ".pst": "save them as .mbox", ".ps": "convert them with ps2pdf",
}  # fmt: skip
#: Suffixes without a reader that are named one by one.
_MOST_SUFFIXES = 8
#: JSON Lines files and boxes of mail travel in pieces of whole lines and messages of about this size.
PIECE_BYTES = 1_000_000
#: Files whose hashes are sent together; the reply comes while the files of the group before are sent.
GROUP_FILES = 500
#: Folders of fetched packages and caches: passed over in silence, as hidden ones are.
FETCHED_FOLDERS = frozenset({"node_modules", "bower_components", "site-packages", "venv", "__pycache__"})
#: Folders that a build fills: passed over beside one of MANIFESTS, and named, since a person may use these words, too.
BUILT_FOLDERS = frozenset({"build", "dist", "target", "vendor"})
MANIFESTS = frozenset({
    "pyproject.toml", "setup.py", "package.json", "go.mod", "Cargo.toml", "pom.xml", "build.gradle", "build.gradle.kts",
})  # fmt: skip


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


class FilePiece(NamedTuple):
    """Some of a file's bytes, where they begin, and the lines before them; `fault` says why they were left out."""

    line_offset: int
    content: bytes
    fault: str = ""
    start: int = 0


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


class PassedOver:
    """What a walk leaves out: sentences for what a person may miss, and how many files of each kind have no reader."""

    def __init__(self) -> None:
        self._sentences: list[str] = []
        self.without_reader: Counter[str] = Counter()
        self.empty: list[Path] = []

    def append(self, sentence: str) -> None:
        """One thing that was left out."""
        self._sentences.append(sentence)

    def sentences(self) -> list[str]:
        """All of them; files without a reader by suffix, most first, with what to install where that would help."""
        found = list(self._sentences)
        if self.empty:
            more = f" and {len(self.empty) - 1} more" if len(self.empty) > 1 else ""
            found.append(f"{_printable(self.empty[0])}{more}: empty")
        groups: dict[str, Counter[str]] = {}
        for suffix, count in self.without_reader.items():
            why = EXTRA if suffix in FORMATS else CONVERSIONS.get(suffix, "no reader for them")
            groups.setdefault(why, Counter())[suffix] = count
        for why in sorted(groups, key=lambda why: (why == "no reader for them", why != EXTRA, why)):
            counts = sorted((-count, suffix) for suffix, count in groups[why].items())
            named = ", ".join(f"{-count:,} {_suffix(suffix)}" for count, suffix in counts[:_MOST_SUFFIXES])
            rest = sum(-count for count, _ in counts[_MOST_SUFFIXES:])
            found.append(f"{named}{f', {rest:,} others' if rest else ''}: {why}")
        return found


def _suffix(suffix: str) -> str:
    return _printable(Path(suffix)) if suffix else "without suffix"


def discover(paths: Sequence[Path]) -> tuple[list[FoundFile], list[str]]:
    """All files below `paths` with a suffix that has a reader, sorted, and what was passed over.

    Links are not followed below a root: they may lead out of it or in circles. Hidden files are passed over, and so
    are folders of what was fetched or built (FETCHED_FOLDERS, BUILT_FOLDERS; a root may be one), pipes and devices,
    which may never end, and names that are not text, which no answer could cite.
    Raises: InputError for a path that does not exist, is not text, or is a file without a reader.
    """
    found: dict[Path, FoundFile] = {}
    passed = PassedOver()
    for path in paths:
        root = checked_root(path)
        for file in _walk(root, passed) if root.is_dir() else (root,):
            found.setdefault(file, FoundFile(root, file))
    return sorted(found.values(), key=lambda item: (str(item.source), str(item.file))), passed.sentences()


def checked_root(path: Path) -> Path:
    """A file or folder that can be ingested, resolved. Raises: InputError."""
    if not path.exists():
        raise InputError("PATH", str(path), "there is no such file or folder")
    root = path.resolve()
    if not _is_text(root):
        raise InputError("PATH", _printable(root), _BAD_NAME)
    if root.is_dir():
        return root
    if not root.is_file():
        raise InputError("PATH", str(path), "it is neither a file nor a folder")
    if package := missing_package(root.suffix.lower()):
        raise InputError("PATH", str(path), f"it needs the package {package}: {EXTRA}")
    if not has_reader(root.suffix.lower()):
        raise InputError("PATH", str(path), no_reader(root.suffix.lower()))
    return root


def discover_changed(root: Path, changed: Sequence[Path]) -> tuple[list[FoundFile], list[Path], list[str]]:
    """Of files and folders below `root` the files that a walk over it would find, and those that are gone.

    The third is what was passed over. What stands in a folder that is not walked into is in neither.
    """
    found: dict[Path, FoundFile] = {}
    gone, passed = list[Path](), PassedOver()
    for path in dict.fromkeys(changed):
        if not _is_text(path) or not is_walked(root, path):
            continue
        if path.is_symlink() or not path.exists():
            gone.append(path)
        elif path.is_dir():
            found |= {file: FoundFile(root, file) for file in _walk(path, passed)}
        elif path.is_file() and has_reader(path.suffix.lower()) and not missing_package(path.suffix.lower()):
            found[path] = FoundFile(root, path)
    return sorted(found.values(), key=lambda item: str(item.file)), gone, passed.sentences()


def is_walked(root: Path, path: Path) -> bool:
    """False where a walk over `root` does not come to `path`: hidden, fetched, built, or not below it."""
    folder = root
    if path == root or not path.is_relative_to(root):
        return False
    for name in path.relative_to(root).parts:
        built = name in BUILT_FOLDERS and any((folder / manifest).exists() for manifest in MANIFESTS)
        if name.startswith(".") or name in FETCHED_FOLDERS or built:
            return False
        folder /= name
    return True


def _walk(root: Path, passed: PassedOver) -> Iterator[Path]:
    """The files below a folder. Every folder is opened by its name in the one that lists it, and never by a path."""
    try:
        opened = _open(root, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        passed.append(f"{_printable(root)}: {error.strerror}")
        return
    yield from _walk_opened(root, opened, 0, passed)


def _walk_opened(folder: Path, opened: int, depth: int, passed: PassedOver) -> Iterator[Path]:
    """`opened`: the descriptor of `folder`, which is closed at the end."""
    try:
        with os.scandir(opened) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
        folders = [entry for entry in entries if _is_folder(entry)]
        yield from _files_of(folder, [entry for entry in entries if not _is_folder(entry)], passed)
        inner = _walked_into(folder, entries, folders, passed)
        if inner and depth >= _MAX_DEPTH:
            passed.append(f"{_printable(folder)}: its folders are nested more than {_MAX_DEPTH} deep")
            return
        for name in inner:
            try:
                below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=opened)
            except OSError as error:
                passed.append(f"{_printable(folder / name)}: {error.strerror}")
                continue
            yield from _walk_opened(folder / name, below, depth + 1, passed)
    except OSError as error:
        passed.append(f"{_printable(folder)}: {error.strerror}")
    finally:
        os.close(opened)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """True for links to folders, too; False for links that lead to themselves."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _walked_into(
    folder: Path, entries: Sequence[os.DirEntry[str]], folders: Sequence[os.DirEntry[str]], passed: PassedOver
) -> list[str]:
    """The names of the folders to go on with: no links, no hidden ones, none that was fetched or built."""
    names = {entry.name for entry in folders}
    built = BUILT_FOLDERS & names if MANIFESTS.intersection(entry.name for entry in entries) else frozenset()
    for name in sorted(built):
        passed.append(f"{_printable(folder / name)}: is what a build made")
    for entry in folders:
        if entry.is_symlink() and not entry.name.startswith("."):
            passed.append(f"{_printable(folder / entry.name)}: is a link, and links are not followed")
    others = FETCHED_FOLDERS | built
    return [
        entry.name
        for entry in folders
        if not entry.is_symlink() and not entry.name.startswith(".") and entry.name not in others
    ]


def _files_of(folder: Path, entries: Sequence[os.DirEntry[str]], passed: PassedOver) -> Iterator[Path]:
    for entry in entries:
        file = folder / entry.name
        suffix = file.suffix.lower()
        if entry.name.startswith("."):
            continue
        if not has_reader(suffix) or missing_package(suffix):
            passed.without_reader[suffix] += 1
        elif suffix not in CODE_SUFFIXES and _is_empty(entry):
            passed.empty.append(file)
        elif reason := _fault_of(file, entry):
            passed.append(f"{_printable(file)}: {reason}")
        else:
            yield file


def has_reader(suffix: str) -> bool:
    """Whether files of this suffix, in small letters, are read: by Ramify, or by a plugin."""
    return suffix in SUFFIXES or suffix in suffixes_of_readers()


def missing_package(suffix: str) -> str:
    """The package that the parser of these files needs and that is not installed here; "" where nothing is missing."""
    package = "" if suffix in suffixes_of_readers() else FORMAT_PACKAGES.get(FORMATS.get(suffix, ""), "")
    return package if package and find_spec(package) is None else ""


def no_reader(suffix: str) -> str:
    """Why files of this suffix are refused."""
    if hint := CONVERSIONS.get(suffix):
        return f"there is no reader for {suffix}: {hint}"
    return f"there is no reader for it; readers: {', '.join(sorted(SUFFIXES | suffixes_of_readers().keys()))}"


def _is_empty(entry: os.DirEntry[str]) -> bool:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and not found.st_size


def _fault_of(file: Path, entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "is a link, and links are not followed"
    if not _is_text(file):
        return _BAD_NAME
    return "" if entry.is_file(follow_symlinks=False) else "is a pipe or a device, not a file"


def _is_text(path: Path) -> bool:
    return _printable(path) == str(path)


def _printable(path: Path) -> str:
    """The path with what is no text replaced, control characters too: what can be shown, stored and sent."""
    decoded = os.fsencode(path).decode("utf-8", "replace")
    return "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) == "Cc" else c for c in decoded)


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
            yield FilePiece(0, content)


def _parts(file: Path, max_bytes: int, units: Callable[[BinaryIO, int], Iterator[FileUnit]]) -> Iterator[FilePiece]:
    """Whole units in pieces of up to PIECE_BYTES, or of one longer unit; a fault for a unit over `max_bytes`."""
    most = min(PIECE_BYTES, max_bytes)
    with _opened(file) as handle:
        before, number, start = 0, 0, 0
        waiting: list[bytes] = []
        size = 0
        for content, lines in units(handle, max_bytes):
            fits = len(content) <= max_bytes
            if waiting and (size + len(content) > most or not fits):
                yield FilePiece(before, b"".join(waiting), start=start)
                waiting, size, before, start = [], 0, number, start + size
            number += lines
            if fits:
                waiting.append(content)
                size += len(content)
                continue
            before = number  # where it begins does not matter: a file with a fault is read whole
            first = number - lines
            yield FilePiece(
                first, b"", f"line {first + 1}: has more than chunking.max_document_bytes ({max_bytes}): split it"
            )
        if waiting or not number:
            yield FilePiece(before, b"".join(waiting), start=start)


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
        if blank and line.startswith(b"From ") and held:
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
    opened = _open(file, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(opened, "rb") as handle:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, not a file")
        yield handle


def _open(path: Path, flags: int) -> int:
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
