"""Both stores count what matches and read it in slices of the ids' order, so that a scan can be shared out."""

from __future__ import annotations

import uuid
from itertools import pairwise

import pytest

from shared.models import Filters
from shared.store import BuiltWith, ChunkStore, to_filter
from tests.contract.conftest import MakePoint

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
