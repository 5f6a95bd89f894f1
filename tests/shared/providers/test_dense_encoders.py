"""What every dense encoder must do: the local model, and an OpenAI-compatible server over real HTTP."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shared.providers.encoders import DenseEncoder, dense_encoder
from shared.settings import Settings
from tests.fakes.openai_server import FakeOpenAI, Reply

MODEL = Path(__file__).parents[3] / "../shared/models/all-MiniLM-L6-v2-int8"
WORDS = ("redis", "cache", "vacuum", "database", "table", "缓存")


def _counted(body: dict[str, Any]) -> Reply:
    """Counts words: enough for "near" to mean something. Answers in reverse order, as the protocol allows."""
    rows = [
        {"index": n, "embedding": [text.count(word) + 0.01 for word in WORDS]} for n, text in enumerate(body["input"])
    ]
    return Reply(body={"data": rows[::-1], "usage": {"total_tokens": 3 * len(rows)}})


@pytest.fixture(params=["fastembed", "endpoint"])
def encoder(request: pytest.FixtureRequest, server: FakeOpenAI) -> Iterator[DenseEncoder]:
    """Each encoder as `dense_encoder` makes it from settings."""
    if request.param == "fastembed":
        pytest.importorskip("fastembed")
        if not MODEL.is_dir():
            pytest.skip("no ../shared/models beside the project")
        yield _made({"provider": "fastembed", "model": "local/minilm-int8", "path": str(MODEL), "batch_size": 1})
        return
    server.handle("embeddings", _counted)
    made = _made({"provider": "endpoint", "model": "words", "base_url": server.url, "batch_size": 2})
    yield made
    made._client.close()


def _made(embedding: dict[str, object]) -> DenseEncoder:
    made = dense_encoder(Settings(embedding=embedding))
    assert made is not None
    return made


def test_given_texts_when_embedded_then_each_gets_a_unit_vector_of_dim(encoder: DenseEncoder) -> None:
    texts = ["redis cache", "vacuum the table", "redis", "缓存", "database"]

    found = encoder.embed_passages(texts)

    assert len(found.vectors) == len(texts)
    assert {len(vector) for vector in found.vectors} == {encoder.dim}
    assert all(math.hypot(*vector) == pytest.approx(1.0, abs=1e-5) for vector in found.vectors)
    assert encoder.embed_queries([]).vectors == ()
    assert encoder.embed_queries([]).calls == encoder.embed_queries([]).tokens == 0


def test_given_texts_when_embedded_then_calls_and_tokens_are_those_that_were_made(encoder: DenseEncoder) -> None:
    one, three = encoder.embed_queries(["redis cache"]), encoder.embed_passages(["redis", "缓存", "vacuum the table"])
    size = encoder._settings.batch_size
    assert (one.calls, three.calls) == (1, math.ceil(3 / size))
    assert one.tokens >= 2
    assert three.tokens >= one.tokens + 2


def test_given_a_question_when_compared_then_its_own_passage_is_nearest(encoder: DenseEncoder) -> None:
    passages = encoder.embed_passages(["redis is a cache", "vacuum cleans a database table"]).vectors
    [first], [second] = (encoder.embed_queries([q]).vectors for q in ("cache in redis", "vacuum a table"))

    def cosine(left: tuple[float, ...], right: tuple[float, ...]) -> float:
        return sum(x * y for x, y in zip(left, right, strict=True))

    assert cosine(first, passages[0]) > cosine(first, passages[1])
    assert cosine(second, passages[1]) > cosine(second, passages[0])


def test_given_the_same_text_when_embedded_again_then_the_vector_is_the_same(encoder: DenseEncoder) -> None:
    alone = encoder.embed_queries(["redis cache"]).vectors[0]
    among = encoder.embed_queries(["vacuum", "redis cache", "a much longer text about a database table"]).vectors[1]

    assert among == pytest.approx(alone, abs=1e-6)


def test_given_threads_when_they_embed_at_once_then_all_agree(encoder: DenseEncoder) -> None:
    alone, found = encoder.embed_queries(["redis cache"]).vectors[0], []
    threads = [
        threading.Thread(target=lambda: found.append(encoder.embed_queries(["redis cache"]).vectors[0]))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    assert len(found) == 8
    assert all(vector == pytest.approx(alone, abs=1e-6) for vector in found)


def test_given_the_name_when_the_same_model_is_set_up_twice_then_both_work(encoder: DenseEncoder) -> None:
    provider, model = encoder.name.split(":", 1)
    assert provider in {"fastembed", "endpoint"}
    again = _made({**encoder._settings.model_dump(), "model": model})

    assert (again.name, again.dim) == (encoder.name, encoder.dim)
    if provider == "endpoint":
        again._client.close()
