"""Looks whether Redis answers; while it does not, requests are refused at once instead of waiting for its timeouts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self

from redis.exceptions import ConnectionError as LostConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shared.connections.connect_async import connect_async
from shared.connections.redis_errors import redis_fault
from shared.errors import NotRunningError
from shared.settings import Settings

#: Seconds without an answer after which Redis is away. A restart, or a moment of load, is shorter.
LOST_AFTER_S = 3.5
_PAUSE_S, _PING_S, _LAG_S = 0.5, 1.0, 0.2


class _Pending:
    """A request whose response has not begun. `given_up`: it was cancelled, since Redis is away."""

    def __init__(self, task: asyncio.Task[object] | None) -> None:
        self.task, self.began, self.given_up = task, False, False


class RedisWatch:
    """Pings Redis. `fault` says why it does not answer, once it has not for `lost_after_s`; None while it does.

    Use as an async context manager, in the event loop that answers the requests.
    """

    def __init__(self, settings: Settings, lost_after_s: float = LOST_AFTER_S) -> None:
        self._client = connect_async(settings, retries=0)
        self.lost_after_s = lost_after_s
        self.fault: NotRunningError | None = None
        self.pending = set[_Pending]()
        self._looking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._looking = asyncio.create_task(self._look())
        return self

    async def __aexit__(self, *_: object) -> None:
        while self._looking and not self._looking.done():  # redis-py may swallow a cancellation that comes with a reply
            self._looking.cancel()
            await asyncio.wait([self._looking], timeout=0.1)
        await self._client.aclose()

    async def _look(self) -> None:
        """Again and again. What waits for Redis when that is given up is cancelled."""
        now = asyncio.get_running_loop().time
        answered = now()
        while True:
            began = now()
            error = await self._ping()
            if error is None:
                answered, self.fault = now(), None
            elif now() - began > _PING_S + _LAG_S:  # this process was too busy to see whether an answer came
                answered = max(answered, began)
            elif now() - answered > self.lost_after_s:
                self._give_up(error)
            await asyncio.sleep(_PAUSE_S)

    async def _ping(self) -> Exception | None:
        """Why no answer came. A Redis that refuses has answered."""
        try:
            async with asyncio.timeout(_PING_S):
                await self._client.ping()
        except TimeoutError:
            return RedisTimeoutError()
        except (LostConnectionError, RedisTimeoutError) as error:
            return error
        except (RedisError, OSError):
            return None
        return None

    def _give_up(self, error: Exception) -> None:
        self.fault = NotRunningError(f"Redis {redis_fault(error)}")
        for one in self.pending:
            if one.task is not None and not one.began and not one.given_up:
                one.given_up = one.task.cancel()


class WhileRedisAnswers:
    """Answers requests for Redis while that is away, those that wait for it then too. Replies that have begun go on.

    `needs_none`: whether a request is answered without Redis. `refuse`: the response for the others.
    """

    def __init__(
        self,
        app: ASGIApp,
        watch: RedisWatch,
        needs_none: Callable[[Scope], bool],
        refuse: Callable[[Request, NotRunningError], Response],
    ) -> None:
        self._app, self._watch, self._needs_none, self._refuse = app, watch, needs_none, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it."""
        if scope["type"] != "http" or self._needs_none(scope):
            await self._app(scope, receive, send)
            return
        if fault := self._watch.fault:
            await self._refuse(Request(scope), fault)(scope, receive, send)
            return
        pending = _Pending(asyncio.current_task())

        async def noted(message: Message) -> None:
            pending.began = True
            await send(message)

        self._watch.pending.add(pending)
        try:
            await self._app(scope, receive, noted)
        except asyncio.CancelledError:
            fault = self._watch.fault
            if not pending.given_up or pending.task is None or fault is None:
                raise
            pending.task.uncancel()
            if not pending.began:
                await self._refuse(Request(scope), fault)(scope, receive, send)
        finally:
            self._watch.pending.discard(pending)
