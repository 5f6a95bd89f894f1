"""How a complete list is read (docs/enumeration.md)."""

from __future__ import annotations

from pydantic import Field

from shared.settings.section import Section


class Enumeration(Section):
    """The scan of everything that fits a question, shared out over leaves."""

    shard_documents: int = Field(default=2000, ge=10, le=100_000, description="documents that one leaf reads")
    max_shards: int = Field(
        default=64, ge=1, le=96, description="most leaves of one scan; larger corpora: larger leaves"
    )
    rows: int = Field(default=1000, ge=0, le=10_000, description="rows in the answer; `result --rows` has them all")
    page_rows: int = Field(default=200, ge=10, le=2000, description="rows of one page in the job store")
    max_values: int = Field(
        default=5000, ge=10, le=100_000, description="tags, kinds and paths that a question may name"
    )
    llm_rows: int = Field(default=100, ge=0, le=2000, description="rows of a leaf whose missing columns the LLM reads")
    llm_batch: int = Field(default=10, ge=1, le=50, description="rows of one call to the LLM")
