"""`batch`, `batch report` and `batches`: many questions as one batch, and what became of each line."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Unpack

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of
from shared.errors import InputError

_LIMITS = ("max_calls", "max_tokens", "max_seconds", "max_cost")


@options.shared
def batch(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="JSON Lines: one question or one object a line; - reads stdin."),
    ] = None,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Return when all jobs have ended.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Write each answer there when its job ends, as .jsonl, .csv or .md; implies --wait."),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Go on with this batch: submit and write what is missing. FILE is known."),
    ] = None,
    rejects: Annotated[Path | None, typer.Option(help="Where refused lines go (default: FILE.rejects.jsonl)")] = None,
    json: options.Json = False,
    **given: Unpack[options.BatchOptions],
) -> None:
    """The options hold for every line that does not say otherwise.

    `ramify batch report ID` says what became of each line; a file of that name is ./report.
    """
    from orchestrator.cli.batch_run import BatchRun

    fields = options.request_fields(given)
    budget = {name: fields.pop(f"batch_{name}") for name in _LIMITS if f"batch_{name}" in fields}
    webhook = fields.pop("webhook", None)
    with invocation_of(ctx).client(given["tenant"]) as client:
        run = BatchRun(client, out, wait=wait, as_json=json)
        if resume is None:
            if file is None:
                raise InputError("FILE", "", "name a file of questions, - for stdin, or the batch to --resume")
            code = run.begin(file, rejects, fields, budget, webhook)
        else:
            _check_resumed(fields | budget | ({"notify-url": webhook} if webhook else {}))
            code = run.resume(resume, file, rejects)
    raise typer.Exit(code)


def _check_resumed(given: Mapping[str, Any]) -> None:
    """Raises: InputError for an option of the lines: it would hold for some of them only."""
    for name in given:
        if name != "tenant":
            fix = "a batch goes on as it began: leave it out"
            raise InputError(f"--{name.replace('_', '-')}", given[name], fix)


def batches(
    ctx: typer.Context,
    *,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=10_000, help="How many.")] = 20,
    tenant: options.OfTenant = None,
    json: options.Json = False,
) -> None:
    with invocation_of(ctx).client(tenant) as client:
        found = client.batches(limit)
    if json:
        streams.document({"batches": found})
    elif found:
        from orchestrator.cli.render.batches import draw_batches

        streams.show(draw_batches(found, time.time()))
    else:
        streams.note("no batches yet: `ramify batch FILE` makes one")


def report(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    id_: Annotated[str, typer.Argument(metavar="ID", help="Of a batch.")],
    *,
    state: Annotated[
        list[str] | None,
        typer.Option(help="Only lines whose job is in this state, or ended so, as failed, degraded, open; repeatable."),
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV on stdout, and nothing else there.")] = False,
    tenant: options.OfTenant = None,
    json: options.Json = False,
) -> None:
    from orchestrator.cli.line_reports import report_csv
    from orchestrator.cli.render.batches import (
        accounts_line,
        draw_batch,
        draw_lines,
        left_out,
        report_columns,
        report_width,
    )
    from orchestrator.operations.batches import check_states, wanted

    check_states("--state", state or ())
    if json and csv:
        raise InputError("--csv", "beside --json", "stdout holds one of them: give one of the two")
    with invocation_of(ctx).client(tenant) as client:
        found = client.batch_status(id_)
        lines = wanted(client.batch_report(id_), state or ())
        if json:
            streams.document({"batch": found, "lines": list(lines)})
        elif csv:
            report_csv(lines)
            streams.note(accounts_line(found))
        else:
            streams.show(draw_batch(found))
            names = report_columns(streams.room())
            for table in draw_lines(lines, names):
                streams.show(table, report_width(names))
            if missing := left_out(names):
                streams.note(missing)
    raise typer.Exit(streams.batch_exit_code(found))
