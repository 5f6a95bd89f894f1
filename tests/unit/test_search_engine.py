"""The search engine against a store and encoders that record what they are asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from shared.encoders.base import Embedded, SparseVector
from shared.errors import InputError, TransientError
from shared.models import Filters, Hit, SearchMode
from shared.settings import load_settings
from shared.store import DENSE, SPARSE
from workers.search.engine import NO_DENSE, SearchEngine


class Sparse:
    name, avg_len = "bm25", 10.0

    def encode_query(self, text: str) -> SparseVector:
        return SparseVector(indices=(1,), values=(1.0,))


class Dense:
    name, dim = "dense", 2

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def embed_queries(self, texts: Sequence[str]) -> Embedded:
        if self.error:
            raise self.error
        return Embedded(vectors=((1.0, 0.0),), calls=1, tokens=3)


class Store:
    """Returns fixed lists per arm and counts the calls."""

    def __init__(self, **lists: list[str]) -> None:
        self.lists, self.calls = lists, list[list[Any]]()

    def query(self, requests: Sequence[Any]) -> list[list[Hit]]:
        self.calls.append(list(requests))
        return [[self._hit(name, rank) for rank, name in enumerate(self.lists[r.using])] for r in requests]

    def _hit(self, name: str, rank: int) -> Hit:
        return Hit(chunk_id=name, doc_id=name, path=name, title=name, text=name, score=1.0 - rank / 10)


def engine(store: Store, dense: Dense | None = None) -> SearchEngine:
    return SearchEngine(store, Sparse(), dense, load_settings())  # type: ignore[arg-type]


def test_hybrid_asks_both_arms_in_one_call_with_the_same_filter() -> None:
    store = Store(**{SPARSE: ["a", "b"], DENSE: ["b", "c"]})
    found = engine(store, Dense()).search("q", None, Filters(tags=("x",)), 10)
    (requests,) = store.calls
    assert [r.using for r in requests] == [SPARSE, DENSE]
    assert requests[0].filter == requests[1].filter
    assert requests[0].filter is not None
    assert [h.chunk_id for h in found.hits] == ["b", "a", "c"]
    assert found.hits[0].parts[f"{SPARSE}_rank"] == 2
    assert found.hits[0].parts[f"{DENSE}_rank"] == 1
    assert (found.cost.embed_calls, found.cost.embed_tokens) == (1, 3)


def test_without_an_encoder_hybrid_goes_on_with_keywords_and_says_so() -> None:
    found = engine(Store(**{SPARSE: ["a"]})).search("q", SearchMode.HYBRID, Filters(), 10)
    assert found.mode == "bm25_only"
    assert found.warnings == (NO_DENSE,)


def test_vec_only_without_an_encoder_is_refused() -> None:
    with pytest.raises(InputError, match="mode: 'vec_only'"):
        engine(Store()).search("q", SearchMode.VEC_ONLY, Filters(), 10)


def test_an_encoder_that_fails_leaves_keywords_and_a_warning_but_not_in_vec_only() -> None:
    broken = Dense(TransientError("the embedding server answered 503"))
    found = engine(Store(**{SPARSE: ["a"]}), broken).search("q", None, Filters(), 10)
    assert found.mode == "bm25_only"
    assert "503" in found.warnings[0]
    with pytest.raises(TransientError):
        engine(Store(), broken).search("q", SearchMode.VEC_ONLY, Filters(), 10)


def test_each_mode_asks_only_its_own_arm() -> None:
    store = Store(**{SPARSE: ["a"], DENSE: ["b"]})
    assert [h.chunk_id for h in engine(store, Dense()).search("q", SearchMode.BM25_ONLY, Filters(), 5).hits] == ["a"]
    assert [h.chunk_id for h in engine(store, Dense()).search("q", SearchMode.VEC_ONLY, Filters(), 5).hits] == ["b"]
