"""How a collection of a Qdrant server is kept: what it is made with, and where it differs from the settings. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from qdrant_client import models

from shared.models.base import Model
from shared.settings.store import QdrantSettings
from shared.store import schema
from shared.store.base import DENSE, SPARSE, TRIGRAM, BuiltWith

#: The oldest Qdrant that knows all that is asked of it: filters by prefix, rarity of words among a tenant's chunks.
OLDEST_SERVER = (1, 19)


class SettingDifference(Model):
    """A setting that a collection does not follow. `change`: in place, or by a migration to a new collection."""

    setting: str
    wanted: Any
    found: Any
    change: Literal["in place", "migrate"]


def creation(layout: QdrantSettings, built_with: BuiltWith) -> dict[str, Any]:
    """The arguments of `create_collection`."""
    sparse = (SPARSE, TRIGRAM) if built_with.trigrams else (SPARSE,)
    dense = models.VectorParams(
        size=built_with.dim or 1, distance=models.Distance.COSINE, on_disk=layout.vectors_on_disk
    )
    return {
        "vectors_config": {DENSE: dense} if built_with.dim else {},
        "sparse_vectors_config": {name: models.SparseVectorParams(modifier=models.Modifier.IDF) for name in sparse},
        "shard_number": layout.shards,
        "replication_factor": layout.replicas,
        "write_consistency_factor": layout.write_consistency,
        "on_disk_payload": layout.payload_on_disk,
        "hnsw_config": _hnsw(layout),
        "optimizers_config": _optimizers(layout),
        "quantization_config": _quantization(layout),
    }


def has_vectors_of(found: models.CollectionInfo, built_with: BuiltWith) -> bool:
    """Whether a collection was made for these encoders."""
    params, wanted = found.config.params, creation(QdrantSettings(), built_with)
    dense = params.vectors.get(DENSE) if isinstance(params.vectors, dict) else None
    return (dense.size if dense else 0) == built_with.dim and set(params.sparse_vectors or ()) == set(
        wanted["sparse_vectors_config"]
    )


def update(layout: QdrantSettings, built_with: BuiltWith) -> dict[str, Any]:
    """The arguments of `update_collection` that change in place what can be changed so."""
    params = models.CollectionParamsDiff(
        replication_factor=layout.replicas,
        write_consistency_factor=layout.write_consistency,
        on_disk_payload=layout.payload_on_disk,
    )
    dense = models.VectorParamsDiff(on_disk=layout.vectors_on_disk)
    return {
        "collection_params": params,
        "hnsw_config": _hnsw(layout),
        "optimizers_config": _optimizers(layout),
        "quantization_config": _quantization(layout) or models.Disabled.DISABLED,
        "vectors_config": {DENSE: dense} if built_with.dim else None,
    }


def payload_index(field: schema.IndexedField, layout: QdrantSettings) -> Any:
    """The index of a payload field. Links of HNSW only for those that bound every search: they cost most of a build."""
    if field.kind == "integer":
        kind = models.IntegerIndexType.INTEGER
        return models.IntegerIndexParams(type=kind, lookup=False, range=True, enable_hnsw=False)
    keyword = models.KeywordIndexType.KEYWORD
    if field.tenant:
        return models.KeywordIndexParams(type=keyword, is_tenant=True if layout.tenant_index else None)
    return models.KeywordIndexParams(type=keyword, prefix=field.prefix or None, enable_hnsw=False)


def searching(layout: QdrantSettings, request: models.QueryRequest) -> models.QueryRequest:
    """A request for dense vectors with what the settings say of searches; all others as they are."""
    if request.using != DENSE or (layout.quantization == "none" and layout.search_ef is None):
        return request
    params = request.params or models.SearchParams()
    more: dict[str, Any] = {}
    if layout.search_ef is not None and params.hnsw_ef is None:
        more["hnsw_ef"] = layout.search_ef
    if layout.quantization != "none" and params.quantization is None:
        more["quantization"] = models.QuantizationSearchParams(rescore=layout.rescore, oversampling=layout.oversampling)
    return request.model_copy(update={"params": params.model_copy(update=more)})


def differences(
    layout: QdrantSettings, found: models.CollectionInfo, *, indexed: bool = True
) -> list[SettingDifference]:
    """Where a collection does not follow the settings; what no setting names may be as it is.

    `indexed` False: its payload indexes are not looked at.
    """
    config = found.config
    vectors = config.params.vectors
    dense = vectors.get(DENSE) if isinstance(vectors, dict) else None
    hnsw, optimizer = config.hnsw_config, config.optimizer_config
    pairs: list[tuple[str, Any, Any]] = [
        ("shards", layout.shards, config.params.shard_number),
        ("replicas", layout.replicas, config.params.replication_factor),
        ("write_consistency", layout.write_consistency, config.params.write_consistency_factor),
        ("payload_on_disk", layout.payload_on_disk, config.params.on_disk_payload),
        ("vectors_on_disk", layout.vectors_on_disk if dense else None, bool(dense and dense.on_disk)),
        ("hnsw_on_disk", layout.hnsw_on_disk, bool(hnsw.on_disk)),
        ("hnsw_m", layout.hnsw_m, hnsw.m),
        ("hnsw_payload_m", layout.hnsw_payload_m, hnsw.payload_m),
        ("hnsw_ef_construct", layout.hnsw_ef_construct, hnsw.ef_construct),
        ("indexing_threshold_kb", layout.indexing_threshold_kb, optimizer.indexing_threshold),
        ("segments", layout.segments, optimizer.default_segment_number),
        ("optimizer_threads", layout.optimizer_threads, optimizer.max_optimization_threads),
        *_quantized(layout, config.quantization_config),
    ]
    named = [
        SettingDifference(setting=name, wanted=wanted, found=has, change="migrate" if name == "shards" else "in place")
        for name, wanted, has in pairs
        if wanted is not None and wanted != has
    ]
    return [*named, *(_unlike_indexes(layout, found.payload_schema) if indexed else ())]


def _unlike_indexes(layout: QdrantSettings, present: dict[str, models.PayloadIndexInfo]) -> Iterator[SettingDifference]:
    """Payload indexes that are missing, and those of tenants that are kept otherwise."""
    for field in schema.INDEXED:
        index = present.get(field.name)
        if index is None:
            yield SettingDifference(setting=f"index of {field.name}", wanted=field.kind, found=None, change="in place")
        elif field.tenant:
            kept = bool(getattr(index.params, "is_tenant", None))
            if kept != layout.tenant_index:
                name = f"tenant_index ({field.name})"
                yield SettingDifference(setting=name, wanted=layout.tenant_index, found=kept, change="migrate")


def _quantized(layout: QdrantSettings, found: Any) -> list[tuple[str, Any, Any]]:
    kinds = (
        ("scalar", models.ScalarQuantization),
        ("product", models.ProductQuantization),
        ("binary", models.BinaryQuantization),
    )
    kind = next((name for name, made in kinds if isinstance(found, made)), "none" if found is None else "another")
    pairs: list[tuple[str, Any, Any]] = [("quantization", layout.quantization, kind)]
    if kind == layout.quantization and kind != "none":
        inner = getattr(found, kind)
        pairs.append(("quantized_in_ram", layout.quantized_in_ram, bool(inner.always_ram)))
        if kind == "product":
            pairs.append(("product_compression", layout.product_compression, str(inner.compression.value)))
    return pairs


def _quantization(layout: QdrantSettings) -> Any:
    in_ram = layout.quantized_in_ram
    match layout.quantization:
        case "scalar":
            scalar = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=in_ram)
            return models.ScalarQuantization(scalar=scalar)
        case "product":
            ratio = models.CompressionRatio(layout.product_compression)
            product = models.ProductQuantizationConfig(compression=ratio, always_ram=in_ram)
            return models.ProductQuantization(product=product)
        case "binary":
            return models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=in_ram))
    return None


def _hnsw(layout: QdrantSettings) -> models.HnswConfigDiff | None:
    """None where nothing is given, so that the server's own values stay."""
    given = models.HnswConfigDiff(
        m=layout.hnsw_m,
        payload_m=layout.hnsw_payload_m,
        ef_construct=layout.hnsw_ef_construct,
        on_disk=layout.hnsw_on_disk,
    )
    return given if given.model_dump(exclude_none=True) else None


def _optimizers(layout: QdrantSettings) -> models.OptimizersConfigDiff | None:
    """The same."""
    given = models.OptimizersConfigDiff(
        indexing_threshold=layout.indexing_threshold_kb,
        default_segment_number=layout.segments,
        max_optimization_threads=layout.optimizer_threads,
    )
    return given if given.model_dump(exclude_none=True) else None
