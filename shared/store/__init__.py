"""Where chunks are kept: Qdrant in process or a Qdrant server, seen tenant by tenant. Never encodes text."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from shared.errors import StoreMismatchError
from shared.providers.encoders.base import DenseEncoder
from shared.settings import Settings, data_folder
from shared.settings.server_url import with_login
from shared.store.base import DENSE, SPARSE, TRIGRAM, BuiltWith, ChunkPoint, CollectionInfo
from shared.store.chunk_store import ChunkStore, TenantStores
from shared.store.schema import to_filter, to_sparse

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

__all__ = [
    "DENSE", "SPARSE", "TRIGRAM", "BuiltWith", "ChunkPoint", "ChunkStore", "CollectionInfo", "TenantStores",
    "check_built_with", "open_stores", "server_client", "to_filter", "to_sparse",
]  # fmt: skip

_log = logging.getLogger("ramify.store")


def open_stores(settings: Settings, model: Callable[[], str | None] | None = None) -> TenantStores:
    """The tenants' stores of `[store]`: embedded in `data_dir/store/<collection>`, or on a server (not yet asked).

    `model`: as of ServerStore.
    Raises: StoreError when the embedded store is in use or damaged, InputError when its folder is not the user's own.
    """
    store = settings.store
    if store.kind == "embedded":
        from shared.store.embedded import EmbeddedStore  # noqa: PLC0415 - no engine in a process that uses a server

        data_folder.made(settings)
        if ignored := store.ignored():
            _log.warning("the embedded store has none of %s: they are for a server", ", ".join(ignored))
        return TenantStores(EmbeddedStore(settings.data_dir / "store" / store.collection))
    from shared.store.server import ServerStore  # noqa: PLC0415

    return TenantStores(ServerStore(server_client(settings), store.collection, settings=store.qdrant, model=model))


def server_client(settings: Settings) -> QdrantClient:
    """A client of the Qdrant server of `[store]`, which is not asked yet; its calls go through the server's gate."""
    from qdrant_client import QdrantClient  # noqa: PLC0415

    from shared.providers.http import name_destination  # noqa: PLC0415
    from shared.store.server_transport import transport  # noqa: PLC0415

    store = settings.store
    if store.api_key.get_secret_value() and store.url is not None:
        name_destination(f"Qdrant at {store.url.host}:{store.url.port}")
    return QdrantClient(
        url=with_login(store.url),
        # without it the client falls back to 6333 even for https://host/
        port=store.url.port if store.url is not None else None,
        api_key=store.api_key.get_secret_value() or None,
        timeout=max(1, round(store.timeout_s)),
        transport=transport(store, settings.providers),
        check_compatibility=False,  # asks the server in the constructor, and warns when it is not up yet
    )


def check_built_with(built: BuiltWith, sparse_name: str, dense: DenseEncoder | None) -> None:
    """Refuse a collection that was built with other encoders than those configured now.

    Raises: StoreMismatchError, one sentence that names both and the way out.
    """
    found = (built.sparse, built.dense, built.dim)
    wanted = (sparse_name, dense.name if dense else None, dense.dim if dense else 0)
    if found != wanted:
        raise StoreMismatchError(
            f"the collection was built with {_named(*found)}, but {_named(*wanted)} is configured: "
            "restore those settings ([embedding]), or ingest into a new collection (store.collection)"
        )


def _named(sparse: str, dense: str | None, dim: int) -> str:
    return f"{sparse} and {dense} ({dim} numbers)" if dense else f"{sparse} alone"
