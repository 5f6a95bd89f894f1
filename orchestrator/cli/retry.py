"""`retry`: what has ended without a complete answer, tried again under a new id."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` must not wait for Celery and Qdrant

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, outcome, output
from orchestrator.cli.jobs import Id
from orchestrator.cli.session import session_of
from orchestrator.cli.wording import counted

if TYPE_CHECKING:
    from orchestrator.client import Ramify
    from orchestrator.retrying import Retried


def retry(
    ctx: typer.Context,
    id_: Id,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Return when it has ended.")] = False,
    tenant: Annotated[
        str | None, typer.Option(help="Refuse what is not of this tenant. (default: anybody's)", show_default=False)
    ] = None,
    json: options.Json = False,
) -> None:
    """Try an ended job, or the jobs of a batch, again: only what failed or is missing runs, as a new job."""
    with session_of(ctx).client() as client:
        made = client.retry(id_, tenant)
        if not wait:
            _show(made, as_json=json)
            return
        try:
            code = _wait(client, made, as_json=json)
        except KeyboardInterrupt:
            output.note(f"{_new(made)} goes on: `ramify status {_new(made)} --watch` follows it")
            code = outcome.INTERRUPTED
    raise typer.Exit(code)


def _new(made: Retried) -> str:
    return made.job_id or made.batch_id or ""


def _show(made: Retried, *, as_json: bool) -> None:
    if as_json:
        output.document(made)
        return
    typer.echo(_new(made))
    what = "job" if made.job_id else f"batch of {counted(made.jobs, 'job')}"
    output.note(f"a new {what} tries {made.retry_of} again; `ramify status {_new(made)} --watch` follows it")


def _wait(client: Ramify, made: Retried, *, as_json: bool) -> int:
    output.note(f"{made.retry_of} is tried again as {_new(made)}")
    if made.job_id:
        from orchestrator.cli.ask import show_outcome
        from orchestrator.cli.follow import follow

        return show_outcome(client, follow(client, made.job_id), as_json=as_json)
    from orchestrator.cli.batch_follow import follow_batch

    found = follow_batch(client, made.batch_id or "")
    if as_json:
        output.document(found)
    else:
        from orchestrator.cli.render.tables import draw_batch

        output.show(draw_batch(found))
    return outcome.of_batch(found) if found.terminal else outcome.FAILED
