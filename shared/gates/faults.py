"""Transient errors told apart by what they say about the provider: dead, busy, or nothing at all."""

from __future__ import annotations

from shared.errors import TransientError


class UnreachableError(TransientError):
    """The provider failed: no connection, 5xx, cut off, or too slow. These open the breaker."""


class BusyError(TransientError):
    """The provider lives and wants fewer requests (429). All workers pause."""


class UnsureError(TransientError):
    """A call that ended without telling how the provider is: its own time was too short."""


class GateError(TransientError):
    """The call was not made: the breaker is open, a pause is on, or the rate limit is used up.

    `retry_after` is the number of seconds until it is worth while to try again.
    """
