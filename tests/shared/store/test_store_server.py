"""What only the server store must do: tell a passing failure from a lasting one, over real HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from qdrant_client import QdrantClient, models

from shared.errors import PermanentError, StoreError, TransientError
from shared.settings import Settings
from shared.store import DENSE, SPARSE, BuiltWith, ChunkPoint, open_stores
from shared.store.schema import INDEXED
from shared.store.server import ServerStore
from tests.fakes.qdrant_server import CHUNK, POINT, Answer, FakeQdrant
from tests.fakes.stores import OpenedStore


@pytest.fixture
def qdrant() -> Iterator[FakeQdrant]:
    with FakeQdrant() as server:
        yield server


def opened(url: str) -> OpenedStore:
    return OpenedStore(open_stores(Settings(store={"kind": "server", "url": url, "timeout_s": 5}))._collection)


ASK = models.QueryRequest(query=[1.0, 0.0], using=DENSE)


def test_given_several_requests_when_searched_then_one_call_carries_them_and_hits_are_read(qdrant: FakeQdrant) -> None:
    found = {"points": [{**POINT, "payload": CHUNK, "vector": {"dense": [0.6, 0.8]}}]}
    qdrant.script.append(Answer(body={"result": [found, {"points": []}], "status": "ok", "time": 0.1}))
    sparse = models.QueryRequest(query=models.SparseVector(indices=[1], values=[1.0]), using=SPARSE)
    store = opened(qdrant.url)

    first, second = store.query([ASK, sparse])
    store.close()

    [(_, _, path)] = qdrant.seen
    [body] = qdrant.bodies
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
    qdrant: FakeQdrant, status: int, kind: type[Exception], words: str
) -> None:
    qdrant.script.extend([Answer(status, {"status": {"error": "bad filter"}})] * 3)  # what may pass is tried again
    store = opened(qdrant.url)

    with pytest.raises(kind, match=words) as raised:
        store.query([ASK])
    store.close()
    assert isinstance(raised.value, TransientError) == (kind is TransientError)
    assert "\n" not in str(raised.value)


def test_given_too_many_requests_when_searched_then_retry_after_is_kept(qdrant: FakeQdrant) -> None:
    qdrant.script.append(Answer(429, {"status": {"error": "slow down"}}, {"Retry-After": "70"}))
    store = opened(qdrant.url)

    with pytest.raises(TransientError) as raised:
        store.query([ASK])
    store.close()
    assert raised.value.retry_after == 70


def test_given_something_else_behind_the_url_when_asked_then_it_says_so(qdrant: FakeQdrant) -> None:
    qdrant.script.append(Answer(body=b"<html>hello</html>"))
    store = opened(qdrant.url)

    with pytest.raises(StoreError, match="no Qdrant server"):
        store.query([ASK])
    store.close()


def test_given_a_foreign_point_when_found_then_it_is_refused(qdrant: FakeQdrant) -> None:
    qdrant.script.append(Answer(body={"result": [{"points": [{**POINT, "payload": {"a": 1}}]}], "status": "ok"}))
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
