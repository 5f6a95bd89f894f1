"""`status`, `result`, `jobs` and `cancel`: looking after what was asked, by the id of a job or a batch."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` must not wait for Celery and Qdrant

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, outcome, output
from orchestrator.cli.session import session_of
from shared.errors import NotFoundError

if TYPE_CHECKING:
    from orchestrator.client import Ramify
    from shared.models import BatchStatus, JobStatus

Id = Annotated[str, typer.Argument(metavar="ID", help="Of a job or of a batch.")]


def status(
    ctx: typer.Context,
    id_: Id,
    *,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Follow it until it has ended.")] = False,
    json: options.Json = False,
) -> None:
    """How far a job or a batch is. The exit code says how it ended."""
    with session_of(ctx).client() as client:
        job, batch = _lookup(client, id_)
        try:
            if job:
                code = _job_status(client, job, watch=watch, as_json=json)
            else:
                code = _batch_status(client, batch, watch=watch, as_json=json) if batch else outcome.FAILED
        except KeyboardInterrupt:
            code = outcome.INTERRUPTED
            output.note(f"{id_} goes on: `ramify status {id_} --watch` follows it again")
    raise typer.Exit(code)


def _lookup(client: Ramify, id_: str, *, reconcile: bool = True) -> tuple[JobStatus | None, BatchStatus | None]:
    """The job of that id, or the batch. Raises: NotFoundError when it is neither."""
    try:
        return client.status(id_), None
    except NotFoundError:
        pass
    try:
        return None, client.batch_status(id_, reconcile=reconcile)
    except NotFoundError:
        fix = "there is no such job or batch, or it has expired; `ramify jobs` lists the newest jobs"
        raise NotFoundError("ID", id_, fix) from None


def _job_status(client: Ramify, job: JobStatus, *, watch: bool, as_json: bool) -> int:
    if watch:
        from orchestrator.cli.follow import follow

        job = follow(client, job.job_id, as_json=as_json)
    if as_json:
        (output.line if watch else output.document)(job)
    else:
        from orchestrator.cli.render.tables import draw_job

        output.show(draw_job(job))
    return outcome.of_job(job)


def _batch_status(client: Ramify, batch: BatchStatus, *, watch: bool, as_json: bool) -> int:
    if watch:
        from orchestrator.cli.batch_follow import follow_batch

        batch = follow_batch(client, batch.batch_id, on_change=output.line if as_json else None)
    if as_json:
        (output.line if watch else output.document)(batch)
    else:
        from orchestrator.cli.render.tables import draw_batch

        output.show(draw_batch(batch))
    return outcome.of_batch(batch)


def result(
    ctx: typer.Context,
    id_: Id,
    *,
    rows: Annotated[bool, typer.Option("--rows", help="All rows of a list, as JSON lines.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="All rows of a list, as CSV.")] = False,
    json: options.Json = False,
) -> None:
    """Show the answer of a job, or the answers of a batch (as JSON lines with --json)."""
    with session_of(ctx).client() as client:
        if rows or csv:
            from orchestrator.cli.rows import write_rows

            write_rows(client, id_, as_csv=csv)
            return
        job, batch = _lookup(client, id_)
        if job and not job.terminal:
            client.result(id_)  # says that it is not there yet
        if job:
            from orchestrator.cli.ask import show_outcome

            code = show_outcome(client, job, as_json=json)
        else:
            code = _batch_result(client, id_, as_json=json)
            code = outcome.of_batch(batch) if batch and code == outcome.DONE else code
    raise typer.Exit(code)


def _batch_result(client: Ramify, batch_id: str, *, as_json: bool) -> int:
    """Partial when a job has no answer (yet), or an incomplete one."""
    from orchestrator.cli.batch_answers import answers, complete, row

    code, rows = outcome.DONE, []
    for found in answers(client, client.batch_jobs(batch_id)):
        if as_json:
            output.line(found)
        else:
            rows.append(row(found))
        code = code if complete(found) else outcome.PARTIAL
    if not as_json:
        from orchestrator.cli.render.tables import draw_answers

        output.show(draw_answers(rows))
    return code


def jobs(
    ctx: typer.Context,
    *,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=10_000, help="How many.")] = 20,
    json: options.Json = False,
) -> None:
    """List the newest jobs, newest first."""
    with session_of(ctx).client() as client:
        found = client.jobs(limit)
    if json:
        output.document({"jobs": found})
    elif found:
        from orchestrator.cli.render.tables import draw_jobs

        output.show(draw_jobs(found, time.time()))
    else:
        output.note("no jobs yet: `ramify ask QUESTION` makes one")


def cancel(ctx: typer.Context, id_: Id, *, json: options.Json = False) -> None:
    """End a job, or all open jobs of a batch."""
    with session_of(ctx).client() as client:
        _, batch = _lookup(client, id_, reconcile=False)
        if batch:
            count = client.cancel_batch(id_)
            done = {"batch_id": id_, "cancelled": count, "total": batch.total}
            said = f"{count} of {batch.total} jobs cancelled"
        else:
            cancelled = client.cancel(id_)
            state = client.status(id_).state
            done = {"job_id": id_, "cancelled": cancelled, "state": state}
            said = "cancelled" if cancelled else f"it had ended before: {state}"
    if json:
        output.document(done)
    else:
        typer.echo(said)
