"""Opens, makes and guards one Qdrant Edge shard. Its bare exceptions become sentences here, and nowhere else."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import qdrant_edge as edge

from shared.errors import RamifyError, StoreError, StoreInUseError
from shared.store.base import DENSE, SPARSE, TRIGRAM, BuiltWith
from shared.store.meta import StoreMeta, unusable, write_meta
from shared.store.schema import INDEXED, IndexedField

FOLDER = "shard"
#: kB of vectors in a segment from which HNSW is built: about 50,000 chunks of 384 floats, below which an exact scan
#: costs 1-3 ms (measured).
_INDEXING_THRESHOLD_KB = 80_000


@contextmanager
def edge_errors(doing: str) -> Iterator[None]:
    """Turn whatever Edge raises (bare Exception, or a Rust panic outside of Exception) into a StoreError."""
    try:
        yield
    except (RamifyError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise StoreError(f"the embedded store failed while {doing}: {error}") from error


def make_shard(folder: Path, meta: StoreMeta) -> None:
    """Make an empty store in `folder`, complete or not at all: it is built beside it and moved there.

    Raises: StoreError when the folder exists and is not empty, or cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise StoreError(f"no store can be made in {folder.parent}: {error.strerror}") from None
    try:
        (fresh / FOLDER).mkdir()
        with edge_errors("making an empty shard"):
            shard = edge.EdgeShard.create(str(fresh / FOLDER), _config(meta.built_with))
            _index_missing(shard)
            shard.flush()
            shard.close()
        write_meta(fresh, meta, durable=True)
        fresh.rename(folder)
    except OSError:
        raise StoreError(f"there is already something in {folder}: use it, or move it away") from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def load_shard(folder: Path) -> edge.EdgeShard:
    """Open the shard of the store in `folder`; its write-ahead log is the lock.

    Raises: StoreInUseError when another process has it open, StoreError when it is damaged.
    """
    path = folder / FOLDER
    if not (path / "segments").is_dir():
        # Edge would quietly start an empty one
        raise unusable(folder, "its segments are missing")
    try:
        with edge_errors("opening"):
            shard = edge.EdgeShard.load(str(path))
            _index_missing(shard)
            return shard
    except StoreError as error:
        if "WouldBlock" in str(error):
            raise StoreInUseError(
                f"the store in {folder} is in use by another process; only the search worker may open it: "
                "stop the other one (`ramify down`) or ask it instead"
            ) from None
        raise unusable(folder, _first_line(str(error.__cause__))) from error


def _index_missing(shard: edge.EdgeShard) -> None:
    """Make the payload indexes that the shard lacks: all of a new one, the later ones of an older store."""
    present = shard.info().payload_schema
    for field in INDEXED:
        if field.name not in present:
            shard.update(edge.UpdateOperation.create_field_index(field.name, _index(field)))


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0][:200] if text.strip() else "no reason given"


def _config(built_with: BuiltWith) -> edge.EdgeConfig:
    sparse = (SPARSE, TRIGRAM) if built_with.trigrams else (SPARSE,)
    dense = {DENSE: edge.EdgeVectorParams(built_with.dim, edge.Distance.Cosine)} if built_with.dim else {}
    return edge.EdgeConfig(
        vectors=dense,
        sparse_vectors={name: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf) for name in sparse},
        optimizers=edge.EdgeOptimizersConfig(indexing_threshold=_INDEXING_THRESHOLD_KB),
        wal_enabled=True,  # the only lock, and what survives a kill
    )


def _index(field: IndexedField) -> edge.KeywordIndexParams | edge.IntegerIndexParams:
    if field.kind == "integer":
        return edge.IntegerIndexParams(lookup=False, range=True, enable_hnsw=False)
    if field.tenant:
        return edge.KeywordIndexParams(is_tenant=True)
    return edge.KeywordIndexParams(prefix=field.prefix or None, enable_hnsw=False)
