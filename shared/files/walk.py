"""Walks over the files of an ingest. Enters no link, and names what it leaves out."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from shared.errors import InputError
from shared.files.found import BAD_NAME, FoundFile, is_text, open_path, printable
from shared.files.passed_over import EXTRA, PassedOver, has_reader, missing_package, no_reader

#: Folders in one another; Python walks them by recursion, and 1,000 end it.
_MAX_DEPTH = 100
#: Folders of fetched packages and caches: passed over in silence, as hidden ones are.
FETCHED_FOLDERS = frozenset({"node_modules", "bower_components", "site-packages", "venv", "__pycache__"})
#: Folders that a build fills: passed over beside one of MANIFESTS, and named, since a person may use these words, too.
BUILT_FOLDERS = frozenset({"build", "dist", "target", "vendor"})
MANIFESTS = frozenset({
    "pyproject.toml", "setup.py", "package.json", "go.mod", "Cargo.toml", "pom.xml", "build.gradle", "build.gradle.kts",
})  # fmt: skip


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
    _note_empty(found, passed)
    return sorted(found.values(), key=lambda item: (str(item.source), str(item.file))), passed.sentences()


def checked_root(path: Path) -> Path:
    """A file or folder that can be ingested, resolved. Raises: InputError."""
    if not path.exists():
        raise InputError("PATH", str(path), "there is no such file or folder")
    root = path.resolve()
    if not is_text(root):
        raise InputError("PATH", printable(root), BAD_NAME)
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
        if not is_text(path) or not is_walked(root, path):
            continue
        if path.is_symlink() or not path.exists():
            gone.append(path)
        elif path.is_dir():
            found |= {file: FoundFile(root, file) for file in _walk(path, passed)}
        elif path.is_file() and has_reader(path.suffix.lower()) and not missing_package(path.suffix.lower()):
            found[path] = FoundFile(root, path)
    _note_empty(found, passed)
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
        opened = open_path(root, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        passed.append(f"{printable(root)}: {error.strerror}")
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
            passed.append(f"{printable(folder)}: its folders are nested more than {_MAX_DEPTH} deep")
            return
        for name in inner:
            try:
                below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=opened)
            except OSError as error:
                passed.append(f"{printable(folder / name)}: {error.strerror}")
                continue
            yield from _walk_opened(folder / name, below, depth + 1, passed)
    except OSError as error:
        passed.append(f"{printable(folder)}: {error.strerror}")
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
        passed.append(f"{printable(folder / name)}: is what a build made")
    for entry in folders:
        if entry.is_symlink() and not entry.name.startswith("."):
            passed.append(f"{printable(folder / entry.name)}: is a link, and links are not followed")
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
            passed.hidden += 1
        elif not has_reader(suffix) or missing_package(suffix):
            passed.without_reader[suffix] += 1
        elif reason := _fault_of(file, entry):
            passed.append(f"{printable(file)}: {reason}")
        else:
            yield file


def _note_empty(files: Iterable[Path], passed: PassedOver) -> None:
    """Empty files are named, and found all the same: what the store has of them is to go."""
    for file in files:
        try:
            found = file.lstat()
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode) and not found.st_size:
            passed.empty.append(file)


def _fault_of(file: Path, entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "is a link, and links are not followed"
    if not is_text(file):
        return BAD_NAME
    return "" if entry.is_file(follow_symlinks=False) else "is a pipe or a device, not a file"
