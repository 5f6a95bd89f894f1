"""Who makes the collection: index workers of several hosts meet at the first document of all."""

from __future__ import annotations

import sys
import uuid
from threading import Thread
from typing import Any

import pytest
from qdrant_client import QdrantClient

from shared.errors import StoreError
from shared.models import Chunk
from shared.store import BuiltWith
from shared.store.chunk_store import ChunkStore
from shared.store.server import ServerStore
from workers.index.encoding import CollectionEncoders, KeywordEncoders

CHUNK = Chunk(chunk_id=str(uuid.uuid4()), doc_id="d", ordinal=0, title="d", text="a queue", path="d.md")


def test_given_two_hosts_that_make_the_collection_at_once_then_the_second_waits_for_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client, found = QdrantClient(":memory:"), list[KeywordEncoders]()
    first, second = (CollectionEncoders(_store(client), None, trigrams=True) for _ in range(2))
    other = Thread(target=lambda: found.append(second.ensure([CHUNK])))
    named = client.update_collection_aliases

    def slowly(*args: Any, **options: Any) -> Any:
        """The collection is there, and has no name yet."""
        other.start()
        other.join(0.5)
        return named(*args, **options)

    monkeypatch.setattr(client, "update_collection_aliases", slowly)
    found.append(first.ensure([CHUNK]))
    other.join(10)
    assert len(found) == 2
    assert found[0].sparse.name == found[1].sparse.name


def test_given_another_host_that_joins_between_a_look_and_the_making_then_its_encoders_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = QdrantClient(":memory:")
    store, other = _store(client), _store(client)
    steps = iter((
        other._collection.create,
        lambda _: CollectionEncoders(other, None, trigrams=True).ensure([CHUNK]),
    ))  # fmt: skip

    def late(made: BuiltWith) -> None:
        next(steps)(made)
        raise StoreError("it exists already")

    monkeypatch.setattr(store, "create", late)
    found = CollectionEncoders(store, None, trigrams=True).ensure([CHUNK])
    assert found.sparse.avg_len == other.info().built_with.avg_len


@pytest.mark.parametrize("last_step", ["create_collection", "update_collection"])
def test_given_a_worker_that_died_while_it_made_the_collection_then_the_next_one_finishes_it(
    monkeypatch: pytest.MonkeyPatch, last_step: str
) -> None:
    client = QdrantClient(":memory:")
    following = {"create_collection": "update_collection", "update_collection": "update_collection_aliases"}[last_step]
    with monkeypatch.context() as dying:
        dying.setattr(client, following, lambda *_, **__: sys.exit("killed"))
        with pytest.raises(SystemExit):
            CollectionEncoders(_store(client), None, trigrams=True).ensure([CHUNK])
    monkeypatch.setattr("shared.store.server._MAKING_S", 0.0)

    made = CollectionEncoders(_store(client), None, trigrams=True).ensure([CHUNK])

    assert made.trigrams is not None
    assert [one.name for one in client.get_collections().collections] == ["c-1"]
    assert _store(client).info() is not None


def _store(client: QdrantClient) -> ChunkStore:
    return ChunkStore(ServerStore(client, "c", indexed=False), "default")
