"""Where chunks are kept, and how a Qdrant server keeps them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr, model_validator
from pydantic_core import PydanticCustomError

from shared.settings.sections import SettingsSection
from shared.settings.server_url import ServerUrl

Quantization = Literal["none", "scalar", "product", "binary"]
Compression = Literal["x4", "x8", "x16", "x32", "x64"]


def contradiction(field: str, value: object, fix: str) -> PydanticCustomError:
    """The fault of a setting that another one excludes: by its whole name, which a validator of a section lacks."""
    return PydanticCustomError("contradiction", "{fix}", {"field": field, "value": value, "fix": fix})


class QdrantSettings(SettingsSection):
    """How a Qdrant server keeps a collection. Without a value: as the server does by itself."""

    shards: int | None = Field(default=None, ge=1, le=1000, description="shards of a new collection")
    replicas: int | None = Field(default=None, ge=1, le=100, description="copies of each shard")
    write_consistency: int | None = Field(
        default=None, ge=1, le=100, description="copies that must have a write before it counts"
    )
    tenant_index: bool = Field(default=True, description="keep the chunks of each tenant and namespace side by side")
    quantization: Quantization = Field(
        default="none", description="smaller vectors for the search: scalar (a quarter), product or binary (1/32)"
    )
    product_compression: Compression = Field(default="x16", description="product: how much smaller")
    quantized_in_ram: bool = Field(default=True, description="keep the small vectors in memory, whatever is on disk")
    rescore: bool = Field(default=True, description="score what the small vectors find again by the whole ones")
    oversampling: float = Field(
        default=2.0, ge=1, le=100, allow_inf_nan=False, description="how many times the limit is scored again"
    )
    vectors_on_disk: bool | None = Field(default=None, description="read whole dense vectors from disk")
    payload_on_disk: bool | None = Field(default=None, description="read texts and fields from disk")
    hnsw_on_disk: bool | None = Field(default=None, description="read the graph of dense vectors from disk")
    hnsw_m: int | None = Field(default=None, ge=0, le=256, description="links of a vector; 0: none over all tenants")
    hnsw_payload_m: int | None = Field(
        default=None, ge=0, le=256, description="links of a vector among those of its tenant and namespace"
    )
    hnsw_ef_construct: int | None = Field(default=None, ge=4, le=4096, description="neighbours looked at in a build")
    search_ef: int | None = Field(default=None, ge=1, le=4096, description="neighbours looked at in a search")
    indexing_threshold_kb: int | None = Field(
        default=None, ge=0, description="kB of vectors in a segment from which the graph is built; 0: never"
    )
    segments: int | None = Field(default=None, ge=1, le=1000, description="segments of a shard that are aimed at")
    optimizer_threads: int | None = Field(default=None, ge=1, le=1024, description="threads that optimise a shard")

    @model_validator(mode="after")
    def _can_work(self) -> QdrantSettings:
        if (self.write_consistency or 1) > (self.replicas or self.write_consistency or 1):
            fix = f"with replicas = {self.replicas} no write could succeed: give at most that, or more replicas"
            raise contradiction("store.qdrant.write_consistency", self.write_consistency, fix)
        if self.hnsw_m == 0 and not (self.hnsw_payload_m and self.tenant_index):
            fix = "it leaves the graphs of tenants alone: give hnsw_payload_m (16) and leave tenant_index on"
            raise contradiction("store.qdrant.hnsw_m", self.hnsw_m, fix)
        return self


class StoreSettings(SettingsSection):
    """Where chunks live: Qdrant in the search worker's process, or a Qdrant server."""

    kind: Literal["embedded", "server"] = Field(default="embedded", description="embedded (Qdrant Edge) or server")
    url: ServerUrl | None = Field(default=None, description="server: URL of Qdrant")
    api_key: SecretStr = Field(default=SecretStr(""), description="server: API key")
    api_key_for: str = Field(default="", description="the only host that it may go to: docs/security.md")
    collection: str = Field(
        default="ramify", pattern=r"^[\w\-]{1,64}$", description="its name; on a server that of an alias: docs/store.md"
    )
    timeout_s: float = Field(default=10.0, gt=0, description="server: seconds for one call")
    qdrant: QdrantSettings = QdrantSettings()

    @model_validator(mode="after")
    def _complete(self) -> StoreSettings:
        if self.kind == "server" and self.url is None:
            raise contradiction("store.kind", self.kind, "it needs store.url, the URL of a Qdrant server")
        return self

    def ignored(self) -> list[str]:
        """The names of the settings that are given and that the embedded store does not have."""
        if self.kind == "server":
            return []
        usual = QdrantSettings()
        return [
            f"store.qdrant.{name}"
            for name in QdrantSettings.model_fields
            if getattr(self.qdrant, name) != getattr(usual, name)
        ]
