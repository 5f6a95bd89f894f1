"""`status`, `result`, `jobs`, `why`, `cancel` and `retry`: what was asked before, by the id of a job or a batch."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` must not wait for Celery and Qdrant

from __future__ import annotations

import csv
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of
from orchestrator.cli.wording import clean, counted
from shared.errors import NotFoundError

if TYPE_CHECKING:
    from orchestrator.client import Ramify
    from orchestrator.retry import Retried
    from shared.models import BatchStatus, JobStatus
    from shared.models.enumeration import ListRow

Id = Annotated[str, typer.Argument(metavar="ID", help="Of a job or of a batch.")]


def status(
    ctx: typer.Context,
    id_: Id,
    *,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Follow it until it has ended.")] = False,
    json: options.Json = False,
) -> None:
    """How far a job or a batch is. The exit code says how it ended."""
    with invocation_of(ctx).client() as client:
        job, batch = _lookup(client, id_)
        try:
            if job:
                code = _job_status(client, job, watch=watch, as_json=json)
            else:
                code = _batch_status(client, batch, watch=watch, as_json=json) if batch else streams.FAILED
        except KeyboardInterrupt:
            code = streams.INTERRUPTED
            streams.note(f"{id_} goes on: `ramify status {id_} --watch` follows it again")
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
        (streams.line if watch else streams.document)(job)
    else:
        from orchestrator.cli.render.tables import draw_job

        streams.show(draw_job(job))
    return streams.of_job(job)


def _batch_status(client: Ramify, batch: BatchStatus, *, watch: bool, as_json: bool) -> int:
    if watch:
        from orchestrator.cli.batch import follow_batch

        batch = follow_batch(client, batch.batch_id, on_change=streams.line if as_json else None)
    if as_json:
        (streams.line if watch else streams.document)(batch)
    else:
        from orchestrator.cli.render.tables import draw_batch

        streams.show(draw_batch(batch))
    return streams.of_batch(batch)


def result(
    ctx: typer.Context,
    id_: Id,
    *,
    rows: Annotated[bool, typer.Option("--rows", help="All rows of a list, as JSON lines.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="All rows of a list, as CSV.")] = False,
    json: options.Json = False,
) -> None:
    """Show the answer of a job, or the answers of a batch (as JSON lines with --json)."""
    with invocation_of(ctx).client() as client:
        if rows or csv:
            _write_rows(client, id_, as_csv=csv)
            return
        job, batch = _lookup(client, id_)
        if job and not job.terminal:
            client.result(id_)  # says that it is not there yet
        if job:
            from orchestrator.cli.ask import show_outcome

            code = show_outcome(client, job, as_json=json)
        else:
            code = _batch_result(client, id_, as_json=json)
            code = streams.of_batch(batch) if batch and code == streams.DONE else code
    raise typer.Exit(code)


def _batch_result(client: Ramify, batch_id: str, *, as_json: bool) -> int:
    """Partial when a job has no answer (yet), or an incomplete one."""
    from orchestrator.cli.batch import answers, complete, row

    code, rows = streams.DONE, []
    for found in answers(client, client.batch_jobs(batch_id)):
        if as_json:
            streams.line(found)
        else:
            rows.append(row(found))
        code = code if complete(found) else streams.PARTIAL
    if not as_json:
        from orchestrator.cli.render.tables import draw_answers

        streams.show(draw_answers(rows))
    return code


def jobs(
    ctx: typer.Context,
    *,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=10_000, help="How many.")] = 20,
    json: options.Json = False,
) -> None:
    """List the newest jobs, newest first."""
    with invocation_of(ctx).client() as client:
        found = client.jobs(limit)
    if json:
        streams.document({"jobs": found})
    elif found:
        from orchestrator.cli.render.tables import draw_jobs

        streams.show(draw_jobs(found, time.time()))
    else:
        streams.note("no jobs yet: `ramify ask QUESTION` makes one")


def cancel(ctx: typer.Context, id_: Id, *, json: options.Json = False) -> None:
    """End a job, or all open jobs of a batch."""
    with invocation_of(ctx).client() as client:
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
        streams.document(done)
    else:
        typer.echo(said)


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
    with invocation_of(ctx).client() as client:
        made = client.retry(id_, tenant)
        if not wait:
            _show_retried(made, as_json=json)
            return
        try:
            code = _wait_for_retry(client, made, as_json=json)
        except KeyboardInterrupt:
            streams.note(f"{_new_id(made)} goes on: `ramify status {_new_id(made)} --watch` follows it")
            code = streams.INTERRUPTED
    raise typer.Exit(code)


def _new_id(made: Retried) -> str:
    return made.job_id or made.batch_id or ""


def _show_retried(made: Retried, *, as_json: bool) -> None:
    if as_json:
        streams.document(made)
        return
    typer.echo(_new_id(made))
    what = "job" if made.job_id else f"batch of {counted(made.jobs, 'job')}"
    streams.note(f"a new {what} tries {made.retry_of} again; `ramify status {_new_id(made)} --watch` follows it")


def _wait_for_retry(client: Ramify, made: Retried, *, as_json: bool) -> int:
    streams.note(f"{made.retry_of} is tried again as {_new_id(made)}")
    if made.job_id:
        from orchestrator.cli.ask import show_outcome
        from orchestrator.cli.follow import follow

        return show_outcome(client, follow(client, made.job_id), as_json=as_json)
    from orchestrator.cli.batch import follow_batch

    found = follow_batch(client, made.batch_id or "")
    if as_json:
        streams.document(found)
    else:
        from orchestrator.cli.render.tables import draw_batch

        streams.show(draw_batch(found))
    return streams.of_batch(found) if found.terminal else streams.FAILED


def why(ctx: typer.Context, id_: Id, *, json: options.Json = False) -> None:
    """Say why a job or a batch is not done, or how it ended, and what to do next."""
    with invocation_of(ctx).client() as client:
        found = client.why(id_)
    if json:
        streams.document(found)
        return
    from orchestrator.cli.render.why import draw_why

    streams.show(draw_why(found))


_HEAD = ("number", "title", "path", "uri", "date", "kind", "tags", "sentence", "copy_of")
#: A cell that begins so is a formula to a spreadsheet.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def _write_rows(client: Ramify, job_id: str, *, as_csv: bool) -> None:
    """Stream the rows of a job's list. Raises: NotFoundError, RamifyError without a list."""
    rows = client.rows(job_id)
    if not as_csv:
        for row in rows:
            streams.line(row.model_dump(mode="json", exclude={"digest"}))
        return
    columns: tuple[str, ...] = ()
    table = client.result(job_id).table
    if table is not None:
        columns = table.columns
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([*_HEAD, *map(_cell, columns)])
    for number, row in enumerate(rows, 1):
        writer.writerow([str(number), *_cells(row), *(_cell(row.fields.get(column, "")) for column in columns)])


def _cells(row: ListRow) -> list[str]:
    copy_of = "" if row.copy_of is None else str(row.copy_of)
    texts = (row.title, row.path, row.uri, row.date or "", row.kind, "; ".join(row.tags), row.sentence, copy_of)
    return [_cell(text) for text in texts]


def _cell(text: str) -> str:
    said = " ".join(clean(text).split())
    return f"'{said}" if said.startswith(_FORMULA) else said
