"""The accounts of batches that somebody listens to, read for all of them now and then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress

from orchestrator.server.events.wire import StreamEntry, accounts, end
from shared.errors import NotFoundError, RamifyError
from shared.models import BatchStatus

log = logging.getLogger("ramify.events")
#: Seconds between two looks at the batches.
EVERY_S = 0.5


class _Watched:
    """One batch: how it stood last, and how many listen."""

    def __init__(self) -> None:
        self.latest: StreamEntry | None = None
        self.changed = asyncio.Event()
        self.listeners = 0

    def say(self, entry: StreamEntry) -> None:
        """Wake all listeners where this is new."""
        if self.latest is None or entry.raw != self.latest.raw:
            self.latest = entry
            before, self.changed = self.changed, asyncio.Event()
            before.set()


class BatchWatch:
    """`read` gives the accounts of one batch; it runs in a thread. Nothing is read while nobody listens."""

    def __init__(self, read: Callable[[str], BatchStatus], *, keepalive_s: float, every_s: float = EVERY_S) -> None:
        self._read, self._keepalive_s, self._every_s = read, keepalive_s, every_s
        self._watched = dict[str, _Watched]()
        self._looking: asyncio.Task[None] | None = None

    async def follow(self, batch_id: str, after: str = "") -> AsyncGenerator[StreamEntry | None, None]:
        """The accounts as they change, from those of now on, to the end of the batch. None: nothing new for a while.

        `after`: the id of accounts that are known. Raises: RamifyError where the batch cannot be read at the beginning.
        """
        seen = after
        watched = self._watched.setdefault(batch_id, _Watched())
        watched.listeners += 1
        try:
            watched.say(await asyncio.to_thread(self._entry, batch_id))
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
            while (entry := watched.latest) is not None:
                changed = watched.changed
                if entry.data.get("digest") != seen:
                    yield entry
                    seen = entry.data.get("digest", "")
                if entry.ends:
                    yield end("ended") if entry.type == "accounts" else entry
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._keepalive_s):
                        await changed.wait()
                        continue
                yield None
        finally:
            watched.listeners -= 1
            if not watched.listeners and self._watched.get(batch_id) is watched:
                del self._watched[batch_id]

    def _entry(self, batch_id: str) -> StreamEntry:
        return accounts(self._read(batch_id))

    async def _look(self) -> None:
        """While anybody listens."""
        while self._watched:
            await asyncio.sleep(self._every_s)
            for batch_id, watched in list(self._watched.items()):
                try:
                    watched.say(await asyncio.to_thread(self._entry, batch_id))
                except NotFoundError:
                    watched.say(end("gone"))
                except RamifyError as error:
                    log.warning("the accounts of batch %s wait: %s", batch_id, error)
