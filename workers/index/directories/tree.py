"""The directories of a namespace, from the paths of its documents: what each holds, and a digest of it. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappush, heappushpop, nsmallest
from typing import NamedTuple

from shared.language import derived, languages
from shared.store.directories import MOST_NAMED, TOP, directory_of, lineage, parent_of, root_key

#: Grows when the same directory would be described in another way, so that the next ingest renews all.
VERSION = 1
#: So many more titles than documents are sampled: they are named, but not read.
_TITLES = 4
_MOST_KINDS = 32


class DirectoryEntry(NamedTuple):
    """A document, as the tree needs it."""

    doc_id: str
    content_hash: str
    path: str
    title: str
    kind: str

    @property
    def describes(self) -> bool:
        """True for a README and its like: it says what its directory holds."""
        return _describes().search(self.path) is not None


@derived
def _describes() -> re.Pattern[str]:
    names = "|".join(name for language in languages() for name in language.words.sections.describes)
    return re.compile(rf"(?:^|[/#])(?:{names})(?:\.[^/#.]+)?$", re.IGNORECASE)


@dataclass(slots=True)
class Directory:
    """One directory. `sample` are the documents that are read, `named` those of which the title is given.

    `below` are its subdirectories, a sample of them where there are more than `MOST_NAMED`; there are really `count`
    documents and `subdirectories` directories right in it. `direct` are the kinds of its documents, `kinds` those of
    all documents below it. `roots` are the kinds that it is a root directory of.
    """

    path: str
    count: int = 0
    subdirectories: int = 0
    sample: list[DirectoryEntry] = field(default_factory=list)
    named: list[DirectoryEntry] = field(default_factory=list)
    below: list[str] = field(default_factory=list)
    direct: set[str] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)
    roots: list[str] = field(default_factory=list)
    digest: str = ""
    _candidates: list[tuple[int, DirectoryEntry]] = field(default_factory=list)
    _children: set[str] = field(default_factory=set)

    @property
    def depth(self) -> int:
        """0 for "/", 1 for its own subdirectories."""
        return sum(1 for _ in lineage(self.path)) - 1

    @property
    def name(self) -> str:
        """The last part of the path: "sub", "corpus.jsonl"; "/" for the top."""
        return self.path.rstrip("/#").rpartition("/")[2] or TOP

    @property
    def root_keys(self) -> list[str]:
        """The keys under which the search finds it as a root."""
        return [root_key(kind) for kind in ("", *self.roots)] if self.roots else []

    def add(self, entry: DirectoryEntry, most: int) -> None:
        """Count a document, and keep it if its hash is among the lowest; a README comes before all."""
        self.count += 1
        self.direct.add(entry.kind)
        draw = -1 if entry.describes else _draw_key(self.path, entry.doc_id)
        # A heap with the highest hash in front: that one leaves.
        item = (-draw, entry)
        if len(self._candidates) < most * _TITLES:
            heappush(self._candidates, item)
        else:
            heappushpop(self._candidates, item)

    def fix_samples(self, most: int) -> None:
        """Fix the samples, each in the order of paths, so that they depend on nothing but the documents."""
        drawn = [entry for _, entry in sorted(self._candidates, key=lambda item: (-item[0], item[1]))]
        self.sample = sorted(drawn[:most], key=lambda entry: (not entry.describes, entry.path))
        self.named = sorted(drawn[most:], key=lambda entry: entry.path)
        self.subdirectories = len(self._children)
        self.below = sorted(nsmallest(MOST_NAMED, self._children, key=lambda path: _draw_key(self.path, path)))
        self._candidates, self._children = [], set()


def tree_of(entries: Iterable[DirectoryEntry], most: int, writer: str) -> dict[str, Directory]:
    """Directories by path, deepest first. At most `most` documents of a directory are sampled.

    A directory's digest covers all that its abstract and overview are made of, those of its subdirectories included:
    a change in one document changes it and those above it, nothing else. `writer` names who describes them.
    """
    found: dict[str, Directory] = {}
    for entry in entries:
        path = directory_of(entry.path)
        if path not in found:
            _add_lineage(path, found)
        found[path].add(entry, most)
    tree = {path: found[path] for path in sorted(found, key=lambda path: (-found[path].depth, path))}
    for directory in tree.values():
        directory.kinds |= directory.direct
        if (parent := parent_of(directory.path)) is not None:
            tree[parent].kinds |= directory.kinds
    _set_roots(tree)
    for directory in tree.values():
        directory.fix_samples(most)
        directory.digest = _digest(directory, tree, writer)
    return tree


def _add_lineage(path: str, found: dict[str, Directory]) -> None:
    below: str | None = None
    for at in lineage(path):
        known = at in found
        directory = found.setdefault(at, Directory(at))
        if below is not None:
            directory._children.add(below)  # noqa: SLF001 - of this file
        if known:
            return
        below = at


def _set_roots(tree: dict[str, Directory]) -> None:
    """A kind's roots are the highest directories that hold nothing else; "/" for its documents outside of these."""
    loose: set[str] = set()
    for directory in tree.values():
        parent = parent_of(directory.path)
        if len(directory.kinds) > 1 or parent is None:
            loose |= directory.direct if len(directory.kinds) > 1 else directory.kinds
        elif tree[parent].kinds != directory.kinds:
            directory.roots = sorted(directory.kinds)
    if tree:
        tree[TOP].roots = sorted(loose)[:_MOST_KINDS]


def _digest(directory: Directory, tree: dict[str, Directory], writer: str) -> str:
    counts = directory.count, directory.subdirectories
    parts = [
        [VERSION, writer, directory.path, *counts, sorted(directory.kinds), directory.roots],
        [[entry.path, entry.title, entry.content_hash] for entry in directory.sample],
        [entry.title for entry in directory.named],
        [[path, tree[path].digest] for path in directory.below],
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _draw_key(path: str, name: str) -> int:
    """A hash as a number: the same sample in every run."""
    return int.from_bytes(hashlib.blake2b(f"{path}\n{name}".encode("utf-8", "replace"), digest_size=8).digest())
