"""How a server is told to keep a collection, what of it differs from the settings, and what an operator sees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError
from qdrant_client import QdrantClient, models

from shared.errors import StoreError
from shared.settings.store import QdrantSettings, StoreSettings
from shared.store import DENSE, SPARSE, BuiltWith, ChunkStore, layout, schema
from shared.store.generations import Generations
from shared.store.migration import Migration, MigrationOptions
from shared.store.server import ServerStore
from shared.store.status import init, server_status
from tests.shared.store.conftest import MakePoint

pytestmark = pytest.mark.filterwarnings("ignore:Local mode performs exact")
LARGE = QdrantSettings(
    shards=6, replicas=3, write_consistency=2, quantization="product", product_compression="x32", vectors_on_disk=True,
    payload_on_disk=True, hnsw_on_disk=True, hnsw_m=0, hnsw_payload_m=16, hnsw_ef_construct=200, search_ef=64,
    indexing_threshold_kb=5000, segments=4, optimizer_threads=2,
)  # fmt: skip


@pytest.fixture
def client() -> Iterator[QdrantClient]:
    made = QdrantClient(":memory:")
    yield made
    made.close()


def described(given: dict[str, Any]) -> models.CollectionInfo:
    """A collection as a server describes one that was made with these arguments."""
    made = models.CreateCollection.model_validate({
        "vectors": given["vectors_config"], "sparse_vectors": given["sparse_vectors_config"],
        **{name: value for name, value in given.items() if not name.endswith("vectors_config")},
    })  # fmt: skip
    hnsw = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000, **_set(made.hnsw_config)}
    optimizers = {"default_segment_number": 0, "flush_interval_sec": 5, **_set(made.optimizers_config)}
    params = {name: getattr(made, name) for name in models.CollectionParams.model_fields if hasattr(made, name)}
    return models.CollectionInfo(
        status="green", optimizer_status="ok", segments_count=1,
        payload_schema={
            field.name: models.PayloadIndexInfo(
                data_type=field.kind, points=0, params=layout.payload_index(field, LARGE)
            )
            for field in schema.INDEXED
        },
        config=models.CollectionConfig(
            params=models.CollectionParams(**{name: value for name, value in params.items() if value is not None}),
            hnsw_config=models.HnswConfig(**hnsw), optimizer_config=models.OptimizersConfig(**optimizers),
            quantization_config=made.quantization_config,
        ),
    )  # fmt: skip


def _set(given: Any) -> dict[str, Any]:
    return given.model_dump(exclude_none=True) if given else {}


def test_a_collection_made_by_settings_does_not_differ_from_them(built_with: BuiltWith) -> None:
    for settings in (
        LARGE,
        QdrantSettings(),
        QdrantSettings(quantization="scalar"),
        QdrantSettings(quantization="binary"),
    ):
        assert layout.differences(settings, described(layout.creation(settings, built_with))) == []


def test_each_difference_says_what_helps(built_with: BuiltWith) -> None:
    found = described(layout.creation(LARGE, built_with))
    wanted = LARGE.but(
        shards=8, replicas=4, quantization="scalar", hnsw_ef_construct=100, tenant_index=False, hnsw_m=16,
        vectors_on_disk=False, segments=5,
    )  # fmt: skip
    del found.payload_schema["fields"]

    told = {one.setting: (one.wanted, one.found, one.change) for one in layout.differences(wanted, found)}

    assert told == {
        "shards": (8, 6, "migrate"),
        "replicas": (4, 3, "in place"),
        "quantization": ("scalar", "product", "in place"),
        "hnsw_ef_construct": (100, 200, "in place"),
        "hnsw_m": (16, 0, "in place"),
        "vectors_on_disk": (False, True, "in place"),
        "segments": (5, 4, "in place"),
        "index of fields": ("keyword", None, "in place"),
        "tenant_index (tenant)": (False, True, "migrate"),
        "tenant_index (namespace)": (False, True, "migrate"),
    }


def test_what_no_setting_names_may_be_as_it_is(built_with: BuiltWith) -> None:
    found = described(layout.creation(LARGE.but(quantization="none"), built_with))
    assert layout.differences(QdrantSettings(), found) == []


def test_searches_for_dense_vectors_alone_get_what_settings_say_of_them() -> None:
    dense = models.QueryRequest(query=[1.0], using=DENSE, params=models.SearchParams(exact=True))
    words = models.QueryRequest(query=models.SparseVector(indices=[1], values=[1.0]), using=SPARSE)

    params = layout.searching(LARGE, dense).params

    assert (params.exact, params.hnsw_ef) == (True, 64)
    assert (params.quantization.rescore, params.quantization.oversampling) == (True, 2.0)
    assert layout.searching(LARGE, words) == words
    assert layout.searching(QdrantSettings(), dense) == dense


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"write_consistency": 3, "replicas": 2}, "no write could succeed"),
        ({"write_consistency": 3, "replicas": 3, "shards": 0}, "greater than or equal to 1"),
        ({"hnsw_m": 0}, "give hnsw_payload_m"),
        ({"hnsw_m": 0, "hnsw_payload_m": 16, "tenant_index": False}, "leave tenant_index on"),
        ({"quantization": "tiny"}, "'none', 'scalar', 'product' or 'binary'"),
        ({"oversampling": 0.5}, "greater than or equal to 1"),
    ],
)
def test_what_cannot_work_is_refused_in_one_sentence(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words) as raised:
        QdrantSettings(**given)
    assert len(raised.value.errors()) == 1


def test_what_the_embedded_store_does_not_have_is_named() -> None:
    qdrant = {"shards": 2, "quantization": "scalar"}
    assert StoreSettings(qdrant=qdrant).ignored() == ["store.qdrant.shards", "store.qdrant.quantization"]
    assert StoreSettings(kind="server", url="http://q:6333", qdrant=qdrant).ignored() == []
    assert StoreSettings().ignored() == []


def test_a_collection_is_made_once_and_tenants_join_it(
    client: QdrantClient, built_with: BuiltWith, make_point: MakePoint
) -> None:
    of = Generations(client, "ramify", QdrantSettings(), indexed=False)
    assert server_status(of, "here").warnings == (
        "there is no collection yet: run `ramify store init`, or `ramify ingest PATH` makes it",
    )
    client.create_collection("ramify-1", vectors_config={})  # its making was cut off, with another embedding model

    made = init(of, built_with, "here", apply=False)
    again = init(of, built_with, "here", apply=True)

    assert made.done
    assert again.done == ()
    assert (again.collections[0].name, again.collections[0].use, again.warnings) == ("ramify-1", "in use", ())
    for tenant, length in (("acme", 5.0), ("other", 9.0)):
        store = ChunkStore(ServerStore(client, "ramify", indexed=False), tenant)
        store.create(built_with.but(avg_len=length))
        store.upsert([make_point(f"of {tenant}", tenant)])
        assert store.info().built_with.avg_len == length
    assert (server_status(of, "here").chunks, server_status(of, "here").tenants) == (2, 2)


def test_a_collection_that_has_lost_its_alias_is_not_hidden_by_a_new_one(
    client: QdrantClient, built_with: BuiltWith, make_point: MakePoint
) -> None:
    of = Generations(client, "ramify", QdrantSettings(), indexed=False)
    store = ServerStore(client, "ramify", indexed=False)
    store.create(built_with)
    store.upsert([make_point("one", "a")], "default")
    gone = models.DeleteAlias(alias_name="ramify")
    client.update_collection_aliases([models.DeleteAliasOperation(delete_alias=gone)])

    with pytest.raises(StoreError, match=r"ramify-1 has chunks.* `ramify store init`"):
        store.create(built_with)
    used = init(of, built_with, "here", apply=False)

    assert used.done == ("ramify-1 was in no use, and is used as ramify again",)
    assert (used.chunks, len(used.collections)) == (1, 1)


def test_the_operator_sees_what_is_being_filled_what_was_replaced_and_what_lacks_vectors(
    client: QdrantClient, built_with: BuiltWith, make_point: MakePoint
) -> None:
    of = Generations(client, "ramify", QdrantSettings(shards=3), indexed=False)
    store = ChunkStore(ServerStore(client, "ramify", indexed=False), "acme")
    store.create(built_with)
    store.upsert([make_point("one", "a"), make_point("two", "b").but(dense=())])
    options = MigrationOptions(settle_s=0)

    Migration(of, options, None, lambda _: None).run(switch=False)
    filling = server_status(of, "here")
    Migration(of, options, None, lambda _: None).run()
    replaced = server_status(of, "here")

    assert [one.use for one in filling.collections] == ["in use", "being filled"]
    assert filling.warnings == (
        "shards is None, not 3: run `ramify store migrate`",
        "1 chunks have no dense vector, and keywords alone find them",
        "ramify-2 is being filled by a migration: `ramify store migrate` goes on with it",
    )
    assert [one.use for one in replaced.collections] == ["replaced", "in use"]
    assert "ramify-1 has been replaced: `ramify store migrate --drop-old` deletes it" in replaced.warnings
    of.make("ramify-3", built_with)  # as a restore that is cut off leaves one
    assert server_status(of, "here").warnings[-1].startswith("ramify-3 is not used")
