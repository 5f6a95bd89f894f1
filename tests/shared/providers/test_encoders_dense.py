"""What can go wrong before and after a dense model answers."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shared.errors import PermanentError, ReplyError, SettingsError, TransientError
from shared.providers.encoders import dense_encoder
from shared.providers.encoders.base import unit_vector
from shared.providers.encoders.endpoint import EndpointEncoder
from shared.providers.http import JsonReply
from shared.settings import Settings, load_settings

ENDPOINT = {"provider": "endpoint", "model": "m", "base_url": "http://127.0.0.1:9/v1", "batch_size": 2}


class Scripted:
    """Stands in for the HTTP client: answers with `reply(texts)` and remembers what was sent."""

    def __init__(self, reply: Callable[[list[str]], Any]) -> None:
        self.reply, self.sent = reply, []

    def post(
        self, path: str, body: dict[str, Any], timeout_s: float, before: Callable[[], None], **_: Any
    ) -> JsonReply:
        before()
        self.sent.append((path, body, timeout_s))
        return JsonReply(body=self.reply(body["input"]), calls=2)


def encoder(reply: Callable[[list[str]], Any], **more: Any) -> tuple[EndpointEncoder, Scripted]:
    made, client = EndpointEncoder(load_settings(embedding={**ENDPOINT, **more})), Scripted(reply)
    made._client.close()
    made._client = client
    return made, client


def rows(texts: list[str]) -> dict[str, Any]:
    data = [{"index": n, "embedding": [float(len(text)), 1.0]} for n, text in enumerate(texts)]
    return {"data": data[::-1], "usage": {"total_tokens": 7}}


def test_given_vectors_out_of_order_when_embedded_then_each_text_gets_its_own() -> None:
    made, client = encoder(rows, query_prefix="query: ", passage_prefix="文:")

    passages = made.embed_passages(["a", "bbb", "ccccc"])

    assert [round(x / y) for x, y in passages.vectors] == [3, 5, 7]
    assert all(math.hypot(*vector) == pytest.approx(1) for vector in passages.vectors)
    assert (passages.calls, passages.tokens) == (4, 14)
    assert [body["input"] for _, body, _ in client.sent] == [["文:a", "文:bbb"], ["文:ccccc"]]
    made.embed_queries(["q"])
    assert client.sent[-1][1]["input"] == ["query: q"]
    assert client.sent[-1][0] == "/embeddings"


def test_given_no_dim_when_asked_then_one_vector_tells_it_once() -> None:
    made, client = encoder(rows)

    assert (made.dim, made.dim, made.name) == (2, 2, "endpoint:m")
    assert len(client.sent) == 1
    assert encoder(rows, dim=2)[0].dim == 2


def test_given_no_texts_when_embedded_then_no_call_is_made() -> None:
    made, client = encoder(rows)

    assert made.embed_passages([]).vectors == ()
    assert client.sent == []


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ({}, "no list of vectors"),
        ({"data": []}, "0 vectors for 1 texts"),
        ({"data": "x"}, "no list of vectors"),
        ({"data": [{}]}, "no list of numbers"),
        ({"data": [None]}, "no list of numbers"),
        ({"data": [{"embedding": []}]}, "no list of numbers"),
        ({"data": [{"embedding": "AAAA"}]}, "no list of numbers"),
        ({"data": [{"embedding": ["x", "y"]}]}, "numbers only"),
        ({"data": [{"embedding": [None, 1.0]}]}, "numbers only"),
        ({"data": [{"embedding": [math.inf, 1.0]}]}, "NaN or infinite"),
        ({"data": [{"embedding": [math.nan, 1.0]}]}, "NaN or infinite"),
        ({"data": [{"embedding": [0.0, 0.0]}]}, "zeros"),
        ({"data": [{"embedding": [1.0, 0.0, 0.0]}]}, "3 numbers where 2"),
        ({"data": [{"embedding": [1.0, 0.0], "index": 4}]}, "indices"),
        ({"data": [{"embedding": [1.0, 0.0], "index": None}]}, "indices"),
        ({"data": [{"embedding": [1.0, 0.0], "index": []}]}, "indices"),
    ],
)
def test_given_an_unusable_reply_when_read_then_one_sentence_names_the_fault(reply: dict[str, Any], words: str) -> None:
    made, _ = encoder(lambda _: reply, dim=2)

    with pytest.raises(ReplyError, match=words):
        made.embed_queries(["q"])


def test_given_no_server_when_embedded_then_it_may_be_tried_again() -> None:
    made = EndpointEncoder(load_settings(embedding={**ENDPOINT, "dim": 2, "timeout_s": 5}), attempts=1)

    with pytest.raises(TransientError, match=r"127\.0\.0\.1"):
        made.embed_queries(["q"])
    made._client.close()


def test_given_provider_none_then_there_is_no_encoder() -> None:
    assert dense_encoder(Settings()) is None


def test_given_a_folder_without_a_model_then_the_sentence_names_the_setting(tmp_path: Path) -> None:
    pytest.importorskip("fastembed")
    settings = Settings(embedding={"provider": "fastembed", "model": "local/none", "path": str(tmp_path)})

    with pytest.raises(SettingsError, match=r"embedding\.path: .* model\.onnx"):
        dense_encoder(settings)


def test_given_no_fastembed_then_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)

    with pytest.raises(PermanentError, match=r"pip install -e \"\.\[fastembed\]\""):
        dense_encoder(Settings(embedding={"provider": "fastembed", "model": "x"}))


def test_given_huge_numbers_then_they_are_scaled_without_overflow() -> None:
    assert unit_vector([3e200, 4e200], 2, "model") == pytest.approx((0.6, 0.8))
