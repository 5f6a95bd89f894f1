"""What spans and tracers do, whatever sends them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

Kind = Literal["internal", "client", "server", "producer", "consumer"]
Attribute = str | int | float | bool


class TraceSpan(Protocol):
    """Work under way."""

    traceparent: str

    def set(self, **attributes: Attribute) -> None:
        """Add attributes; "__" in a name stands for a dot."""

    def fail(self, error: str, detail: str = "") -> None:
        """It has failed: `error` is the name of the kind. `detail` may tell of contents: it is kept only with them."""


class Tracer(Protocol):
    """Makes spans."""

    def start(
        self, name: str, kind: Kind, parent: str | None, links: Sequence[str], attributes: Mapping[str, Attribute]
    ) -> AbstractContextManager[TraceSpan]:
        """A span for a block. `parent`: a traceparent; empty: the span around, of ours or the caller's; None: none."""
