"""`watch` with its commands: standing questions, asked again when the corpus changes or by the clock."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of
from shared.errors import InputError

if TYPE_CHECKING:
    from shared.models.standing import Notice, StandingStatus

_EVERY = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d)", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_NOTICES = 5

watch = typer.Typer(
    name="watch",
    help="Standing questions: asked again when the corpus changes, and told of when what they cite does.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
StandingId = Annotated[str, typer.Argument(metavar="ID", help="Of a standing question, as `ramify watch list` has it.")]


@watch.command()
@options.shared
def add(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    question: Annotated[str, typer.Argument(help="The question.")],
    *,
    every: Annotated[
        str | None, typer.Option(metavar="TIME", help="Ask it anew each 30m, 1h, 2d, whatever has changed.")
    ] = None,
    on_change: Annotated[
        bool, typer.Option("--on-change", help="When the corpus changes what its answer is written from (the default).")
    ] = False,
    notify: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="Beside the list of notices: https://URL, file:PATH, or command:NAME of standing.commands.",
        ),
    ] = None,
    json: options.Json = False,
    **given: Unpack[options.PlanOptions],
) -> None:
    """The first answer is what changes are told against."""
    if every is not None and on_change:
        raise InputError("--every", every, "give either --every or --on-change")
    fields = options.request_fields(given)
    tenant = fields.pop("tenant", None)
    with invocation_of(ctx).client(tenant) as client:
        kept = client.watch(question, every_s=seconds(every), notify=_notify(notify), **fields)
    if json:
        streams.document(kept)
        return
    typer.echo(kept.id)
    streams.note(f"`ramify watch why {kept.id}` says how far it is")


def seconds(every: str | None) -> float | None:
    """A time as "1h" in seconds. Raises: InputError."""
    if every is None:
        return None
    if (found := _EVERY.fullmatch(every)) is None:
        raise InputError("--every", every, "write a number and s, m, h or d: 30m, 1h, 2d")
    return float(found[1]) * _SECONDS[found[2]]


def _notify(given: str | None) -> dict[str, Any] | None:
    if given is None:
        return None
    if given.startswith(("https://", "http://")):
        return {"by": "webhook", "target": given}
    by, _, target = given.partition(":")
    if by not in {"file", "command", "webhook"} or not target:
        raise InputError("--notify", given, "write https://URL, file:PATH or command:NAME")
    return {"by": by, "target": target}


@watch.command(name="list")
def list_(ctx: typer.Context, *, tenant: options.OfTenant = None, json: options.Json = False) -> None:
    with invocation_of(ctx).client(tenant) as client:
        found = client.standing.all()
    if json:
        streams.document({"standing": found})
    elif found:
        from orchestrator.cli.render.standing import draw_standing

        streams.show(draw_standing(found))
    else:
        streams.note('no standing questions: `ramify watch add "..."` keeps one')


@watch.command()
def why(ctx: typer.Context, id_: StandingId, *, tenant: options.OfTenant = None, json: options.Json = False) -> None:
    with invocation_of(ctx).client(tenant) as client:
        found, notices = client.standing.get(id_), client.standing.notices(id_, _NOTICES)
    _show(found, notices, as_json=json)


def _show(found: StandingStatus, notices: list[Notice], *, as_json: bool) -> None:
    if as_json:
        streams.document({**found.model_dump(mode="json"), "last_notices": notices})
        return
    from orchestrator.cli.render.standing import draw_why

    streams.show(draw_why(found, notices))


@watch.command()
def remove(ctx: typer.Context, id_: StandingId, *, tenant: options.OfTenant = None, json: options.Json = False) -> None:
    with invocation_of(ctx).client(tenant) as client:
        gone = client.standing.remove(id_)
    if json:
        streams.document(gone)
    else:
        typer.echo(f"removed: {gone.question.request.question}")
