"""A collection of a server is copied into a new one under searches and writes; on qdrant-client's local mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from qdrant_client import QdrantClient, models

from shared.errors import StoreError
from shared.providers.encoders.base import Embedded
from shared.settings.store import QdrantSettings
from shared.store import DENSE, BuiltWith, ChunkStore
from shared.store.embedded_points import EmbeddedPoints
from shared.store.generations import Generations
from shared.store.migration import Migration, MigrationOptions, MigrationReport
from shared.store.moving import move
from shared.store.points import ServerPoints
from shared.store.server import ServerStore
from tests.fakes.stores import in_place
from tests.shared.store.conftest import ENCODER, MakePoint

pytestmark = pytest.mark.filterwarnings("ignore:Local mode performs exact")
OPTIONS = MigrationOptions(batch=4, settle_s=0, searches=8)
ASK = models.QueryRequest(query=[1.0, *[0.0] * 7], using=DENSE, limit=3)


class Places:
    """An encoder of another model: each text has a direction of its own length in 4 dimensions."""

    name, dim, languages = "other:4", 4, frozenset[str]()

    def embed_passages(self, texts: list[str]) -> Embedded:
        return Embedded(vectors=tuple((1.0, float(len(text)), float(len(set(text))), 1.0) for text in texts))


@pytest.fixture
def client() -> Iterator[QdrantClient]:
    made = QdrantClient(":memory:")
    yield made
    made.close()


@pytest.fixture
def of(client: QdrantClient) -> Generations:
    return Generations(client, "ramify", QdrantSettings(), indexed=False)


@pytest.fixture
def written(client: QdrantClient, built_with: BuiltWith, make_point: MakePoint) -> ChunkStore:
    """Thirty chunks, of two tenants."""
    collection = ServerStore(client, "ramify", indexed=False)
    stores = [ChunkStore(collection, tenant) for tenant in ("default", "acme")]
    for store in stores:
        store.create(built_with)
        store.upsert([make_point(f"note {n} of {store.tenant}", f"{store.tenant}{n}") for n in range(15)])
    return stores[0]


def migrate(
    of: Generations, dense: Any = None, tell: Callable[..., None] = lambda _: None, **more: Any
) -> MigrationReport:
    return Migration(of, more.pop("options", OPTIONS), dense, tell).run(**more)


def texts(store: ChunkStore) -> set[str]:
    return {hit.text for page in store.scroll(None) for hit in page}


def test_everything_is_copied_and_the_alias_means_the_copy(of: Generations, written: ChunkStore) -> None:
    before, found = texts(written), written.query([ASK])
    version = written.info().index_version

    report = migrate(of)

    assert report.fault == ""
    assert (report.source, report.target, report.copied, report.switched) == ("ramify-1", "ramify-2", 30, True)
    assert report.verification.unlike == ()
    assert report.verification.keyword_overlap == report.verification.dense_overlap == 1
    assert of.current() == "ramify-2"
    assert texts(written) == before
    assert written.query([ASK]) == found
    assert written.info().index_version != version, "what was cached of the old collection is not used any more"
    assert of.names() == ["ramify-1", "ramify-2"]
    assert Migration(of, OPTIONS, None, print).drop_old() == ["ramify-1"]
    assert of.names() == ["ramify-2"]
    assert texts(written) == before


def test_writes_during_the_copy_are_in_the_copy(
    of: Generations, client: QdrantClient, written: ChunkStore, make_point: MakePoint
) -> None:
    """Between two pages a chunk is added, one changed, one removed, one gets other fields; of each what is copied
    already, and what is not."""
    ids = sorted(hit.chunk_id for page in written.scroll(None) for hit in page)
    by_id = {hit.chunk_id: hit for page in written.scroll(None) for hit in page}
    steps = []

    def write(progress: Any) -> None:
        if progress.doing != "copying" or len(steps) >= 3:
            return
        n = len(steps)
        steps.append(n)
        written.upsert([make_point(f"new {n}", f"new{n}")])
        for end in (n, -1 - n):
            old = by_id[ids[end]]
            written.upsert([make_point(f"changed {end}", old.doc_id)])
        written.set_payloads({ids[5 + n]: {"backlinks": 7}, ids[-6 - n]: {"backlinks": 7}})
        written.delete_documents([by_id[ids[10 + n]].doc_id, by_id[ids[-10 - n]].doc_id])
        written.set_sparse({ids[8]: ENCODER.encode_passage("other words")}, 5.0)

    migrate(of, tell=write, switch=False)

    here, _ = ServerPoints(client, "ramify-1", of.settings).page("", 100)
    there, _ = ServerPoints(client, "ramify-2", of.settings).page("", 100)
    assert steps == [0, 1, 2]
    assert {one.id: one.payload for one in there} == {one.id: one.payload for one in here}
    assert {one.id: one.vector["bm25"] for one in there} == {one.id: one.vector["bm25"] for one in here}
    vectors = [{one.id: one.vector[DENSE] for one in points} for points in (here, there)]
    assert all(vectors[1][one] == pytest.approx(vector) for one, vector in vectors[0].items())
    assert of.meta("ramify-2").tenants == of.meta("ramify-1").tenants


def test_a_write_that_overtakes_a_page_under_way_is_not_undone(
    of: Generations, client: QdrantClient, written: ChunkStore, make_point: MakePoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    overtaken = []
    put = ServerPoints.put

    def late(self: ServerPoints, points: list[models.PointStruct]) -> None:
        if not overtaken:
            doc_id = next(one.payload["doc_id"] for one in points if one.payload["tenant"] == "default")
            other = next(one.payload["doc_id"] for one in points if one.payload["doc_id"] != doc_id)
            overtaken.extend([doc_id, other])
            written.upsert([make_point("newer", doc_id)])
            ChunkStore(written._collection, "acme").delete_documents([other])
            written.delete_documents([other])
        put(self, points)

    monkeypatch.setattr(ServerPoints, "put", late)
    report = migrate(of)

    assert report.switched
    assert "newer" in texts(written)
    assert of.look("ramify-2").points_count == 29


class KilledError(Exception):
    """Ends a migration where it stands, as a kill does."""


@pytest.mark.parametrize("at", [1, 2, 3, 5, 8, 10, 11])
def test_killed_anywhere_it_is_gone_on_with(
    of: Generations, written: ChunkStore, make_point: MakePoint, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before its nth change of the server, then run again, with a write in between."""
    before, left = texts(written), [at]

    def killing(name: str) -> None:
        original = getattr(QdrantClient, name)

        def call(self: QdrantClient, *given: Any, **more: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise KilledError
            return original(self, *given, **more)

        monkeypatch.setattr(QdrantClient, name, call)

    for name in ("create_collection", "update_collection", "upsert", "update_collection_aliases"):
        killing(name)
    with pytest.raises(KilledError):
        migrate(of)
    monkeypatch.undo()
    written.upsert([make_point("in between", "between")])

    report = migrate(of)

    assert report.switched or of.current() == "ramify-2"
    assert texts(written) == before | {"in between"}
    assert of.meta(of.current()).copying is None
    assert all(of.meta(name).mirror is None for name in of.names())


def test_a_cut_off_write_is_found_before_the_end(of: Generations, client: QdrantClient, written: ChunkStore) -> None:
    """A writer that died between the two collections leaves its mark, and the comparison is made again."""
    seen: list[str] = []

    def die(progress: Any) -> None:
        seen.append(progress.doing)
        if progress.doing == "comparing" and progress.done == progress.total and seen.count("comparing") < 10:
            [point], _ = ServerPoints(client, "ramify-1", of.settings).page("", 1)
            client.set_payload("ramify-1", {"backlinks": 9}, points=[point.id])
            client.update_collection("ramify-1", metadata={"writing:dead-1": len(seen)})

    report = migrate(of, tell=die)

    assert report.switched
    assert report.mended == 1
    [point], _ = ServerPoints(client, "ramify-2", of.settings).page("", 1)
    assert point.payload["backlinks"] == 9


def test_another_embedding_model_has_its_vectors_made_of_the_stored_texts(
    of: Generations, client: QdrantClient, written: ChunkStore, make_point: MakePoint
) -> None:
    """Writers of the old model go on meanwhile; their chunks get vectors of the new one, too."""
    written_at: list[str] = []

    def write(progress: Any) -> None:
        if progress.doing == "comparing" and not written_at:
            written_at.append("once")
            written.upsert([make_point("of an old writer", "late")])

    report = migrate(of, Places(), write)

    assert report.switched
    assert report.embedded == 1
    assert of.meta("ramify-2").built_with.dense == "other:4"
    points, _ = ServerPoints(client, "ramify-2", of.settings).page("", 100)
    assert len(points) == 31
    assert all(len(point.vector[DENSE]) == 4 for point in points)
    assert len({tuple(point.vector[DENSE]) for point in points}) > 1


def test_a_collection_of_an_older_release_moves_and_then_gets_its_alias(
    client: QdrantClient, built_with: BuiltWith, make_point: MakePoint
) -> None:
    """Its name cannot be an alias while it is there: whoever reads it is told where to go."""
    old = Generations(client, "old", QdrantSettings(), indexed=False)
    old.make("old", built_with)
    stores = [ChunkStore(ServerStore(client, "old", indexed=False), "default") for _ in range(2)]
    stores[0].create(built_with) if stores[0].info() is None else None
    stores[0].upsert([make_point(f"note {n}", f"d{n}") for n in range(6)])
    assert stores[1].info().points == 6

    assert migrate(old).target == "old-1"
    assert old.current() == "old-1"
    stores[0].upsert([make_point("afterwards", "z")])
    assert client.count("old-1").count == 7
    assert client.count("old").count == 6

    Migration(old, OPTIONS, None, print).drop_old()
    assert old.behind_alias() == "old-1"
    assert [store.info().points for store in stores] == [7, 7]
    assert texts(ChunkStore(ServerStore(client, "old", indexed=False), "default")) == texts(stores[1])


def test_a_copy_that_lacks_a_chunk_is_not_switched_to(
    of: Generations, written: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.store.verification._PAUSE_S", 0)
    monkeypatch.setattr(ServerPoints, "put", lambda _self, points: None)

    report = migrate(of)

    assert not report.switched
    assert "30 and 0" in report.fault
    assert of.current() == "ramify-1"
    assert len(texts(written)) == 15


def test_searches_that_differ_too_much_are_not_switched_to_unless_forced(
    of: Generations, written: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    nearest = ServerPoints.nearest
    monkeypatch.setattr(
        ServerPoints,
        "nearest",
        lambda self, asked: [[] for _ in asked] if self.name == "ramify-2" else nearest(self, asked),
    )
    report = migrate(of)
    assert not report.switched
    assert "find only 0% of what they found before" in report.fault
    assert migrate(of, force=True).switched


def test_a_migration_that_is_given_up_leaves_no_trace_and_writers_go_on(
    of: Generations, written: ChunkStore, make_point: MakePoint
) -> None:
    migrate(of, switch=False)
    assert of.names() == ["ramify-1", "ramify-2"]
    collection = written._collection
    seen = collection._ready()  # as a writer that read of the migration just before

    assert Migration(of, OPTIONS, None, print).cancel() == "ramify-2"
    collection._write("writing", seen, lambda name, _: collection._client.count(name))
    written.upsert([make_point("afterwards", "z")])

    assert of.names() == ["ramify-1"]
    assert Migration(of, OPTIONS, None, print).cancel() is None
    with pytest.raises(StoreError, match="in use"):
        of.drop("ramify-1")


def test_another_migration_than_the_one_under_way_is_refused(of: Generations, written: ChunkStore) -> None:
    migrate(of, switch=False)
    with pytest.raises(StoreError, match="under way: finish it"):
        migrate(of, Places())


def test_an_embedded_store_is_copied_to_a_server_and_again_what_has_changed(
    client: QdrantClient, of: Generations, tmp_path: Any, built_with: BuiltWith, make_point: MakePoint
) -> None:
    def fill(*made: Any, gone: tuple[str, ...] = ()) -> None:
        store = in_place(tmp_path / "store", "acme")
        if store.info() is None:
            store.create(built_with)
        store.upsert(made)
        store.delete_documents(gone)
        store.close()

    def moved(tell: Callable[..., None] = lambda _: None) -> MigrationReport:
        points = EmbeddedPoints(tmp_path / "store")
        try:
            return move(points, of, OPTIONS, tell)
        finally:
            points.close()

    def killed(progress: Any) -> None:
        if progress.done >= 12:
            raise KilledError

    fill(*[make_point(f"note {n}", f"d{n}") for n in range(20)])
    with pytest.raises(KilledError):
        moved(killed)
    assert of.current() is None, "nobody sees half a copy"

    report = moved()
    assert (report.target, report.switched) == ("ramify-1", True)
    assert report.verification.dense_overlap == report.verification.keyword_overlap == 1
    server = ChunkStore(ServerStore(client, "ramify", indexed=False), "acme")
    local = in_place(tmp_path / "store", "acme")
    assert texts(server) == texts(local)
    assert server.info().built_with == local.info().built_with
    assert [hit.text for hit in server.query([ASK])[0]] == [hit.text for hit in local.query([ASK])[0]]
    local.close()

    fill(make_point("later", "z"), gone=("d3",))
    assert moved().mended == 2
    assert {"later"} == texts(server) - {f"note {n}" for n in range(20)}

    server.upsert([make_point("of a worker", "w")])
    with pytest.raises(StoreError, match="others have written"):
        moved()


def test_workers_of_both_models_go_on_through_a_migration_to_another_one(
    of: Generations, client: QdrantClient, written: ChunkStore, make_point: MakePoint
) -> None:
    """Before and after the switch each searches with its own model and finds what the other writes."""

    def worker(model: str) -> ChunkStore:
        return ChunkStore(ServerStore(client, "ramify", indexed=False, model=lambda: model), "default")

    def both_find(*expected: str) -> None:
        for store, model in ((old, "test:8"), (new, "other:4")):
            info = store.info()
            assert info.built_with.dense == model
            [[first, *_]] = store.query([models.QueryRequest(query=[1.0] * info.built_with.dim, using=DENSE, limit=1)])
            assert first.text
            assert set(expected) <= texts(store)

    old, new = worker("test:8"), worker("other:4")
    assert new.info().built_with.dense == "test:8", "there is nothing else yet"
    migrate(of, Places(), switch=False)
    both_find()

    version = new.info().index_version
    old.upsert([make_point("of the old one, before", "o1")])
    assert new.info().index_version != version
    version = old.info().index_version
    new.upsert([make_point("of the new one, before", "n1").but(dense=(1.0, 2.0, 3.0, 4.0))])
    assert old.info().index_version != version
    both_find("of the old one, before", "of the new one, before")

    for store in (old, new):  # who has just read which collection is in use
        assert store.info() is not None
    report = migrate(of, Places())
    assert (report.switched, report.embedded, report.verification.unlike) == (True, 1, ())
    for store, vector in ((old, [1.0] * 8), (new, [1.0] * 4)):
        assert store.query([models.QueryRequest(query=vector, using=DENSE, limit=1)])[0]
    both_find("of the old one, before", "of the new one, before")
    old.upsert([make_point("of the old one, after", "o2")])
    new.upsert([make_point("of the new one, after", "n2").but(dense=(1.0, 2.0, 3.0, 4.0))])
    new.delete_documents(["n1"])
    both_find("of the old one, after", "of the new one, after")
    assert "of the new one, before" not in texts(old)
    with pytest.raises(StoreError, match="restart those with the new settings"):
        migrate(of, Places())

    assert Migration(of, OPTIONS, Places(), print).drop_old() == ["ramify-1"]
    points, _ = ServerPoints(client, "ramify-2", of.settings).page("", 100)
    assert len(points) == 33
    assert all(len(point.vector[DENSE]) == 4 for point in points)
    new.upsert([make_point("alone", "z").but(dense=(1.0, 2.0, 3.0, 4.0))])
    assert texts(new) == texts(worker("test:8"))
