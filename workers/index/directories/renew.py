"""Keeps the directory nodes of a tenant up to date with its documents: describes what changed and its parents.

The store keeps with each node the digest of what it was made of, and nothing else is remembered: an ingest that was
killed half-way is finished by the next one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby
from threading import Lock
from typing import NamedTuple

from shared.errors import StoreMismatchError
from shared.models import Cost
from shared.providers.encoders import DenseEncoder
from shared.providers.llm.client import LLM, ChatClient
from shared.providers.metering import carried
from shared.settings import Settings
from shared.store import ChunkStore
from shared.store.schema import sliced
from workers.index.directories.describe import Contents, Described, DirectoryItem, describe
from workers.index.directories.nodes import abstracts, beginnings, entries, node_id, points_of, stored_nodes
from workers.index.directories.tree import Directory, tree_of
from workers.index.encoding import EncoderError
from workers.index.keywords import KeywordEncoders

log = logging.getLogger("ramify.index")
#: Directories that are described and written at a time.
_BATCH = 64
#: Put before a digest: the node is there, but the next ingest tries again.
_UNFINISHED = "unfinished:"


class Renewed(NamedTuple):
    """What became of the directories of a namespace: which were described again, deepest first."""

    described: tuple[str, ...] = ()
    unchanged: int = 0
    removed: int = 0


class Directories:
    """The directory nodes of one tenant. One for each in a process; its methods may be called from many threads."""

    def __init__(
        self, store: ChunkStore, dense: DenseEncoder | None, settings: Settings, llm: LLM | None = None
    ) -> None:
        self._store, self._dense, self._options = store, dense, settings.hierarchy
        wanted = settings.hierarchy.writer == "auto" and settings.has_llm
        self._llm = llm or (ChatClient(settings) if wanted else None)
        self._writer = f"llm:{settings.llm_model}" if self._llm else "extractive"
        self._lock = Lock()
        self._current: dict[str, int] = {}  # namespace -> index version at which its nodes were up to date
        self._warnings: list[str] = []
        self._cost = Cost()

    def take_report(self) -> tuple[tuple[str, ...], Cost]:
        """The warnings and the cost since the last call."""
        with self._lock:
            warnings, cost = tuple(dict.fromkeys(self._warnings)), self._cost
            self._warnings, self._cost = [], Cost()
            return warnings, cost

    def mark_current(self, namespace: str) -> None:
        """What was written since `renew` changed no document: the nodes are still up to date."""
        version = self._version()
        with self._lock:
            if namespace in self._current and version is not None:
                self._current[namespace] = version

    def renew(self, namespace: str, encoders: Callable[[], KeywordEncoders | None]) -> Renewed:
        """Describe what changed, bottom-up; remove directories that hold nothing any more.

        `encoders` is asked only if there is something to write. Without a change this reads one number; after a
        restart, a few fields of each document. An encoder that fails leaves a warning, and the rest to the next ingest.
        Raises: StoreError or TransientError of the store.
        """
        with self._lock:
            version = self._version()
            if version is None or version == self._current.pop(namespace, None):
                self._current |= {namespace: version} if version is not None else {}
                return Renewed()
            found = entries(self._store, namespace) if self._options.enabled else ()
            tree = tree_of(found, self._options.sample, self._writer)
            ids = {node_id(namespace, path, self._store.tenant): path for path in tree}
            digests, present = stored_nodes(self._store, namespace)
            gone = sorted(present - set(ids))
            for some in sliced(gone, _BATCH):
                self._store.delete_documents(some)
            stale = [tree[path] for doc_id, path in ids.items() if digests.get(doc_id) != tree[path].digest]
            if not stale or self._build(namespace, stale, tree, encoders):
                self._current[namespace] = self._version() or 0
        renewed = Renewed(tuple(directory.path for directory in stale), len(tree) - len(stale), len(gone))
        log.info("directories of %s: %d described, %d unchanged, %d removed", namespace, len(stale), *renewed[1:])
        return renewed

    def _version(self) -> int | None:
        info = self._store.info()
        return info.index_version if info else None

    def _build(
        self,
        namespace: str,
        stale: Sequence[Directory],
        tree: dict[str, Directory],
        encoders: Callable[[], KeywordEncoders | None],
    ) -> bool:
        """Describe and write the stale directories, level by level from below. False: some must be tried again."""
        end = time.monotonic() + self._options.llm_budget_s
        faults: dict[str, str] = {}
        unfinished: set[str] = set()
        try:
            ready = encoders()
            if ready is None:
                return False
            for _, level in groupby(stale, key=lambda directory: directory.depth):
                for some in sliced(list(level), _BATCH):
                    described = self._describe(namespace, some, tree, end)
                    faults |= {d.path: words.fault for d, words in zip(some, described, strict=True) if words.fault}
                    unfinished |= {d.path for d in some if d.path in faults or not unfinished.isdisjoint(d.below)}
                    digests = [f"{_UNFINISHED * (d.path in unfinished)}{d.digest}" for d in some]
                    made = list(zip(some, described, digests, strict=True))
                    points, cost = points_of(namespace, self._store.tenant, made, self._dense, ready)
                    self._cost += cost
                    self._store.upsert(points)
        except (EncoderError, StoreMismatchError) as error:
            self._warnings.append(f"Directories are not described as they are now: {error}")
            return False
        if faults:
            many, first = f"{len(faults)} of {len(stale)}", next(iter(faults.values()))
            self._warnings.append(f"{many} directories are described without the LLM, until the next ingest: {first}.")
        return not faults

    def _describe(
        self, namespace: str, some: Sequence[Directory], tree: dict[str, Directory], end: float
    ) -> list[Described]:
        begins = beginnings(self._store, [entry.doc_id for directory in some for entry in directory.sample])
        below = abstracts(self._store, namespace, [path for directory in some for path in directory.below])
        contents = [self._contents(directory, tree, begins, below) for directory in some]
        work = partial(describe, llm=self._llm, end=end)
        if self._llm is None:
            return list(map(work, contents))
        with ThreadPoolExecutor(self._options.llm_parallel, "directories") as pool:
            described = list(pool.map(carried(work), contents))
        self._cost += sum((words.cost for words in described), Cost())
        return described

    def _contents(
        self, directory: Directory, tree: dict[str, Directory], begins: dict[str, str], below: dict[str, str]
    ) -> Contents:
        read = directory.below[: self._options.sample]
        items = [DirectoryItem(tree[path].name, below.get(path, ""), is_directory=True) for path in read]
        items += [DirectoryItem(e.title, begins.get(e.doc_id, ""), describes=e.describes) for e in directory.sample]
        more = [entry.title for entry in directory.named] + [tree[path].name for path in directory.below[len(read) :]]
        left = directory.count + directory.subdirectories - len(items) - len(more)
        return Contents(directory.path, items, more, left)
