"""`ask`: one question, its tree while it grows, its answer."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` must not wait for Celery and Qdrant

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, outcome, output
from orchestrator.cli.invocation import invocation_of

if TYPE_CHECKING:
    from orchestrator.client import Ramify
    from shared.models import JobStatus


def ask(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    question: Annotated[
        str | None,
        typer.Argument(
            metavar="[QUESTION]", help="The question; - reads it from stdin. A plan may have it.", show_default=False
        ),
    ] = None,
    *,
    plan: Annotated[
        Path | None, typer.Option("--plan", help="Run this plan, as `ramify plan --out` writes it.", show_default=False)
    ] = None,
    mode: options.Mode = None,
    strategy: options.Strategy = None,
    explain: options.Explain = False,
    near_symbol: options.NearSymbol = None,
    depth: options.Depth = None,
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
    tenant: options.Tenant = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Asking again under this key gives the first job.", show_default=False)
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Print the job's id and return.")] = False,
    json: options.Json = False,
) -> None:
    """Ask a question: watch its tree grow, then read the answer with its sources."""
    chosen = options.given(
        idempotency_key=idempotency_key,
        mode=mode,
        strategy=strategy,
        explain=explain or None,
        near_symbol=near_symbol,
        depth=depth,
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
    asked = options.asked(question, plan, invocation_of(ctx).settings())
    with invocation_of(ctx).client() as client:
        job_id = client.submit(asked, **chosen)
        if detach:
            _show_id(job_id, as_json=json)
        else:
            raise typer.Exit(_follow(client, job_id, as_json=json))


def _show_id(job_id: str, *, as_json: bool) -> None:
    if as_json:
        output.document({"job_id": job_id})
    else:
        typer.echo(job_id)


def _follow(client: Ramify, job_id: str, *, as_json: bool) -> int:
    from orchestrator.cli.follow import follow

    try:
        output.note(f"job {job_id}")
        status = follow(client, job_id)
        return show_outcome(client, status, as_json=as_json)
    except KeyboardInterrupt:
        output.note(
            f"job {job_id} goes on: `ramify status {job_id} --watch` follows it, `ramify result {job_id}` shows its "
            f"answer, `ramify cancel {job_id}` ends it"
        )
        return outcome.INTERRUPTED


def show_outcome(client: Ramify, status: JobStatus, *, as_json: bool) -> int:
    """Show the answer of a job, or why there is none; returns the exit code."""
    if status.state == "done":
        from orchestrator.outage import Outage

        answer = Outage(output.warn).retry(lambda: client.result(status.job_id))
        if as_json:
            output.document(answer)
        else:
            from orchestrator.cli.render.answer import draw_answer

            output.show(draw_answer(answer))
        return outcome.PARTIAL if answer.partial else outcome.DONE
    if as_json:
        output.document(status)
    reason = status.error or ("the reason is not known" if status.terminal else "`ramify doctor` may say why")
    stands = f"ended {status.state}" if status.terminal else f"is still {status.state} long after its deadline"
    output.fail(f"job {status.job_id} {stands}: {reason}")
    return outcome.FAILED
