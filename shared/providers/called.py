"""Counts and traces each HTTP call of a server. Knows no reply."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from shared.process_counts import counts
from shared.providers.gates import BusyError, Gate, UnreachableError, UnsureError
from shared.tracing.protocols import TraceSpan
from shared.tracing.spans import current, span


def traced_headers() -> dict[str, str]:
    """What a server that traces too goes on with."""
    return {"traceparent": found} if (found := current()) else {}


@contextmanager
def called(gate: Gate, method: str, path: str) -> Iterator[TraceSpan]:
    """For the block that is one call of the server behind `gate`, replies read included.

    `path`: without a query, and without anything of a user's.
    """
    kind, _, host = gate.name.partition(":")
    began, outcome = time.monotonic(), "failed"
    told = {"http.request.method": method, "url.path": path, "server.address": host, "ramify.provider": kind}
    try:
        with span(f"{method} {kind}", "client", attributes=told) as started:
            yield started
        outcome = "done"
    except BusyError:
        outcome = "busy"
        raise
    except (UnreachableError, UnsureError):
        outcome = "unanswered"
        raise
    finally:
        counts.add(f"call:{kind}", outcome, time.monotonic() - began)
