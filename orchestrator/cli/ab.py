"""`ab`: what a second strategy, tried unseen on live jobs, has shown so far."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` must not wait for Celery and Qdrant

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, output
from orchestrator.cli.session import session_of
from shared.errors import InputError

if TYPE_CHECKING:
    from orchestrator.evaluation.labels import Labels


def ab(
    ctx: typer.Context,
    *,
    labels: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help='Judgements, {"question", "relevant"} a line: adds nDCG differences.'),
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Forget everything that was compared.")] = False,
    json: options.Json = False,
) -> None:
    """Report a strategy that is tried unseen beside live jobs (shadow.strategy): agreement, times, cost, by type."""
    from orchestrator.shadow import reading
    from shared.job_store import JobStore, connect, reachable

    if reset and labels is not None:
        raise InputError("--labels", str(labels), "there is nothing to judge after --reset: leave out one of them")
    judged = _labels(labels) if labels is not None else None
    with session_of(ctx).client() as client, reachable(client.settings):
        jobs = JobStore(connect(client.settings), client.settings)
        if reset:
            _said_reset(reading.reset(jobs), as_json=json)
            return
        found = reading.read_report(jobs, judged)
    if json:
        output.document(found)
    else:
        from orchestrator.cli.render.ab import draw_ab

        output.show(draw_ab(found))
    for warning in found.warnings:
        output.warn(warning)


def _labels(path: Path) -> Labels:
    """The judgements. Raises: InputError."""
    from orchestrator.evaluation.labels import read_labels
    from orchestrator.evaluation.measures import check_library

    check_library()
    return read_labels(path)


def _said_reset(count: int, *, as_json: bool) -> None:
    if as_json:
        output.document({"forgotten": count})
    else:
        typer.echo(f"{count} comparisons forgotten")
