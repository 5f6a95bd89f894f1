"""A client of a real Redis whose every call is a point where the world may stop, kill or disturb the caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import redis
from redis.client import Pipeline


class Traffic(Protocol):
    """Who decides about calls."""

    split: bool

    def call(self, function: Callable[[], Any]) -> Any: ...


class OneConnection(redis.ConnectionPool):
    """The same connection for everybody: only one fiber runs at any time, and none stops within a call."""

    _connection: Any = None

    def get_connection(self, *_: Any, **__: Any) -> Any:
        if self._connection is None:
            self._connection = super().get_connection()
        return self._connection

    def release(self, connection: Any) -> None:
        pass


class Wire(redis.Redis):
    """`traffic` is asked before every call; set it before the first one.

    A command is sent and its reply read, without the retries and the measuring of `redis.Redis`, which take as long.
    """

    traffic: Traffic

    @classmethod
    def to(cls, url: str) -> Wire:
        """Close it."""
        wire = cls(connection_pool=OneConnection.from_url(url))
        wire.auto_close_connection_pool = True
        return wire

    def execute_command(self, *args: Any, **options: Any) -> Any:
        return self.traffic.call(lambda: self._carry_out(args, options))

    def _carry_out(self, args: Any, options: Any) -> Any:
        connection = self.connection_pool.get_connection()
        connection.send_command(*args, **options)
        return self.parse_response(connection, args[0], **options)

    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> WirePipeline:
        pipe = WirePipeline(self.connection_pool, self.response_callbacks, transaction, shard_hint)
        pipe.wire = self
        return pipe


class WirePipeline(Pipeline):
    """Without MULTI its commands are calls of their own: others come in between, and a death cuts it off anywhere."""

    wire: Wire

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        self.scripts.clear()  # the world has loaded them all
        if self.transaction or not self.wire.traffic.split:
            found: list[Any] = self.wire.traffic.call(lambda: super(WirePipeline, self).execute(raise_on_error))
            return found
        stack, self.command_stack = self.command_stack, []
        return [self._one(args, options, raise_on_error) for args, options in stack]

    def _one(self, args: Any, options: Any, raise_on_error: bool) -> Any:
        try:
            return self.wire.execute_command(*args, **options)
        except redis.ResponseError as error:
            if raise_on_error:
                raise
            return error
