"""Real Qdrant servers: migrations under searches, writes and kills, quantized recall, snapshots, a cluster of three."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self

import httpx
import pytest
from qdrant_client import models

from orchestrator.storing import Storing
from shared.errors import RamifyError
from shared.models import Chunk, Filters
from shared.providers.encoders import Bm25Encoder
from shared.settings import Settings, load_settings
from shared.store import DENSE, BuiltWith, ChunkPoint, open_stores, server_client, to_filter
from shared.store.base import SPARSE
from shared.store.migration import MigrationOptions
from shared.store.schema import to_sparse
from tests.support.qdrant_node import QdrantNode

pytestmark = pytest.mark.timeout(400)
#: Measured with 20,000, which takes minutes.
CHUNKS = int(os.environ.get("RAMIFY_TEST_CHUNKS", "4000"))
DIM, TENANTS = 64, ("default", "acme")
ENCODER = Bm25Encoder(12.0)
BUILT = BuiltWith(sparse=ENCODER.name, avg_len=12.0, dense="random:64", dim=DIM)
QUICK = MigrationOptions(settle_s=0.5, searches=32)


def settings_of(node: QdrantNode, **qdrant: Any) -> Settings:
    return load_settings(store={"kind": "server", "url": node.url, "timeout_s": 20, "qdrant": qdrant})


def point(text: str, doc_id: str, chance: random.Random) -> ChunkPoint:
    chunk_id = str(uuid.uuid5(uuid.NAMESPACE_URL, doc_id))
    chunk = Chunk(chunk_id=chunk_id, doc_id=doc_id, ordinal=0, text=text, path=f"n/{doc_id}.md", title=doc_id)
    vector = tuple(chance.gauss(0, 1) for _ in range(DIM))
    return ChunkPoint(chunk=chunk, document_hash=doc_id, source="/n", sparse=ENCODER.encode_passage(text), dense=vector)


def fill(settings: Settings, chunks: int) -> dict[str, dict[str, str]]:
    """Chunks of two tenants; what each has, doc_id -> text."""
    chance, stores = random.Random(3), open_stores(settings)
    words = [f"word{n}" for n in range(2000)]
    kept: dict[str, dict[str, str]] = {tenant: {} for tenant in TENANTS}
    for tenant in TENANTS:
        store = stores.of(tenant)
        store.create(BUILT)
        for start in range(0, chunks // len(TENANTS), 1000):
            texts = {f"{tenant}-{start + n}": " ".join(chance.choices(words, k=12)) for n in range(1000)}
            store.upsert([point(text, doc_id, chance) for doc_id, text in texts.items()])
            kept[tenant] |= texts
    stores.close()
    return kept


def stored(settings: Settings, tenant: str) -> dict[str, str]:
    stores = open_stores(settings)
    try:
        return {payload["doc_id"]: payload["text"] for _, payload in stores.of(tenant).read(None, ("doc_id", "text"))}
    finally:
        stores.close()


class Life:
    """Searches and writes that go on beside something, each on a thread; what was written, and what failed."""

    def __init__(self, settings: Settings, kept: dict[str, dict[str, str]]) -> None:
        self._settings, self._kept = settings, kept
        self.searches, self.failures = 0, list[str]()
        self.writes = 0
        self._ended = Event()
        self._threads = [Thread(target=self._search), Thread(target=self._write)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _search(self) -> None:
        chance, stores = random.Random(5), open_stores(self._settings)
        while not self._ended.wait(0.02):
            store = stores.of(chance.choice(TENANTS))
            words = ENCODER.encode_query(f"word{chance.randrange(2000)} word{chance.randrange(2000)}")
            vector = [chance.gauss(0, 1) for _ in range(DIM)]
            asked = [
                models.QueryRequest(query=to_sparse(words), using=SPARSE, limit=10, filter=to_filter(Filters())),
                models.QueryRequest(query=vector, using=DENSE, limit=10, filter=to_filter(Filters())),
            ]
            try:
                found = store.query(asked)
                if len(found[1]) != 10:
                    self.failures.append(f"{len(found[1])} hits")
            except RamifyError as error:
                self.failures.append(str(error))
            self.searches += 1
        stores.close()

    def _write(self) -> None:
        chance, stores = random.Random(7), open_stores(self._settings)
        while not self._ended.wait(0.05):
            tenant = chance.choice(TENANTS)
            store, kept = stores.of(tenant), self._kept[tenant]
            fresh = {f"{tenant}-new-{self.writes}": f"new words {self.writes}"}
            fresh |= dict.fromkeys(chance.sample(sorted(kept), 2), f"changed {self.writes}")
            gone = [one for one in chance.sample(sorted(kept), 2) if one not in fresh]
            try:
                store.upsert([point(text, doc_id, chance) for doc_id, text in fresh.items()])
                kept |= fresh
                store.delete_documents(gone)
                for one in gone:
                    del kept[one]
            except RamifyError as error:
                self.failures.append(f"write: {error}")
            self.writes += 1
        stores.close()


def ramify(settings: Settings, *arguments: str, **more: str) -> subprocess.Popen[str]:
    """The command line as a process of its own."""
    store = settings.store
    environment = {
        **os.environ,
        "RAMIFY_STORE__KIND": "server",
        "RAMIFY_STORE__URL": str(store.url),
        "RAMIFY_STORE__TIMEOUT_S": str(store.timeout_s),
        "RAMIFY_EMBEDDING__PROVIDER": "none",
        **more,
    }
    command = [sys.executable, "-m", "orchestrator.cli.main", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[QdrantNode]:
    with QdrantNode(tmp_path / "qdrant") as made:
        yield made


def migrate_quietly(settings: Settings, **more: Any) -> Any:
    return Storing(settings).migrate(QUICK, lambda _: None, **more)


def test_a_collection_is_migrated_under_searches_writes_and_kills(node: QdrantNode) -> None:
    """The command is killed twice, then ends; no search and no write fails, and nothing is lost or comes back."""
    settings = settings_of(node)
    kept = fill(settings, CHUNKS)
    with Life(settings, kept) as life:
        for seconds in (3.0, 5.0):
            command = ramify(settings, "store", "migrate", "--batch", "64")
            time.sleep(seconds)
            command.send_signal(signal.SIGKILL)
            command.communicate()
        out, err = ramify(settings, "store", "migrate", "--json", RAMIFY_STORE__TIMEOUT_S="6").communicate(timeout=300)
        time.sleep(1)
    assert out, err
    report = json.loads(out)
    assert report["fault"] == "", err
    assert report["switched"], err
    assert report["target"] == "ramify-2"
    assert life.failures == []
    assert life.searches > 50
    assert life.writes > 50
    assert {tenant: stored(settings, tenant) for tenant in TENANTS} == kept


def test_a_server_that_is_killed_during_a_migration_costs_nothing_but_time(node: QdrantNode) -> None:
    settings = settings_of(node, quantization="scalar", vectors_on_disk=True, hnsw_m=0, hnsw_payload_m=16)
    kept = fill(settings_of(node), CHUNKS // 2)
    quantized = {"RAMIFY_STORE__QDRANT__QUANTIZATION": "scalar", "RAMIFY_STORE__TIMEOUT_S": "6"}
    command = ramify(settings, "store", "migrate", "--json", "--batch", "64", **quantized)
    for seconds in (6.0, 3.0):
        time.sleep(seconds)
        node.kill()
        time.sleep(1)
        node.start()
    out, err = command.communicate(timeout=300)
    assert out, err
    report = json.loads(out)
    assert report["switched"], (report, err)
    assert {tenant: stored(settings, tenant) for tenant in TENANTS} == kept


@pytest.mark.parametrize("quantization", ["scalar", "product", "binary"])
def test_quantized_searches_find_what_exact_ones_find(node: QdrantNode, quantization: str) -> None:
    """Random vectors are the hardest case: nothing is near. Binary vectors of 64 dimensions tell little apart."""
    more = {"oversampling": 4.0, "product_compression": "x4", "indexing_threshold_kb": 100, "segments": 2}
    fill(settings_of(node), 4000)
    settings = settings_of(node, quantization=quantization, **more)
    report = migrate_quietly(settings, force=True)
    assert report.switched
    stores, chance = open_stores(settings), random.Random(11)
    store = stores.of("acme")
    asked = [[chance.gauss(0, 1) for _ in range(DIM)] for _ in range(100)]
    requests = [models.QueryRequest(query=vector, using=DENSE, limit=10) for vector in asked]
    exact = [one.model_copy(update={"params": models.SearchParams(exact=True)}) for one in requests]
    found, right = store.query(requests), store.query(exact)
    stores.close()
    recall = sum(
        len({hit.chunk_id for hit in a} & {hit.chunk_id for hit in b}) for a, b in zip(found, right, strict=True)
    )
    assert recall / 1000 > {"scalar": 0.85, "product": 0.6, "binary": 0.25}[quantization]
    assert Storing(settings).status().warnings[-1].startswith("ramify-1 has been replaced")


def test_what_differs_is_changed_in_place(node: QdrantNode) -> None:
    fill(settings_of(node), 2000)
    storing = Storing(settings_of(node, quantization="scalar", hnsw_ef_construct=64, shards=2, optimizer_threads=1))

    before = storing.status()
    after = storing.init(apply=True)

    assert {one.setting for one in before.collections[0].differences} == {
        "quantization", "hnsw_ef_construct", "shards", "optimizer_threads",
    }  # fmt: skip
    assert [one.setting for one in after.collections[0].differences] == ["shards"]
    assert storing.init(apply=True).done == ()


def test_a_snapshot_is_fetched_and_restored(node: QdrantNode, tmp_path: Path) -> None:
    settings = settings_of(node)
    kept = fill(settings, 2000)
    storing = Storing(settings)
    saved, version = storing.snapshot(tmp_path / "saved.snapshot"), storing.status().index_version
    stores = open_stores(settings)
    stores.of("acme").delete_documents(list(kept["acme"])[:500])

    assert storing.restore(Path(saved.path)).startswith("ramify is ramify-2 now; ramify-1 is kept")
    assert len(stores.of("acme").document_hashes(list(kept["acme"])[:500])) == 500
    assert {tenant: stored(settings, tenant) for tenant in TENANTS} == kept
    assert storing.snapshots()[0].collection == "ramify-1"
    assert storing.drop_old(lambda _: None) == ["ramify-1"]
    told = storing.status()
    assert (told.chunks, told.index_version) == (2000, version), "the state that it was taken in"
    stores.close()


def test_a_collection_of_an_older_release_moves_without_a_failed_search(node: QdrantNode) -> None:
    settings = settings_of(node)
    kept = fill(settings, 4000)
    client = server_client(settings)
    # as an older release made it: a collection of the name itself
    saved = Storing(settings).snapshot(Path(node._folder) / "as-it-was")
    gone = models.DeleteAlias(alias_name="ramify")
    client.update_collection_aliases([models.DeleteAliasOperation(delete_alias=gone)])
    _upload(node, "ramify", Path(saved.path))
    client.delete_collection("ramify-1")
    assert Storing(settings).status().collections[0].name == "ramify"

    with Life(settings, kept) as life:
        report = migrate_quietly(settings)
        time.sleep(1.5)
        Storing(settings).drop_old(lambda _: None)
        time.sleep(1)
    client.close()

    assert report.switched
    assert life.failures == []
    assert {tenant: stored(settings, tenant) for tenant in TENANTS} == kept
    assert [one.name for one in Storing(settings).status().collections] == [report.target]


def _upload(node: QdrantNode, name: str, path: Path) -> None:
    with path.open("rb") as file:
        answer = httpx.post(
            f"{node.url}/collections/{name}/snapshots/upload?priority=snapshot", files={"snapshot": file}, timeout=60
        )
    assert answer.is_success, answer.text


def test_three_nodes_with_two_copies_go_on_without_one(tmp_path: Path) -> None:
    """Searches and writes go on while a node is down; a migration to more shards is made on all three."""
    with ExitStack() as stack:
        first = stack.enter_context(QdrantNode(tmp_path / "n1", cluster=True))
        others = [stack.enter_context(QdrantNode(tmp_path / f"n{n}", cluster=True, first=first)) for n in (2, 3)]
        settings = settings_of(first, shards=3, replicas=2, write_consistency=1)
        kept = fill(settings, 4000)
        assert Storing(settings).status().collections[0].inactive == ()
        with Life(settings, kept) as life:
            time.sleep(1)
            others[1].kill()
            time.sleep(6)
            others[1].start()
            time.sleep(3)
            report = migrate_quietly(settings_of(first, shards=6, replicas=2, write_consistency=1))
            time.sleep(1)
        assert report.switched, report.fault
        assert life.failures == []
        assert {tenant: stored(settings, tenant) for tenant in TENANTS} == kept
