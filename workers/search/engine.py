"""One query against the store: encode, both arms in one batched call, fuse, boost, thin out (D1, D2, D8, F10)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from qdrant_client import models

from shared.encoders.base import DenseEncoder, SparseEncoder
from shared.errors import InputError, RamifyError
from shared.models import Cost, Filters, Hit, SearchMode, SearchResult
from shared.settings import Settings
from shared.store import DENSE, SPARSE, to_filter
from shared.store.base import ChunkStore
from workers.search.fusion import linear_fusion, reciprocal_rank_fusion
from workers.search.shape import boost_sources, thin_out

NO_DENSE = "No embedding model is configured (embedding.provider): keyword search only."
EMPTY = "The collection is empty: ingest documents with `ramify ingest PATH`."


@dataclass
class _Trace:
    """Times and warnings of one query, as they come."""

    timings_ms: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    _mark: float = field(default_factory=time.perf_counter)

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.timings_ms[name] = round((now - self._mark) * 1000, 3)
        self._mark = now


class SearchEngine:
    """Searches one collection. Thread-safe as far as the store and the encoders are."""

    def __init__(
        self, store: ChunkStore, sparse: SparseEncoder, dense: DenseEncoder | None, settings: Settings
    ) -> None:
        self._store, self._sparse, self._dense, self._settings = store, sparse, dense, settings

    def search(self, query: str, mode: SearchMode | None, filters: Filters, limit: int) -> SearchResult:
        """The best `limit` chunks for a query, best first, with the parts of each score.

        Raises: InputError for vec_only without a dense encoder, TransientError and PermanentError of the store.
        """
        trace, cost = _Trace(), Cost()
        mode = self._mode(mode or self._settings.search.mode, trace)
        vector: Sequence[float] = ()
        if mode is not SearchMode.BM25_ONLY and self._dense is not None:
            mode, vector, cost = self._embed(query, mode, trace)
        arms = self._arms(query, mode, vector, filters, limit)
        trace.lap("encode")
        lists = dict(zip(arms, self._store.query(list(arms.values())), strict=True))
        trace.lap("store")
        hits = self._fuse(lists)
        candidates = len(hits)
        hits = boost_sources(hits, self._settings.search.source_boosts)
        hits = thin_out(hits, self._settings.search.max_chunks_per_doc)[:limit]
        trace.lap("fuse")
        return SearchResult(
            hits=tuple(hits),
            mode=mode.value,
            candidates=candidates,
            timings_ms=trace.timings_ms,
            warnings=tuple(trace.warnings),
            cost=cost,
        )

    def _mode(self, mode: SearchMode, trace: _Trace) -> SearchMode:
        if self._dense is not None or mode is SearchMode.BM25_ONLY:
            return mode
        if mode is SearchMode.VEC_ONLY:
            raise InputError("mode", mode.value, "it needs an embedding model: set embedding.provider")
        trace.warnings.append(NO_DENSE)
        return SearchMode.BM25_ONLY

    def _embed(self, query: str, mode: SearchMode, trace: _Trace) -> tuple[SearchMode, Sequence[float], Cost]:
        """The query's vector; hybrid goes on with keywords, and says so, when the encoder fails."""
        assert self._dense is not None  # noqa: S101 - `search` asks only then
        try:
            embedded = self._dense.embed_queries([query])
        except RamifyError as error:
            if mode is SearchMode.VEC_ONLY:
                raise
            trace.warnings.append(f"The question could not be embedded, keyword search only: {error}")
            return SearchMode.BM25_ONLY, (), Cost()
        cost = Cost(embed_calls=embedded.calls, embed_tokens=embedded.tokens)
        return mode, embedded.vectors[0], cost

    def _arms(
        self, query: str, mode: SearchMode, vector: Sequence[float], filters: Filters, limit: int
    ) -> dict[str, models.QueryRequest]:
        """One request per arm; the same filter reaches both. The first-stage lists are twice as long as the result."""
        flt, depth = to_filter(filters), 2 * limit
        arms = {}
        if mode is not SearchMode.VEC_ONLY:
            sparse = self._sparse.encode_query(query)
            arms[SPARSE] = models.QueryRequest(
                query=models.SparseVector(indices=list(sparse.indices), values=list(sparse.values)),
                using=SPARSE, filter=flt, limit=depth, with_payload=True, with_vector=[DENSE] if vector else False,
            )  # fmt: skip
        if mode is not SearchMode.BM25_ONLY:
            arms[DENSE] = models.QueryRequest(
                query=list(vector), using=DENSE, filter=flt, limit=depth, with_payload=True, with_vector=[DENSE]
            )
        return arms

    def _fuse(self, lists: dict[str, list[Hit]]) -> list[Hit]:
        """One list; each hit keeps its score and rank in every arm."""
        search = self._settings.search
        arms = {name: [(hit.chunk_id, hit.score) for hit in hits] for name, hits in lists.items()}
        if len(arms) == 1:
            (fused,) = arms.values()
        elif search.fusion == "linear":
            fused = linear_fusion(arms, {SPARSE: search.lexical_weight, DENSE: search.vector_weight})
        else:
            fused = reciprocal_rank_fusion(arms, {}, search.rrf_k)
        found = {hit.chunk_id: hit for hits in lists.values() for hit in hits}
        parts: dict[str, dict[str, float]] = {chunk_id: {} for chunk_id in found}
        for name, arm in arms.items():
            for rank, (chunk_id, score) in enumerate(arm, start=1):
                parts[chunk_id] |= {f"{name}": score, f"{name}_rank": rank}
        return [
            found[chunk_id].model_copy(update={"score": score, "parts": {**parts[chunk_id], "fused": score}})
            for chunk_id, score in fused
        ]
