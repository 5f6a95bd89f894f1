"""What a caller may ask becomes one neutral filter."""

from __future__ import annotations

from datetime import date

from qdrant_client import models

from shared.models import Filters
from shared.store.schema import of_documents, of_source, stale_chunks, to_filter


def by_key(flt: models.Filter) -> dict[str, models.FieldCondition]:
    return {condition.key: condition for condition in flt.must if isinstance(condition, models.FieldCondition)}


def test_given_no_filters_then_the_namespace_is_still_fixed() -> None:
    flt = to_filter(Filters())

    assert [condition.key for condition in flt.must] == ["namespace"]
    assert by_key(flt)["namespace"].match.value == "default"
    assert flt.should is None
    assert flt.must_not is None


def test_given_every_filter_then_each_becomes_one_condition_that_must_hold() -> None:
    flt = to_filter(
        Filters(
            after=date(2026, 5, 1),
            before=date(2026, 5, 31),
            tags=("缓存", "redis"),
            kinds=("memory",),
            paths=("docs/", "笔记/"),
            namespace="team",
        )
    )

    found = by_key(flt)
    assert len(flt.must) == 5
    assert found["namespace"].match.value == "team"
    assert (found["day"].range.gte, found["day"].range.lte) == (739_737, 739_767)
    assert found["tags"].match.any == ["缓存", "redis"]
    assert found["kind"].match.any == ["memory"]
    assert [c.match.prefix for c in flt.must[-1].should] == ["docs/", "笔记/"]


def test_given_one_open_side_then_the_range_is_open_there() -> None:
    assert by_key(to_filter(Filters(after=date(2026, 5, 1))))["day"].range.lte is None
    assert by_key(to_filter(Filters(before=date(2026, 5, 1))))["day"].range.gte is None


def test_given_nothing_to_keep_then_all_chunks_of_the_document_are_stale() -> None:
    assert stale_chunks("d1", []).must_not is None
    assert stale_chunks("d1", ["a"]).must_not[0].has_id == ["a"]


def test_given_documents_or_a_source_then_the_filter_names_them() -> None:
    assert by_key(of_documents(["a", "b"]))["doc_id"].match.any == ["a", "b"]
    assert by_key(of_source("/笔记"))["source"].match.value == "/笔记"
