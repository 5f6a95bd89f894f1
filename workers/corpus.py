"""What one worker process holds of the corpus: the store, the encoders, the engine. Opened at first use, then kept."""

from __future__ import annotations

import time
from functools import cache
from threading import RLock

from celery.signals import worker_shutdown

from shared.encoders import dense_encoder
from shared.encoders.base import DenseEncoder
from shared.encoders.sparse import Bm25Encoder
from shared.settings import Settings
from shared.store import check_built_with, open_store
from shared.store.base import ChunkStore, CollectionInfo
from workers.search.engine import SearchEngine

#: Seconds for which a collection is taken to be built as it was: spares a server a question per leaf.
_CHECK_S = 1.0


class Corpus:
    """The store belongs to this process alone when it is embedded; never fork after this was used."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._lock = RLock()
        self._store: ChunkStore | None = None
        self._dense: DenseEncoder | None = None
        self._dense_ready = False
        self._checked = 0.0
        self._engine: tuple[object, SearchEngine] | None = None

    def store(self) -> ChunkStore:
        """The store. A failure to open it is raised each time, so that a mended folder needs no restart."""
        with self._lock:
            if self._store is None:
                self._store = open_store(self.settings)
            return self._store

    def dense(self) -> DenseEncoder | None:
        """The dense encoder, or None when none is configured."""
        with self._lock:
            if not self._dense_ready:
                self._dense = dense_encoder(self.settings)
                self._dense_ready = True
            return self._dense

    def engine(self) -> SearchEngine | None:
        """The engine of the collection as it is built now; None while nothing is ingested.

        Raises: StoreMismatchError when the collection was built with other encoders.
        """
        with self._lock:
            if self._engine is not None and time.monotonic() - self._checked < _CHECK_S:
                return self._engine[1]
        info = self.store().info()
        if info is None or info.points == 0:
            return None
        with self._lock:
            self._checked = time.monotonic()
            if self._engine is None or self._engine[0] != info.built_with:
                self._engine = (info.built_with, self._build(info))
            return self._engine[1]

    def _build(self, info: CollectionInfo) -> SearchEngine:
        sparse = Bm25Encoder(info.built_with.avg_len)
        check_built_with(info, sparse.name, self.dense())
        return SearchEngine(self.store(), sparse, self.dense(), self.settings)

    def close(self) -> None:
        """Close the store, so that nothing is left unwritten."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None
            self._engine = None


@cache
def corpus() -> Corpus:
    """The one corpus of this process."""
    from workers.app import app  # noqa: PLC0415 - the app's settings, without importing it for tests of Corpus

    return Corpus(app.conf.ramify)


@worker_shutdown.connect
def _let_go(**_: object) -> None:
    """A worker that ends writes out its store and lets go of it."""
    if corpus.cache_info().currsize:
        corpus().close()
