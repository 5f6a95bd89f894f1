"""A server of embeddings or reranks gives what it was asked for, and at most the bytes that this can take."""

from __future__ import annotations

import time
from typing import Any

import pytest
from pydantic import SecretStr

from shared.errors import ReplyError
from shared.providers.encoders.endpoint import EndpointEncoder
from shared.providers.gates import Gate
from shared.providers.http import JsonClient
from shared.providers.llm.replies import readable, summary_text
from shared.providers.rerankers.endpoint import EndpointScorer
from shared.providers.rerankers.scoring import Request
from shared.settings import load_settings
from tests.fakes.openai_server import FakeOpenAI, Reply
from workers.merge.summarise import _cited_text


def encoder(server: FakeOpenAI, dim: int) -> EndpointEncoder:
    options = {"provider": "endpoint", "model": "m", "base_url": server.url, "dim": dim}
    return EndpointEncoder(load_settings(embedding=options), attempts=1)


def scorer(server: FakeOpenAI) -> EndpointScorer:
    options = {"provider": "endpoint", "model": "m", "base_url": server.url, "attempts": 1}
    return EndpointScorer(load_settings(rerank=options))


def vectors(*sizes: int, **more: Any) -> Reply:
    return Reply(body={"data": [{"index": n, "embedding": [1] * size} for n, size in enumerate(sizes)], **more})


@pytest.mark.parametrize("dim", [0, 4])
@pytest.mark.parametrize(
    "reply", [vectors(1_000_000), vectors(100_000), vectors(4, padding="x" * 4_000_000), vectors(4, 4, 4)]
)
def test_one_text_gets_one_vector_of_its_size(server: FakeOpenAI, reply: Reply, dim: int) -> None:
    server.script("embeddings", reply)
    made = encoder(server, dim)
    with pytest.raises(ReplyError):
        made.embed_queries(["a"])
    made._client.close()


@pytest.mark.parametrize("dim", [0, 3072])
def test_what_was_asked_for_is_taken_however_it_is_written(server: FakeOpenAI, dim: int) -> None:
    numbers = [-0.000012345678901234567 * (n + 1) for n in range(3072)]
    server.handle("embeddings", lambda body: Reply(body={"data": [{"embedding": numbers} for _ in body["input"]]}))
    made = encoder(server, dim)
    assert len(made.embed_passages(["a"] * 40).vectors) == 40
    made._client.close()


def request() -> Request:
    return Request("q", ("one", "two"), time.monotonic() + 10)


@pytest.mark.parametrize(
    "more",
    [{"padding": "x" * 1_000_000}, {"results": [{"index": n % 2, "relevance_score": 1} for n in range(100_000)]}],
)
def test_two_documents_get_two_scores(server: FakeOpenAI, more: dict[str, Any]) -> None:
    server.script("rerank", Reply(body={"results": [{"index": 0, "relevance_score": 1.0}]} | more))
    made, asked = scorer(server), request()
    with pytest.raises(ReplyError, match="of more than"):
        made.score(asked)
    assert asked.scores == {}
    made.close()


def test_documents_that_are_sent_back_are_no_fault(server: FakeOpenAI) -> None:
    texts = ("缓存" * 2000, "x" * 8000)
    server.handle(
        "rerank",
        lambda body: Reply(
            body={
                "results": [
                    {"index": n, "relevance_score": 1.0, "document": {"text": text}}
                    for n, text in enumerate(body["documents"])
                ]
            }
        ),
    )
    made, asked = scorer(server), Request("q", texts, time.monotonic() + 10)
    made.score(asked)
    assert set(asked.scores) == set(texts)
    made.close()


def test_a_post_may_ask_for_less_than_its_client_takes(server: FakeOpenAI) -> None:
    server.script("rerank", Reply(body={"results": ["x" * 1000]}))
    gate = Gate("rerank", server.url, load_settings().providers)
    with (
        JsonClient(server.url, SecretStr(""), gate, 1) as client,
        pytest.raises(ReplyError, match="than 500 bytes"),
    ):
        client.post("/rerank", {}, 5.0, most_bytes=500)


def test_a_reply_that_is_slow_to_read_as_markdown_is_not_read() -> None:
    for piece in ("![", "<![CDATA[", "- a\n", "# a\n"):
        began = time.process_time()
        with pytest.raises(ReplyError, match="50,000 characters"):
            _cited_text(piece * (4_000_000 // len(piece)), sources=1)
        assert time.process_time() - began < 2
    assert summary_text(readable(f"<think>{'x' * 60_000}</think>Short.")) == "Short."
