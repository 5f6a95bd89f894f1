"""What every reranker keeps to, whichever it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from shared.models import Hit
from shared.rerankers import Guarded, Reranker, fastembed_cross, reranker
from shared.settings import Settings
from tests.fakes.openai_server import FakeOpenAI, Fault, Reply

PROVIDERS = ("lexical", "endpoint", "fastembed", "none")
TEXTS = ("slow queries need an index", "caches expire at night", "an index speeds slow queries up", "数据库索引")


class WordCounter:
    """Stands in for a cross-encoder: the logit is the number of shared words."""

    def rerank(self, query: str, documents: list[str], batch_size: int) -> Iterator[float]:
        return (float(len(set(query.split()) & set(document.split()))) for document in documents)


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        yield server


Build = Callable[..., Reranker]


@pytest.fixture
def build(server: FakeOpenAI) -> Iterator[Build]:
    """`build(provider, max_documents=...)`: closed after the test."""
    built: list[Guarded] = []

    def make(provider: str, **more: object) -> Reranker:
        built.append(reranker(Settings(rerank={"provider": provider, "model": "m", "base_url": server.url, **more})))
        return built[-1]

    yield make
    for one in built:
        one.close()


@pytest.fixture(params=PROVIDERS)
def any_reranker(request: pytest.FixtureRequest, build: Build, monkeypatch: pytest.MonkeyPatch) -> Reranker:
    monkeypatch.setattr(fastembed_cross, "load_cross_encoder", lambda *_: WordCounter())
    return build(request.param)


def hits(texts: tuple[str, ...] = TEXTS) -> list[Hit]:
    return [
        Hit(chunk_id=f"c{i}", doc_id="d", path="p", title="", text=text, score=1 / (1 + i), parts={"bm25": 3.0})
        for i, text in enumerate(texts)
    ]


def test_given_hits_then_none_is_lost_and_the_best_is_first(any_reranker: Reranker) -> None:
    ranked = any_reranker.rerank("why are queries slow without an index", hits(), 10)
    assert sorted(hit.chunk_id for hit in ranked.hits) == ["c0", "c1", "c2", "c3"]
    assert [hit.score for hit in ranked.hits] == sorted((hit.score for hit in ranked.hits), reverse=True)
    assert ranked.hits[0].chunk_id in {"c0", "c2"}
    assert ranked.reranker == any_reranker.name
    assert ranked.warnings == ()


def test_given_hits_then_both_scores_are_kept_as_parts(any_reranker: Reranker) -> None:
    given = hits()
    ranked = any_reranker.rerank("slow queries", given, 10)
    for hit in ranked.hits:
        assert hit.parts["rerank"] == hit.score
        assert hit.parts["fused"] == given[int(hit.chunk_id[1:])].score
        assert hit.parts["bm25"] == 3.0


def test_given_no_hits_then_nothing_and_no_call(any_reranker: Reranker, server: FakeOpenAI) -> None:
    ranked = any_reranker.rerank("slow queries", [], 10)
    assert (ranked.hits, ranked.calls, ranked.documents, ranked.warnings) == ((), 0, 0, ())
    assert server.requests("rerank") == []


def test_given_the_same_twice_then_the_same_order(any_reranker: Reranker) -> None:
    assert any_reranker.rerank("slow queries", hits(), 10) == any_reranker.rerank("slow queries", hits(), 10)


def test_endpoint_given_more_documents_than_a_call_takes_then_several_calls(build: Build, server: FakeOpenAI) -> None:
    ranked = build("endpoint", max_documents=3, api_key="secret").rerank("slow queries", hits(), 10)
    assert (ranked.calls, ranked.documents, len(ranked.hits)) == (2, 4, 4)
    first, second = server.requests("rerank")
    assert first.body["documents"] == list(TEXTS[:3])
    assert (second.body["model"], second.body["query"], second.body["top_n"]) == ("m", "slow queries", 1)
    assert first.headers["authorization"] == "Bearer secret"


def test_endpoint_given_missing_results_then_these_follow_in_fused_order_with_a_warning(
    build: Build, server: FakeOpenAI
) -> None:
    server.script("rerank", Reply(body={"results": [{"index": 2, "relevance_score": 0.7}]}))
    ranked = build("endpoint").rerank("slow queries", hits(), 10)
    assert [hit.chunk_id for hit in ranked.hits] == ["c2", "c0", "c1", "c3"]
    assert "rerank" not in ranked.hits[1].parts
    assert "left out 3 of 4 documents" in ranked.warnings[0]


@pytest.mark.parametrize(
    "step",
    [Fault(status=401), Reply(body={"results": []}), Reply(body={"results": [{"index": 9, "relevance_score": 1.0}]})],
)
def test_endpoint_given_a_fault_then_fused_order_with_warning_and_counted_call(
    build: Build, server: FakeOpenAI, step: Fault | Reply
) -> None:
    server.script("rerank", step)
    ranked = build("endpoint", api_key="secret").rerank("slow queries", hits(), 10)
    assert [hit.chunk_id for hit in ranked.hits] == ["c0", "c1", "c2", "c3"]
    assert ranked.reranker == "none (endpoint:m failed)"
    assert "secret" not in ranked.warnings[0]


def test_endpoint_given_a_fault_in_the_second_call_then_both_calls_are_counted(
    build: Build, server: FakeOpenAI
) -> None:
    server.script("rerank", Reply(), Fault(status=400))
    ranked = build("endpoint", max_documents=2).rerank("slow queries", hits(), 10)
    assert ranked.calls == 2
    assert ranked.warnings
