"""One blocking XREAD a process for the event streams of all jobs that have listeners.

A listener first reads for itself what its job has told so far; then the hub's reader hands it what comes. The reader
is armed anew with CLIENT UNBLOCK when a listener comes with a stream that it does not read yet.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import suppress
from typing import Any, Self

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from orchestrator.access.caller import LOCAL, Caller
from orchestrator.access.places import Places
from orchestrator.server.events.wire import BEGINNING, StreamEntry, StreamId, dropped, end, entry_of, queued, shown_id
from shared.connections.connect_async import connect_async
from shared.jobs import TERMINAL
from shared.jobs.codec import text
from shared.jobs.keys import JobKeys
from shared.settings import Settings

log = logging.getLogger("ramify.events")
#: Seconds without an event after which a listener is sent a comment, and jobs are looked at whose end was not seen.
KEEPALIVE_S = 15.0
#: Entries that wait for one listener at most; a job's stream keeps about twice as many (`jobs.max_events`).
MOST_WAITING = 256
_BLOCK_S, _PAUSE_S, _LONGEST_PAUSE_S = 5.0, 0.2, 2.0
#: Milliseconds that the reader waits where the Redis user may not use CLIENT UNBLOCK.
_SHORT_BLOCK_MS = 50
_PAGE = 100
#: Listeners that read for themselves at a time.
_MOST_READING = 8


class Listener:
    """What one listener has still to be sent."""

    def __init__(self, most: int) -> None:
        self._waiting, self._most = deque[StreamEntry](), most
        self._some = asyncio.Event()
        self.slow = self.look = False

    def put(self, entries: Iterable[StreamEntry]) -> None:
        """Hand on entries; beyond the bound the listener is slow, and gets no more."""
        self._waiting.extend(entries)
        if len(self._waiting) > self._most:
            self._waiting.clear()
            self.slow = True
        self._some.set()

    def look_again(self) -> None:
        """Let it read for itself how the job stands."""
        self.look = True
        self._some.set()

    async def take(self, timeout_s: float) -> list[StreamEntry]:
        """All that waits; nothing when nothing has come in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._some.wait()
        self._some.clear()
        found = list(self._waiting)
        self._waiting.clear()
        return found


class _Stream:
    """One job's stream: up to where it was read, and who listens."""

    def __init__(self, last: StreamId) -> None:
        self.last = last
        self.listeners = set[Listener]()


class EventHub:
    """Use as an async context manager, in the event loop that serves the listeners."""

    def __init__(
        self, settings: Settings, *, most: int, keepalive_s: float = KEEPALIVE_S, most_waiting: int = MOST_WAITING
    ) -> None:
        self._blocking = connect_async(settings, retries=0, blocks_s=_BLOCK_S)
        self._client = connect_async(settings)
        self._keepalive_s, self._most_waiting = keepalive_s, most_waiting
        self._streams = dict[str, _Stream]()
        self._armed, self._has_streams = False, asyncio.Event()
        self._reader_id: int | None = None
        self._block_ms = int(_BLOCK_S * 1000)
        self._reading = asyncio.Semaphore(_MOST_READING)
        self._tasks = list[asyncio.Task[None]]()
        self._unblocking: asyncio.Task[None] | None = None
        self._closed = False
        full = f"{most} listeners follow events here, all that server.max_listeners allows: ask for the status instead"
        #: Of listeners: those of batches take theirs here too.
        self.places = Places(most, full, keepalive_s)

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._pump()), asyncio.create_task(self._sweep())]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close_listeners()
        tasks = {*self._tasks, *([self._unblocking] if self._unblocking else [])}
        while tasks:  # redis-py may swallow a cancellation that comes with a reply
            for task in tasks:
                task.cancel()
            tasks = (await asyncio.wait(tasks, timeout=0.1))[1]
        await self._blocking.aclose()
        await self._client.aclose()

    def close_listeners(self) -> None:
        """Let every stream of events end where it is: the server stops, and clients connect again."""
        self._closed = True
        for stream in self._streams.values():
            for listener in stream.listeners:
                listener.look_again()

    async def follow(
        self, job_id: str, after: StreamId = BEGINNING, caller: Caller = LOCAL
    ) -> AsyncGenerator[Sequence[StreamEntry], None]:
        """The entries behind `after`, as they come; the last one `ends`. Empty at the beginning, and when it is quiet.

        Once begun it goes on through outages of Redis. Raises: TooManyRequestsError, redis.exceptions.RedisError.
        """
        cursor, begun = after, False
        with self.places.take(caller):
            while not self._closed:
                try:
                    state, entries = await self._read(job_id, cursor)
                except RedisError as error:
                    if not begun:
                        raise
                    if isinstance(error, ResponseError):
                        yield [end("unreadable")]
                        return
                    await asyncio.sleep(_PAUSE_S)
                    continue
                whole, begun = len(entries) < _PAGE, True
                cursor = entries[-1].id if entries else cursor
                if whole and (state is None or state in TERMINAL):
                    yield [*entries, end(state or "gone")]
                    return
                yield entries
                listener = self._join(job_id, cursor) if whole else None
                if listener is None:
                    continue
                try:
                    while not listener.look:
                        cursor, taken = await self._taken(listener, cursor)
                        yield taken
                        if taken and taken[-1].ends:
                            return
                finally:
                    self._leave(job_id, listener)

    async def _taken(self, listener: Listener, cursor: StreamId) -> tuple[StreamId, list[StreamEntry]]:
        """What the reader has handed on behind `cursor`, with the last word where that is due; and where it ends."""
        taken = [entry for entry in await listener.take(self._keepalive_s) if entry.id > cursor]
        cursor = taken[-1].id if taken else cursor
        state = next((entry.data.get("state", "") for entry in taken if entry.ends), None)
        if listener.slow:
            taken.append(dropped(cursor))
        elif state is not None:
            taken.append(end(state))
        return cursor, taken

    async def _read(self, job_id: str, cursor: StreamId) -> tuple[str | None, list[StreamEntry]]:
        """The job's state, None where there is no job, and a page of entries: an end that is told stands among them."""
        keys = JobKeys(job_id)
        async with self._reading, self._client.pipeline(transaction=False) as pipe:
            pipe.hmget(keys.job, "state", "created_at")
            pipe.xread({keys.events: shown_id(cursor)}, count=_PAGE)
            (state, created), reply = await pipe.execute()
        entries = [entry_of(*one) for _, found in reply or [] for one in found]
        if state is None:
            return None, entries
        if text(state) == "queued" and cursor == BEGINNING and not entries:
            entries = [queued(created)]
        return text(state), entries

    def _join(self, job_id: str, cursor: StreamId) -> Listener | None:
        """Have what follows `cursor` handed on; None where the reader is beyond that already."""
        stream = self._streams.get(job_id)
        if stream is None:
            stream = self._streams[job_id] = _Stream(cursor)
            self._has_streams.set()
            self._rearm()
        elif stream.last > cursor:
            return None
        listener = Listener(self._most_waiting)
        stream.listeners.add(listener)
        return listener

    def _leave(self, job_id: str, listener: Listener) -> None:
        stream = self._streams.get(job_id)
        if stream is None:
            return
        stream.listeners.discard(listener)
        if not stream.listeners:
            del self._streams[job_id]
            if not self._streams:
                self._has_streams.clear()

    def _rearm(self) -> None:
        self._armed = False
        if self._unblocking is None or self._unblocking.done():
            self._unblocking = asyncio.create_task(self._unblock())

    async def _unblock(self) -> None:
        """End the XREAD under way, until there is one of all streams; it may not have reached Redis yet."""
        while not self._armed and self._reader_id is not None and self._block_ms > _SHORT_BLOCK_MS:
            try:
                await self._client.client_unblock(self._reader_id)
            except ResponseError as error:
                log.warning("new listeners wait for up to %d ms: CLIENT UNBLOCK %s", _SHORT_BLOCK_MS, error)
                self._block_ms = _SHORT_BLOCK_MS
                return
            except RedisError:
                return
            await asyncio.sleep(0.002)

    async def _pump(self) -> None:
        """Read for all, without end."""
        pause_s = _PAUSE_S
        while not self._closed:
            await self._has_streams.wait()
            try:
                await self._read_once()
                pause_s = _PAUSE_S
            except ResponseError as error:
                self._reader_id = None
                log.warning("events cannot be read: %s", error)
                await self._set_wrong_aside()
            except (RedisError, OSError) as error:
                self._reader_id = None
                log.warning("events wait for Redis: %s", type(error).__name__)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _read_once(self) -> None:
        if self._reader_id is None:
            self._reader_id = int(await self._blocking.client_id())
        wanted: Any = {JobKeys(job_id).events: shown_id(stream.last) for job_id, stream in self._streams.items()}
        self._armed = True
        reply: Any = await self._blocking.xread(wanted, count=_PAGE, block=self._block_ms)
        jobs = {JobKeys(job_id).events: stream for job_id, stream in self._streams.items()}
        for key, found in reply or []:
            if (stream := jobs.get(text(key))) is None:
                continue
            entries = [entry_of(*one) for one in found]
            stream.last = entries[-1].id
            for listener in stream.listeners:
                listener.put(entries)

    async def _sweep(self) -> None:
        """Now and then: who listens to a job that has ended, or that is gone, looks for itself."""
        while True:
            await asyncio.sleep(self._keepalive_s)
            watched = list(self._streams.items())
            try:
                states = await self._states(self._client, [job_id for job_id, _ in watched])
            except (RedisError, OSError):
                continue
            for (_, stream), state in zip(watched, states, strict=True):
                if state is None or text(state) in TERMINAL:
                    _look_again(stream)

    async def _set_wrong_aside(self) -> None:
        """Streams whose key holds something else keep no others waiting: their listeners are told."""
        watched = list(self._streams.items())
        with suppress(RedisError, OSError):
            async with self._client.pipeline(transaction=False) as pipe:
                for job_id, _ in watched:
                    pipe.type(JobKeys(job_id).events)
                kinds = await pipe.execute()
            for (job_id, stream), kind in zip(watched, kinds, strict=True):
                if text(kind) not in {"stream", "none"}:
                    self._streams.pop(job_id, None)
                    _look_again(stream)
        await asyncio.sleep(_PAUSE_S)

    @staticmethod
    async def _states(client: Redis, job_ids: Sequence[str]) -> list[Any]:
        async with client.pipeline(transaction=False) as pipe:
            for job_id in job_ids:
                pipe.hget(JobKeys(job_id).job, "state")
            return list(await pipe.execute(raise_on_error=False))


def _look_again(stream: _Stream) -> None:
    for listener in stream.listeners:
        listener.look_again()
