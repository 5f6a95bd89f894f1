"""Names of modules and definitions, and the keys by which edges find them. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from shared.models.ingest import CODE_SUFFIXES

#: Parts of the longest key. A definition and what refers to it are cut to the same length, so that they meet.
KEY_PARTS = 6
#: Longer names are no names but data.
MAX_NAME = 120
#: How many modules up a definition may be reexported: `pkg.a.b.f` is found as `pkg.a.f` and `pkg.f` as well.
_REEXPORTED = 2
_SUFFIXES = re.compile(rf"(\.d)?\.({'|'.join(sorted(suffix[1:] for suffix in CODE_SUFFIXES))})$", re.IGNORECASE)

NameParts = tuple[str, ...]


def key(name: Sequence[str]) -> str:
    """The dotted key of a name: its last KEY_PARTS parts. Empty when a part is empty or too long to be a name."""
    parts = name[-KEY_PARTS:]
    if min(map(len, parts), default=0) == 0 or max(map(len, parts)) > MAX_NAME:
        return ""
    return ".".join(parts)


def keys_of(module: NameParts, names: NameParts, reexported: bool) -> list[str]:
    """Every key that leads to a definition, the longest first: each suffix of its qualified name up to KEY_PARTS parts.

    `reexported`: the packages above its module may export it as their own (`from pkg import f` for `pkg.a.f`), as in
    Python, JavaScript and Rust; then the name without the last one or two modules counts, too.
    """
    found = [(*module, *names)[-size:] for size in range(KEY_PARTS, 0, -1)]
    if reexported and names and not names[0].startswith("_"):
        for dropped in range(1, min(_REEXPORTED, len(module) - 1) + 1):
            full = (*module[:-dropped], *names)
            found += [full[-size:] for size in range(KEY_PARTS, len(names), -1)]
    if not names and len(module) > _REEXPORTED:
        found.pop()  # a module below a folder is not called by its last name alone, but methods are
    keys = dict.fromkeys(map(key, dict.fromkeys(found)))
    return sorted((each for each in keys if each and each != "default"), key=lambda each: -each.count("."))


def path_parts(path: str) -> NameParts:
    """The folders and the stem of a file; a dot within one becomes an underscore, since dots separate the parts."""
    return tuple(part.replace(".", "_") for part in PurePosixPath(_SUFFIXES.sub("", path)).parts if part not in "./")


def without_last(*last: str) -> Callable[[str], NameParts]:
    """Module names by path, without a last part that names its folder only (`__init__`, `index`)."""

    def module(path: str) -> NameParts:
        parts = path_parts(path)
        return parts[:-1] if len(parts) > 1 and parts[-1] in last else parts

    return module


def folder(path: str) -> NameParts:
    """The folder of a file: what a Go package is."""
    parts = path_parts(path)
    return parts[:-1] or parts


def crate(path: str) -> NameParts:
    """A Rust module: the crate's folder, then the way below `src`. Dashes are underscores, as in `use`."""
    parts = tuple(part.replace("-", "_") for part in path_parts(path) if part != "src")
    return parts[:-1] if len(parts) > 1 and parts[-1] in {"mod", "lib", "main"} else parts


def crate_root(path: str) -> NameParts:
    """What `crate::` stands for: the parts before `src`, or the file's folder."""
    parts = tuple(part.replace("-", "_") for part in path_parts(path))
    return parts[: len(parts) - 1 - parts[::-1].index("src")] if "src" in parts else parts[:-1]
