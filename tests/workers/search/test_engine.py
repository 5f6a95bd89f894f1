"""Strategies run against a store and encoders that record what they are asked."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from qdrant_client import models

from shared.errors import InputError, PermanentError, TransientError
from shared.models import Filters, Hit, SearchResult
from shared.providers.encoders.base import Embedded, SparseVector
from shared.providers.encoders.sparse import TrigramEncoder
from shared.providers.llm.client import LLMReply
from shared.providers.rerankers import reranker
from shared.settings import Settings, load_settings
from shared.settings import stages as s
from shared.settings.strategies import split
from shared.store import DENSE, SPARSE, TRIGRAM
from workers.search.engine import continue_search, search
from workers.search.stages import STAGES
from workers.search.stages.arms import NO_DENSE
from workers.search.stages.fusion import DISAGREES, fuse_arms
from workers.search.state import Query, SearchArm, SearchState, Tools

VECTORS = {"a": (1.0, 0.0), "b": (0.6, 0.8), "c": (0.0, 1.0)}


class Sparse:
    name, avg_len = "bm25", 10.0

    def encode_query(self, text: str) -> SparseVector:
        return SparseVector(indices=(len(text),), values=(1.0,))


class Dense:
    name, dim = "some-model", 2


class Model:
    """An LLM with one reply."""

    def __init__(self, text: str) -> None:
        self.text, self.prompts = text, list[str]()

    def complete(
        self, prompt: str, *, timeout_s: float, max_tokens: int | None = None, check: object = None
    ) -> LLMReply:
        self.prompts.append(prompt)
        return LLMReply(text=self.text, tokens_in=3, tokens_out=2, calls=1)


class Store:
    """Returns fixed lists per arm and records every round trip."""

    tenant = "default"

    def __init__(self, scores: dict[str, tuple[float, ...]] | None = None, **lists: str) -> None:
        self.lists, self.scores, self.trips = lists, scores or {}, list[list[Any]]()

    def query(self, requests: Sequence[Any]) -> list[list[Hit]]:
        self.trips.append(list(requests))
        return [self._list(request.using, request.limit) for request in requests]

    def read(self, *_: object) -> Iterator[tuple[str, dict[str, Any]]]:
        return iter(())

    def _list(self, arm: str, limit: int) -> list[Hit]:
        scores = self.scores.get(arm, tuple(1.0 - rank / 10 for rank in range(10)))
        return [hit(name, score) for name, score in zip(self.lists.get(arm, ""), scores, strict=False)][:limit]


def hit(name: str, score: float) -> Hit:
    return Hit(
        chunk_id=name, doc_id=name, path=f"{name}.md", title=name, text=f"text {name}", score=score,
        vector=VECTORS.get(name, ()),
    )  # fmt: skip


def tools(store: Store, *, dense: bool = True, error: Exception | None = None, **more: Any) -> Tools:
    def embed(texts: list[str], tenant: str) -> Embedded:
        if error:
            raise error
        return Embedded(vectors=((1.0, 0.0),) * len(texts), calls=1, tokens=3 * len(texts))

    settings: Settings = more.pop("settings", None) or load_settings()
    return Tools(
        settings=settings, store=store, sparse=Sparse(), trigrams=TrigramEncoder(),
        dense=Dense() if dense else None, embed=embed if dense else None, **more,
    )  # type: ignore[arg-type]  # fmt: skip


def run(store: Store, strategy: str, query: str = "a question of words", **more: Any) -> SearchResult:
    kit = tools(store, **more)
    first, _ = split(kit.settings.strategies[strategy])
    return search(Query(query, Filters(tags=("x",)), 5), strategy, first, kit, explain=True)


def test_every_stage_of_the_settings_has_an_implementation() -> None:
    from shared.settings.strategies import BUILT_IN

    assert set(STAGES) == set(BUILT_IN)


def test_all_arms_go_in_one_round_trip_with_the_same_filter() -> None:
    store = Store(bm25="ab", dense="bc")
    found = run(store, "hybrid")
    ((lexical, dense),) = store.trips
    assert (lexical.using, dense.using) == (SPARSE, DENSE)
    assert lexical.filter == dense.filter
    assert lexical.filter is not None
    assert [h.chunk_id for h in found.hits] == ["b", "a", "c"]
    assert (found.cost.embed_calls, found.cost.embed_tokens) == (1, 3)
    assert found.hits[0].parts == {
        "bm25": 0.9,
        "bm25_rank": 2,
        "dense": 1.0,
        "dense_rank": 1,
        "fused": pytest.approx(1 / 61 + 1 / 62),
    }


@pytest.mark.parametrize(
    "strategy", ["default", "hybrid", "bm25_only", "vec_only", "keyword", "layered", "diverse", "deep"]
)
def test_the_effects_of_every_hit_sum_to_its_score_in_every_strategy(strategy: str) -> None:
    settings = load_settings(search={"source_boosts": {"a": 1.5}, "excludes": ["c"]})
    found = run(Store(bm25="abc", dense="bca", trigram="ca"), strategy, settings=settings)
    _, rest = split(settings.strategies[strategy])
    kit = Tools(settings=settings, reranker=reranker(settings))
    query = Query("text of a", Filters(), 5)
    ranked = continue_search(found, query, rest, kit, explain=True)
    assert ranked.hits
    for result in (found, ranked):
        for h in result.hits:
            assert sum(effect.effect for effect in h.explain) == pytest.approx(h.score)
    assert [trace.stage for trace in ranked.stages] == [stage.stage for stage in settings.strategies[strategy]]
    assert ranked.reranked_by == "lexical:v1" or ranked.reranked_by


def test_without_an_encoder_hybrid_goes_on_with_keywords_and_says_so() -> None:
    found = run(Store(bm25="ab"), "hybrid", dense=False)
    assert [h.chunk_id for h in found.hits] == ["a", "b"]
    assert found.warnings == (NO_DENSE,)
    assert next(t.skipped for t in found.stages if t.stage == "dense") == NO_DENSE


def test_vec_only_without_an_encoder_is_refused_and_a_failing_one_is_raised() -> None:
    with pytest.raises(InputError, match=r"embedding\.provider"):
        run(Store(), "vec_only", dense=False)
    with pytest.raises(TransientError):
        run(Store(), "vec_only", error=TransientError("503"))


def test_an_encoder_that_fails_leaves_the_keywords_and_a_warning() -> None:
    found = run(Store(bm25="a"), "hybrid", error=TransientError("the embedding server answered 503"))
    assert [h.chunk_id for h in found.hits] == ["a"]
    assert "503" in found.warnings[0]


def test_a_model_that_does_not_read_the_language_does_not_vote() -> None:
    english = load_settings(embedding={"languages": ["en"]})
    store = Store(bm25="ab", dense="c")
    assert {h.chunk_id for h in run(store, "hybrid", "如何优化数据库", settings=english).hits} == {"a", "b"}
    assert {h.chunk_id for h in run(store, "hybrid", "how to tune it", settings=english).hits} == {"a", "b", "c"}
    assert {h.chunk_id for h in run(store, "vec_only", "如何优化数据库", settings=english).hits} == {"c"}


FOREIGN_SCRIPT = "如何优化数据库查询"


@pytest.mark.parametrize(
    ("strategy", "query", "dense", "kept"),
    [
        ("hybrid", FOREIGN_SCRIPT, "x", {"a", "b", "c"}),
        ("hybrid", FOREIGN_SCRIPT, "bx", {"a", "b", "c", "x"}),
        ("hybrid", "how to tune a database", "x", {"a", "b", "c", "x"}),
        ("vec_only", FOREIGN_SCRIPT, "x", {"x"}),
    ],
)
def test_the_dense_arm_of_a_model_of_which_nothing_is_known_votes_if_it_finds_what_keywords_find(
    strategy: str, query: str, dense: str, kept: set[str]
) -> None:
    found = run(Store({SPARSE: (10.0, 6.0, 4.0)}, bm25="abc", dense=dense), strategy, query)
    assert {h.chunk_id for h in found.hits} == kept
    assert (DISAGREES in found.warnings) == ("x" not in kept)


def test_a_dense_arm_that_disagrees_goes_with_those_of_the_rewrites_and_earlier_warnings_stay() -> None:
    model = Model("<rewrites><rewrite>数据库索引怎么设计</rewrite></rewrites>")
    store = Store({SPARSE: (10.0, 9.5)}, bm25="ab", dense="x")
    found = run(store, "deep", FOREIGN_SCRIPT, llm=model)
    assert [request.using for request in store.trips[-1]].count(DENSE) == 2
    assert {effect.stage for h in found.hits for effect in h.explain} == {
        "fusion bm25", "fusion bm25#1", "fusion bonus"
    }  # fmt: skip
    assert {h.chunk_id for h in found.hits} == {"a", "b"}


@pytest.mark.parametrize(
    ("arms", "kept", "warnings"),
    [(f"{SPARSE} {DENSE}", {"a"}, ("Earlier.", DISAGREES)), (DENSE, {"x"}, ("Earlier.",))],
)
def test_a_doubtful_arm_is_held_against_keywords_where_they_were_searched_too(
    arms: str, kept: set[str], warnings: tuple[str, ...]
) -> None:
    requests = tuple(SearchArm(name, models.QueryRequest(using=name, limit=9), 1.0) for name in arms.split())
    state = SearchState(Query("q", Filters(), 5), arms=requests, language_unknown=True, warnings=("Earlier.",))
    fused = fuse_arms(state, s.FusionStage(), tools(Store(bm25="a", dense="x")))
    assert {candidate.hit.chunk_id for candidate in fused.candidates} == kept
    assert fused.warnings == warnings


def test_deep_searches_question_and_rewrites_in_one_trip_after_the_look_at_bm25() -> None:
    model = Model("<rewrites><rewrite>other words here</rewrite><rewrite>more other words</rewrite></rewrites>")
    store = Store(bm25="ab", dense="bc")
    found = run(store, "deep", llm=model)
    assert found.rewrites == ("other words here", "more other words")
    assert [len(trip) for trip in store.trips] == [1, 6]
    assert (found.cost.llm_calls, found.cost.llm_tokens_in) == (1, 3)
    top = found.hits[0]
    assert {effect.detail["weight"] for effect in top.explain if "weight" in effect.detail} == {1.0, 2.0}
    # b: rank 2 of three BM25 lists (2 + 1 + 1 over 62), rank 1 of three dense ones (4/61), one bonus of 0.05
    assert top.score == pytest.approx(0.180090, abs=1e-6)


@pytest.mark.parametrize(
    ("more", "query", "reason"),
    [
        ({}, "a question of words", "llm_unavailable"),
        ({"llm": Model("")}, "two words", "question_too_short"),
        ({"llm": Model("")}, "缓存", "question_too_short"),
        ({"llm": Model("no xml")}, "a question of words", "The question was not rewritten"),
        (
            {"llm": Model("<rewrites><rewrite>A question of words</rewrite></rewrites>")},
            "a question of words",
            "nothing new",
        ),
    ],
)
def test_each_skip_of_the_expansion_has_its_reason(more: dict[str, Any], query: str, reason: str) -> None:
    found = run(Store(bm25="ab", dense="b"), "deep", query, **more)
    assert reason in str(next(t.skipped for t in found.stages if t.stage == "expansion"))
    assert found.rewrites == ()
    assert found.hits


def test_a_strong_signal_spares_the_rewriting() -> None:
    model = Model("")
    found = run(Store({SPARSE: (30.0, 1.0)}, bm25="ab", dense="b"), "deep", llm=model)
    assert found.strong_signal
    assert model.prompts == []
    weak = run(Store({SPARSE: (30.0, 29.0)}, bm25="ab", dense="b"), "deep", llm=Model(""))
    assert not weak.strong_signal


def test_layered_search_adds_neighbours_scored_by_the_question_itself() -> None:
    class Layered(Store):
        def query(self, requests: Sequence[Any]) -> list[list[Hit]]:
            super().query(requests)
            return [[hit("a", 1.0)] if len(self.trips) == 1 else [hit("b", 0.9), hit("c", 0.9)] for _ in requests]

    store = Layered()
    found = run(store, "layered")
    assert [h.chunk_id for h in found.hits] == ["a", "b", "c"]
    cosine = {h.chunk_id: h.explain[-1].detail.get("cosine") for h in found.hits}
    assert cosine["b"] == pytest.approx(0.6)
    assert cosine["c"] == pytest.approx(0.0)
    assert len(store.trips) == 2


def test_neighbours_have_their_share_of_the_places_that_are_reranked() -> None:
    class Layered(Store):
        def query(self, requests: Sequence[Any]) -> list[list[Hit]]:
            super().query(requests)
            arms = [hit(name, 1 - place / 10) for place, name in enumerate("adefgh")]
            return [arms if len(self.trips) == 1 else [hit("b", 0.9), hit("c", 0.9)] for _ in requests]

    found = run(Layered(), "layered")
    # of 5 wanted 2 are for neighbours; a has 2/11 at cosine 1, so b has 0.6 of that and c nothing
    assert {h.chunk_id: round(h.score, 6) for h in found.hits} == {
        "a": 0.181818, "d": 0.166667, "e": 0.153846, "b": 0.109091, "c": 0.0
    }  # fmt: skip
    assert found.hits[3].explain[0].detail == {
        "cosine": pytest.approx(0.6), "ratio": pytest.approx(2 / 11), "layer": 1.0
    }  # fmt: skip


def test_trigrams_need_an_index_and_say_so_without_one() -> None:
    kit = tools(Store(bm25="a"))
    from dataclasses import replace

    first, _ = split(kit.settings.strategies["keyword"])
    found = search(Query("a questoin", Filters(), 5), "keyword", first, replace(kit, trigrams=None))
    assert "no trigrams" in found.warnings[0]


def test_a_misspelt_word_shares_most_trigrams_with_the_right_one() -> None:
    encoder = TrigramEncoder()

    def overlap(query: str, passage: str) -> float:
        passage_at = dict(zip(*_pair(encoder.encode_passage(passage)), strict=True))
        return sum(passage_at.get(index, 0.0) for index in encoder.encode_query(query).indices)

    assert overlap("posgres vaccum", "Postgres vacuum\nhow it works") > 2 * overlap("posgres vaccum", "Redis\nqueues")
    assert not encoder.encode_query("缓存 42 ab")


def _pair(vector: SparseVector) -> tuple[tuple[int, ...], tuple[float, ...]]:
    return vector.indices, vector.values


def test_a_failing_reranker_leaves_the_fused_order_and_a_warning() -> None:
    class Failing:
        name = "failing"

        def rerank(self, query: str, hits: Sequence[Hit], timeout_s: float) -> Any:
            raise PermanentError("401: check the key")

    from shared.providers.rerankers.guarded import GuardedReranker

    found = run(Store(bm25="abc"), "bm25_only")
    _, rest = split(load_settings().strategies["bm25_only"])
    ranked = continue_search(
        found, Query("q", Filters(), 5), rest, Tools(settings=load_settings(), reranker=GuardedReranker(Failing()))
    )
    assert [h.chunk_id for h in ranked.hits] == ["a", "b", "c"]
    assert any("401" in warning for warning in ranked.warnings)


def test_vectors_travel_as_half_floats() -> None:
    one = hit("b", 0.5)
    again = Hit.model_validate_json(one.model_dump_json())
    assert again.vector == pytest.approx(one.vector, abs=1e-3)
    written = json.loads(one.model_dump_json())["vector"]
    assert len(base64.b64decode(written)) == 2 * len(one.vector)
    assert TRIGRAM != SPARSE
