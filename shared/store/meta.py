"""The small file beside the embedded store's shard: what it was built with and how often it was written."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, model_validator

from shared.errors import StoreError
from shared.models.base import Model
from shared.store.base import BuiltWith, TenantNote
from shared.tenants import DEFAULT_TENANT

FILE = "meta.json"
#: Goes up when the folder layout or the schema changes in a way that old code or old data cannot take.
FORMAT = 1


class StoreMeta(Model):
    """`index_version`: of the last write, see `written`; `tenants` is what is remembered of each."""

    format: int = FORMAT
    built_with: BuiltWith
    index_version: int = Field(default=0, ge=0)
    tenants: dict[str, TenantNote] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _of_one_tenant(cls, given: Any) -> Any:
        """A `finished` without a tenant (older releases) belongs to the tenant `default`."""
        if isinstance(given, dict) and "finished" in given:
            given = {**given, "tenants": {DEFAULT_TENANT: {"finished": given["finished"]}}}
            del given["finished"]
        return given

    def written(self) -> StoreMeta:
        """The same after one more write. Its version is the time in ns, so that a restored store repeats none."""
        return self.model_copy(update={"index_version": max(self.index_version + 1, time.time_ns())})


def read_meta(folder: Path) -> StoreMeta:
    """The meta file of the store in `folder`.

    Raises: StoreError when it is missing, unreadable or of another format.
    """
    try:
        meta = StoreMeta.of_record((folder / FILE).read_bytes())
    except (OSError, ValidationError):
        raise unusable(folder, f"{FILE} is missing or unreadable") from None
    if meta.format != FORMAT:
        raise unusable(folder, f"it has format {meta.format}, this release reads {FORMAT}")
    return meta


def write_meta(folder: Path, meta: StoreMeta, durable: bool = False) -> None:
    """Replace the meta file in one step. Without `durable` it survives a killed process, but not a power cut.

    Raises: StoreError when the disk refuses.
    """
    fresh = folder / f"{FILE}.new"
    try:
        with fresh.open("wb") as file:
            file.write(meta.model_dump_json().encode())
            file.flush()
            if durable:
                os.fsync(file.fileno())
        fresh.replace(folder / FILE)
    except OSError as error:
        raise StoreError(f"the store in {folder} cannot be written: {error.strerror}") from None


def unusable(folder: Path, why: str) -> StoreError:
    """The sentence for a folder that cannot be opened as a store."""
    return StoreError(
        f"the store in {folder} cannot be opened ({why}): restore a snapshot (`ramify store "
        "snapshot restore FILE`), or move the folder away and ingest again"
    )
