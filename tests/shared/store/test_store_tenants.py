"""Two tenants in one collection, on every store: neither sees, counts, changes or weighs what the other has."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qdrant_client import models

from shared.errors import InputError, StoreError
from shared.models import Filters
from shared.providers.encoders import Bm25Encoder
from shared.store import DENSE, SPARSE, BuiltWith, ChunkPoint, ChunkStore, TenantStores, to_filter, to_sparse
from shared.store.collection import Collection
from shared.store.schema import INDEXED, TENANT, of_documents
from tests.shared.store.conftest import MakePoint

ENCODER = Bm25Encoder(20.0)


def bm25(text: str, **more: Any) -> models.QueryRequest:
    return models.QueryRequest(query=to_sparse(ENCODER.encode_query(text)), using=SPARSE, limit=20, **more)


@pytest.fixture
def points(make_point: MakePoint) -> dict[str, list[ChunkPoint]]:
    """The same paths, titles, tags and words in both; `甲` and `乙` tell whose text it is."""
    return {
        tenant: [
            make_point(
                f"Redis persistence of {mark} 持久化 {'redis ' * number}",
                f"{mark}{number}",
                path=f"notes/{number}.md",
                title=f"Page {number}",
                tags=("redis", f"tag-{mark}"),
                defines=("title:page 1",),
                refs=("path:notes/0.md",),
            )
            for number in range(count)
        ]
        for tenant, mark, count in (("a", "甲", 3), ("b", "乙", 5))
    }


@pytest.fixture
def tenants(
    collection: Collection, built_with: BuiltWith, points: dict[str, list[ChunkPoint]]
) -> dict[str, ChunkStore]:
    stores = TenantStores(collection)
    views = {tenant: stores.of(tenant) for tenant in points}
    for tenant, view in views.items():
        view.create(built_with)
        view.upsert(points[tenant])
    return views


def everything(view: ChunkStore) -> dict[str, dict[str, Any]]:
    fields = ("doc_id", "text", "backlinks", "mentions", TENANT)
    return dict(view.read(None, fields))


def test_given_two_tenants_when_read_in_any_way_then_each_has_its_own_alone(
    tenants: dict[str, ChunkStore], points: dict[str, list[ChunkPoint]]
) -> None:
    for tenant, view in tenants.items():
        own = {point.chunk.chunk_id for point in points[tenant]}
        docs = {point.chunk.doc_id for point in points[tenant]}
        every = [point.chunk.doc_id for name in points for point in points[name]]
        vector = list(points["b"][0].dense)
        asked = [
            bm25("redis 持久化"),
            models.QueryRequest(query=vector, using=DENSE, limit=20),
            models.QueryRequest(limit=9),
        ]
        assert [{hit.chunk_id for hit in hits} for hits in view.query(asked)] == [own] * 3
        assert {hit.chunk_id for page in view.scroll(None) for hit in page} == own
        assert set(everything(view)) == own
        assert {payload[TENANT] for payload in everything(view).values()} == {tenant}
        assert {hit.chunk_id for hit in view.lookup(of_documents(every), 50, vectors=True)} == own
        assert view.count(None) == view.count(to_filter(Filters())) == len(own)
        assert view.count_values("path", to_filter(Filters()), 50) == {f"notes/{n}.md": 1 for n in range(len(own))}
        assert set(view.count_values("tags", of_documents(every), 50)) == {"redis", f"tag-{'甲乙'[tenant == 'b']}"}
        assert set(view.document_hashes(every)) == set(view.origins(every)) == set(view.documents("/notes")) == docs
        info = view.info()
        assert info is not None
        assert info.points == len(own)


def test_given_two_tenants_when_one_writes_then_the_others_chunks_stay_as_they_were(
    tenants: dict[str, ChunkStore], points: dict[str, list[ChunkPoint]]
) -> None:
    a, b = tenants["a"], tenants["b"]
    before = everything(b)
    ids, docs = list(before), [point.chunk.doc_id for point in points["b"]]

    a.set_payloads({chunk_id: {"mentions": ["title:stolen"]} for chunk_id in ids})
    a.set_backlinks(dict.fromkeys(docs, 7))
    a.set_sparse({chunk_id: ENCODER.encode_passage("stolen") for chunk_id in ids}, 33.0)
    a.delete_documents(docs)
    a.delete_chunks(docs[0], [])
    with pytest.raises(StoreError, match="belong to another tenant"):
        a.upsert(points["b"][:1])
    with pytest.raises(StoreError, match="tenant"):
        a.set_payloads({points["a"][0].chunk.chunk_id: {TENANT: "b"}})

    assert everything(b) == before
    assert b.query([bm25("stolen")]) == [[]]
    assert len(b.query([bm25("redis")])[0]) == 5
    lengths = [view.info().built_with.avg_len for view in (a, b)]  # type: ignore[union-attr]
    assert lengths == [33.0, 20.0]
    a.delete_documents([point.chunk.doc_id for point in points["a"]])
    assert (a.count(None), b.count(None)) == (0, 5)


def test_given_an_ingest_that_ends_when_marked_then_the_other_tenant_has_not_ended(
    tenants: dict[str, ChunkStore],
) -> None:
    tenants["a"].mark_finished("4:17")
    tenants["a"].set_sparse({}, 44.0)

    infos = {tenant: view.info() for tenant, view in tenants.items()}
    assert {tenant: info.finished for tenant, info in infos.items() if info} == {"a": "4:17", "b": ""}


def test_given_words_that_are_rare_elsewhere_when_scored_then_only_the_tenants_own_chunks_count(
    collection: Collection, built_with: BuiltWith, make_point: MakePoint
) -> None:
    alone = ChunkStore(collection, "a")
    alone.create(built_with)
    alone.upsert([make_point(f"{word} common 索引", word) for word in ("rare", "plain", "other")])
    before = alone.query([bm25("rare common 索引")])

    other = ChunkStore(collection, "b")
    other.create(built_with)
    other.upsert([make_point("rare rare 索引", f"noise{number}") for number in range(30)])

    assert alone.query([bm25("rare common 索引")]) == before
    tricked = models.SearchParams(idf=models.IdfCorpusParams(corpus=models.Filter()))
    assert alone.query([bm25("rare common 索引", params=tricked)]) == before, "the caller's corpus does not count"


_KEYS = st.sampled_from([TENANT, *(field.name for field in INDEXED if field.kind == "keyword")])
_VALUES = st.sampled_from(
    ["a", "b", "default", "", "乙0", "甲1", "notes/", "notes/1.md", "redis", "/notes", "title:page 1"]
)
_LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.builds(lambda key, value: models.FieldCondition(key=key, match=models.MatchValue(value=value)), _KEYS, _VALUES),
    st.builds(
        lambda key, values: models.FieldCondition(key=key, match=models.MatchAny(any=values)),
        _KEYS, st.lists(_VALUES, min_size=1, max_size=3),
    ),
    st.builds(
        lambda key, values: models.FieldCondition(key=key, match=models.MatchExcept(**{"except": values})),
        _KEYS, st.lists(_VALUES, min_size=1, max_size=3),
    ),
    st.builds(lambda key: models.IsEmptyCondition(is_empty=models.PayloadField(key=key)), _KEYS),
    st.builds(lambda most: models.FieldCondition(key="ordinal", range=models.Range(lte=most)), st.integers(-1, 3)),
)  # fmt: skip


def _some(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.one_of(st.none(), st.lists(children, min_size=1, max_size=3))
    return st.builds(
        lambda must, should, out: models.Filter(must=must, should=should, must_not=out), lists, lists, lists
    )


FILTERS = st.one_of(st.none(), _some(st.recursive(_LEAVES, _some, max_leaves=6)))


@given(flt=FILTERS)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_given_any_filter_when_asked_then_it_never_widens(
    tenants: dict[str, ChunkStore], points: dict[str, list[ChunkPoint]], flt: models.Filter | None
) -> None:
    own = {point.chunk.chunk_id for point in points["a"]}
    view = tenants["a"]
    found = {chunk_id for chunk_id, _ in view.read(flt, ("doc_id",))}
    assert found <= own
    assert view.count(flt) == len(found)
    assert {hit.chunk_id for hit in view.query([bm25("redis 持久化", filter=flt)])[0]} <= own
    assert {hit.chunk_id for page in view.scroll(flt) for hit in page} == found
    if flt is not None:
        assert {hit.chunk_id for hit in view.lookup(flt, 50)} == found
        assert sum(view.count_values(TENANT, flt, 9).values()) == len(found)
        assert set(view.count_values(TENANT, flt, 9)) <= {"a"}


def test_given_a_filter_that_names_the_other_tenant_when_asked_then_nothing_is_found(
    tenants: dict[str, ChunkStore],
) -> None:
    other = models.FieldCondition(key=TENANT, match=models.MatchValue(value="b"))
    for flt in (
        models.Filter(must=[other]),
        models.Filter(should=[other]),
        models.Filter(must=[models.Filter(should=[other])]),
    ):
        assert tenants["a"].query([bm25("redis", filter=flt)]) == [[]]
        assert (tenants["a"].count(flt), list(tenants["a"].read(flt, ("doc_id",)))) == (0, [])


@pytest.mark.parametrize(
    "request_",
    [
        models.QueryRequest(
            prefetch=models.Prefetch(query=[1.0] * 8, using=DENSE), query=models.FusionQuery(fusion=models.Fusion.RRF),
        ),
        models.QueryRequest(query=[1.0] * 8, using=DENSE, lookup_from=models.LookupLocation(collection="x")),
        models.QueryRequest(query="6b1e5a4e-5f0c-4b43-9a5e-0d6f3f7f8d11", using=DENSE),
        models.QueryRequest(query=7, using=DENSE),
        models.QueryRequest(query=models.NearestQuery(nearest=7), using=DENSE),
        models.QueryRequest(query=models.RecommendQuery(recommend=models.RecommendInput(positive=[7])), using=DENSE),
        models.QueryRequest(query=models.SampleQuery(sample=models.Sample.RANDOM)),
        models.QueryRequest(query=[1.0] * 8, using=DENSE, shard_key="b"),
    ],
)  # fmt: skip
def test_given_a_query_that_could_look_past_the_filter_when_asked_then_it_is_refused(
    tenants: dict[str, ChunkStore], request_: models.QueryRequest
) -> None:
    with pytest.raises(StoreError, match="look past the tenant"):
        tenants["a"].query([bm25("redis"), request_])


@pytest.mark.parametrize("name", ["", " ", "a b", "a:b", "a/b", "*", "a\n", "a" * 65, None, 7, ("a",), "default\0"])
def test_given_no_name_when_a_view_is_wanted_then_there_is_none(collection: Collection, name: Any) -> None:
    with pytest.raises(InputError, match="tenant"):
        TenantStores(collection).of(name)
    with pytest.raises(InputError, match="tenant"):
        ChunkStore(collection, name)


def test_given_other_encoders_when_a_tenant_joins_a_collection_then_it_is_refused(
    tenants: dict[str, ChunkStore], collection: Collection, built_with: BuiltWith
) -> None:
    late = ChunkStore(collection, "late")
    info = late.info()
    assert info is not None
    assert (info.new, info.points) == (True, 0)
    with pytest.raises(StoreError, match="other encoders"):
        late.create(built_with.model_copy(update={"sparse": "bm25:else:v1"}))
    with pytest.raises(StoreError, match="exists already"):
        tenants["a"].create(built_with)

    late.create(built_with.model_copy(update={"avg_len": 7.0}))
    lengths = {view.tenant: view.info() for view in (late, *tenants.values())}
    assert {tenant: info.built_with.avg_len for tenant, info in lengths.items() if info} == {
        "late": 7.0, "a": 20.0, "b": 20.0,
    }  # fmt: skip
    assert not late.info().new  # type: ignore[union-attr]


def _orphaned(collection: Collection) -> None:
    """As an older release wrote it: no chunk has a tenant, and what it knows of itself is said of the whole."""
    view = ChunkStore(collection, "gone")
    collection.set_payloads({chunk_id: {TENANT: None} for chunk_id, _ in view.read(None, ("doc_id",))})


def test_given_a_collection_of_before_tenants_when_opened_then_its_chunks_are_the_default_tenants_and_nobody_elses(
    collection: Collection, built_with: BuiltWith, make_point: MakePoint
) -> None:
    old = ChunkStore(collection, "gone")
    old.create(built_with)
    old.upsert([make_point(f"redis {number} 缓存", f"d{number}") for number in range(1200)])
    _orphaned(collection)
    stores = TenantStores(collection)
    assert stores.without_tenant() == 1200
    assert ChunkStore(collection, "default").count(None) == 0

    other = stores.of("other")

    assert (stores.without_tenant(), other.count(None)) == (0, 0)
    assert stores.of("default").count(None) == 1200
    assert len(stores.of("default").query([bm25("redis 缓存")])[0]) == 20
    assert other.query([bm25("redis 缓存")]) == [[]]


def test_given_chunks_that_an_older_worker_writes_later_when_counted_then_the_operator_is_told(
    tenants: dict[str, ChunkStore], collection: Collection
) -> None:
    stores = TenantStores(collection)
    stores.of("a")
    chunk_id = next(iter(everything(tenants["b"])))
    collection.set_payloads({chunk_id: {TENANT: None}})

    assert stores.without_tenant() == 1
    assert chunk_id not in {
        **everything(stores.of("a")),
        **everything(stores.of("b")),
        **everything(stores.of("default")),
    }
    assert chunk_id in everything(TenantStores(collection).of("default")), "the next who opens it mends it"
