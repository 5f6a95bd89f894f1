"""Single payload fields: read by filter and set by chunk id, on every store."""

from __future__ import annotations

from qdrant_client import models

from shared.encoders import Bm25Encoder
from shared.store import SPARSE, ChunkStore
from shared.store.base import Pending
from tests.contract.conftest import MakePoint


def by_words(store: ChunkStore, question: str) -> list[str]:
    vector = Bm25Encoder(20.0).encode_query(question)
    query = models.SparseVector(indices=list(vector.indices), values=list(vector.values))
    (hits,) = store.query([models.QueryRequest(query=query, using=SPARSE, limit=10)])
    return [hit.path for hit in hits]


def test_given_payload_changes_when_set_then_only_those_fields_change_and_lost_ids_are_passed_over(
    filled: ChunkStore, make_point: MakePoint
) -> None:
    aof, rdb = (make_point("", doc_id).chunk.chunk_id for doc_id in ("aof", "rdb"))
    gone = make_point("", "gone").chunk.chunk_id
    filled.set_payloads({
        aof: {"mentions": ["title:rdb"], "pending": 0}, rdb: {"mentions": ["title:aof", "title:查询"]},
        gone: {"mentions": ["title:rdb"]},
    })  # fmt: skip

    found = {hit.doc_id: hit for page in filled.scroll(None) for hit in page}
    assert sorted(found) == ["aof", "query", "rdb", "vacuum"]
    assert found["aof"].mentions == ("title:rdb",)
    assert found["rdb"].mentions == ("title:aof", "title:查询")
    assert found["query"].mentions == ()
    assert (found["aof"].text, found["aof"].tags) == ("Redis 持久化 AOF 与 RDB", ("缓存", "redis"))
    assert by_words(filled, "persisted snapshot") == ["notes/en/redis.md"]


def test_given_a_filter_when_read_then_ids_come_with_the_named_fields_only(
    filled: ChunkStore, make_point: MakePoint
) -> None:
    filled.upsert([make_point("later", "later", pending=Pending.PAGE, common=("later",), refs=("title:aof",))])
    pending = models.Filter(must=[models.FieldCondition(key="pending", range=models.Range(gte=1))])

    ((chunk_id, payload),) = filled.read(pending, ("doc_id", "pending", "common", "refs"))

    assert chunk_id == make_point("", "later").chunk.chunk_id
    assert payload == {"doc_id": "later", "pending": 2, "common": ["later"], "refs": ["title:aof"]}
    assert len(list(filled.read(None, ("path",)))) == 5
