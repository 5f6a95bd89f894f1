"""Stores and small chunks for the contract tests. The server side runs on qdrant-client's local mode by default."""

from __future__ import annotations

import math
import os
import random
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from qdrant_client import QdrantClient

from shared.models import Chunk
from shared.providers.encoders import Bm25Encoder
from shared.store import BuiltWith, ChunkPoint, ChunkStore
from shared.store.collection import Collection
from shared.store.server import ServerStore
from tests.fakes.stores import StoreInPlace

REAL_SERVER = os.environ.get("RAMIFY_TEST_QDRANT_URL", "")
DIM = 8
POINT_FIELDS = ("document_hash", "source", "pending", "unfollowed", "sought", "unit", "unit_size", "fields", "file_id")
ENCODER = Bm25Encoder(20.0)
MakePoint = Callable[..., ChunkPoint]


@pytest.fixture
def built_with() -> BuiltWith:
    return BuiltWith(sparse=ENCODER.name, avg_len=ENCODER.avg_len, dense="test:8", dim=DIM)


@pytest.fixture
def make_point() -> MakePoint:
    """`make_point(text, doc_id="d1", ordinal=0, ...)`: the id follows from doc_id and ordinal, the vector from text."""

    def make(text: str, doc_id: str = "d1", ordinal: int = 0, **more: object) -> ChunkPoint:
        outer = {name: more.pop(name) for name in POINT_FIELDS if name in more}
        chunk = Chunk(
            chunk_id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{doc_id}/{ordinal}")),
            doc_id=doc_id,
            ordinal=ordinal,
            text=text,
            **{"path": f"notes/{doc_id}.md", "title": doc_id, **more},
        )
        rest = {"document_hash": f"hash-{doc_id}", "source": "/notes", **outer}
        return ChunkPoint(chunk=chunk, sparse=ENCODER.encode_passage(text), dense=direction(text), **rest)

    return make


@pytest.fixture(params=["embedded", "local", pytest.param("server", marks=pytest.mark.skipif(
    not REAL_SERVER, reason="set RAMIFY_TEST_QDRANT_URL to test a real Qdrant server"))])  # fmt: skip
def collection(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Collection]:
    """One empty collection after the other; nothing created yet."""
    opened: Collection
    if request.param == "embedded":
        opened = StoreInPlace(tmp_path / "store" / "ramify")
        yield opened
        opened.close()
        return
    real = request.param == "server"
    client = QdrantClient(url=REAL_SERVER, check_compatibility=False) if real else QdrantClient(":memory:")
    name = f"ramify-test-{uuid.uuid4().hex}"
    opened = ServerStore(client, name, indexed=real)
    yield opened
    for made in (name, f"{name}-1"):
        client.delete_collection(made)
    opened.close()


@pytest.fixture
def store(collection: Collection) -> ChunkStore:
    """The view of the tenant `default`."""
    return ChunkStore(collection, "default")


@pytest.fixture
def filled(store: ChunkStore, built_with: BuiltWith, make_point: MakePoint) -> ChunkStore:
    store.create(built_with)
    store.upsert([
        make_point("Redis 持久化 AOF 与 RDB", "aof", path="notes/zh/缓存/redis.md", tags=("缓存", "redis"),
                   date="2026-05-11", kind="memory"),
        make_point("Redis persistence with snapshots", "rdb", path="notes/en/redis.md", tags=("redis",),
                   date="2026-05-12"),
        make_point("如何优化数据库查询性能", "query", path="notes/zh/数据库/查询.md", tags=("数据库",),
                   date="2025-01-31"),
        make_point("vacuum and bloat in Postgres", "vacuum", path="docs/vacuum.md", namespace="other"),
    ])  # fmt: skip
    return store


def direction(text: str) -> tuple[float, ...]:
    """A unit vector that depends on the text alone."""
    chance = random.Random(text)
    values = [chance.gauss(0, 1) for _ in range(DIM)]
    return tuple(value / math.hypot(*values) for value in values)
