"""A real Qdrant server gets another embedding model, or the chunks of an embedded store, while commands are killed."""

from __future__ import annotations

import json
import math
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.storing import Storing
from shared.providers.encoders.base import Embedded
from shared.settings import Settings, load_settings
from shared.store import DENSE, open_stores, server_client
from shared.store.generations import Generations
from shared.store.migration import MigrationOptions
from shared.store.points import ServerPoints
from tests.cluster.store_life import CHUNKS, TENANTS, Life, fill, ramify, settings_of, stored
from tests.fakes.answers import embedding, embeddings_body
from tests.fakes.openai_server import FakeOpenAI, Reply
from tests.support.qdrant_node import QdrantNode
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(400)
_DIMS = {"first": 64, "second": 32}


class Model:
    """An embedding model in this process, as the server of the fixture `models` has it."""

    def __init__(self, model: str) -> None:
        self.name, self.dim = f"endpoint:{model}", _DIMS[model]

    def embed_queries(self, texts: Sequence[str]) -> Embedded:
        return Embedded(vectors=tuple(vector(self.dim, text) for text in texts))

    embed_passages = embed_queries


def vector(dim: int, text: str) -> tuple[float, ...]:
    """Each model's has another length, so that one in the wrong place is refused."""
    folded = [1e-3] * dim
    for n, value in enumerate(embedding(text)):
        folded[n % dim] += value
    length = math.hypot(*folded)
    return tuple(value / length for value in folded)


def _embedded(body: dict[str, Any]) -> Reply:
    told = embeddings_body(body["model"], body["input"])
    for one, text in zip(told["data"], body["input"], strict=True):
        one["embedding"] = vector(_DIMS[body["model"]], text)
    time.sleep(0.001 * len(body["input"]))
    return Reply(body=told)


@pytest.fixture
def models() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        server.handle("embeddings", _embedded)
        yield server


@pytest.fixture
def node(tmp_path: Path) -> Iterator[QdrantNode]:
    with QdrantNode(tmp_path / "qdrant") as made:
        yield made


def embedding_of(models: FakeOpenAI, model: str) -> dict[str, object]:
    return {"provider": "endpoint", "base_url": models.url, "model": model, "dim": _DIMS[model]}


def as_variables(embedding: dict[str, object]) -> dict[str, str]:
    """With a short pause before comparisons, which is as long as the store's time-out."""
    named = {f"RAMIFY_EMBEDDING__{name.upper()}": str(value) for name, value in embedding.items()}
    return {**named, "RAMIFY_STORE__TIMEOUT_S": "6"}


def faults_of(settings: Settings, model: str) -> list[str]:
    """Chunks of the collection in use whose vector is not of their text by this model."""
    client = server_client(settings)
    of = Generations(client, settings.store.collection, settings.store.qdrant)
    points, start, faults = ServerPoints(client, of.needed(), of.settings), "", list[str]()
    while True:
        page, start = points.page(start, 1000)
        for point in page:
            payload = point.payload or {}
            wanted = vector(_DIMS[model], f"{payload['title']}\n{payload['text']}")
            given = point.vector.get(DENSE) if isinstance(point.vector, dict) else None
            if not given or math.dist(wanted, given) > 1e-3:
                faults.append(f"{payload['doc_id']}: {payload['text']}")
        if not start:
            client.close()
            return faults


def until_filling(settings: Settings, more_than: int = -1) -> int:
    """How many chunks are in the collection that a migration fills, once they are more than so many."""

    def filled() -> int | None:
        being = [one.chunks for one in Storing(settings).status().collections if one.use == "being filled"]
        return being[0] + 1 if being and being[0] > more_than else None

    return until(filled, 60, "a migration goes on", 0.05) - 1


def test_the_embedding_model_is_changed_under_workers_of_both_and_kills(node: QdrantNode, models: FakeOpenAI) -> None:
    """Nobody's search or write fails, nothing is lost, and every chunk has a vector of the new model in the end."""
    before = settings_of(node, embedding_of(models, "first"))
    after, variables = settings_of(node, embedding_of(models, "second")), as_variables(embedding_of(models, "second"))
    kept = fill(before, CHUNKS // 2, Model("first"))
    halves = [{tenant: {} for tenant in TENANTS}, {tenant: {} for tenant in TENANTS}]
    for tenant, texts in kept.items():
        for n, (doc_id, text) in enumerate(texts.items()):
            halves[n % 2][tenant][doc_id] = text

    with Life(before, halves[0], "old", Model("first")) as old:
        for seconds in (4.0, 6.0):
            command = ramify(after, "store", "migrate", "--batch", "64", **variables)
            time.sleep(seconds)
            command.send_signal(signal.SIGKILL)
            command.communicate()
        out, err = ramify(after, "store", "migrate", "--no-switch", "--json", **variables).communicate(timeout=300)
        assert out, err
        assert not json.loads(out)["fault"], out
        with Life(after, halves[1], "new", Model("second")) as new:
            time.sleep(1)
            out, err = ramify(after, "store", "migrate", "--json", **variables).communicate(timeout=300)
            time.sleep(1)
    assert out, err
    assert json.loads(out)["switched"], out
    with Life(after, halves[0], "newer", Model("second")) as newer:
        dropping = ramify(after, "store", "migrate", "--drop-old", **variables)
        time.sleep(3.0)
        dropping.send_signal(signal.SIGKILL)
        dropping.communicate()
        out, err = ramify(after, "store", "migrate", "--drop-old", "--json", **variables).communicate(timeout=300)
        time.sleep(1)

    for life in (old, new, newer):
        assert life.failures == []
        assert life.searches > 20
        assert life.writes > 10
    assert {one: stored(after, one) for one in TENANTS} == {one: halves[0][one] | halves[1][one] for one in TENANTS}
    assert faults_of(after, "second") == []
    assert [one.name for one in Storing(after).status().collections] == ["ramify-2"]


def test_a_migration_that_is_given_up_leaves_what_was_there(node: QdrantNode, models: FakeOpenAI) -> None:
    before = settings_of(node, embedding_of(models, "first"))
    variables = as_variables(embedding_of(models, "second"))
    kept = fill(before, 2000, Model("first"))
    with Life(before, kept, dense=Model("first")) as life:
        for seconds in (2.0, 4.0, 6.0):
            command = ramify(before, "store", "migrate", "--batch", "64", "--no-switch", **variables)
            time.sleep(seconds)
            command.send_signal(signal.SIGKILL)
            command.communicate()
            Storing(before).cancel_migration()
            assert [one.use for one in Storing(before).status().collections] in (["in use"], ["in use", "not used"])
        command = ramify(before, "store", "migrate", "--batch", "64", "--no-switch", **variables)
        until_filling(before)
        assert Storing(before).cancel_migration()
        _, err = command.communicate(timeout=120)  # its collection is taken away under it
        assert "Traceback" not in err
        time.sleep(1)
    assert life.failures == []
    assert {tenant: stored(before, tenant) for tenant in TENANTS} == kept
    assert faults_of(before, "first") == []
    assert Storing(before).migrate(MigrationOptions(settle_s=0.5), lambda _: None).switched


def test_an_embedded_store_is_copied_to_the_server_through_kills_of_both(
    node: QdrantNode, models: FakeOpenAI, tmp_path: Path
) -> None:
    embedding = embedding_of(models, "first")
    local = load_settings(data_dir=tmp_path / "data", embedding=embedding)
    kept = fill(local, CHUNKS // 4, Model("first"))
    more = {
        **as_variables(embedding), "RAMIFY_STORE__KIND": "embedded", "RAMIFY_DATA_DIR": str(tmp_path / "data"),
        "RAMIFY_REDIS__URL": "redis://127.0.0.1:1/0",
    }  # fmt: skip
    there = settings_of(node, embedding)
    words = ("store", "migrate", "--to", node.url, "--json", "--batch", "8")
    filled = -1
    for _ in range(2):
        command = ramify(there, *words, **more)
        filled = until_filling(there, filled)
        command.send_signal(signal.SIGKILL)
        command.communicate()
    command = ramify(there, *words, **more)
    until_filling(there, filled)
    node.kill()
    time.sleep(1.0)
    node.start()
    out, err = command.communicate(timeout=300)
    assert out, err
    assert json.loads(out)["switched"], out

    stores = open_stores(local)
    stores.of("acme").delete_documents(["acme-0", "acme-1"])
    stores.close()
    for one in ("acme-0", "acme-1"):
        del kept["acme"][one]
    out, err = ramify(there, *words, **more).communicate(timeout=300)
    assert json.loads(out)["mended"] == 2, (out, err)
    assert {tenant: stored(there, tenant) for tenant in TENANTS} == kept
    assert faults_of(there, "first") == []
