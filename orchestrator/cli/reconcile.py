"""`store reconcile`: after a restore, what does not fit between jobs and store, and marks on answers."""

from __future__ import annotations

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of


def reconcile(ctx: typer.Context, *, json: options.Json = False) -> None:
    """After a restore: mark answers that do not fit what is stored, and name ingests to run again."""
    from orchestrator import reconciling

    with invocation_of(ctx).client() as client:
        found = reconciling.reconcile(client)
    if json:
        streams.document(found)
        return
    typer.echo(found.said)
    for tenant, check in found.checks.items():
        left = f"; {check.left} are still looked at closely: more may be stale, or fresh again" if check.left else ""
        typer.echo(f"{tenant}: {check.checked} answers looked at, {check.answers} are stale{left}")
    for lost in found.lost:
        streams.warn(f"what job {lost.job_id} put in may not be stored: ingest {', '.join(lost.sources)} again")
