"""What only the embedded store must do: survive a reopening, refuse a second one, and say what is broken."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import qdrant_edge as edge
from qdrant_client import models

from shared.errors import StoreError, StoreMismatchError
from shared.providers.encoders import Bm25Encoder
from shared.settings import Settings
from shared.store import DENSE, SPARSE, BuiltWith, check_built_with, open_stores
from shared.store.schema import INDEXED
from tests.fakes.stores import embedded
from tests.shared.store.conftest import MakePoint

ENCODER = Bm25Encoder(20.0)


def redis() -> models.QueryRequest:
    vector = ENCODER.encode_query("redis")
    query = models.SparseVector(indices=list(vector.indices), values=list(vector.values))
    return models.QueryRequest(query=query, using=SPARSE, limit=50)


@pytest.fixture
def folder(tmp_path: Path, built_with: BuiltWith, make_point: MakePoint) -> Path:
    """A closed store with two chunks."""
    store = embedded(tmp_path / "库")
    store.create(built_with)
    store.upsert([make_point("Redis 持久化", "a"), make_point("Redis streams", "b")])
    store.flush()
    store.close()
    store.close()
    return tmp_path / "库"


def test_given_a_closed_store_when_opened_again_then_all_is_there(folder: Path, built_with: BuiltWith) -> None:
    store = embedded(folder)

    info = store.info()
    assert info is not None
    assert (info.built_with, info.points) == (built_with, 2)
    assert info.index_version > 0
    assert {hit.doc_id for hit in store.query([redis()])[0]} == {"a", "b"}
    store.optimize()
    assert len(store.query([redis()])[0]) == 2
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.info()


def test_given_an_open_store_when_opened_twice_then_one_sentence_says_who_may(folder: Path) -> None:
    store = embedded(folder)

    with pytest.raises(StoreError, match="in use by another process; only the search worker may open it"):
        embedded(folder)
    assert len(store.query([redis()])[0]) == 2
    store.close()


def test_given_a_store_made_by_another_process_when_asked_then_it_is_found(
    tmp_path: Path, built_with: BuiltWith
) -> None:
    early, maker = embedded(tmp_path / "s"), embedded(tmp_path / "s")
    maker.create(built_with)
    with pytest.raises(StoreError, match="in use"):
        early.info()
    maker.close()

    assert early.info() is not None
    early.close()


def _junk(folder: Path, pattern: str) -> None:
    for file in folder.glob(pattern):
        if file.is_file():
            file.write_bytes(b"\x00junk" * 40)


@pytest.mark.parametrize(
    "breaking",
    [
        lambda folder: (folder / "meta.json").unlink(),
        lambda folder: (folder / "meta.json").write_text("{"),
        lambda folder: (folder / "meta.json").write_text((folder / "meta.json").read_text().replace(":1,", ":99,", 1)),
        lambda folder: shutil.rmtree(folder / "shard"),
        lambda folder: shutil.rmtree(folder / "shard" / "segments"),
        lambda folder: _junk(folder, "shard/edge_config.json"),
        lambda folder: _junk(folder, "shard/segments/*/segment.json"),
        lambda folder: _junk(folder, "shard/segments/*/payload_storage/*"),
        lambda folder: _junk(folder, "shard/wal/open-*"),
    ],
)
def test_given_a_damaged_folder_when_opened_then_the_sentence_names_folder_and_fix(
    folder: Path, breaking: Callable[[Path], object]
) -> None:
    breaking(folder)

    with pytest.raises(StoreError, match="move the folder away and ingest again") as raised:
        embedded(folder)
    assert str(folder) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_given_a_folder_that_cannot_be_made_when_created_then_one_sentence(
    tmp_path: Path, built_with: BuiltWith
) -> None:
    (tmp_path / "file").write_text("not a folder")

    with pytest.raises(StoreError, match="no store can be made"):
        embedded(tmp_path / "file" / "ramify").create(built_with)


def test_given_an_unsupported_query_when_asked_then_it_says_so(folder: Path) -> None:
    store = embedded(folder)
    arms = models.Prefetch(query=[1.0] * 8, using=DENSE)
    fused = models.QueryRequest(prefetch=[arms], query=models.FusionQuery(fusion=models.Fusion.RRF))
    near = models.GeoRadius(center=models.GeoPoint(lon=0, lat=0), radius=1)
    placed = models.QueryRequest(
        query=[1.0] * 8,
        using=DENSE,
        filter=models.Filter(must=[models.FieldCondition(key="place", geo_radius=near)]),
    )

    for request in (fused, placed, models.QueryRequest(query="an-id", using=DENSE)):
        with pytest.raises(StoreError, match="does not support"):
            store.collection.query([request])
    with pytest.raises(StoreError, match="nope"):
        store.query([models.QueryRequest(query=[1.0] * 8, using="nope")])
    store.close()


def test_given_eight_readers_when_one_writes_then_nothing_is_lost(folder: Path, make_point: MakePoint) -> None:
    store = embedded(folder)
    stop, failures, reads = threading.Event(), [], []

    def read() -> None:
        try:
            while not stop.wait(0.002):
                assert len(store.query([redis()] * 2)[0]) >= 2
                assert store.info() is not None
                reads.append(1)
        except Exception as error:  # noqa: BLE001 - shown by the assertion below
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for n in range(20):
        store.upsert([make_point(f"redis {n} {part}", f"n{n}", part) for part in range(5)])
        store.delete_chunks(f"n{n}", [make_point("", f"n{n}", part).chunk.chunk_id for part in range(4)])
    stop.set()
    for thread in threads:
        thread.join(timeout=30)

    info = store.info()
    store.close()
    assert failures == []
    assert len(reads) >= 8
    assert info is not None
    assert info.points == 2 + 20 * 4


def test_given_a_forked_child_when_it_asks_then_it_is_refused_instead_of_hanging(folder: Path) -> None:
    store = embedded(folder)
    store.collection._owner = os.getpid() + 1  # as a child would see it; forking for real would hang on failure

    with pytest.raises(StoreError, match="before a fork"):
        store.query([redis()])
    store.collection._owner = os.getpid()
    store.close()


def test_given_settings_when_opened_then_the_store_lies_under_data_dir(tmp_path: Path, built_with: BuiltWith) -> None:
    stores = open_stores(Settings(data_dir=tmp_path, store={"collection": "notes"}))
    stores.of("default").create(built_with)
    stores.close()

    assert (tmp_path / "store" / "notes" / "meta.json").is_file()
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["notes"]


class _Dense:
    name, dim = "test:8", 8


def test_given_other_encoders_when_checked_then_the_sentence_names_both(folder: Path) -> None:
    store = embedded(folder)
    info = store.info()
    store.close()
    assert info is not None
    check_built_with(info.built_with, ENCODER.name, _Dense())
    other = type("Other", (_Dense,), {"dim": 9})()

    for sparse, dense in [("bm25:other", _Dense()), (ENCODER.name, None), (ENCODER.name, other)]:
        with pytest.raises(StoreMismatchError, match=r"built with bm25:multilingual\+code:v1 and test:8 \(8 numbers\)"):
            check_built_with(info.built_with, sparse, dense)


def test_given_a_store_without_the_later_indexes_when_opened_then_it_gets_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[edge.EdgeShard] = []
    load = edge.EdgeShard.load
    shard = load(str(folder / "shard"))
    for name in ("defines", "refs"):
        shard.update(edge.UpdateOperation.delete_field_index(name))
    assert "defines" not in shard.info().payload_schema
    shard.close()

    def watched(path: str) -> edge.EdgeShard:
        opened.append(load(path))
        return opened[0]

    monkeypatch.setattr("shared.store.embedded.edge.EdgeShard.load", watched)

    store = embedded(folder)

    assert set(opened[0].info().payload_schema) == {field.name for field in INDEXED}
    assert len(store.query([redis()])[0]) == 2
    store.close()


def test_given_chunks_that_were_read_when_they_are_written_again_then_the_next_search_has_what_is_stored(
    folder: Path, make_point: MakePoint
) -> None:
    store = embedded(folder)

    def found() -> dict[str, tuple[str, int]]:
        (hits,) = store.query([redis()])
        assert {hit.text for hit in store.lookup(models.Filter(), 100)} >= {hit.text for hit in hits}
        return {hit.text: (hit.title, hit.backlinks) for hit in hits}

    before = found()
    assert found() == before
    (first, *_), (hit, *_) = before, store.query([redis()])[0]
    store.set_payloads({hit.chunk_id: {"title": "another"}})
    assert found()[first] == ("another", before[first][1])
    store.set_backlinks({hit.doc_id: 7})
    assert found()[first] == ("another", 7)
    store.upsert([make_point("redis anew", hit.doc_id, hit.ordinal)])
    assert first not in found()
    assert "redis anew" in found()
    store.delete_documents([hit.doc_id])
    assert "redis anew" not in found()
    store.close()
