"""Every fallback of the workers notes its reason, and what nobody asked for is none."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from shared.errors import InputError, PermanentError, RamifyError, ReplyError, StoreError, TransientError
from shared.models import Facet, Filters, Hit, LeafResult, LeafStatus, MergedHit, MergedPool, Node, Source
from shared.models.degraded import Degradation
from shared.models.enumeration import ListRow
from shared.models.hits import SearchResult
from shared.models.route import Intent, QueryType, Routed
from shared.providers.encoders.base import Embedded, SparseVector
from shared.providers.metering import BudgetError
from shared.providers.rerankers.base import Reranked
from shared.providers.rerankers.guarded import GuardedReranker
from shared.providers.rerankers.scoring import Request, ScoringReranker
from shared.settings import load_settings
from shared.settings import stages as s
from shared.settings.strategies import named, split
from tests.fakes.scripted_llm import ScriptedLLM
from tests.support.noted import reasons_of
from workers.enumerate.columns import Extraction
from workers.merge.aggregators import aggregate
from workers.merge.extract import extract
from workers.merge.findings import Aggregator, Findings
from workers.merge.summarise import summarise
from workers.rerank.binding import Parent, bind
from workers.search import engine
from workers.search.engine import continue_search, search
from workers.search.state import Query, SearchState, Tools
from workers.search.variants import search_variants

LATE, REFUSED, GARBLED = TransientError("no answer"), BudgetError("max_calls is used up"), ReplyError("no XML")
QUESTION = "why is the queue slow"


class Sparse:
    name, avg_len = "bm25", 10.0

    def encode_query(self, text: str) -> SparseVector:
        return SparseVector(indices=(len(text),), values=(1.0,))


class Store:
    """One hit an arm; from call `fails_from` on it fails."""

    tenant = "default"

    def __init__(self, fails_from: int = 99) -> None:
        self.calls, self._fails_from = 0, fails_from

    def query(self, requests: list[Any]) -> list[list[Hit]]:
        self.calls += 1
        if self.calls >= self._fails_from:
            raise StoreError("the store does not answer")
        return [[hit("a"), hit("b")] for _ in requests]

    def lookup(self, *_: object) -> list[Hit]:
        return []

    def read(self, *_: object) -> Iterator[tuple[str, dict[str, Any]]]:
        return iter(())


def hit(name: str) -> Hit:
    return Hit(
        chunk_id=name, doc_id=name, path=f"{name}.md", title="Alma Reville", text=f"The queue {name}.", score=1.0
    )


def tools(store: Store | None = None, embedding: RamifyError | None = None, **more: Any) -> Tools:
    def embed(texts: list[str], tenant: str) -> Embedded:
        if embedding is not None:
            raise embedding
        return Embedded(vectors=((1.0, 0.0),) * len(texts))

    dense = {"dense": SimpleNamespace(name="m", dim=2), "embed": embed}
    return Tools(settings=load_settings(), store=store or Store(), sparse=Sparse(), **{**dense, **more})  # type: ignore[arg-type]


def searched(strategy: str, **more: Any) -> SearchResult:
    kit = tools(**more)
    return search(Query(QUESTION, Filters(), 5), strategy, split(named(kit.settings.strategies, strategy))[0], kit)


def llm(reply: str | Exception) -> Any:
    return ScriptedLLM(reply, tokens_in=1, tokens_out=1)


@pytest.mark.parametrize(
    ("strategy", "more", "reasons"),
    [
        ("hybrid", {}, set()),
        ("hybrid", {"embedding": LATE}, {Degradation.EMBEDDING_UNAVAILABLE}),
        ("hybrid", {"embedding": REFUSED}, {Degradation.OVER_BUDGET}),
        ("hierarchical", {"embedding": LATE}, {Degradation.EMBEDDING_UNAVAILABLE}),
        ("hybrid", {"dense": None, "embed": None}, set()),
        ("deep", {"llm": llm(LATE)}, {Degradation.LLM_UNAVAILABLE}),
        ("deep", {"llm": llm("no rewrites")}, {Degradation.LLM_REPLY_UNUSABLE}),
        (
            "deep",
            {"llm": llm(REFUSED), "embedding": LATE},
            {Degradation.OVER_BUDGET, Degradation.EMBEDDING_UNAVAILABLE},
        ),
        ("deep", {"llm": None}, set()),
        ("keyword", {"trigrams": None}, set()),
        ("hierarchical", {"timeout_s": -1.0}, {Degradation.OUT_OF_TIME}),
    ],
)
def test_given_a_helper_that_fails_when_searched_then_its_reason_is_noted_and_none_for_what_is_not_there(
    strategy: str, more: dict[str, Any], reasons: set[Degradation]
) -> None:
    assert reasons_of(lambda: searched(strategy, **more)) == reasons


def test_given_a_store_that_fails_behind_the_arms_when_searched_then_their_candidates_stay() -> None:
    found: list[SearchResult] = []
    assert reasons_of(lambda: found.append(searched("two_pass", store=Store(fails_from=2)))) == {
        Degradation.STORE_UNAVAILABLE
    }
    assert {one.chunk_id for one in found[0].hits} == {"a", "b"}
    assert "the store does not answer" in found[0].warnings[0]
    with pytest.raises(StoreError):
        searched("two_pass", store=Store(fails_from=1))


def test_given_a_stage_that_refuses_what_was_asked_when_run_then_it_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> SearchState:
        raise InputError("near_symbol", "x", "name one that exists")

    monkeypatch.setitem(engine.STAGES, "truth", refuses)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        continue_search(SearchResult(hits=(hit("a"),), mode="x"), Query("q", Filters(), 5), (s.TruthStage(),), tools())


def test_given_wordings_that_cannot_be_embedded_when_searched_together_then_it_is_noted() -> None:
    kit = tools(embedding=LATE)
    stages = split(named(kit.settings.strategies, "hybrid"))[0]
    query = Query(QUESTION, Filters(), 5, variants=("one wording", "another wording"))
    assert reasons_of(lambda: search_variants(query, "hybrid", stages, kit)) == {Degradation.EMBEDDING_UNAVAILABLE}


@pytest.mark.parametrize("after", [ValueError("a fault"), "no state"])
def test_given_a_stage_of_a_plugin_that_fails_when_run_then_it_is_the_plugins_reason(
    monkeypatch: pytest.MonkeyPatch, after: object
) -> None:
    def stage(*_: object) -> object:
        if isinstance(after, Exception):
            raise after
        return after

    monkeypatch.setattr(engine, "_plugin_run", lambda _: stage)
    options = SimpleNamespace(stage="theirs", plugin="package")
    assert reasons_of(lambda: engine.plugin_stage(SearchState(Query("q", Filters(), 5)), options, tools())) == {  # type: ignore[arg-type]
        Degradation.PLUGIN_FAILED
    }


class Broken:
    """Fails as it is told."""

    name = "broken:1"

    def __init__(self, error: RamifyError) -> None:
        self._error = error

    def rerank(self, query: str, hits: object, timeout_s: float) -> Reranked:
        raise self._error


class HalfScorer:
    """Scores the first text, then fails or leaves the others out."""

    name, calibrated = "half:1", staticmethod(lambda scores: (list(scores), ""))

    def __init__(self, error: RamifyError | None) -> None:
        self._error = error

    def score(self, request: Request) -> None:
        request.scores[request.texts[0]] = 1.0
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    ("inner", "reason"),
    [
        (Broken(LATE), Degradation.RERANK_UNAVAILABLE),
        (Broken(REFUSED), Degradation.OVER_BUDGET),
        (ScoringReranker(HalfScorer(None), 500), Degradation.RERANK_UNAVAILABLE),
        (ScoringReranker(HalfScorer(REFUSED), 500), Degradation.OVER_BUDGET),
    ],
)
def test_given_a_reranker_that_fails_or_scores_in_part_when_asked_then_it_is_noted(
    inner: Any, reason: Degradation
) -> None:
    assert reasons_of(lambda: GuardedReranker(inner).rerank("q", (hit("a"), hit("b")), 5)) == {reason}


@pytest.mark.parametrize(
    ("timeout_s", "reason"), [(5.0, Degradation.RERANK_UNAVAILABLE), (0.0, Degradation.OUT_OF_TIME)]
)
def test_given_no_time_when_reranked_then_that_is_the_reason(timeout_s: float, reason: Degradation) -> None:
    assert reasons_of(lambda: GuardedReranker(Broken(LATE)).rerank("q", (hit("a"),), timeout_s)) == {reason}


@pytest.mark.parametrize(
    ("reply", "reasons"),
    [
        (LATE, {Degradation.LLM_UNAVAILABLE}),
        (GARBLED, {Degradation.LLM_REPLY_UNUSABLE}),
        (REFUSED, {Degradation.OVER_BUDGET}),
        ("<unknown/>", set()),
        (None, set()),
    ],
)
def test_given_an_answer_that_is_not_read_when_bound_then_the_fault_is_noted_and_an_unknown_one_is_none(
    reply: Any, reasons: set[Degradation]
) -> None:
    nodes = [Node(id=f"0.{n}", level=1, facet=Facet.CORE, query=q) for n, q in ((1, "Who directed it?"), (2, "#1?"))]
    parent = Parent(nodes[0], LeafResult(node_id="0.1", status=LeafStatus.DONE, hits=(hit("a"),)))
    kit = Tools(settings=load_settings(), llm=None if reply is None else llm(reply))
    assert reasons_of(lambda: bind(nodes[1], [parent], "default", kit)) == reasons


@pytest.mark.parametrize(
    ("reply", "timeout_s", "reason"),
    [
        (LATE, 9.0, Degradation.LLM_UNAVAILABLE),
        ("no rows", 9.0, Degradation.LLM_REPLY_UNUSABLE),
        ("", 0.1, Degradation.OUT_OF_TIME),
    ],
)
def test_given_columns_that_are_not_read_when_filled_then_it_is_noted(
    reply: Any, timeout_s: float, reason: Degradation
) -> None:
    rows = [(ListRow(doc_id="d", uri="ramify://d", path="d.md", title="D"), "a text")]
    extraction = Extraction(llm(reply), timeout_s, load_settings())
    assert reasons_of(lambda: extraction.fill(rows, ["owner"])) == {reason}


def findings(reply: Any, timeout_s: float = 9.0) -> Findings:
    hits = (MergedHit(**dict(hit("a")), sources=(Source(node_id="0.0", facet="core", rank=1, score=1.0),)),)
    nodes = {"0.0": Node(id="0.0", level=1, facet=Facet.ORIGINAL, query=QUESTION)}
    routed = Routed(type=QueryType.SIMPLE_RULE, intent=Intent.GENERAL, confidence=1)
    pool = MergedPool(hits=hits, per_leaf={"0.0": ("a",)})
    return Findings(QUESTION, pool, nodes, (), routed, llm=reply and llm(reply), timeout_s=timeout_s)


@pytest.mark.parametrize(
    ("reply", "timeout_s", "reasons"),
    [
        (PermanentError("401"), 9.0, {Degradation.LLM_UNAVAILABLE}),
        ("It cites nothing.", 9.0, {Degradation.LLM_REPLY_UNUSABLE}),
        ("It is slow [1].", 0.1, {Degradation.OUT_OF_TIME}),
        ("The queue a [1].", 9.0, set()),
        (None, 9.0, set()),
    ],
)
def test_given_a_summary_that_cannot_be_used_when_written_then_it_is_noted(
    reply: Any, timeout_s: float, reasons: set[Degradation]
) -> None:
    found = findings(reply, timeout_s)
    assert reasons_of(lambda: summarise(found, lambda: extract(QUESTION, found.pool, found.nodes))) == reasons


def test_given_an_aggregator_that_fails_or_is_not_there_when_answered_then_it_is_the_plugins_reason() -> None:
    def fails(*_: object) -> Any:
        raise ValueError("a fault")

    known = {"theirs": Aggregator(fails, s.TruthStage)}
    for name in ("theirs", "gone"):
        assert reasons_of(lambda name=name: aggregate(name, findings(None), {}, known)) == {Degradation.PLUGIN_FAILED}
