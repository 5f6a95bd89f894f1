"""The filters of a request, on every store: each field, both languages, every arm."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pytest
from qdrant_client import models

from shared.language.document_fields import LOOKED_FOR, counted, entry
from shared.models import Filters
from shared.models.enumeration import FieldFilter
from shared.providers.encoders import Bm25Encoder
from shared.store import DENSE, SPARSE, BuiltWith, ChunkPoint, ChunkStore, to_filter
from shared.store.fields import FIELDS, condition, never_looked_for
from tests.shared.store.conftest import MakePoint

ENCODER = Bm25Encoder(20.0)


def bm25(text: str, flt: models.Filter) -> models.QueryRequest:
    vector = ENCODER.encode_query(text)
    query = models.SparseVector(indices=list(vector.indices), values=list(vector.values))
    return models.QueryRequest(query=query, using=SPARSE, filter=flt)


def nearest(vector: tuple[float, ...], **more: object) -> models.QueryRequest:
    return models.QueryRequest(query=list(vector), using=DENSE, **more)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (Filters(), {"aof", "rdb", "query"}),
        (Filters(namespace="other"), {"vacuum"}),
        (Filters(tags=("缓存", "数据库")), {"aof", "query"}),
        (Filters(kinds=("memory",)), {"aof"}),
        (Filters(paths=("notes/zh/缓存/", "notes/en/")), {"aof", "rdb"}),
        (Filters(after=date(2026, 5, 11)), {"aof", "rdb"}),
        (Filters(before=date(2026, 5, 11)), {"aof", "query"}),
        (Filters(after=date(2026, 5, 12), before=date(2026, 5, 12)), {"rdb"}),
        (Filters(tags=("redis",), paths=("notes/",), after=date(2026, 5, 12)), {"rdb"}),
        (Filters(namespace="other", tags=("redis",)), set()),
    ],
)
def test_given_filters_when_searched_then_both_arms_and_scroll_obey(
    filled: ChunkStore, given: Filters, found: set[str]
) -> None:
    flt = to_filter(given)

    dense, sparse = filled.query([nearest((1.0,) * 8, filter=flt), bm25("redis 查询 vacuum", flt)])

    assert {hit.title for hit in dense} == found
    assert {hit.title for hit in sparse} == found
    assert {hit.title for page in filled.scroll(flt, batch=1) for hit in page} == found


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (FieldFilter(names=("owner",), values=("ＡＤＡ",)), {"one", "two"}),
        (FieldFilter(names=("owner",), values=("ad",)), set()),
        (FieldFilter(names=("owners", "负责人"), values=("ada", "張三")), {"one", "two", "three"}),
        (FieldFilter(names=("owner",), values=("Ada",), negated=True), {"three", "none", "old"}),
        (FieldFilter(names=("owner",)), {"one", "two"}),
        (FieldFilter(names=("owner", "负责人"), negated=True), {"none", "old"}),
        (FieldFilter(names=("status",), values=("in-progress",)), {"two"}),
    ],
)
def test_given_fields_when_asked_for_then_every_store_finds_those_documents(
    store: ChunkStore, built_with: BuiltWith, make_point: MakePoint, wanted: FieldFilter, found: set[str]
) -> None:
    said = {
        "one": [("Owner", "ada"), ("Status", "open")],
        "two": [("owners", "Bo"), ("owners", "Ada"), ("status", "In Progress")],
        "three": [("负责人", "张三")],
        "none": [("owned", "x")],
    }
    store.create(built_with)
    known = [
        make_point("x", name, title=name, fields=(LOOKED_FOR, *(entry(*each) for each in said[name]))) for name in said
    ]
    store.upsert([*known, make_point("x", "old", title="old")])

    flt = condition(wanted)
    assert {hit.title for page in store.scroll(flt, batch=10) for hit in page} == found
    assert {hit.title for page in store.scroll(never_looked_for(), batch=10) for hit in page} == {"old"}
    values = counted(store.count_values(FIELDS, models.Filter(), 100))
    assert values["owner"] == {"ada": 1, "Bo": 1, "Ada": 1}


def test_given_nested_filters_when_searched_then_each_condition_counts(filled: ChunkStore) -> None:
    redis = models.FieldCondition(key="tags", match=models.MatchAny(any=["redis"]))
    not_memory = models.FieldCondition(key="kind", match=models.MatchExcept(**{"except": ["memory"]}))
    late = models.FieldCondition(key="day", range=models.Range(gt=date(2026, 1, 1).toordinal()))
    [all_of_it] = filled.query([nearest((1.0,) * 8)])
    ids = {hit.title: hit.chunk_id for hit in all_of_it}

    by = [
        models.Filter(must=[models.Filter(should=[redis, late]), not_memory]),
        models.Filter(must=redis, must_not=models.HasIdCondition(has_id=[ids["aof"]])),
        models.Filter(must=[models.HasIdCondition(has_id=[ids["rdb"]])]),
        models.Filter(min_should=models.MinShould(conditions=[redis, late, not_memory], min_count=3)),
    ]

    assert [[hit.title for hit in hits] for hits in filled.query([nearest((1.0,) * 8, filter=f) for f in by])] == [
        ["rdb"]
    ] * 4


def test_given_keys_when_looked_up_then_the_chunks_that_hold_them_come_in_one_call(
    filled: ChunkStore, make_point: Callable[..., ChunkPoint]
) -> None:
    filled.upsert([
        make_point("def merge(): ...", "code", 0, part="code", symbol="tree.merge", defines=("tree.merge", "merge")),
        make_point("合并之前先排序", "page", 0, mentions=("title:合并",), refs=("tree.merge",)),
        make_point("nothing of the kind", "page", 1),
    ])  # fmt: skip

    def among(key: str, *values: str) -> models.Filter:
        return models.Filter(must=[models.FieldCondition(key=key, match=models.MatchAny(any=list(values)))])

    [found] = filled.lookup(among("defines", "merge", "no such"), 10, vectors=True)
    assert (found.symbol, found.part, found.defines, found.score) == ("tree.merge", "code", ("tree.merge", "merge"), 0)
    assert found.vector == pytest.approx(make_point("def merge(): ...", "code").dense, abs=1e-5)
    either = models.Filter(should=[among("refs", "tree.merge"), among("mentions", "title:合并"), among("part", "code")])
    both = filled.lookup(either, 10)
    assert [hit.text for hit in sorted(both, key=lambda hit: hit.doc_id)] == ["def merge(): ...", "合并之前先排序"]
    assert [hit.chunk_id for hit in both] == sorted(hit.chunk_id for hit in both)
    assert all(hit.vector == () for hit in both)
    assert filled.lookup(either, 1) == both[:1]
    assert filled.lookup(among("defines", "no such"), 10) == []


def test_given_keys_that_many_chunks_define_when_counted_then_each_value_has_its_number(
    filled: ChunkStore, make_point: Callable[..., ChunkPoint]
) -> None:
    filled.upsert([make_point(f"def run {n}", f"code{n}", defines=(f"m{n}.run", "run", "键")) for n in range(4)])
    filled.upsert([make_point("def stop", "code9", defines=("m9.stop", "stop"), namespace="other")])
    asked = models.FieldCondition(key="defines", match=models.MatchAny(any=["run", "stop", "no such"]))

    everywhere = filled.count_values("defines", models.Filter(must=[asked]), 100)
    assert everywhere == {"run": 4, "键": 4, **{f"m{n}.run": 1 for n in range(4)}, "stop": 1, "m9.stop": 1}
    here = filled.count_values("defines", models.Filter(must=[to_filter(Filters()), asked]), 2)
    assert here == {"run": 4, "键": 4}, "the most frequent ones, of this namespace"


def test_given_a_request_without_a_query_when_asked_then_all_that_match_come_by_id(filled: ChunkStore) -> None:
    plain = models.QueryRequest(filter=to_filter(Filters(tags=("redis",))), limit=5)
    [found, best] = filled.query([plain, bm25("snapshots", to_filter(Filters(tags=("redis",))))])

    assert sorted(hit.title for hit in found) == ["aof", "rdb"]
    assert [hit.chunk_id for hit in found] == sorted(hit.chunk_id for hit in found)
    assert len({hit.score for hit in found}) == 1
    assert [hit.title for hit in best] == ["rdb"]
