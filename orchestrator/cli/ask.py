"""`ask`, `plan` and `route`: one question answered, or only planned, or only classified (both without a stack)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer

from orchestrator.cli import options, output_files, streams
from orchestrator.cli.invocation import invocation_of

if TYPE_CHECKING:
    from orchestrator.client import Ramify
    from shared.models import JobStatus
    from shared.settings import Settings


@options.shared
def ask(
    ctx: typer.Context,
    question: Annotated[
        str | None,
        typer.Argument(metavar="[QUESTION]", help="The question; - reads it from stdin. A plan may have it."),
    ] = None,
    *,
    plan: Annotated[
        Path | None, typer.Option("--plan", help="Run this plan, as `ramify plan --out` writes it.")
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Print the job's id and return.")] = False,
    json: options.Json = False,
    **given: Unpack[options.AskOptions],
) -> None:
    """Its tree is seen growing."""
    fields = _question_fields(question, plan, invocation_of(ctx).settings())
    with invocation_of(ctx).client(given["tenant"]) as client:
        job_id = client.submit(fields, **options.request_fields(given))
        streams.warn_about(client, job_id)
        if not detach:
            raise typer.Exit(_follow(client, job_id, as_json=json))
    if json:
        streams.document({"job_id": job_id})
    else:
        typer.echo(job_id)


def _question_fields(question: str | None, plan: Path | None, settings: Settings) -> dict[str, Any]:
    """The question and the plan that were given. Raises: InputError when neither has a question."""
    from orchestrator.planning.plan_file import check_leaves, read_plan
    from shared.errors import InputError

    fields: dict[str, Any] = {}
    if plan is not None:
        fields["plan"] = read_plan(plan)
        check_leaves(fields["plan"], settings.decomposition.max_total_leaves, f"{plan}: ")
    if question is not None:
        fields["question"] = streams.text_argument("QUESTION", question)
    elif plan is None or not fields["plan"].question:
        where = f"{plan}: question" if plan else "QUESTION"
        raise InputError(where, "", "there is no question: write one behind the command, or in the plan")
    return fields


def _follow(client: Ramify, job_id: str, *, as_json: bool) -> int:
    from orchestrator.cli.follow import follow

    try:
        streams.note(f"job {job_id}")
        return show_outcome(client, follow(client, job_id), as_json=as_json)
    except KeyboardInterrupt:
        streams.note(
            f"job {job_id} goes on: `ramify status {job_id} --watch` follows it, `ramify result {job_id}` shows its "
            f"answer, `ramify cancel {job_id}` ends it"
        )
        return streams.INTERRUPTED


def show_outcome(client: Ramify, status: JobStatus, *, as_json: bool) -> int:
    """Show the answer of a job, or why there is none; returns the exit code."""
    if status.ingest is not None:
        from orchestrator.cli.render.ingests import draw_ingest_result

        streams.output(client.ingest_result(status.job_id), draw_ingest_result, as_json=as_json)
        return streams.job_exit_code(status)
    if status.state == "done":
        from orchestrator.cli.render.answer import draw_answer
        from orchestrator.outage import Outage

        answer = Outage(streams.warn).retry(lambda: client.result(status.job_id))
        streams.output(answer, draw_answer, as_json=as_json)
        return streams.PARTIAL if answer.partial or answer.degraded else streams.DONE
    if as_json:
        streams.document(status)
    reason = status.error or ("the reason is not known" if status.terminal else "`ramify doctor` may say why")
    stands = f"ended {status.state}" if status.terminal else f"is still {status.state} long after its deadline"
    streams.fail(f"job {status.job_id} {stands}: {reason}")
    if status.leaves_done:
        streams.note(f"`ramify result {status.job_id} --partial` shows what its leaves found")
    return streams.FAILED


@options.shared
def plan(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    question: Annotated[
        str | None, typer.Argument(metavar="[QUESTION]", help="The question; - reads it from stdin.")
    ] = None,
    *,
    file: Annotated[Path | None, typer.Option("--plan", help="Look at this plan instead of making one.")] = None,
    llm: Annotated[
        bool, typer.Option("--llm/--no-llm", help="Let the LLM plan, if one is configured: that costs its calls.")
    ] = True,
    out: Annotated[
        Path | None, typer.Option(help="Write the plan there, to edit and run it: .json, else TOML.")
    ] = None,
    json: options.Json = False,
    **given: Unpack[options.PlanOptions],
) -> None:
    from orchestrator.cli.render.plan import draw_preview
    from orchestrator.intake import as_request
    from orchestrator.planning.plan_file import written
    from orchestrator.planning.preview import preview
    from shared.settings.strategies import named

    settings = invocation_of(ctx).settings()
    if out is not None:
        streams.writable("--out", out)
    request = as_request(_question_fields(question, file, settings), options.request_fields(given))
    if request.strategy is not None:
        named(settings.strategies, request.strategy)
    if settings.has_llm and llm and file is None:
        host = settings.llm_base_url.host if settings.llm_base_url else ""
        streams.note(f"planning may ask the LLM ({settings.llm_model} at {host}): --no-llm leaves it out")
    found = preview(request, settings, llm=llm)
    if out is not None:
        output_files.replace("--out", out, written(found.plan, as_toml=out.suffix.lower() != ".json"))
        streams.note(f"the plan is in {out}: edit it, and run it with `ramify ask --plan {out}`")
    streams.output(found, draw_preview, as_json=json)


def route(
    ctx: typer.Context,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question; - reads it from stdin.")],
    *,
    strategy: options.StrategyOption = None,
    llm: Annotated[
        bool | None,
        typer.Option("--llm/--no-llm", help="Ask the LLM when the rules are unsure (default: routing.llm)"),
    ] = None,
    json: options.Json = False,
) -> None:
    from orchestrator.cli.render.plan import draw_route
    from orchestrator.intake import as_request
    from orchestrator.planning.route_preview import route_preview
    from shared.settings.sources import destinations
    from shared.settings.strategies import named

    settings = invocation_of(ctx).settings()
    request = as_request(streams.text_argument("QUESTION", question), options.request_fields({"strategy": strategy}))
    if strategy is not None:
        named(settings.strategies, strategy)
    ask_llm = settings.has_llm and (settings.routing.llm if llm is None else llm)
    for clause in destinations(settings, "llm_api_key") if ask_llm else ():
        streams.note(clause)
    streams.output(route_preview(request, settings, llm=ask_llm), draw_route, as_json=json)
