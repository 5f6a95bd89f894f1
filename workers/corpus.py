"""What one worker process holds of the corpus: the store, the encoders, the tools. Opened at first use, then kept."""

from __future__ import annotations

import time
from functools import cache, partial
from threading import RLock

from celery.signals import worker_shutdown

from shared.cache import Cache
from shared.encoders import dense_encoder
from shared.encoders.base import DenseEncoder
from shared.encoders.sparse import Bm25Encoder
from shared.encoders.trigram import TrigramEncoder
from shared.llm.client import ChatClient
from shared.settings import Settings
from shared.store import check_built_with, open_store
from shared.store.base import ChunkStore, CollectionInfo
from workers.search.embedding import embed_queries
from workers.search.tools import Tools

#: Seconds for which a server's collection is taken to be as it was: spares it a question per leaf. The embedded store
#: is asked each time, so that what was just ingested is found at once.
_CHECK_S = 1.0


class Corpus:
    """The store belongs to this process alone when it is embedded; never fork after this was used."""

    def __init__(self, settings: Settings, shared_cache: Cache | None = None) -> None:
        self.settings, self._cache = settings, shared_cache
        self._lock = RLock()
        self._store: ChunkStore | None = None
        self._dense: DenseEncoder | None = None
        self._dense_ready = False
        self._checked = 0.0
        self._tools: tuple[CollectionInfo, Tools] | None = None

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

    def tools(self) -> tuple[CollectionInfo, Tools] | None:
        """What stages need of the collection as it is now, and its state; None while nothing is ingested.

        Raises: StoreMismatchError when the collection was built with other encoders.
        """
        with self._lock:
            fresh = self.settings.store.kind == "server" and time.monotonic() - self._checked < _CHECK_S
            if self._tools is not None and fresh:
                return self._tools
        info = self.store().info()
        if info is None or info.points == 0:
            return None
        with self._lock:
            self._checked = time.monotonic()
            if self._tools is None or self._tools[0].built_with != info.built_with:
                self._tools = (info, self._build(info))
            else:
                self._tools = (info, self._tools[1])
            return self._tools

    def _build(self, info: CollectionInfo) -> Tools:
        sparse, dense = Bm25Encoder(info.built_with.avg_len), self.dense()
        check_built_with(info, sparse.name, dense)
        return Tools(
            settings=self.settings,
            store=self.store(),
            sparse=sparse,
            dense=dense,
            embed=partial(embed_queries, dense, self._cache) if dense else None,
            trigrams=TrigramEncoder() if info.built_with.trigrams == TrigramEncoder.name else None,
            llm=ChatClient(self.settings) if self.settings.has_llm else None,
            cache=self._cache,
        )

    def close(self) -> None:
        """Close the store, so that nothing is left unwritten."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None
            self._tools = None


@cache
def corpus() -> Corpus:
    """The one corpus of this process."""
    from workers.cache import shared_cache  # noqa: PLC0415 - a process's; Corpus itself is used without an app too
    from workers.steps import steps  # noqa: PLC0415

    return Corpus(steps.settings, shared_cache())


@worker_shutdown.connect
def _let_go(**_: object) -> None:
    """A worker that ends writes out its store and lets go of it."""
    if corpus.cache_info().currsize:
        corpus().close()
