"""The embedded store against qdrant-client's local mode: the same documents, the same answers."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from qdrant_client import QdrantClient, models

from shared.providers.encoders import Bm25Encoder
from shared.store import DENSE, SPARSE, BuiltWith
from shared.store.server import ServerStore
from tests.fakes.stores import OpenedStore, embedded
from tests.shared.store.conftest import MakePoint

ENCODER = Bm25Encoder(20.0)


def bm25(text: str) -> models.QueryRequest:
    vector = ENCODER.encode_query(text)
    query = models.SparseVector(indices=list(vector.indices), values=list(vector.values))
    return models.QueryRequest(query=query, using=SPARSE, limit=10)


def test_given_the_same_documents_when_both_engines_search_then_they_agree(
    tmp_path: Path, built_with: BuiltWith, make_point: MakePoint
) -> None:
    chance = random.Random(7)
    words = [f"word{n}" for n in range(60)] + [
        "数据库",
        "缓存",
        "索引",
        "消息队列",
        "备份",
        "Redis",
        "getUserName",
        "404",
    ]
    texts = [" ".join(chance.choices(words, k=chance.randint(5, 30))) for _ in range(200)]
    points = [make_point(text, f"d{n}") for n, text in enumerate(texts)]
    stores = [embedded(tmp_path / "c"), OpenedStore(ServerStore(QdrantClient(":memory:"), "c", indexed=False))]
    asked = [bm25(" ".join(chance.choices(words, k=3))) for _ in range(20)]
    vectors = [list(make_point(f"question {n}").dense) for n in range(20)]
    asked += [models.QueryRequest(query=vector, using=DENSE, limit=10) for vector in vectors]

    for store in stores:
        store.create(built_with)
        store.upsert(points)
    ours_all, theirs_all = (store.query(asked) for store in stores)
    for store in stores:
        store.close()

    for ours, theirs in zip(ours_all, theirs_all, strict=True):
        scores = [hit.score for hit in theirs]
        assert [hit.score for hit in ours] == pytest.approx(scores, rel=1e-4)
        tied = scores[-1] * (1 + 1e-4)  # places that the limit cuts through a tie are free
        assert {h.chunk_id for h in ours if h.score > tied} == {h.chunk_id for h in theirs if h.score > tied}
