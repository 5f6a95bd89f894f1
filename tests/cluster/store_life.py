"""Chunks on a Qdrant server that are searched and written while something happens to it, and commands beside."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import uuid
from collections.abc import Mapping
from threading import Event, Thread
from typing import Any, Self

from qdrant_client import models

from shared.errors import RamifyError
from shared.models import Chunk, Filters
from shared.providers.encoders import Bm25Encoder, DenseEncoder
from shared.settings import Settings, load_settings
from shared.store import DENSE, BuiltWith, ChunkPoint, TenantStores, open_stores, to_filter
from shared.store.base import SPARSE
from shared.store.schema import to_sparse
from tests.support.qdrant_node import QdrantNode

#: Measured with 20,000, which takes minutes.
CHUNKS = int(os.environ.get("RAMIFY_TEST_CHUNKS", "4000"))
DIM, TENANTS = 64, ("default", "acme")
ENCODER = Bm25Encoder(12.0)
BUILT = BuiltWith(sparse=ENCODER.name, avg_len=12.0, dense="random:64", dim=DIM)


def settings_of(node: QdrantNode, embedding: dict[str, object] | None = None, **qdrant: Any) -> Settings:
    store = {"kind": "server", "url": node.url, "timeout_s": 20, "qdrant": qdrant}
    return load_settings(store=store, embedding=embedding or {})


def points(texts: Mapping[str, str], chance: random.Random, dense: DenseEncoder | None = None) -> list[ChunkPoint]:
    """A chunk a document. Without `dense` their vectors are random ones."""
    chunks = [
        Chunk(
            chunk_id=str(uuid.uuid5(uuid.NAMESPACE_URL, doc_id)), doc_id=doc_id, ordinal=0, text=text,
            path=f"n/{doc_id}.md", title=doc_id,
        )
        for doc_id, text in texts.items()
    ]  # fmt: skip
    vectors = (
        dense.embed_passages([chunk.full_text for chunk in chunks]).vectors
        if dense
        else [tuple(chance.gauss(0, 1) for _ in range(DIM)) for _ in chunks]
    )
    return [
        ChunkPoint(
            chunk=chunk, document_hash=chunk.doc_id, source="/n", sparse=ENCODER.encode_passage(chunk.text),
            dense=tuple(vector),
        )
        for chunk, vector in zip(chunks, vectors, strict=True)
    ]  # fmt: skip


def fill(settings: Settings, chunks: int, dense: DenseEncoder | None = None) -> dict[str, dict[str, str]]:
    """Chunks of two tenants; what each has, doc_id -> text."""
    built = BUILT.but(dense=dense.name, dim=dense.dim) if dense else BUILT
    chance, stores = random.Random(3), open_stores(settings)
    words = [f"word{n}" for n in range(2000)]
    kept: dict[str, dict[str, str]] = {tenant: {} for tenant in TENANTS}
    for tenant in TENANTS:
        store = stores.of(tenant)
        store.create(built)
        for start in range(0, chunks // len(TENANTS), 1000):
            texts = {f"{tenant}-{start + n}": " ".join(chance.choices(words, k=12)) for n in range(1000)}
            store.upsert(points(texts, chance, dense))
            kept[tenant] |= texts
    stores.close()
    return kept


def stored(settings: Settings, tenant: str) -> dict[str, str]:
    stores = open_stores(settings)
    try:
        return {payload["doc_id"]: payload["text"] for _, payload in stores.of(tenant).read(None, ("doc_id", "text"))}
    finally:
        stores.close()


class Life:
    """Searches and writes that go on beside something, each on a thread; what was written, and what failed.

    As workers with this embedding model. `kept` is written to by one Life alone.
    """

    def __init__(
        self, settings: Settings, kept: dict[str, dict[str, str]], name: str = "new", dense: DenseEncoder | None = None
    ) -> None:
        self._settings, self._kept, self._name, self._dense = settings, kept, name, dense
        self.searches, self.failures = 0, list[str]()
        self.writes = 0
        self._ended = Event()
        self._threads = [Thread(target=self._search), Thread(target=self._write)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _opened(self) -> TenantStores:
        dense = self._dense
        return open_stores(self._settings, model=lambda: dense.name if dense else None)

    def _vector(self, chance: random.Random) -> list[float]:
        if self._dense is None:
            return [chance.gauss(0, 1) for _ in range(DIM)]
        return list(self._dense.embed_queries([f"word{chance.randrange(2000)}"]).vectors[0])

    def _search(self) -> None:
        chance, stores = random.Random(5), self._opened()
        while not self._ended.wait(0.02):
            store = stores.of(chance.choice(TENANTS))
            words = ENCODER.encode_query(f"word{chance.randrange(2000)} word{chance.randrange(2000)}")
            vector = self._vector(chance)
            asked = [
                models.QueryRequest(query=to_sparse(words), using=SPARSE, limit=10, filter=to_filter(Filters())),
                models.QueryRequest(query=vector, using=DENSE, limit=10, filter=to_filter(Filters())),
            ]
            try:
                store.info()  # as a worker does before each leaf
                found = store.query(asked)
                if len(found[1]) != 10:  # both copies of a chunk that the optimizer moves may be among the ten
                    found = store.query(asked)
                if len(found[1]) != 10:
                    self.failures.append(f"{len(found[1])} hits")
            except RamifyError as error:
                self.failures.append(str(error))
            self.searches += 1
        stores.close()

    def _write(self) -> None:
        chance, stores = random.Random(7), self._opened()
        while not self._ended.wait(0.05):
            tenant = chance.choice(TENANTS)
            store, kept = stores.of(tenant), self._kept[tenant]
            fresh = {f"{tenant}-{self._name}-{self.writes}": f"new words {self.writes}"}
            fresh |= dict.fromkeys(chance.sample(sorted(kept), 2), f"changed {self.writes}")
            gone = [one for one in chance.sample(sorted(kept), 2) if one not in fresh]
            try:
                store.upsert(points(fresh, chance, self._dense))
                kept |= fresh
                store.delete_documents(gone)
                for one in gone:
                    del kept[one]
            except RamifyError as error:
                self.failures.append(f"write: {error}")
            self.writes += 1
        stores.close()


def ramify(settings: Settings, *arguments: str, **more: str) -> subprocess.Popen[str]:
    """The command line as a process of its own."""
    store = settings.store
    environment = {
        **os.environ,
        "RAMIFY_STORE__KIND": "server",
        "RAMIFY_STORE__URL": str(store.url),
        "RAMIFY_STORE__TIMEOUT_S": str(store.timeout_s),
        "RAMIFY_EMBEDDING__PROVIDER": "none",
        **more,
    }
    command = [sys.executable, "-m", "orchestrator.cli.main", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
