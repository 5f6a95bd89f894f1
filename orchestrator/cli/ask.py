"""`ask`: one question, its tree while it grows, its answer."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` must not wait for Celery and Qdrant

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, streams
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
        streams.document({"job_id": job_id})
    else:
        typer.echo(job_id)


def _follow(client: Ramify, job_id: str, *, as_json: bool) -> int:
    from orchestrator.cli.follow import follow

    try:
        streams.note(f"job {job_id}")
        status = follow(client, job_id)
        return show_outcome(client, status, as_json=as_json)
    except KeyboardInterrupt:
        streams.note(
            f"job {job_id} goes on: `ramify status {job_id} --watch` follows it, `ramify result {job_id}` shows its "
            f"answer, `ramify cancel {job_id}` ends it"
        )
        return streams.INTERRUPTED


def show_outcome(client: Ramify, status: JobStatus, *, as_json: bool) -> int:
    """Show the answer of a job, or why there is none; returns the exit code."""
    if status.state == "done":
        from orchestrator.outage import Outage

        answer = Outage(streams.warn).retry(lambda: client.result(status.job_id))
        if as_json:
            streams.document(answer)
        else:
            from orchestrator.cli.render.answer import draw_answer

            streams.show(draw_answer(answer))
        return streams.PARTIAL if answer.partial else streams.DONE
    if as_json:
        streams.document(status)
    reason = status.error or ("the reason is not known" if status.terminal else "`ramify doctor` may say why")
    stands = f"ended {status.state}" if status.terminal else f"is still {status.state} long after its deadline"
    streams.fail(f"job {status.job_id} {stands}: {reason}")
    return streams.FAILED


# --- `plan` and `route`: what a question would grow into and cost, and how it is read. Both need no running stack.

if TYPE_CHECKING:
    from orchestrator.planning.preview import Preview
    from orchestrator.planning.route import Router
    from shared.settings import Settings


def plan(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    question: Annotated[
        str | None,
        typer.Argument(metavar="[QUESTION]", help="The question; - reads it from stdin.", show_default=False),
    ] = None,
    *,
    file: Annotated[
        Path | None, typer.Option("--plan", help="Look at this plan instead of making one.", show_default=False)
    ] = None,
    llm: Annotated[
        bool, typer.Option("--llm/--no-llm", help="Let the LLM plan, if one is configured: that costs its calls.")
    ] = True,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the plan there, to edit and run it: .json, else TOML.", show_default=False),
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
    tenant: options.Tenant = None,
    json: options.Json = False,
) -> None:
    """Show how a question would branch, and the calls, tokens and money of running it. Runs nothing else."""
    from orchestrator.cli.streams import writable
    from orchestrator.intake import as_request
    from orchestrator.planning.plan_file import written
    from orchestrator.planning.preview import preview
    from shared.settings.strategies import named

    settings = invocation_of(ctx).settings()
    if out is not None:
        writable("--out", out)
    chosen = options.given(
        mode=mode, strategy=strategy, top_n=top, summary=summary, decompose=decompose, tenant=tenant
    ) | options.filters(after=after, before=before, tags=tag, kinds=kind, paths=path, namespace=namespace)  # fmt: skip
    request = as_request(options.asked(question, file, settings), chosen)
    if request.strategy is not None:
        named(settings.strategies, request.strategy)
    if settings.has_llm and llm and file is None:
        streams.note(f"planning may ask the LLM ({settings.llm_model}): --no-llm leaves it out")
    found = preview(request, settings, llm=llm)
    if out is not None:
        out.write_text(written(found.plan, as_toml=out.suffix.lower() != ".json"), encoding="utf-8")
        streams.note(f"the plan is in {out}: edit it, and run it with `ramify ask --plan {out}`")
    _show(found, as_json=json)


def _show(found: Preview, *, as_json: bool) -> None:
    if as_json:
        streams.document(found)
        return
    from orchestrator.cli.render.plan import draw_preview

    streams.show(draw_preview(found))


_LLM_TIMEOUT_S = 20.0


def route(
    ctx: typer.Context,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question; - reads it from stdin.")],
    *,
    strategy: options.Strategy = None,
    llm: Annotated[
        bool | None,
        typer.Option("--llm/--no-llm", help="Ask the LLM when the rules are unsure (default: routing.llm)"),
    ] = None,
    json: options.Json = False,
) -> None:
    """Show how a question would be answered: its type, how sure that is, why, and the row of the table that applies."""
    from orchestrator.cli.streams import text_argument
    from orchestrator.intake import as_request
    from orchestrator.planning.route import requested_way, routed_way
    from shared.settings.strategies import named

    settings = invocation_of(ctx).settings()
    request = as_request(text_argument("QUESTION", question), options.given(strategy=strategy))
    if strategy is not None:
        named(settings.strategies, strategy)
    timeout_s = min(_LLM_TIMEOUT_S, settings.llm_timeout_s)
    with _router(settings, ask=settings.routing.llm if llm is None else llm) as router:
        routed, cost = router.route(request.question, timeout_s, request.strategy)
    way = routed_way(routed, settings) if strategy is None else requested_way(request, routed, settings)
    if json:
        streams.document({"question": request.question, **way.model_dump(mode="json"), "cost": cost})
        return
    from orchestrator.cli.render.plan import draw_route

    streams.show(draw_route(way))


@contextmanager
def _router(settings: Settings, *, ask: bool) -> Iterator[Router]:
    from orchestrator.planning.route import Router
    from shared.providers.llm.client import ChatClient

    threshold = settings.routing.unsure_below
    if not (ask and settings.has_llm):
        yield Router(None, threshold)
        return
    with ChatClient(settings) as llm:
        yield Router(llm, threshold)
