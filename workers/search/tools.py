"""What stages may use. Built once per process; which of them are there depends on the pool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from shared.cache import Cache
from shared.encoders.base import DenseEncoder, Embedded, SparseEncoder
from shared.encoders.trigram import TrigramEncoder
from shared.llm.client import LLM
from shared.rerankers.base import Reranker
from shared.settings import Settings
from shared.store.base import ChunkStore


@dataclass(frozen=True)
class Tools:
    """The search pool has a store and encoders, the rerank pool a reranker. `timeout_s` is what is left for a stage.

    The store is that of the question's tenant. `index_version` is the state of its collection; 0: not known.
    """

    settings: Settings
    store: ChunkStore | None = None
    sparse: SparseEncoder | None = None
    dense: DenseEncoder | None = None
    embed: Callable[[list[str], str], Embedded] | None = None
    trigrams: TrigramEncoder | None = None
    llm: LLM | None = None
    cache: Cache | None = None
    reranker: Reranker | None = None
    timeout_s: float = 30.0
    today: date | None = None
    index_version: int = 0

    def need_store(self) -> tuple[ChunkStore, SparseEncoder]:
        """The store and its sparse encoder. Raises: RuntimeError on a pool that has none (a strategy wrongly split)."""
        if self.store is None or self.sparse is None:
            raise RuntimeError("this pool has no store")
        return self.store, self.sparse
