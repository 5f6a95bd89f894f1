"""`dead`: work and documents that were retired since they killed their workers; read, replayed or dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of
from orchestrator.cli.text import counted
from shared.errors import InputError, NotFoundError, NotRunningError, RamifyError
from shared.hidden import visible

if TYPE_CHECKING:
    from orchestrator.client import Ramify

dead = typer.Typer(
    name="dead",
    help="Dead letters: work that was retired, with the evidence.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
_MOST = 10_000
DeadLetterId = Annotated[str, typer.Argument(metavar="ID", help="Of a dead letter, as `ramify dead list` shows it.")]
DeadLetterIds = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Of dead letters.")]
All = Annotated[bool, typer.Option("--all", help="All of them.")]


@dead.command("list")
def list_(
    ctx: typer.Context,
    *,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=_MOST, help="How many.")] = 20,
    tenant: options.OfTenant = None,
    json: options.Json = False,
) -> None:
    with invocation_of(ctx).client(tenant) as client:
        found, total = list(client.dead.list(limit)), client.dead.count()
    if json:
        streams.document({"total": total, "dead_letters": found})
    elif found:
        from orchestrator.cli.render.tables import draw_dead_letters

        streams.show(draw_dead_letters(found, total))
    else:
        streams.note("no dead letters")


@dead.command()
def show(
    ctx: typer.Context, dead_letter_id: DeadLetterId, *, tenant: options.OfTenant = None, json: options.Json = False
) -> None:
    with invocation_of(ctx).client(tenant) as client:
        dead_letter = client.dead.get(dead_letter_id)
    from orchestrator.cli.render.tables import draw_dead_letter

    streams.output(dead_letter, draw_dead_letter, as_json=json)


@dead.command()
def replay(
    ctx: typer.Context,
    dead_letter_ids: DeadLetterIds = None,
    *,
    all_: All = False,
    tenant: options.OfTenant = None,
    json: options.Json = False,
) -> None:

    def one(client: Ramify, dead_letter_id: str) -> dict[str, Any]:
        return client.dead.replay(dead_letter_id).model_dump(mode="json")

    _each(ctx, dead_letter_ids, one, "replayed", all_=all_, tenant=tenant, as_json=json)


@dead.command()
def drop(
    ctx: typer.Context,
    dead_letter_ids: DeadLetterIds = None,
    *,
    all_: All = False,
    tenant: options.OfTenant = None,
    json: options.Json = False,
) -> None:

    def one(client: Ramify, dead_letter_id: str) -> dict[str, Any]:
        if not client.dead.drop(dead_letter_id):
            raise NotFoundError(
                "dead letter id", dead_letter_id, "there is no such dead letter; `ramify dead list` shows them"
            )
        return {"dead_letter_id": dead_letter_id}

    _each(ctx, dead_letter_ids, one, "dropped", all_=all_, tenant=tenant, as_json=json)


@dead.command()
def quarantine(
    ctx: typer.Context,
    *,
    drop_: Annotated[bool, typer.Option("--drop", help="Forget them.")] = False,
    json: options.Json = False,
) -> None:
    with invocation_of(ctx).client(None) as client:
        found = client.dead.quarantined(drop=drop_)
    if json:
        streams.document({"quarantined": found, "dropped": drop_})
    elif found:
        from orchestrator.cli.render.tables import draw_quarantine

        streams.show(draw_quarantine(found))
    if not json:
        streams.note(f"{counted(len(found), 'thing')} {'dropped' if drop_ else 'in quarantine'}")


def _each(  # noqa: PLR0913 - two commands in one
    ctx: typer.Context,
    ids: Sequence[str] | None,
    one: Callable[[Ramify, str], dict[str, Any]],
    done: str,
    *,
    all_: bool,
    tenant: str | None,
    as_json: bool,
) -> None:
    """Every dead letter on its own: one that is refused does not keep the others from it."""
    if bool(ids) == all_:
        fix = "name dead letters, or give --all" if not all_ else "give dead letters or --all, not both"
        raise InputError("ID", " ".join(ids or ()), fix)
    taken, refused, code = list[dict[str, Any]](), list[dict[str, str]](), streams.DONE
    with invocation_of(ctx).client(tenant) as client:
        for dead_letter_id in ids or [dead_letter.id for dead_letter in client.dead.list(_MOST)]:
            try:
                taken.append(one(client, dead_letter_id))
            except NotRunningError:
                raise
            except RamifyError as error:
                refused.append({"dead_letter_id": dead_letter_id, "error": str(error)})
                streams.fail(str(error))
                code = error.exit_code
    if as_json:
        streams.document({done: taken, "refused": refused})
    else:
        for each in taken:
            made = f" as {each['job_id']}" if each.get("job_id") else ""
            typer.echo(f"{visible(each['dead_letter_id'])} {done}{made}")
        streams.note(f"{counted(len(taken), 'dead letter')} {done}")
    raise typer.Exit(streams.PARTIAL if refused and taken else code)
