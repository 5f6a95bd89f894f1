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


class Wire(redis.Redis):
    """`traffic` is asked before every call; set it before the first one."""

    traffic: Traffic

    def execute_command(self, *args: Any, **options: Any) -> Any:
        return self.traffic.call(lambda: super(Wire, self).execute_command(*args, **options))

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
