"""What every chunk store must do, on each of them."""

from __future__ import annotations

import uuid

import pytest
from qdrant_client import models

from shared.errors import InputError, StoreError
from shared.models import Chunk, Filters
from shared.providers.encoders import Bm25Encoder, SparseVector
from shared.store import DENSE, SPARSE, BuiltWith, ChunkStore, to_filter
from tests.shared.store.conftest import MakePoint

ENCODER = Bm25Encoder(20.0)


def bm25(text: str, flt: models.Filter | None = None, limit: int = 10, **more: object) -> models.QueryRequest:
    vector = ENCODER.encode_query(text)
    query = models.SparseVector(indices=list(vector.indices), values=list(vector.values))
    return models.QueryRequest(query=query, using=SPARSE, filter=flt, limit=limit, **more)


def nearest(vector: tuple[float, ...], limit: int = 10, **more: object) -> models.QueryRequest:
    return models.QueryRequest(query=list(vector), using=DENSE, limit=limit, **more)


def paths(hits: list) -> list[str]:
    return [hit.path for hit in hits]


def test_given_no_collection_when_asked_then_it_says_so(store: ChunkStore) -> None:
    assert store.info() is None
    assert store.document_hashes(["d1"]) == {}
    assert store.documents("/notes") == {}
    store.delete_documents(["d1"])
    with pytest.raises(StoreError):
        store.query([bm25("redis")])


def test_given_a_new_collection_when_asked_then_it_is_empty_and_names_its_encoders(
    store: ChunkStore, built_with: BuiltWith
) -> None:
    store.create(built_with)

    info = store.info()
    assert info is not None
    assert (info.built_with, info.points) == (built_with, 0)
    assert store.query([bm25("redis"), nearest((1.0,) * 8)]) == [[], []]
    with pytest.raises(StoreError, match="exists already"):
        store.create(built_with)


def test_given_chunks_when_searched_by_words_then_the_right_one_comes_first_in_both_languages(
    filled: ChunkStore,
) -> None:
    chinese, english, mixed, nothing = filled.query(
        [bm25("数据库 查询 性能"), bm25("persisted snapshot"), bm25("Redis 持久化"), bm25("")]
    )

    assert chinese[0].title == "query"
    assert english[0].title == "rdb"
    assert paths(mixed) == ["notes/zh/缓存/redis.md", "notes/en/redis.md"]
    assert mixed[0].score > mixed[1].score
    assert nothing == []


def test_given_chunks_when_searched_by_vector_then_hits_carry_cosine_and_vector(
    filled: ChunkStore, make_point: MakePoint
) -> None:
    wanted = make_point("vacuum and bloat in Postgres").dense

    [hits] = filled.query([nearest(wanted, with_vector=[DENSE])])

    assert hits[0].title == "vacuum"
    assert hits[0].score == pytest.approx(1.0, abs=1e-5)
    assert hits[0].vector == pytest.approx(wanted, abs=1e-5)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    [above] = filled.query([nearest(wanted, score_threshold=0.999)])
    assert [hit.title for hit in above] == ["vacuum"]
    assert above[0].vector == ()


def test_given_a_chunk_when_found_then_it_comes_back_as_it_was_stored(
    filled: ChunkStore, make_point: MakePoint
) -> None:
    [hits] = filled.query([bm25("持久化")])
    stored = make_point("Redis 持久化 AOF 与 RDB", "aof", path="notes/zh/缓存/redis.md", tags=("缓存", "redis"),
                        date="2026-05-11", kind="memory").chunk  # fmt: skip

    assert hits[0].model_dump(include=set(Chunk.model_fields)) == {**stored.model_dump(), "version": "hash-aof"}


def test_given_a_limit_and_an_offset_when_searched_then_pages_join(filled: ChunkStore) -> None:
    whole, first, second = filled.query(
        [nearest((1.0,) * 8), nearest((1.0,) * 8, limit=2), nearest((1.0,) * 8, limit=2, offset=2)]
    )

    assert paths(first + second) == paths(whole)


def test_given_a_changed_document_when_stale_chunks_are_deleted_then_only_the_kept_remain(
    filled: ChunkStore, make_point: MakePoint
) -> None:
    old = [make_point(f"part {n}", "long", n) for n in range(4)]
    filled.upsert(old)
    new = [make_point(f"newer {n}", "long", n, document_hash="v2") for n in range(2)]
    filled.upsert(new)
    assert filled.document_hashes(["long"]) == {}, "old and new chunks side by side: not yet whole"

    filled.delete_chunks("long", [point.chunk.chunk_id for point in new])

    assert filled.document_hashes(["long", "aof", "no such"]) == {"long": "v2", "aof": "hash-aof"}
    assert sorted(h.text for page in filled.scroll(None) for h in page if h.doc_id == "long") == ["newer 0", "newer 1"]
    filled.delete_chunks("long", [])
    assert filled.document_hashes(["long"]) == {}


def test_given_a_document_whose_first_chunk_is_missing_when_hashes_are_read_then_it_is_not_there(
    filled: ChunkStore, make_point: MakePoint
) -> None:
    filled.upsert([make_point("second half", "torn", 1)])

    assert filled.document_hashes(["torn"]) == {}
    assert "torn" in filled.documents("/notes"), "a prune must still find it"


def test_given_two_sources_when_listed_then_each_has_its_own_documents(
    filled: ChunkStore, make_point: MakePoint
) -> None:
    filled.upsert([make_point("elsewhere", "far", path="远/far.md", source="/其他")])

    assert filled.documents("/其他") == {"far": "远/far.md"}
    assert set(filled.documents("/notes")) == {"aof", "rdb", "query", "vacuum"}
    filled.delete_documents(["aof", "far", "no such"])
    filled.delete_documents([])
    assert filled.documents("/其他") == {}
    assert set(filled.documents("/notes")) == {"rdb", "query", "vacuum"}


def test_given_new_sparse_vectors_when_set_then_scores_and_avg_len_follow_and_the_rest_stays(
    filled: ChunkStore, built_with: BuiltWith
) -> None:
    pages = list(filled.scroll(None))
    ids = {hit.title: hit.chunk_id for page in pages for hit in page}
    fresh = {ids["vacuum"]: ENCODER.encode_passage("autovacuum"), str(uuid.uuid4()): ENCODER.encode_passage("ghost")}

    filled.set_sparse({**fresh, ids["query"]: SparseVector()}, 33.5)

    info = filled.info()
    assert info is not None
    assert (info.built_with.avg_len, info.built_with.dense, info.points) == (33.5, built_with.dense, 4)
    found, old, emptied, ghost = filled.query([bm25("autovacuum"), bm25("bloat"), bm25("数据库"), bm25("ghost")])
    assert [hit.text for hit in found] == ["vacuum and bloat in Postgres"]
    assert (old, emptied, ghost) == ([], [], [])
    assert len(filled.query([nearest((1.0,) * 8)])[0]) == 4, "dense vectors stay"


def test_given_backlinks_when_set_then_all_chunks_of_the_documents_have_them_and_the_rest_stays(
    filled: ChunkStore, make_point: MakePoint
) -> None:
    filled.upsert([make_point(f"part {n}", "long", n) for n in range(3)])
    before = [hit for page in filled.scroll(None) for hit in page]

    filled.set_backlinks({"long": 4, "rdb": 4, "aof": 1, "query": 0, "no such": 9})

    wanted = {"long": 4, "rdb": 4, "aof": 1}
    after = [hit for page in filled.scroll(None) for hit in page]
    assert after == [hit.model_copy(update={"backlinks": wanted.get(hit.doc_id, 0)}) for hit in before]
    [found] = filled.query([bm25("持久化")])
    assert found[0].backlinks == 1
    assert filled.document_hashes(["long"]) == {"long": "hash-long"}


def test_given_backlinks_that_are_stored_when_set_again_then_nothing_is_written(
    filled: ChunkStore, make_point: MakePoint
) -> None:
    filled.set_backlinks({"rdb": 2, "aof": 1})
    before = filled.info()

    filled.set_backlinks({"rdb": 2, "aof": 1, "query": 0})
    filled.set_backlinks({})

    assert filled.info() == before
    filled.upsert([make_point("newer", "rdb")])
    filled.set_backlinks({"aof": 0})
    assert {hit.backlinks for page in filled.scroll(None) for hit in page} == {0}, "written anew: not counted yet"


def test_given_writes_when_counted_then_the_index_version_only_grows(filled: ChunkStore, make_point: MakePoint) -> None:
    seen = [filled.info()]
    filled.upsert([make_point("one more", "more")])
    seen.append(filled.info())
    filled.delete_documents(["more"])
    seen.append(filled.info())
    filled.set_sparse({}, 21.0)
    seen.append(filled.info())
    filled.set_backlinks({"aof": 3})
    seen.append(filled.info())

    versions = [info.index_version for info in seen if info is not None]
    assert versions == sorted(set(versions))
    assert len(versions) == 5


def test_given_points_that_do_not_fit_when_upserted_then_one_sentence_and_nothing_is_written(
    filled: ChunkStore, make_point: MakePoint
) -> None:
    good = make_point("good", "good")
    for bad, words in [
        (good.model_copy(update={"dense": (1.0, 0.0)}), "2 numbers"),
        (good.model_copy(update={"chunk": good.chunk.model_copy(update={"chunk_id": "7"})}), "UUID|counting"),
    ]:
        with pytest.raises(StoreError, match=words):
            filled.upsert([good, bad])
    with pytest.raises(InputError, match="YYYY-MM-DD"):
        filled.upsert([good, make_point("bad", "bad", date="May 2026")])
    with pytest.raises(StoreError):
        filled.query([nearest((1.0, 0.0))])

    assert filled.document_hashes(["good", "bad"]) == {}


def test_given_a_chunk_without_words_or_vector_when_stored_then_it_is_kept_but_not_found(
    filled: ChunkStore, make_point: MakePoint
) -> None:
    filled.upsert([make_point("的 the", "mute").model_copy(update={"dense": ()})])

    assert filled.document_hashes(["mute"]) == {"mute": "hash-mute"}
    dense, sparse = filled.query([nearest((1.0,) * 8), bm25("的 the")])
    assert "mute" not in {hit.title for hit in dense + sparse}


def test_given_many_chunks_when_scrolled_then_every_one_comes_once_in_order(
    filled: ChunkStore, make_point: MakePoint
) -> None:
    filled.upsert([make_point(f"part {n}", "long", n, namespace="big") for n in range(600)])

    pages = list(filled.scroll(to_filter(Filters(namespace="big")), batch=250))

    ids = [hit.chunk_id for page in pages for hit in page]
    assert [len(page) for page in pages] == [250, 250, 100]
    assert ids == sorted(set(ids))
    assert {hit.score for page in pages for hit in page} == {0.0}
