"""`batch`: many questions from a file or stdin, streamed into one batch; refused lines go to a file of their own."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` must not wait for Celery and Qdrant

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, outcome, output
from orchestrator.cli.invocation import invocation_of
from orchestrator.cli.wording import counted

if TYPE_CHECKING:
    from orchestrator.cli.batch_intake import Files, Taken
    from orchestrator.client import Ramify


def batch(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="JSON Lines: one question or one object a line; - reads stdin.")
    ],
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Return when all jobs have ended.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write the answers there as JSON lines; implies --wait.")] = None,
    rejects: Annotated[
        Path | None, typer.Option(help="Where refused lines go (default: FILE.rejects.jsonl)", show_default=False)
    ] = None,
    mode: options.Mode = None,
    strategy: options.Strategy = None,
    top: options.Top = None,
    after: options.After = None,
    before: options.Before = None,
    tag: options.Tag = None,
    kind: options.Kind = None,
    path: options.PathPrefix = None,
    namespace: options.Namespace = None,
    summary: options.Summary = None,
    decompose: options.Decompose = None,
    deadline: options.Deadline = None,
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_seconds: options.MaxSeconds = None,
    max_cost: options.MaxCost = None,
    batch_max_calls: options.BatchMaxCalls = None,
    batch_max_tokens: options.BatchMaxTokens = None,
    batch_max_seconds: options.BatchMaxSeconds = None,
    batch_max_cost: options.BatchMaxCost = None,
    tenant: options.Tenant = None,
    json: options.Json = False,
) -> None:
    """Ask many questions. The options hold for every line that does not say otherwise."""
    from orchestrator.cli import batch_intake

    chosen = options.given(
        mode=mode,
        strategy=strategy,
        top_n=top,
        summary=summary,
        decompose=decompose,
        deadline_s=deadline,
        max_calls=max_calls,
        max_tokens=max_tokens,
        max_seconds=max_seconds,
        max_cost=max_cost,
        tenant=tenant,
    ) | options.filters(after=after, before=before, tags=tag, kinds=kind, paths=path, namespace=namespace)
    together = options.given(
        max_calls=batch_max_calls, max_tokens=batch_max_tokens, max_seconds=batch_max_seconds, max_cost=batch_max_cost
    )
    files = batch_intake.Files.checked(file, out, rejects)
    with invocation_of(ctx).client() as client:
        taken = batch_intake.take(client, files, chosen, together)
        _report(taken)
        if taken.full:
            raise typer.Exit(_refused(taken, as_json=json))
        raise typer.Exit(_wait(client, taken, files, as_json=json) if wait or out else _enqueued(taken, as_json=json))


def _report(taken: Taken) -> None:
    if taken.rejected:
        output.warn(f"refused: {counted(taken.rejected, 'line')}; {taken.rejects} says why")


def _refused(taken: Taken, *, as_json: bool) -> int:
    """A lane was full: what was taken runs, and nobody waits for it."""
    if as_json:
        output.document(taken.summary())
    output.fail(taken.refusal())
    return outcome.FAILED


def _enqueued(taken: Taken, *, as_json: bool) -> int:
    if as_json:
        output.document(taken.summary())
    else:
        refused = f"{counted(taken.rejected, 'line')} refused"
        typer.echo(f"batch {taken.batch_id}: {counted(len(taken.job_ids), 'question')} enqueued, {refused}")
        output.note(f"`ramify status {taken.batch_id} --watch` follows it, `ramify result {taken.batch_id}` reads it")
    return outcome.PARTIAL if taken.rejected else outcome.DONE


def _wait(client: Ramify, taken: Taken, files: Files, *, as_json: bool) -> int:
    from orchestrator.cli.batch_answers import write_answers
    from orchestrator.cli.batch_follow import EndedJobs, follow_batch

    output.note(f"batch {taken.batch_id}: {counted(len(taken.job_ids), 'question')} enqueued")
    try:
        ended = EndedJobs(client, taken.job_ids, output.line) if as_json else None
        found = follow_batch(client, taken.batch_id, until=taken.until, ended=ended)
    except KeyboardInterrupt:
        output.note(f"batch {taken.batch_id} goes on: `ramify status {taken.batch_id} --watch` follows it")
        return outcome.INTERRUPTED
    if files.out:
        write_answers(client, taken.job_ids, files.out)
    if as_json:
        output.line(found)
    else:
        from orchestrator.cli.render.tables import draw_batch

        output.show(draw_batch(found))
    if not found.terminal:
        output.fail(
            f"{counted(found.total - found.finished, 'job')} still open long after the deadline: `ramify doctor`"
        )
        return outcome.FAILED
    return outcome.of_batch(found)
