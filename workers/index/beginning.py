"""How a tenant's chunks are made: the collection and its keyword encoders, from the first batch on. Writes no chunk."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

from shared.encoders import DenseEncoder, SparseEncoder
from shared.encoders.trigram import TrigramEncoder
from shared.errors import StoreError
from shared.models import Chunk
from shared.store import BuiltWith, ChunkStore, check_built_with
from workers.index.drift import SparseFactory
from workers.index.encoding import encoder_errors, mean_length


class KeywordEncoders(NamedTuple):
    """What keyword vectors are made with; no trigrams: the collection was built without."""

    sparse: SparseEncoder
    trigrams: TrigramEncoder | None


class Beginning:
    """Knows the encoders of a tenant, and makes or joins the collection when there are none. Safe for threads."""

    def __init__(
        self, store: ChunkStore, sparse_factory: SparseFactory, dense: DenseEncoder | None, *, trigrams: bool
    ) -> None:
        self._store, self._sparse, self._dense, self._with_trigrams = store, sparse_factory, dense, trigrams
        self._making = Lock()

    def existing(self) -> KeywordEncoders | None:
        """The encoders of the tenant's chunks, None before its first batch.

        Raises: StoreMismatchError when the collection was built with other encoders than these.
        """
        info = self._store.info()
        if info is None:
            return None
        encoder = self._sparse(info.built_with.avg_len)
        with encoder_errors():
            check_built_with(info.built_with, encoder.name, self._dense)
        if info.new:
            return None
        return KeywordEncoders(encoder, TrigramEncoder() if info.built_with.trigrams == TrigramEncoder.name else None)

    def made(self, chunks: Sequence[Chunk]) -> KeywordEncoders:
        """The encoders; where there are none, the average length is fitted on `chunks`, the tenant's first.

        So no tenant's weights depend on what others wrote. Raises: StoreMismatchError, StoreError.
        """
        with self._making:
            if encoders := self.existing():
                return encoders
            encoder = self._sparse(mean_length(self._sparse(1.0), chunks))
            try:
                self._store.create(self._built_with(encoder))
            except StoreError:
                # Another process, or another tenant, may have been first.
                if self.existing() is None:
                    self._store.create(self._built_with(encoder))
            if encoders := self.existing():
                return encoders
            raise StoreError("the collection was deleted while its first documents were written: ingest again")

    def _built_with(self, encoder: SparseEncoder) -> BuiltWith:
        """What the tenant's chunks are to be made with: a collection of others has the last word on trigrams."""
        if info := self._store.info():
            return info.built_with.model_copy(update={"avg_len": encoder.avg_len})
        name, dim = (self._dense.name, self._dense.dim) if self._dense else (None, 0)
        trigrams = TrigramEncoder.name if self._with_trigrams else None
        return BuiltWith(sparse=encoder.name, avg_len=encoder.avg_len, dense=name, dim=dim, trigrams=trigrams)
