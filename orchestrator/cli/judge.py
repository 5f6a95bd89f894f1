"""`judge` and `jobs export`: what people say of answers, and the labelled set that this makes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of
from orchestrator.cli.text import counted


def judge(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    id_: Annotated[str, typer.Argument(metavar="ID", help="Of a job with an answer.")],
    verdict: Annotated[str, typer.Argument(metavar="good|bad", help="What you say of it.")],
    *,
    doc: Annotated[
        list[str] | None,
        typer.Option("--doc", help="Of this document for the question: the number of a citation, a path; repeatable."),
    ] = None,
    tenant: options.OfTenant = None,
    json: options.Json = False,
) -> None:
    """`ramify jobs export --as-eval` makes a set for `ramify eval` of it."""
    with invocation_of(ctx).client(tenant) as client:
        found = client.judge(id_, verdict, documents=doc or ())
    if json:
        streams.document(found)
    else:
        streams.note(f"{counted(len(found.documents), 'document')} judged, the answer {found.answer or 'not yet'}")


def export_jobs(
    ctx: typer.Context,
    *,
    as_eval: Annotated[Path, typer.Option("--as-eval", metavar="DIR", help="A new folder, for `ramify eval DIR`.")],
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=10_000, help="The answers judged last.")] = 1000,
    tenant: options.Tenant = None,
    json: options.Json = False,
) -> None:
    """Write kept answers with what people have said of them as a labelled set."""
    from orchestrator.evaluation.from_life import export_as_eval

    with invocation_of(ctx).client(tenant) as client:
        made = export_as_eval(client, client.judgements(limit), as_eval)
    if json:
        streams.document(made)
        return
    for reason, number in made.left_out.items():
        streams.warn(f"{counted(number, 'judged answer')} left out: {reason}")
    what = f"{counted(made.questions, 'question')}, {counted(made.documents, 'document')}"
    streams.note(f"wrote {what}, {counted(made.judgements, 'judgement')} to {made.path}: `ramify eval {made.path}`")
