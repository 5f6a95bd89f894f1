"""What one process searches with: the stores, the encoders, the tools. Opened at first use, then kept."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from functools import cache, cached_property, partial
from pathlib import Path
from threading import RLock
from typing import NamedTuple

from celery.signals import worker_shutdown

from shared.cache import Cache
from shared.errors import RamifyError, StoreInUseError, StoreMismatchError
from shared.providers.encoders import dense_encoder
from shared.providers.encoders.base import DenseEncoder, Embedded
from shared.providers.encoders.sparse import Bm25Encoder, TrigramEncoder
from shared.providers.http_deadline import time_left
from shared.providers.llm.client import ChatClient
from shared.providers.rerankers import GuardedReranker, reranker
from shared.providers.time_shares import seconds_for, share_of
from shared.settings import Settings
from shared.store import ChunkStore, TenantStores, check_built_with, open_stores
from shared.store.base import CollectionInfo, CollectionState
from shared.store.snapshot_file import SnapshotFile
from workers.search.state import Tools

log = logging.getLogger("ramify.search")
#: Seconds for which a server's collection is taken to be unchanged: spares it a call per leaf. The embedded store is
#: asked each time, so that what was just ingested is found at once.
_INFO_TTL_S = 1.0
#: Seconds for which a store that another process still holds is tried again.
_OPEN_RETRY_S = 5.0
#: Tenants whose tools are kept, the last used ones; others get theirs again when they ask.
_MAX_TENANTS = 500


class _TenantTools(NamedTuple):
    """A tenant's tools, the collection's state that they were made for, and when that was read (time.monotonic())."""

    info: CollectionInfo
    tools: Tools
    store: ChunkStore
    read_at: float


class SearchResources:
    """The stores, encoders and LLM of one process. Hands out one tenant's chunks, never all.

    The embedded store belongs to this process alone: never fork after it was opened.
    """

    def __init__(self, settings: Settings, shared_cache: Cache | None = None) -> None:
        self.settings, self._cache = settings, shared_cache
        self._lock = RLock()
        self._stores: TenantStores | None = None
        self._llm: ChatClient | None = None
        self._reranker: GuardedReranker | None = None
        self._tenants: OrderedDict[str, _TenantTools] = OrderedDict()

    def store(self, tenant: str) -> ChunkStore:
        """The tenant's chunks. Opening is tried at each call until it works: a repaired folder needs no restart.

        Raises: InputError when `tenant` is no name, StoreError, TransientError.
        """
        return self._opened().of(tenant)

    def state(self) -> tuple[CollectionState | None, int]:
        """The collection with all its tenants, and how many chunks no tenant owns: for the operator.

        Raises: StoreMismatchError when it was built with other encoders, StoreError, TransientError.
        """
        stores = self._opened()
        state = stores.state()
        if state is None:
            return None, 0
        check_built_with(state.built_with, Bm25Encoder(state.built_with.avg_len).name, self.dense())
        return state, stores.without_tenant()

    def snapshot(self, to: Path) -> SnapshotFile:
        """Write the embedded store with all tenants' chunks into a file. Raises: StoreError, InputError."""
        return self._opened().snapshot(to)

    def stored(self) -> CollectionState | None:
        """The collection, whatever it was built with. Raises: StoreError, TransientError."""
        return self._opened().state()

    def _opened(self) -> TenantStores:
        """Waits for a predecessor that was killed to release the store. Raises: StoreInUseError when it does not."""
        end = time.monotonic() + _OPEN_RETRY_S
        with self._lock:
            while self._stores is None:
                try:
                    self._stores = open_stores(self.settings, self._model)
                except StoreInUseError:
                    if time.monotonic() >= end:
                        raise
                    time.sleep(_OPEN_RETRY_S / 20)
            return self._stores

    def dense(self) -> DenseEncoder | None:
        """The dense encoder, or None when none is configured."""
        with self._lock:
            return self._dense

    def _model(self) -> str | None:
        return dense.name if (dense := self.dense()) else None

    @cached_property
    def _dense(self) -> DenseEncoder | None:
        return dense_encoder(self.settings)

    def llm(self) -> ChatClient | None:
        """The LLM that tools and directories share, or None when none is configured."""
        with self._lock:
            if self._llm is None and self.settings.has_llm:
                self._llm = ChatClient(self.settings)
            return self._llm

    def reranker(self) -> GuardedReranker | None:
        """The reranker for `find`; None where it is the LLM, or a model that the rerank pool alone loads."""
        traits = self.settings.rerank.traits
        if traits.llm or (traits.needs_model and not traits.server):
            return None
        with self._lock:
            if self._reranker is None:
                self._reranker = reranker(self.settings)
            return self._reranker

    def tools(self, tenant: str) -> tuple[CollectionInfo, Tools] | None:
        """What stages need of the tenant's chunks as they are now, and their state; None while it has none.

        Raises: InputError when `tenant` is no name, StoreMismatchError when it was built with other encoders.
        """
        with self._lock:
            known = self._tenants.get(tenant)
            if known and self.settings.store.kind == "server" and time.monotonic() - known.read_at < _INFO_TTL_S:
                return known.info, known.tools
        store = known.store if known else self.store(tenant)
        info = store.info()
        if info is None or info.points == 0:
            return None
        if known and known.info.built_with == info.built_with:
            tools = known.tools
        else:
            tools = self._make_tools(info, store)
            if not self._checked(info):
                return info, tools
        with self._lock:
            self._tenants[tenant] = _TenantTools(info, tools, store, time.monotonic())
            self._tenants.move_to_end(tenant)
            if len(self._tenants) > _MAX_TENANTS:
                self._tenants.popitem(last=False)
            return info, tools

    def _checked(self, info: CollectionInfo) -> bool:
        """True once the collection is known to be built with these encoders; False while the dense one cannot tell.

        Then keywords are searched all the same, and the next leaf asks it again. Raises: StoreMismatchError.
        """
        try:
            with share_of("embedding", time_left()):
                check_built_with(info.built_with, Bm25Encoder(info.built_with.avg_len).name, self.dense())
        except StoreMismatchError:
            raise
        except RamifyError as error:
            log.warning("the embedding model cannot tell the size of its vectors: %s", error)
            return False
        return True

    def _make_tools(self, info: CollectionInfo, store: ChunkStore) -> Tools:
        sparse, dense = Bm25Encoder(info.built_with.avg_len), self.dense()
        return Tools(
            settings=self.settings,
            store=store,
            sparse=sparse,
            dense=dense,
            embed=partial(embed_queries, dense, self._cache) if dense else None,
            trigrams=TrigramEncoder() if info.built_with.trigrams == TrigramEncoder.name else None,
            llm=self.llm(),
            cache=self._cache,
        )

    def close(self) -> None:
        """Close the stores, so that nothing is left unwritten, and the LLM's connections."""
        with self._lock:
            if self._stores is not None:
                self._stores.close()
                self._stores = None
            for client in (self._llm, self._reranker):
                if client is not None:
                    client.close()
            self._llm = self._reranker = None
            self._tenants.clear()


_resources_lock = RLock()


def search_resources() -> SearchResources:
    """The resources of this process, made at the first call."""
    with _resources_lock:  # two first leaves at once would open the store twice, and the second find it in use
        return _process_resources()


@cache
def _process_resources() -> SearchResources:
    from workers.app import registry, shared_cache  # noqa: PLC0415 - SearchResources itself is used without an app too

    return SearchResources(registry.settings, shared_cache())


@worker_shutdown.connect
def _close_resources(**_: object) -> None:
    """Writes out the embedded store and releases it when the worker ends."""
    if _process_resources.cache_info().currsize:
        search_resources().close()


def embed_queries(encoder: DenseEncoder, cache: Cache | None, texts: list[str], tenant: str) -> Embedded:
    """Vectors in the order of `texts`; calls and tokens are those spent now. Raises: what the encoder raises."""
    if cache is None:
        return encoder.embed_queries(texts)
    spent: list[Embedded] = []

    def compute(missing: list[int]) -> list[Embedded]:
        found = encoder.embed_queries([texts[place] for place in missing])
        spent.append(found)
        return [Embedded(vectors=(vector,)) for vector in found.vectors]

    wait_s = min(cache.settings.wait_s, seconds_for("another's call", time_left()))
    keys = [{"tenant": tenant, "text": text, "model": encoder.name, "side": "query"} for text in texts]
    entries = cache.get_or_compute_many("embedding", keys, Embedded, compute, wait_s=wait_s)
    return Embedded(
        vectors=tuple(entry.vectors[0] for entry, _ in entries),
        calls=sum(found.calls for found in spent),
        tokens=sum(found.tokens for found in spent),
    )
