"""`why`: what a job or a batch waits for, or how it ended, answered first and shown then."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` must not wait for Celery and Qdrant

from __future__ import annotations

import typer

from orchestrator.cli import options, output
from orchestrator.cli.jobs import Id
from orchestrator.cli.session import session_of


def why(ctx: typer.Context, id_: Id, *, json: options.Json = False) -> None:
    """Say why a job or a batch is not done, or how it ended, and what to do next."""
    with session_of(ctx).client() as client:
        found = client.why(id_)
    if json:
        output.document(found)
        return
    from orchestrator.cli.render.why import draw_why

    output.show(draw_why(found))
