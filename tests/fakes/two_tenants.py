"""Two tenants whose files look alike, in one collection behind a spy, which fails for what is not one tenant's call."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from qdrant_client import models

from shared.cache import Cache
from shared.language.text import terms
from shared.models import Hit, RawDocument
from shared.providers.encoders.base import Embedded, SparseVector
from shared.providers.llm.client import LLMReply
from shared.settings import Settings
from shared.store import TenantStores
from shared.store.base import BuiltWith, ChunkPoint, CollectionState, TenantNote
from shared.store.embedded import EmbeddedStore
from shared.store.schema import TENANT
from tests.fakes.lookalikes import files
from workers.index.pipeline import Indexer
from workers.search.resources import SearchResources

_DIM = 32


class Spy:
    """A collection that knows for whom it is asked (`asking`), and fails for everything that is not that tenant's."""

    def __init__(self, inner: EmbeddedStore) -> None:
        self._inner, self.tenant, self.calls = inner, "", Counter[str]()

    def info(self) -> CollectionState | None:
        return self._inner.info()

    def create(self, built_with: BuiltWith) -> None:
        self._inner.create(built_with)

    def upsert(self, points: Sequence[ChunkPoint], tenant: str) -> None:
        assert tenant == self.tenant
        self._own("upsert", [point.chunk.chunk_id for point in points])
        self._inner.upsert(points, tenant)

    def delete(self, flt: models.Filter) -> None:
        self._inner.delete(self._scoped("delete", flt))

    def query(self, requests: Sequence[models.QueryRequest]) -> list[list[Hit]]:
        for request in requests:
            self._scoped("query", request.filter)
            assert request.prefetch is None
            assert request.lookup_from is None
            if isinstance(request.query, models.SparseVector):
                assert request.params is not None
                assert isinstance(request.params.idf, models.IdfCorpusParams)
                self._scoped("idf", request.params.idf.corpus)
        return self._inner.query(requests)

    def scroll(self, flt: models.Filter | None, batch: int = 256) -> Iterator[list[Hit]]:
        return self._inner.scroll(self._scoped("scroll", flt), batch)

    def read(
        self, flt: models.Filter | None, fields: Sequence[str], start: str = "", stop: str = ""
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        return self._inner.read(self._scoped("read", flt), fields, start, stop)

    def count(self, flt: models.Filter | None) -> int:
        if self.tenant and not (flt and flt.must_not):  # the look for ids that others have is not the tenant's alone
            self._scoped("count", flt)
        return self._inner.count(flt)

    def lookup(self, flt: models.Filter, limit: int, vectors: bool = False) -> list[Hit]:
        return self._inner.lookup(self._scoped("lookup", flt), limit, vectors)

    def count_values(self, field: str, flt: models.Filter, limit: int) -> dict[str, int]:
        return self._inner.count_values(field, self._scoped("count_values", flt), limit)

    def set_payloads(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        self._own("set_payloads", changes)
        self._inner.set_payloads(changes)

    def set_sparse(self, vectors: Mapping[str, SparseVector]) -> None:
        self._own("set_sparse", vectors)
        self._inner.set_sparse(vectors)

    def remember(self, tenant: str, note: TenantNote) -> None:
        assert tenant == self.tenant
        self._inner.remember(tenant, note)

    def flush(self) -> None:
        self._inner.flush()

    def optimize(self) -> None:
        self._inner.optimize()

    def close(self) -> None:
        self._inner.close()

    def whose(self, chunk_ids: Iterable[str]) -> dict[str, str]:
        """Chunk id -> tenant, of those that are stored."""
        wanted = set(chunk_ids)
        return {found: payload[TENANT] for found, payload in self._inner.read(None, (TENANT,)) if found in wanted}

    def _scoped(self, method: str, flt: models.Filter | None) -> models.Filter:
        """The filter itself, when its first condition is the tenant."""
        self.calls[method] += 1
        assert flt is not None, f"{method} without a filter"
        assert isinstance(flt.must, list)
        assert flt.should is None
        first = flt.must[0]
        assert isinstance(first, models.FieldCondition)
        assert (first.key, first.match) == (TENANT, models.MatchValue(value=self.tenant)), f"{method} asks for others"
        return flt

    def _own(self, method: str, chunk_ids: Iterable[str]) -> None:
        self.calls[method] += 1
        assert set(self.whose(chunk_ids).values()) <= {self.tenant}, f"{method} of others' chunks"


class Letters:
    """A dense encoder without a model: words fall into buckets."""

    name, dim = "letters:32", _DIM

    def embed_queries(self, texts: Sequence[str]) -> Embedded:
        return Embedded(vectors=tuple(map(_vector, texts)), calls=1, tokens=1)

    embed_passages = embed_queries


def _vector(text: str) -> tuple[float, ...]:
    counts = np.full(_DIM, 0.01)
    for term in terms(text):
        counts[hashlib.blake2b(term.encode()).digest()[0] % _DIM] += 1
    return tuple(float(number) for number in counts / np.linalg.norm(counts))


class Rewriting:
    """An LLM that rewrites every question in the same words."""

    def __init__(self) -> None:
        self.asked = 0

    def complete(
        self, prompt: str, *, timeout_s: float, max_tokens: int | None = None, check: object = None
    ) -> LLMReply:
        self.asked += 1
        text = "<rewrites><rewrite>how redis persistence fails</rewrite><rewrite>缓存雪崩 事故</rewrite></rewrites>"
        return LLMReply(text=text, calls=1, tokens_in=1, tokens_out=1)

    def close(self) -> None:
        pass


class World:
    """Some tenants in one collection in `folder`, ingested in that order, asked through `resources`."""

    def __init__(self, folder: Path, settings: Settings, tenants: Sequence[str], cache: Cache | None = None) -> None:
        self.settings = settings.model_copy(update={"data_dir": folder})
        self.spy = Spy(EmbeddedStore(folder / "store"))
        self.llm, self.dense = Rewriting(), Letters()
        self.resources = SearchResources(self.settings, cache)
        self.resources._stores = TenantStores(self.spy)
        self.resources._stores.of("default")  # looks for chunks of older releases, once, before anybody asks
        self.resources._dense = self.dense
        self.resources._llm = self.llm  # type: ignore[assignment]
        self.indexers: dict[str, Indexer] = {}
        for tenant in tenants:
            self.ingest(tenant, files(tenant))

    @contextmanager
    def asking(self, tenant: str) -> Iterator[None]:
        """What runs inside is for this tenant."""
        before, self.spy.tenant = self.spy.tenant, tenant
        try:
            yield
        finally:
            self.spy.tenant = before

    def ingest(self, tenant: str, texts: Mapping[str, str], *, prune: bool = True) -> list[str]:
        """Ingest files under one root, the same for all tenants; returns what became of them."""
        with self.asking(tenant):
            if tenant not in self.indexers:
                store = self.resources.store(tenant)
                self.indexers[tenant] = Indexer(store, self.dense, self.settings)
            indexer = self.indexers[tenant]
            outcomes, _ = indexer.index([self.raw(tenant, path, text) for path, text in texts.items()])
            seen = {"/team": [outcome.doc_id for outcome in outcomes]} if prune else None
            return [outcome.status.value for outcome in (*outcomes, *indexer.finish(seen))]

    @staticmethod
    def raw(tenant: str, path: str, text: str) -> RawDocument:
        """A file at the same place in both tenants' file systems."""
        return RawDocument(
            source="/team", path=path, identity=f"/{path}", suffix=Path(path).suffix, content=text.encode(),
            tenant=tenant,
        )  # fmt: skip

    def close(self) -> None:
        self.resources.close()
