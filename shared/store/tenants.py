"""Hands out a collection tenant by tenant. The only holder of the whole collection; asked for itself by nobody.

Chunks of before there were tenants have none: no view shows them. They become the tenant `default`'s when the
collection is opened, so that they are neither lost nor anybody else's.
"""

from __future__ import annotations

import logging
from itertools import islice
from threading import Lock

from shared.errors import TransientError
from shared.store import filters
from shared.store.base import Collection, CollectionState
from shared.store.schema import PAGE, TENANT
from shared.store.scoped import ScopedStore
from shared.tenants import DEFAULT_TENANT

log = logging.getLogger("ramify.store")
#: Seconds that a question waits for it. It takes about 25 us a chunk of an embedded store.
_ADOPTING_S = 10.0


class TenantStores:
    """One collection. Safe for threads."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._adopting, self._adopted = Lock(), False

    def of(self, tenant: str) -> ScopedStore:
        """The chunks of one tenant.

        Raises: InputError when that is no name; StoreError or TransientError where older chunks could not be given
        to the tenant `default`, which is tried again each time.
        """
        view = ScopedStore(self._collection, tenant)
        self._adopt_once()
        return view

    def state(self) -> CollectionState | None:
        """The whole collection, for the operator. None when there is none yet. Raises: as `of`."""
        self._adopt_once()
        return self._collection.info()

    def without_tenant(self) -> int:
        """Chunks that no tenant sees: an older release wrote them after this process had opened the collection."""
        return self._collection.count(_ORPHANS)

    def close(self) -> None:
        """Let go of the collection. Safe to call twice."""
        self._collection.close()

    def _adopt_once(self) -> None:
        if self._adopted:
            return
        if not self._adopting.acquire(timeout=_ADOPTING_S):
            raise TransientError("chunks of an older release are being given to the tenant default: ask again later")
        try:
            if not self._adopted:
                adopt(self._collection)
                self._adopted = True
        finally:
            self._adopting.release()


_ORPHANS = filters.all_of(filters.without(TENANT))


def adopt(collection: Collection) -> int:
    """Give all chunks without a tenant to the tenant `default`; how many those were. May be done again, and by several.

    Raises: StoreError or TransientError of the collection.
    """
    if not collection.count(_ORPHANS):
        return 0
    ids = (chunk_id for chunk_id, _ in collection.read(_ORPHANS, ("doc_id",)))
    given = 0
    while some := list(islice(ids, PAGE)):
        collection.set_payloads({chunk_id: {TENANT: DEFAULT_TENANT} for chunk_id in some})
        given += len(some)
    log.warning("%d chunks of an older release are the tenant %s's now", given, DEFAULT_TENANT)
    return given
