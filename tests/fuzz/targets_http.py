"""What LLM, embedding and rerank servers send: bodies under a proper head, and heads and bodies that are neither."""

from __future__ import annotations

import gzip
import json
import math
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from shared.errors import PermanentError, ReplyError, TransientError
from shared.providers.encoders.endpoint import EndpointEncoder
from shared.providers.llm.client import ChatClient
from shared.providers.rerankers.endpoint import EndpointScorer
from shared.providers.rerankers.scoring import Request
from shared.settings import load_settings
from tests.fuzz import samples
from tests.fuzz.http_server import RawServer
from tests.fuzz.mutate import Mutator, as_json
from tests.fuzz.target import Run, Target

_CHAT = {
    "id": "c",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi 你好"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
}  # fmt: skip
_PARTS = {
    "choices": [{"message": {"content": [{"type": "text", "text": "a"}, {"text": "b"}]}, "finish_reason": "length"}]
}
_FAULT = {"error": {"code": "rate_limit", "type": "x", "param": "max_tokens", "message": "sk-secret"}}
_VECTORS = {
    "data": [{"index": 0, "embedding": [0.1, -0.2, 0.3]}, {"index": 1, "embedding": [1, 0, 0]}],
    "usage": {"total_tokens": 4},
}
_SCORES = {"results": [{"index": 1, "relevance_score": 0.5}, {"index": 0, "relevance_score": -3.25}], "usage": {}}
_HEAD = (
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {n}\r\n\r\n{body}",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{n:x}\r\n{body}\r\n0\r\n\r\n",
    "HTTP/1.0 200 OK\r\n\r\n{body}",
    "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 2\r\nContent-Length: {n}\r\n\r\n{body}",
    "HTTP/1.1 400 Bad Request\r\nContent-Length: {n}\r\n\r\n{body}",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: {n}\r\n\r\n{body}",
)
_BODIES = {"chat": (_CHAT, _PARTS, _FAULT), "embedding": (_VECTORS, _FAULT), "rerank": (_SCORES, _FAULT)}
#: Seconds that a client is given, and by how much it may overrun them.
_GIVEN_S, _OVER_S = 1.0, 1.5
_LINGERING = 0.002


def _body(endpoint: str) -> Callable[[Mutator], tuple[bytes, bool]]:
    """A changed body under a head that is true."""

    def make(mutator: Mutator) -> tuple[bytes, bool]:
        if mutator.rng.random() < 0.75:
            content = mutator.json(_BODIES[endpoint]).encode("utf-8", "surrogatepass")
        else:
            content = mutator.raw([as_json(body) for body in _BODIES[endpoint]])
        status = mutator.rng.choice(("200 OK",) * 20 + ("400 Bad", "429 Busy", "500 No", "201 Created"))
        return f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content, False

    return make


def _raw(mutator: Mutator) -> tuple[bytes, bool]:
    """A whole response changed as text or bytes, or packed by a liar."""
    lingers = mutator.rng.random() < _LINGERING
    if mutator.rng.random() < 0.03:
        return _packed(mutator), lingers
    body = json.dumps(mutator.rng.choice(_BODIES["chat"]))
    content = mutator.raw([form.format(n=len(body), body=body) for form in _HEAD])
    return content, lingers


@cache
def _bomb() -> bytes:
    """1 GB in 1 MB of zlib: one packed block again and again. Packed once more it is some kB."""
    packer = zlib.compressobj(9)
    head = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(b"0" * (1 << 26)) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + block * 16


def _packed(mutator: Mutator) -> bytes:
    """Something compressed, once or often, perhaps a bomb, perhaps cut off."""
    body = mutator.rng.choice((json.dumps(_CHAT).encode(), b"0" * 3_000_000, b" " * 40_000_000))
    names = []
    if mutator.rng.random() < 0.2:
        body, names = _bomb(), ["deflate"]
    for _ in range(mutator.rng.choice((1, 1, 2, 3, 6))):
        name = mutator.rng.choice(("gzip", "deflate", "gzip"))
        body = gzip.compress(body, 9) if name == "gzip" else zlib.compress(body, 9)
        names.append(name)
    if mutator.rng.random() < 0.3:
        body = body[: mutator.rng.randint(0, len(body))]
    named = (
        ", ".join(names) if mutator.rng.random() < 0.8 else mutator.rng.choice(("br", "zstd", "gzip, br", "x-gzip", ""))
    )
    return f"HTTP/1.1 200 OK\r\nContent-Encoding: {named}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def _asked(endpoint: str) -> Callable[[], Any]:
    """A client of this server, asked once for each answer."""

    @contextmanager
    def opened() -> Iterator[Run]:
        with RawServer() as server:
            ask, close = _CLIENTS[endpoint](server.url)

            def run(given: tuple[bytes, bool]) -> None:
                server.answer, server.lingers = given
                began = time.monotonic()
                try:
                    ask()
                finally:
                    took = time.monotonic() - began
                assert took < _GIVEN_S + _OVER_S, f"{took:.1f} s where {_GIVEN_S} s were given"

            try:
                yield run
            finally:
                close()

    return opened


def _chat(url: str) -> tuple[Callable[[], None], Callable[[], None]]:
    client = ChatClient(load_settings(llm_base_url=url, llm_model="m", llm_attempts=1, llm_timeout_s=_GIVEN_S))

    def ask() -> None:
        reply = client.complete("question", timeout_s=_GIVEN_S)
        assert reply.text.strip()
        reply.text.encode()

    return ask, client.close


def _embedding(url: str) -> tuple[Callable[[], None], Callable[[], None]]:
    given = {"provider": "endpoint", "base_url": url, "model": "m", "dim": 3, "timeout_s": _GIVEN_S}
    encoder = EndpointEncoder(load_settings(embedding=given), attempts=1)

    def ask() -> None:
        found = encoder.embed_passages(["a", "b"])
        assert [len(vector) for vector in found.vectors] == [3, 3]
        assert all(abs(math.hypot(*vector) - 1) < 1e-6 for vector in found.vectors)
        assert 0 <= found.tokens < 2**40

    return ask, encoder._client.close


def _rerank(url: str) -> tuple[Callable[[], None], Callable[[], None]]:
    given = {"provider": "endpoint", "base_url": url, "model": "m", "timeout_s": _GIVEN_S, "attempts": 1, "batch_ms": 0}
    scorer = EndpointScorer(load_settings(rerank=given))

    def ask() -> None:
        request = Request(query="q", texts=("a", "b"), deadline=time.monotonic() + _GIVEN_S)
        scorer.score(request)
        scores = [score for score in request.scores.values() if score is not None]
        assert all(math.isfinite(score) for score in scores)
        assert all(0 <= score <= 1 for score in scorer.calibrated(scores).scores)

    return ask, scorer.close


_CLIENTS = {"chat": _chat, "embedding": _embedding, "rerank": _rerank}


def _target(name: str, endpoint: str, make: Callable[[Mutator], tuple[bytes, bool]], short: int) -> Target:
    return Target(
        name=f"http_{name}",
        make=make,
        opened=_asked(endpoint),
        allowed=(TransientError, PermanentError, ReplyError),
        tokens=(*samples.tokens("http"), *samples.tokens("json")[:10]),
        short=short,
    )


TARGETS = (
    _target("raw", "chat", _raw, 150),
    *(_target(endpoint, endpoint, _body(endpoint), 150) for endpoint in _BODIES),
)
