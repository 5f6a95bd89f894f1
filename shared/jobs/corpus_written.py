"""Which state of the store the jobs know of: after a restore of one of the two it tells which is the older."""

from __future__ import annotations

import time

from redis import Redis

from shared.connections.key_types import declare
from shared.jobs.keys import PREFIX
from shared.settings import Settings

#: Hash: collection -> its index version when an ingest or a removal had ended last.
WRITTEN = f"{PREFIX}:corpus_written"
declare({WRITTEN: "hash"})
#: Seconds by which the clocks of two machines may differ.
SKEW_S = 60.0
_NS = 1_000_000_000


class CorpusWritten:
    """Of the collection that the settings name. May raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings) -> None:
        self._client, self._written_to, self._ttl_s = client, settings.store.collection, settings.jobs.ttl_s

    def note(self, index_version: int) -> None:
        """The store is in this state now."""
        with self._client.pipeline(transaction=False) as pipe:
            pipe.hset(WRITTEN, self._written_to, index_version)
            pipe.expire(WRITTEN, self._ttl_s)
            pipe.execute()

    def known(self) -> int:
        """The state that was noted last; 0 where that is not known."""
        found = self._client.hget(WRITTEN, self._written_to)
        return int(found) if found is not None and found.isdigit() else 0


def older_one(store_at: float, known_at: float) -> str:
    """Which of the two is older, as one sentence; empty where none is, or that is not known."""
    if not store_at or not known_at or store_at == known_at:
        return ""
    last = f"the store was written last at {_utc(store_at)}"
    if store_at < known_at:
        return (
            f"{last}, and a job has put documents in at {_utc(known_at)}: the store is of an earlier backup than Redis"
        )
    if store_at - known_at < SKEW_S:
        return ""
    return f"{last}, and the last ingest that is known ended at {_utc(known_at)}: Redis may be of an earlier backup"


def seconds_of(index_version: int) -> float:
    """When a store was written that has this index version; 0 for one of a release that counted its writes."""
    return index_version / _NS if index_version > _NS else 0.0


def _utc(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))
