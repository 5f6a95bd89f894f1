"""What all commands of one call share: the settings as the global options left them, and the client.

Both are imported at first use: they take longer than `--help` may.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from orchestrator.client import Ramify
    from shared.settings import Settings


@dataclass(frozen=True)
class Session:
    """One call of `ramify`. `overrides` are nested setting values; `debug` shows tracebacks."""

    overrides: Mapping[str, Any] = field(default_factory=dict)
    debug: bool = False

    def settings(self) -> Settings:
        """The settings. Raises: SettingsError."""
        from shared.settings import load_settings  # noqa: PLC0415 - see above

        return load_settings(**self.overrides)

    @contextmanager
    def client(self) -> Iterator[Ramify]:
        """A client of the stack that runs here, or of the Redis that the settings name. Raises: NotRunningError."""
        from orchestrator.client import Ramify  # noqa: PLC0415 - see above

        with Ramify(self.settings()) as client:
            yield client


def session_of(ctx: typer.Context) -> Session:
    """The session of a command."""
    session = ctx.find_root().obj
    return session if isinstance(session, Session) else Session()
