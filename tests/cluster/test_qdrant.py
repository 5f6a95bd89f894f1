"""Real Qdrant servers: migrations under searches, writes and kills, quantized recall, snapshots, a cluster of three."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from qdrant_client import models

from orchestrator.storing import Storing
from shared.settings import Settings
from shared.store import DENSE, open_stores, server_client
from shared.store.migration import MigrationOptions
from tests.cluster.store_life import CHUNKS, DIM, TENANTS, Life, fill, ramify, settings_of, stored
from tests.support.qdrant_node import QdrantNode

pytestmark = pytest.mark.timeout(400)
QUICK = MigrationOptions(settle_s=0.5, searches=32)


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
    assert storing.snapshots() == [], "one that was fetched does not stay there"
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
