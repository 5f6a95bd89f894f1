"""`serve`: Ramify over HTTP, in the foreground."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of
from shared.errors import RamifyError


def serve(
    ctx: typer.Context,
    *,
    host: Annotated[str | None, typer.Option(help="Address to listen on. (default: server.host)")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0: any that is free. (default: server.port)")] = None,
    json: options.Json = False,
) -> None:
    """Serve HTTP in front of the stack that runs here, or of the Redis that the settings name. Ctrl-C stops it."""
    from orchestrator.local.stack import SERVER_PACKAGES

    if not all(map(find_spec, SERVER_PACKAGES)):
        raise RamifyError("HTTP is not installed: `pip install 'ramify[server]'` adds what it needs")
    from orchestrator.server.serve import serve as run

    settings = invocation_of(ctx).settings()
    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    settings = settings.model_copy(update={"server": type(settings.server)(**{**dict(settings.server), **given})})

    def ready(address: str) -> None:
        if json:
            streams.document({"address": address})
        else:
            typer.echo(address)
            streams.note("Ctrl-C stops it.")

    run(settings, ready)
