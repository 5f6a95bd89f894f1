"""Work that has killed workers twice is tried alone (A5): one at a time in the whole system.

What died beside it may be innocent; alone it either ends, or convicts itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from redis import Redis

from orchestrator.reaper.view import Missing
from shared.job_store.codec import text
from shared.job_store.keys import PREFIX

SLOT = f"{PREFIX}:{{reaper}}:suspect"
#: Seconds after which the next suspect is tried, whatever became of the last one.
_SLOT_S = 20


class Suspects:
    """The one place for suspects. May raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    def one_at_a_time(self, job_id: str, missing: Iterable[Missing]) -> Iterator[Missing]:
        """Everything but the suspects, and of these the one that may be tried now."""
        for one in missing:
            if not one.suspect or self._may(f"{job_id} {one.item}"):
                yield one

    def _may(self, name: str) -> bool:
        """A suspect that is missing again while it holds the place has died again: it may go on, and be convicted."""
        if self._client.set(SLOT, name, nx=True, ex=_SLOT_S):
            return True
        held = self._client.get(SLOT)
        if held is not None and text(held) == name:
            self._client.set(SLOT, name, ex=_SLOT_S)
            return True
        return False
