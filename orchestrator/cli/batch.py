"""`batch`: many questions from a file or stdin, streamed into one batch; refused lines go to a file of their own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of
from orchestrator.cli.text import counted

if TYPE_CHECKING:
    from orchestrator.cli.batch_intake import EnqueuedBatch
    from orchestrator.client import Ramify

_LIMITS = ("max_calls", "max_tokens", "max_seconds", "max_cost")


@options.shared
def batch(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="JSON Lines: one question or one object a line; - reads stdin.")
    ],
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Return when all jobs have ended.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write the answers there as JSON lines; implies --wait.")] = None,
    rejects: Annotated[Path | None, typer.Option(help="Where refused lines go (default: FILE.rejects.jsonl)")] = None,
    json: options.Json = False,
    **given: Unpack[options.BatchOptions],
) -> None:
    """Ask many questions. The options hold for every line that does not say otherwise."""
    from orchestrator.cli.batch_intake import check_files, enqueue

    fields = options.request_fields(given)
    budget = {name: fields.pop(f"batch_{name}") for name in _LIMITS if f"batch_{name}" in fields}
    rejects = check_files(file, out, rejects)
    with invocation_of(ctx).client(given["tenant"]) as client:
        enqueued = enqueue(client, file, rejects, fields, budget)
        if enqueued.rejected:
            streams.warn(f"refused: {counted(enqueued.rejected, 'line')}; {enqueued.rejects} says why")
        if warning := client.too_slow(enqueued.batch_id):
            streams.warn(warning)
        follow = not enqueued.lane_full and (wait or out)
        raise typer.Exit(_wait(client, enqueued, out, as_json=json) if follow else _show(enqueued, as_json=json))


def _show(batch: EnqueuedBatch, *, as_json: bool) -> int:
    """What was enqueued, without waiting for it."""
    if as_json:
        streams.document(batch.summary())
    if batch.lane_full:
        streams.fail(batch.refusal())
        return streams.FAILED
    if not as_json:
        refused = f"{counted(batch.rejected, 'line')} refused"
        typer.echo(f"batch {batch.batch_id}: {counted(len(batch.job_ids), 'question')} enqueued, {refused}")
        streams.note(f"`ramify status {batch.batch_id} --watch` follows it, `ramify result {batch.batch_id}` reads it")
    return streams.PARTIAL if batch.rejected else streams.DONE


def _wait(client: Ramify, batch: EnqueuedBatch, out: Path | None, *, as_json: bool) -> int:
    from orchestrator.cli.follow import EndedJobs, follow_batch, write_answers

    streams.note(f"batch {batch.batch_id}: {counted(len(batch.job_ids), 'question')} enqueued")
    try:
        ended = EndedJobs(client, batch.job_ids, streams.line) if as_json else None
        found = follow_batch(client, batch.batch_id, until=batch.until, ended=ended)
    except KeyboardInterrupt:
        streams.note(f"batch {batch.batch_id} goes on: `ramify status {batch.batch_id} --watch` follows it")
        return streams.INTERRUPTED
    if out:
        write_answers(client, batch.job_ids, out)
    if as_json:
        streams.line(found)
    else:
        from orchestrator.cli.render.batches import draw_batch

        streams.show(draw_batch(found))
    if not found.terminal:
        open_jobs = counted(found.open + found.known_open, "job")
        streams.fail(f"{open_jobs} still open long after the deadline: `ramify doctor`")
        return streams.FAILED
    return streams.batch_exit_code(found)
