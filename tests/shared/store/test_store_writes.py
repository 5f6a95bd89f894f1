"""Both stores count what matches and read it in slices of the ids' order, so that a scan can be shared out.

Single payload fields: read by filter and set by chunk id, on every store.

Both stores tell which units they hold whole, and remember the state that an ingest left.
"""

from __future__ import annotations

import uuid
from itertools import pairwise

import pytest
from qdrant_client import models

from shared.errors import StoreError
from shared.models import Filters
from shared.providers.encoders import Bm25Encoder
from shared.store import SPARSE, BuiltWith, ChunkStore, to_filter
from shared.store.base import Pending
from shared.store.units import UnitDocument, whole_units
from tests.shared.store.conftest import MakePoint

MIDDLE = "80000000-0000-0000-0000-000000000000"


@pytest.fixture
def hundred(store: ChunkStore, built_with: BuiltWith, make_point: MakePoint) -> ChunkStore:
    """A hundred documents in one namespace, ten in another."""
    store.create(built_with)
    store.upsert([make_point(f"text {n}", f"d{n}") for n in range(100)])
    store.upsert([make_point(f"text {n}", f"x{n}", namespace="other") for n in range(10)])
    return store


def test_given_a_filter_when_counted_then_exactly_its_chunks_count(hundred: ChunkStore) -> None:
    assert hundred.count(to_filter(Filters())) == 100
    assert hundred.count(to_filter(Filters(namespace="other"))) == 10
    assert hundred.count(None) == 110


def test_given_no_collection_when_counted_then_it_is_none(store: ChunkStore) -> None:
    assert store.count(None) == 0


@pytest.mark.parametrize("bounds", [["", ""], ["", MIDDLE, ""], ["", "40" + MIDDLE[2:], MIDDLE, "c0" + MIDDLE[2:], ""]])
def test_given_slices_when_read_then_each_chunk_stands_in_exactly_one(hundred: ChunkStore, bounds: list[str]) -> None:
    mine = to_filter(Filters())
    slices = [
        [chunk_id for chunk_id, _ in hundred.read(mine, ["doc_id"], start, stop)] for start, stop in pairwise(bounds)
    ]
    for ids, (start, stop) in zip(slices, pairwise(bounds), strict=True):
        assert ids == sorted(ids)
        assert all(chunk_id >= start and (not stop or chunk_id < stop) for chunk_id in ids)
    joined = [chunk_id for ids in slices for chunk_id in ids]
    assert joined == [chunk_id for chunk_id, _ in hundred.read(mine, ["doc_id"])]
    assert len(set(joined)) == 100


def test_given_an_id_that_is_stored_when_it_bounds_then_it_starts_a_slice_and_ends_none(hundred: ChunkStore) -> None:
    ids = [chunk_id for chunk_id, _ in hundred.read(to_filter(Filters()), ["doc_id"])]
    bound = ids[41]
    assert uuid.UUID(bound)
    before = [chunk_id for chunk_id, _ in hundred.read(to_filter(Filters()), [], "", bound)]
    after = [chunk_id for chunk_id, _ in hundred.read(to_filter(Filters()), [], bound)]
    assert (before, after) == (ids[:41], ids[41:])


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
    filled.upsert([make_point("later", "later", pending=Pending.CHUNK, sought=("later",), refs=("title:aof",))])
    pending = models.Filter(must=[models.FieldCondition(key="pending", range=models.Range(gte=1))])

    ((chunk_id, payload),) = filled.read(pending, ("doc_id", "pending", "sought", "refs"))

    assert chunk_id == make_point("", "later").chunk.chunk_id
    assert payload == {"doc_id": "later", "pending": 1, "sought": ["later"], "refs": ["title:aof"]}
    assert len(list(filled.read(None, ("path",)))) == 5


def test_given_units_when_asked_then_only_the_whole_ones_are_known(
    store: ChunkStore, built_with: BuiltWith, make_point: MakePoint
) -> None:
    assert whole_units(store, ["u1"]) == {}
    store.create(built_with)
    two = [make_point("zero", "a", 0, unit="u1"), make_point("one", "a", 1, unit="u1")]
    lines = [make_point("x", "b", unit="u2", unit_size=2), make_point("y", "c", unit="u2", unit_size=2)]
    short = [make_point("z", "d", unit="u3", unit_size=2)]
    headless = [make_point("one", "e", 1, unit="u4")]
    plain = [make_point("none", "f")]
    store.upsert([*two, *lines, *short, *headless, *plain])

    known = whole_units(store, ["u1", "u2", "u3", "u4", "", "else", "u1"])

    assert known == {
        "u1": [UnitDocument("a", "/notes", "notes/a.md")],
        "u2": [UnitDocument("b", "/notes", "notes/b.md"), UnitDocument("c", "/notes", "notes/c.md")],
    }


def test_given_a_stale_chunk_beside_a_new_form_when_asked_then_the_unit_is_not_whole(
    store: ChunkStore, built_with: BuiltWith, make_point: MakePoint
) -> None:
    store.create(built_with)
    stale = make_point("one", "a", 1, unit="old", document_hash="old")
    store.upsert([make_point("zero", "a", 0, unit="new", document_hash="new"), stale])
    assert whole_units(store, ["new", "old"]) == {}
    store.delete_chunks("a", [make_point("zero", "a", 0).chunk.chunk_id])
    assert list(whole_units(store, ["new", "old"])) == ["new"]


def test_given_more_units_than_one_look_takes_when_asked_then_all_are_known(
    store: ChunkStore, built_with: BuiltWith, make_point: MakePoint, monkeypatch
) -> None:
    monkeypatch.setattr("shared.store.units._BATCH", 3)
    store.create(built_with)
    store.upsert([make_point("text", f"d{n}", unit=f"u{n}") for n in range(8)])
    assert set(whole_units(store, [f"u{n}" for n in range(10)])) == {f"u{n}" for n in range(8)}


def test_given_the_end_of_an_ingest_when_recorded_then_it_is_remembered_and_is_no_write(
    store: ChunkStore, built_with: BuiltWith, make_point: MakePoint
) -> None:
    store.create(built_with)
    store.upsert([make_point("text")])
    before = store.info()
    assert before is not None
    assert before.finished == ""
    store.mark_finished("3:17")
    after = store.info()
    assert after == before.model_copy(update={"finished": "3:17"})
    store.upsert([make_point("more", "d2")])
    later = store.info()
    assert later is not None
    assert later.finished == "3:17"
    assert later.index_version > after.index_version


def test_given_the_boxes_of_a_page_when_stored_then_a_search_reads_them_back_whoever_wrote_them(
    store: ChunkStore, built_with: BuiltWith, make_point: MakePoint
) -> None:
    boxes = ((0, 72, 777, 523, 789), (88, 72, -3, 517, 9))
    store.create(built_with)
    newer, older, bare = (make_point("text", f"d{n}", boxes=boxes if n < 2 else ()) for n in range(3))
    store.upsert([newer, older, bare])
    store.set_payloads({older.chunk.chunk_id: {"boxes": [list(box) for box in boxes]}})  # as releases before wrote them
    found = {hit.doc_id: hit.boxes for page in store.scroll(None) for hit in page}
    assert found == {"d0": boxes, "d1": boxes, "d2": ()}
    store.set_payloads({bare.chunk.chunk_id: {"boxes": "no list"}})
    with pytest.raises(StoreError, match="is no chunk of Ramify"):
        list(store.scroll(None))
