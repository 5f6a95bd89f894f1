"""`route`: how a question is read, and why. Needs no running stack."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` must not wait for Celery and Qdrant

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, output
from orchestrator.cli.invocation import invocation_of

if TYPE_CHECKING:
    from orchestrator.planning.router import Router
    from shared.settings import Settings

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
