"""`plan` and `route`: what a question would grow into and cost, and how it is read. Both need no running stack."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` must not wait for Celery and Qdrant

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, output
from orchestrator.cli.invocation import invocation_of

if TYPE_CHECKING:
    from orchestrator.planning.router import Router
    from orchestrator.preview import Preview
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
    from orchestrator.cli.reading import writable
    from orchestrator.intake import as_request
    from orchestrator.plan_file import written
    from orchestrator.preview import preview
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
        output.note(f"planning may ask the LLM ({settings.llm_model}): --no-llm leaves it out")
    found = preview(request, settings, llm=llm)
    if out is not None:
        out.write_text(written(found.plan, as_toml=out.suffix.lower() != ".json"), encoding="utf-8")
        output.note(f"the plan is in {out}: edit it, and run it with `ramify ask --plan {out}`")
    _show(found, as_json=json)


def _show(found: Preview, *, as_json: bool) -> None:
    if as_json:
        output.document(found)
        return
    from orchestrator.cli.render.plan import draw_preview

    output.show(draw_preview(found))


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
    from orchestrator.cli.reading import text_argument
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
        output.document({"question": request.question, **way.model_dump(mode="json"), "cost": cost})
        return
    from orchestrator.cli.render.route import draw_route

    output.show(draw_route(way))


@contextmanager
def _router(settings: Settings, *, ask: bool) -> Iterator[Router]:
    from orchestrator.planning.router import Router
    from shared.llm.client import ChatClient

    threshold = settings.routing.unsure_below
    if not (ask and settings.has_llm):
        yield Router(None, threshold)
        return
    with ChatClient(settings) as llm:
        yield Router(llm, threshold)
