"""Which tags, kinds and folders exist under a filter, and how many documents a scan will read."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock

from shared.models import Filters
from shared.models.enumeration import Scan, Values
from shared.store.base import ChunkStore
from workers.enumerate.filters import documents_of, documents_under

_KEPT = 32


class KnownValues:
    """Asks a store, and keeps what it said of a tenant's filter until the corpus changes. Safe for threads."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._version = -1
        self._kept: dict[tuple[str, str], Values] = {}

    def of(self, store: ChunkStore, filters: Filters) -> Values:
        """The values under `filters`, at most `most` of each field, the most frequent ones."""
        info = store.info()
        version = info.index_version if info else 0
        name = (store.tenant, filters.model_dump_json())
        with self._lock:
            if self._version != version or len(self._kept) >= _KEPT:
                self._version, self._kept = version, {}
            if name in self._kept:
                return self._kept[name]
        values = self._asked(store, filters, version) if info else Values()
        with self._lock:
            if self._version == version:
                self._kept[name] = values
        return values

    def _asked(self, store: ChunkStore, filters: Filters, version: int) -> Values:
        under = documents_under(filters)
        found = {name: store.count_values(name, under, self._most + 1) for name in ("kind", "tags", "path")}
        names = {"kind": "kinds", "tags": "tags", "path": "folders"}
        return Values(
            kinds=_most(found["kind"], self._most),
            tags=_most(found["tags"], self._most),
            folders=folders(_most(found["path"], self._most)),
            truncated=tuple(names[name] for name, values in found.items() if len(values) > self._most),
            index_version=version,
            documents=store.count(under),
        )


def counted(store: ChunkStore, scan: Scan) -> Values:
    """How many documents the scan will read, exactly, and the state that was counted."""
    info = store.info()
    if info is None:
        return Values()
    return Values(documents=store.count(documents_of(scan)), index_version=info.index_version)


def folders(paths: Iterable[str]) -> tuple[str, ...]:
    """Every folder above the paths, with a slash at its end."""
    found: set[str] = set()
    for path in paths:
        parts = path.partition("#")[0].split("/")[:-1]
        found.update("/".join(parts[: depth + 1]) + "/" for depth in range(len(parts)))
    return tuple(sorted(found))


def _most(values: dict[str, int], most: int) -> dict[str, int]:
    return dict(sorted(values.items(), key=lambda item: (-item[1], item[0]))[:most])
