"""What only the server store must do: tell a passing failure from a lasting one, over real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import pytest
from qdrant_client import QdrantClient, models

from shared.errors import PermanentError, StoreError, TransientError
from shared.settings import Settings
from shared.store import DENSE, SPARSE, BuiltWith, ChunkPoint, open_stores
from shared.store.schema import INDEXED
from shared.store.server import ServerStore
from tests.fakes.stores import OpenedStore

POINT = {"id": "6b1e5a4e-5f0c-4b43-9a5e-0d6f3f7f8d11", "version": 1, "score": 0.5}
CHUNK = {"doc_id": "d", "path": "p.md", "title": "标题", "text": "正文", "day": 739_747, "document_hash": "h"}


class Qdrant(NamedTuple):
    """`script` holds (status, body, headers) for the next calls; `seen` the paths and bodies of those made."""

    url: str
    script: list[tuple[int, Any, dict[str, str]]]
    seen: list[tuple[str, Any]]


@pytest.fixture
def qdrant() -> Iterator[Qdrant]:
    """A server that answers as told."""
    script: list[tuple[int, Any, dict[str, str]]] = []
    seen: list[tuple[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            seen.append((self.path, json.loads(body or b"null")))
            status, answer, headers = script.pop(0)
            raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_PUT = do_PATCH = do_POST  # noqa: N815 - the base class's names

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield Qdrant(f"http://127.0.0.1:{server.server_port}", script, seen)
        server.shutdown()
        thread.join(timeout=10)


def opened(url: str) -> OpenedStore:
    return OpenedStore(open_stores(Settings(store={"kind": "server", "url": url, "timeout_s": 5}))._collection)


ASK = models.QueryRequest(query=[1.0, 0.0], using=DENSE)


def test_given_several_requests_when_searched_then_one_call_carries_them_and_hits_are_read(qdrant: Qdrant) -> None:
    found = {"points": [{**POINT, "payload": CHUNK, "vector": {"dense": [0.6, 0.8]}}]}
    qdrant.script.append((200, {"result": [found, {"points": []}], "status": "ok", "time": 0.1}, {}))
    sparse = models.QueryRequest(query=models.SparseVector(indices=[1], values=[1.0]), using=SPARSE)
    store = opened(qdrant.url)

    first, second = store.query([ASK, sparse])
    store.close()

    [(path, body)] = qdrant.seen
    assert path.startswith("/collections/ramify/points/query/batch")
    assert [search["using"] for search in body["searches"]] == [DENSE, SPARSE]
    assert all(search["with_payload"] is True for search in body["searches"])
    assert (first[0].title, first[0].text, first[0].score, first[0].vector) == ("标题", "正文", 0.5, (0.6, 0.8))
    assert second == []


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (401, PermanentError, "store.api_key"),
        (403, PermanentError, "store.api_key"),
        (404, StoreError, "404"),
        (400, StoreError, "bad filter"),
        (500, TransientError, "500"),
        (503, TransientError, "503"),
    ],
)
def test_given_a_status_when_searched_then_the_error_says_whether_to_try_again(
    qdrant: Qdrant, status: int, kind: type[Exception], words: str
) -> None:
    qdrant.script.extend([(status, {"status": {"error": "bad filter"}}, {})] * 3)  # what may pass is tried again
    store = opened(qdrant.url)

    with pytest.raises(kind, match=words) as raised:
        store.query([ASK])
    store.close()
    assert isinstance(raised.value, TransientError) == (kind is TransientError)
    assert "\n" not in str(raised.value)


def test_given_too_many_requests_when_searched_then_retry_after_is_kept(qdrant: Qdrant) -> None:
    qdrant.script.append((429, {"status": {"error": "slow down"}}, {"Retry-After": "70"}))
    store = opened(qdrant.url)

    with pytest.raises(TransientError) as raised:
        store.query([ASK])
    store.close()
    assert raised.value.retry_after == 70


def test_given_something_else_behind_the_url_when_asked_then_it_says_so(qdrant: Qdrant) -> None:
    qdrant.script.append((200, b"<html>hello</html>", {}))
    store = opened(qdrant.url)

    with pytest.raises(StoreError, match="no Qdrant server"):
        store.query([ASK])
    store.close()


def test_given_a_foreign_point_when_found_then_it_is_refused(qdrant: Qdrant) -> None:
    qdrant.script.append((200, {"result": [{"points": [{**POINT, "payload": {"a": 1}}]}], "status": "ok"}, {}))
    store = opened(qdrant.url)

    with pytest.raises(StoreError, match="no chunk of Ramify"):
        store.query([ASK])
    store.close()


def test_given_no_server_when_opened_then_only_the_first_call_fails_and_may_be_tried_again() -> None:
    store = opened("http://127.0.0.1:9")

    with pytest.raises(TransientError, match="does not answer"):
        store.info()
    store.close()


def test_given_a_foreign_collection_when_asked_then_it_is_refused() -> None:
    client = QdrantClient(":memory:")
    client.create_collection("theirs", vectors_config={})

    with pytest.raises(StoreError, match="not made by Ramify"):
        ServerStore(client, "theirs", indexed=False).info()
    client.close()


def test_given_a_collection_without_the_later_indexes_when_first_written_to_then_it_gets_them_once(
    monkeypatch: pytest.MonkeyPatch, built_with: BuiltWith, make_point: Callable[..., ChunkPoint]
) -> None:
    client, made = QdrantClient(":memory:"), list[str]()
    ServerStore(client, "old", indexed=False).create(built_with)
    monkeypatch.setattr(client, "create_payload_index", lambda _, name, *__, **___: made.append(name))
    store = ServerStore(client, "old")

    store.upsert([make_point("one", "a")], "default")
    store.upsert([make_point("two", "b")], "default")

    assert made == [field.name for field in INDEXED]
    store.close()
