"""A leaf in several wordings: one round trip, each candidate judged against the wording that found it, one list."""

from __future__ import annotations

from typing import Any

import pytest

from shared.errors import TransientError
from shared.models import Facet, Filters, Node, SearchResult
from shared.providers.encoders.base import Embedded
from shared.providers.rerankers.base import Reranked, rescored
from shared.settings import load_settings
from shared.settings.sections import MultiQuerySettings
from shared.settings.strategies import split
from tests.workers.search.test_engine import Store, hit, tools
from workers.search.leaf import leaf_result_limit
from workers.search.state import VARIANT, Query, Tools
from workers.search.variants import continue_variants, merge_variants, search_variants

NAMES = ("who married Ada", "who married Bertram Long", "who married Cy")


def searched(kit: Tools, variants: tuple[str, ...] = NAMES, strategy: str = "hybrid", wanted: int = 50) -> SearchResult:
    first, _ = split(kit.settings.strategies[strategy])
    return search_variants(Query(variants[0], Filters(), wanted, variants=variants), strategy, first, kit)


def test_given_wordings_when_searched_then_all_their_arms_go_in_one_round_trip() -> None:
    store = Store(bm25="ab", dense="bc")
    found = searched(tools(store))
    assert [len(trip) for trip in store.trips] == [6]
    assert {int(one.parts[VARIANT]) for one in found.hits} == {0, 1, 2}
    assert sorted(one.chunk_id for one in found.hits) == sorted("abc" * 3)


def test_given_many_wordings_when_searched_then_they_share_the_leafs_candidates_and_none_gets_fewer_than_ten() -> None:
    store = Store(bm25="a")
    searched(tools(store, dense=False), wanted=60)
    assert {request.limit for request in store.trips[0]} == {40}
    store = Store(bm25="a")
    searched(tools(store, dense=False), wanted=9)
    assert {request.limit for request in store.trips[0]} == {20}


def test_given_wordings_when_embedded_then_one_call_serves_all_and_is_counted_once() -> None:
    asked: list[list[str]] = []

    def embed(texts: list[str], tenant: str) -> Embedded:
        asked.append(texts)
        return Embedded(vectors=tuple((1.0, 0.0) for _ in texts), calls=1, tokens=7)

    kit = tools(Store(bm25="a", dense="a"))
    found = searched(Tools(**{**vars(kit), "embed": embed}))
    assert asked == [list(NAMES)]
    assert (found.cost.embed_calls, found.cost.embed_tokens) == (1, 7)


def test_given_a_failing_encoder_when_searched_then_it_is_asked_once_and_warned_of_once() -> None:
    asked: list[int] = []

    def embed(texts: list[str], tenant: str) -> Embedded:
        asked.append(len(texts))
        raise TransientError("it is down")

    kit = tools(Store(bm25="ab"))
    found = searched(Tools(**{**vars(kit), "embed": embed}))
    assert asked == [3]
    assert len([warning for warning in found.warnings if "it is down" in warning]) == 1
    assert found.hits


class _ByWording:
    """Scores a chunk by how often its letter stands in the wording it is asked with."""

    name = "by-wording"

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def rerank(self, query: str, hits: Any, timeout_s: float) -> Reranked:
        self.asked.append((query, len(hits)))
        scores = [query.lower().count(one.chunk_id) / 10 for one in hits]
        return Reranked(hits=rescored(hits, scores), reranker=self.name, calls=1, documents=len(hits))


def test_given_candidates_of_wordings_when_reranked_then_each_is_judged_by_its_own_wording() -> None:
    judge = _ByWording()
    kit = Tools(settings=load_settings(), reranker=judge)
    variants = ("aab", "abb")
    hits = tuple(
        hit(name, 1.0).model_copy(update={"parts": {VARIANT: float(number)}}) for number in (0, 1) for name in "ab"
    )
    found = SearchResult(mode="hybrid", hits=hits, candidates=4, warnings=("said before",))
    _, rest = split(kit.settings.strategies["hybrid"])
    after = continue_variants(found, Query("aab", Filters(), 10, variants=variants), rest, kit)
    assert judge.asked == [("aab", 2), ("abb", 2)]
    assert [(one.chunk_id, round(one.score, 9), one.parts[VARIANT]) for one in after.hits] == [
        ("a", 0.2, 0.0),
        ("b", 0.2, 1.0),
    ]
    assert (after.cost.rerank_calls, after.cost.rerank_documents) == (2, 4)
    assert (after.candidates, after.warnings, after.reranked_by) == (4, ("said before",), "by-wording")


def test_given_one_chunk_of_several_scores_when_united_then_the_best_counts_and_ties_go_by_id() -> None:
    hits = [hit("b", 0.5), hit("a", 0.1), hit("a", 0.5), hit("c", 0.2)]
    assert [(one.chunk_id, one.score) for one in merge_variants(hits)] == [("a", 0.5), ("b", 0.5), ("c", 0.2)]
    assert merge_variants(()) == ()


@pytest.mark.parametrize(
    ("facet", "depends_on", "results"),
    [(Facet.ORIGINAL, (), 20), (Facet.CORE, (), 5), (Facet.CORE, ("0.1",), 10)],
)
def test_given_a_leaf_when_recorded_then_one_that_waited_keeps_twice_as_many(
    facet: Facet, depends_on: tuple[str, ...], results: int
) -> None:
    node = Node(id="0.2", level=1, facet=facet, query="q", depends_on=depends_on)
    assert leaf_result_limit(node, MultiQuerySettings(), 20) == results
