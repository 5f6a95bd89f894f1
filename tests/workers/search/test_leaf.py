"""Which strategy a request gets, and what it is told when its strategy cannot do what it asks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import ValidationError

from orchestrator.planning.tree import original_leaf
from shared.models import Chunk, Filters, JobRequest
from shared.models.degraded import Degradation
from shared.models.find import FindRequest
from shared.providers.encoders import Bm25Encoder
from shared.settings import load_settings
from shared.store import BuiltWith, ChunkPoint
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.replies import Fault, Hang, Step
from tests.support.noted import reasons_of
from workers.search.leaf import LeafQuery, leaf_query, run_search_stages
from workers.search.resources import SearchResources

SPARSE = Bm25Encoder(10.0)


@pytest.fixture
def resources(tmp_path: Path) -> Iterator[SearchResources]:
    opened = SearchResources(load_settings(data_dir=tmp_path))
    opened.store("default").create(BuiltWith(sparse=SPARSE.name, avg_len=SPARSE.avg_len))
    chunk = Chunk(
        chunk_id="6b1e5a4e-5f0c-4b43-9a5e-0d6f3f7f8d11", doc_id="d", path="a.py", title="a", text="def run: zebra",
        part="code", symbol="a.run", defines=("a.run", "run"),
    )  # fmt: skip
    opened.store("default").upsert(
        [ChunkPoint(chunk=chunk, document_hash="h", source="s", sparse=SPARSE.encode_passage("def run: zebra"))]
    )
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("fields", "strategy"),
    [
        ({}, "default"),
        ({"near_symbol": "a.run"}, "two_pass"),
        ({"depth": 2}, "two_pass"),
        ({"depth": 2, "mode": "deep"}, "deep"),
        ({"near_symbol": "a.run", "strategy": "keyword"}, "keyword"),
        ({"question": "What breaks if I change Engine.search?"}, "two_pass"),
        ({"question": "谁调用了 parse_config", "strategy": "keyword"}, "keyword"),
    ],
)
def test_given_a_request_when_its_strategy_is_chosen_then_edges_mean_two_pass_unless_one_is_named(
    fields: dict[str, object], strategy: str
) -> None:
    settings = load_settings()
    text = str(fields.pop("question", "q"))
    asked = (
        leaf_query(JobRequest.model_validate({"question": text, "top_n": 10, **fields}), original_leaf(text), settings),
        leaf_query(FindRequest.model_validate({"query": text, **fields}), original_leaf(text), settings),
    )
    assert asked[0] == asked[1]
    assert asked[0].strategy == strategy


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("pkg.mod.func", "pkg.mod.func"),
        ("crate::tree::merge()", "crate.tree.merge"),
        ("Class#method", "Class.method"),
        (" 模块.合并 ", "模块.合并"),
        ("$scope.apply", "$scope.apply"),
    ],
)
def test_given_a_symbol_as_people_write_it_when_checked_then_it_is_the_stored_name(given: str, name: str) -> None:
    assert FindRequest(query="q", near_symbol=given).near_symbol == name


@pytest.mark.parametrize("bad", ["", "a b", "title:x", "a..b", ".a", "a.", "x" * 301, "a\x00b"])
def test_given_what_is_no_name_when_checked_then_it_is_refused(bad: str) -> None:
    for model, field in ((FindRequest, "query"), (JobRequest, "question")):
        with pytest.raises(ValidationError, match="near_symbol"):
            model.model_validate({field: "q", "near_symbol": bad})


def test_given_a_strategy_without_edges_when_a_symbol_is_asked_for_then_the_result_says_so(
    resources: SearchResources,
) -> None:
    def warnings(strategy: str, **more: object) -> str:
        ask = LeafQuery.model_validate(
            {"text": "zebra", "strategy": strategy, "filters": Filters(), "tenant": "default", "wanted": 5, **more}
        )
        found = run_search_stages(ask, resources, None, 10)
        assert [hit.symbol for hit in found.hits] == ["a.run"]
        return " ".join(found.warnings)

    assert "near_symbol changed nothing: the strategy keyword follows no edges" in warnings(
        "keyword", near_symbol="run"
    )
    assert "depth changed nothing" in warnings("keyword", depth=1)
    assert "changed nothing" not in warnings("keyword")
    assert "changed nothing" not in warnings("two_pass", near_symbol="run", depth=2)


@pytest.mark.parametrize("step", [Hang(30), Fault(500)], ids=["hangs", "fails"])
def test_given_an_embedding_server_that_cannot_tell_its_size_when_searched_then_keywords_are_and_it_is_asked_again(
    tmp_path: Path, server: FakeOpenAI, step: Step
) -> None:
    embedding = {"provider": "endpoint", "base_url": server.url, "model": "fake"}
    unbroken = {"breaker": {"failures": 0}}  # a breaker that an earlier test of this process shares would refuse calls
    opened = SearchResources(load_settings(data_dir=tmp_path, embedding=embedding, providers=unbroken))
    built = BuiltWith(sparse=SPARSE.name, avg_len=SPARSE.avg_len, dense="endpoint:fake", dim=64)
    opened.store("default").create(built)
    chunk = Chunk(chunk_id=str(uuid4()), doc_id="d", path="a.md", title="a", text="a striped zebra")
    sparse, dense = SPARSE.encode_passage(chunk.text), (1.0, *[0.0] * 63)
    opened.store("default").upsert([ChunkPoint(chunk=chunk, document_hash="h", source="s", sparse=sparse, dense=dense)])
    leaf = LeafQuery(text="zebra", strategy="hybrid", filters=Filters(), tenant="default", wanted=5)

    def texts(seconds: float = 30.0) -> list[str]:
        return [hit.text for hit in run_search_stages(leaf, opened, None, seconds).hits]

    server.handle("embeddings", lambda _: step)
    begun, found = time.monotonic(), list[str]()
    assert reasons_of(lambda: found.extend(texts(3.0))) == {Degradation.EMBEDDING_UNAVAILABLE}
    assert (found, time.monotonic() - begun < 3.0) == ([chunk.text], True)
    server.forget()
    assert reasons_of(texts) == set()
    opened.close()
    opened.dense()._client.close()  # type: ignore[union-attr]
