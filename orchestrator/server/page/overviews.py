"""Overviews of corpora for pages: documents are counted beside the views, and a view waits for a moment only."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Lock
from typing import NamedTuple

from orchestrator.documents.corpus import Corpus, CorpusOverview

#: Counts at a time, of all tenants; seconds that a view waits for one.
_AT_ONCE, _MOMENT_S = 2, 0.6
#: A count that took a second begins anew after so many at the earliest: views alone keep no search pool busy.
_REST = 10.0


class _StoppedError(Exception):
    """The server ends."""


class SeenCount(NamedTuple):
    """The newest overview, None: none is whole yet. `at`: Unix seconds; `read` documents of `total` of the next one."""

    overview: CorpusOverview | None = None
    at: float = 0.0
    read: int = 0
    total: int = 0


class _Count:
    """One tenant's: the newest overview, what it took, and the count under way."""

    def __init__(self) -> None:
        self.overview: CorpusOverview | None = None
        self.at = self.took_s = 0.0
        self.read = self.total = 0
        self.under_way: Future[None] | None = None

    def is_due(self) -> bool:
        """False while one is under way, and for a while after one that took long."""
        rested = time.time() - self.at > self.took_s * _REST
        return rested and (self.under_way is None or self.under_way.done())


class CorpusOverviews:
    """Of all tenants of one process."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_AT_ONCE, "corpus overview")
        self._counts = dict[str, _Count]()
        self._lock = Lock()
        self._closed = False

    def close(self) -> None:
        """Count no more."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)

    def of(self, tenant: str, corpus: Callable[[], Corpus]) -> SeenCount:
        """The overview as far as it is known within a moment. Raises: what the last count of it has raised."""
        with self._lock:
            count = self._counts.setdefault(tenant, _Count())
            if count.is_due():
                count.under_way = self._threads.submit(self._run, count, corpus())
            counting = count.under_way
        if counting is not None and wait([counting], _MOMENT_S).done:
            counting.result()
        return SeenCount(count.overview, count.at, count.read, count.total)

    def _run(self, count: _Count, corpus: Corpus) -> None:
        began = time.time()
        count.read = count.total = 0

        def seen(read: int, total: int) -> None:
            if self._closed:
                raise _StoppedError
            count.read, count.total = read, total

        count.overview = corpus.overview(seen=seen)
        count.at, count.took_s = time.time(), time.time() - began
