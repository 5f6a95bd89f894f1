"""`status`, `result`, `jobs`, `why`, `cancel` and `retry`: what was asked before, by the id of a job or a batch."""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.ask import show_outcome
from orchestrator.cli.invocation import invocation_of
from orchestrator.cli.text import columns, counted
from orchestrator.text_lines import row_lines
from shared.errors import InputError

if TYPE_CHECKING:
    from orchestrator.client import Ramify
    from orchestrator.retries.retry import Retried
    from shared.models import BatchStatus, JobStatus

#: Columns of every list in CSV; those of the question follow.

Id = Annotated[str, typer.Argument(metavar="ID", help="Of a job or of a batch.")]


def status(
    ctx: typer.Context,
    id_: Id,
    *,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Follow it until it has ended.")] = False,
    tenant: options.OfTenant = None,
    json: options.Json = False,
) -> None:
    """The exit code says how it ended."""
    with invocation_of(ctx).client(tenant) as client:
        found = _lookup(client, id_)
        try:
            code = _status(client, found, watch=watch, as_json=json)
        except KeyboardInterrupt:
            code = streams.INTERRUPTED
            streams.note(f"{id_} goes on: `ramify status {id_} --watch` follows it again")
    raise typer.Exit(code)


def _lookup(client: Ramify, id_: str) -> JobStatus | BatchStatus:
    """The job of that id, or the batch. Raises: NotFoundError when it is neither."""
    from orchestrator.retries.retry import job_or_batch

    return job_or_batch(id_, client.status, client.batch_status)


def _status(client: Ramify, found: JobStatus | BatchStatus, *, watch: bool, as_json: bool) -> int:
    from orchestrator.cli.follow import follow, follow_batch
    from orchestrator.cli.render.batches import draw_batch
    from orchestrator.cli.render.tables import draw_job
    from shared.models import JobStatus

    if isinstance(found, JobStatus):
        found = follow(client, found.job_id, as_json=as_json) if watch else found
        drawn, code = draw_job(found, time.time()), streams.job_exit_code(found)
    else:
        if watch:
            found = follow_batch(client, found.batch_id, on_change=streams.line if as_json else None)
        drawn, code = draw_batch(found), streams.batch_exit_code(found)
    if as_json:
        (streams.line if watch else streams.document)(found)
    else:
        streams.show(drawn)
    return code


def result(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    id_: Id,
    *,
    rows: Annotated[bool, typer.Option("--rows", help="All rows of a list, as JSON lines.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="All rows of a list, as CSV.")] = False,
    early: Annotated[
        bool, typer.Option("--partial", help="What a job's leaves have found so far, at any state; without the LLM.")
    ] = False,
    tenant: options.OfTenant = None,
    json: options.Json = False,
) -> None:
    """Of an ingest what became of it, of a batch all answers (as JSON lines with --json)."""
    from shared.models import BatchStatus

    with invocation_of(ctx).client(tenant) as client:
        if early:
            if rows or csv:
                raise InputError("--partial", "beside --rows or --csv", "it shows the first rows: give one of them")
            raise typer.Exit(_show_early(client, _lookup(client, id_), as_json=json))
        if rows or csv:
            _write_rows(client, id_, as_csv=csv)
            return
        found = _lookup(client, id_)
        if isinstance(found, BatchStatus):
            code = _batch_result(client, id_, as_json=json) or streams.batch_exit_code(found)
        else:
            if not found.terminal and found.ingest is None:
                client.result(id_)  # says that it is not there yet
            code = show_outcome(client, found, as_json=json)
    raise typer.Exit(code)


def _show_early(client: Ramify, found: JobStatus | BatchStatus, *, as_json: bool) -> int:
    """Partial for what is not the whole answer. Raises: InputError for a batch."""
    from orchestrator.cli.render.answer import draw_answer
    from shared.models import BatchStatus

    if isinstance(found, BatchStatus):
        raise InputError("ID", found.batch_id, "it is a batch: --partial takes the id of one of its jobs")
    answer = client.result(found.job_id, partial=True)
    streams.output(answer, draw_answer, as_json=as_json)
    return streams.PARTIAL if answer.partial or answer.state != "done" else streams.DONE


def _batch_result(client: Ramify, batch_id: str, *, as_json: bool) -> int:
    """Every line with its answer. Partial when a line's job has ended without one, or with one that is not complete."""
    from orchestrator.accounting import GONE
    from orchestrator.answered_lines import answered_lines
    from orchestrator.cli.render.batches import answer_cells

    code, table = (
        streams.DONE,
        columns("line", "id", "job", "state", "question and answer", right=("line",), whole=("job",)),
    )
    for found in answered_lines(client, batch_id):
        if as_json:
            streams.line(found)
        else:
            table.add_row(*answer_cells(found))
        is_open = found.job_id and found.outcome is None and found.state != GONE
        if found.outcome != "done" and not is_open:
            code = streams.PARTIAL
    if not as_json:
        streams.show(table)
    return code


def jobs(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    *,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=10_000, help="How many.")] = 20,
    state: Annotated[
        list[str] | None,
        typer.Option(help="Only those in this state, or that ended so, as failed, degraded, open; repeatable."),
    ] = None,
    batch: Annotated[
        str | None, typer.Option(metavar="ID", help="Only the jobs that answer this batch's lines.")
    ] = None,
    degraded: Annotated[
        bool | None,
        typer.Option("--degraded/--not-degraded", help="Only answers made without something, or none such."),
    ] = None,
    stale: Annotated[
        bool, typer.Option("--stale", help="Only answers whose documents have changed, stale for longest first.")
    ] = False,
    tenant: options.OfTenant = None,
    json: options.Json = False,
) -> None:
    if stale and (state or batch or degraded is not None):
        raise InputError("--stale", "beside --state, --batch or --degraded", "give it alone")
    with invocation_of(ctx).client(tenant) as client:
        every = partial(client.jobs, limit, state=state, batch=batch, degraded=degraded)
        found = client.stale_jobs(limit) if stale else every()
        if found.cut:
            streams.warn("only the newest 100,000 jobs were looked at: there may be more")
        if stale:
            note_unchecked(client)
    if json:
        streams.document({"jobs": found})
    elif found:
        from orchestrator.cli.render.tables import draw_jobs

        streams.show(draw_jobs(found, time.time()))
    elif state or batch or stale or degraded is not None:
        streams.note("no job of these")
    else:
        streams.note("no jobs yet: `ramify ask QUESTION` makes one")


def cancel(ctx: typer.Context, id_: Id, *, tenant: options.OfTenant = None, json: options.Json = False) -> None:
    from shared.models import BatchStatus

    with invocation_of(ctx).client(tenant) as client:
        found = _lookup(client, id_)
        if isinstance(found, BatchStatus):
            count = client.cancel_batch(id_)
            found = client.batch_status(id_)
            done = {"batch_id": id_, "cancelled": count, "enqueued": found.enqueued, "lines": found.lines}
            done["takes_no_more_lines"] = found.cancelled_early
            outcome = f"{count} of {found.enqueued} jobs cancelled"
            if found.cancelled_early:
                outcome += f"; it was still being read: it takes no more than these {found.lines:,} lines"
        else:
            cancelled = client.cancel(id_)
            state = client.status(id_).state
            done = {"job_id": id_, "cancelled": cancelled, "state": state}
            outcome = "cancelled" if cancelled else f"it had ended before: {state}"
    if json:
        streams.document(done)
    else:
        typer.echo(outcome)


def retry(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    id_: Id,
    *,
    degraded: Annotated[
        bool,
        typer.Option("--degraded", help="Repair answers that were made without an LLM, say: only that runs again."),
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Return when it has ended.")] = False,
    tenant: options.OfTenant = None,
    deadline_s: Annotated[
        float | None, typer.Option("--deadline", help="Seconds of each new job, from its turn. (default: as before)")
    ] = None,
    queue_limit_s: Annotated[
        float | None,
        typer.Option("--queue-limit", help="Seconds that each may wait for its turn. (default: as before)"),
    ] = None,
    on_outage: Annotated[
        str | None,
        typer.Option(
            help="When a server fails: wait for it, or degrade, go on without it. (default: as before, a repair waits)"
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    with invocation_of(ctx).client(tenant) as client:
        limits = {"deadline_s": deadline_s, "queue_limit_s": queue_limit_s}
        made = client.retry(id_, degraded=degraded, on_outage=on_outage, **limits)
        new_id = made.job_id or made.batch_id or ""
        streams.warn_about(client, new_id)
        if wait:
            told = f"{made.retry_of} is tried again as {new_id}: {_taken_over(made)}"
            raise typer.Exit(wait_for_retry(client, made, told, as_json=json))
    if json:
        streams.document(made)
    else:
        typer.echo(new_id)
        what = "job" if made.job_id else f"batch of {counted(made.jobs, 'job')}"
        streams.note(f"a new {what} tries {made.retry_of} again: {_taken_over(made)}")
        if made.degraded:
            are = "answer is" if made.degraded == 1 else "answers are"
            repair = f"`ramify retry --degraded {made.retry_of}` repairs {'it' if made.degraded == 1 else 'them'}"
            streams.note(f"{made.degraded} complete {are} degraded: {repair}")
        streams.note(f"`ramify status {new_id} --watch` follows it")


def _taken_over(made: Retried) -> str:
    """What a retry takes over, and what that saves."""
    over = made.taken_over
    if not over.leaves_total:
        return "from its beginning"
    leaves = f"{over.leaves} of {over.leaves_total} leaves taken over"
    cost = over.saved
    tokens = cost.llm_tokens_in + cost.llm_tokens_out + cost.embed_tokens
    calls = cost.llm_calls + cost.embed_calls + cost.rerank_calls
    if not calls:
        return leaves
    money = f", {made.saved_cost:.4g} {made.currency}".rstrip() if made.saved_cost else ""
    return f"{leaves}, which saves {counted(calls, 'call')}, {counted(tokens, 'token')}{money}"


def note_unchecked(client: Ramify) -> None:
    """Say that more answers may be stale than are known of now."""
    if left := client.unchecked_answers():
        streams.note(f"{counted(left, 'answer')} {'is' if left == 1 else 'are'} still looked at: more may become stale")


def wait_for_retry(client: Ramify, made: Retried, told: str, *, as_json: bool) -> int:
    """Say what a retry has made, follow it to its end, and show it. Returns the exit code, of ctrl-C too."""
    from orchestrator.cli.follow import follow, follow_batch
    from orchestrator.cli.render.batches import draw_batch

    try:
        streams.note(told)
        if made.job_id:
            return show_outcome(client, follow(client, made.job_id), as_json=as_json)
        found = follow_batch(client, made.batch_id or "")
        streams.output(found, draw_batch, as_json=as_json)
        return streams.batch_exit_code(found) if found.terminal else streams.FAILED
    except KeyboardInterrupt:
        new_id = made.job_id or made.batch_id
        streams.note(f"{new_id} goes on: `ramify status {new_id} --watch` follows it")
        return streams.INTERRUPTED


def why(ctx: typer.Context, id_: Id, *, tenant: options.OfTenant = None, json: options.Json = False) -> None:
    with invocation_of(ctx).client(tenant) as client:
        found = client.why(id_)
    from orchestrator.cli.render.why import draw_why

    streams.output(found, draw_why, as_json=json)


def _write_rows(client: Ramify, job_id: str, *, as_csv: bool) -> None:
    """Stream the rows of a job's list. Raises: NotFoundError, RamifyError without a list."""
    rows = client.rows(job_id)
    if not as_csv:
        for row in rows:
            streams.line(row.model_dump(mode="json", exclude={"digest"}))
        return
    table = client.result(job_id).table
    for line in row_lines("csv", rows, table.columns if table else ()):
        sys.stdout.write(line)
