"""`keys`: API keys of callers over a network; made, listed and revoked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of
from orchestrator.operations.descriptions import description

if TYPE_CHECKING:
    from rich.console import RenderableType

    from orchestrator.operations.keys import KeyList

keys = typer.Typer(
    name="keys", help="API keys of callers over a network.", no_args_is_help=True, pretty_exceptions_enable=False
)


@keys.command(help=description("keys_create"))
def create(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    *,
    tenant: options.Tenant = None,
    scope: Annotated[
        list[str] | None, typer.Option(help="read, ask, write or admin; repeatable. (default: read and ask)")
    ] = None,
    name: Annotated[str, typer.Option(help="For people.")] = "",
    rate: Annotated[
        int | None, typer.Option(help="Requests a minute. (default: keys.requests_per_minute)", show_default=False)
    ] = None,
    open_jobs: Annotated[
        int | None, typer.Option(help="Open jobs and batches. (default: keys.open_jobs)", show_default=False)
    ] = None,
    days: Annotated[float | None, typer.Option(help="Days until it expires. (default: never)")] = None,
    json: options.Json = False,
) -> None:
    """Print the key on stdout, and nothing else."""
    from orchestrator.operations.keys import CREATE

    given = {
        "tenant": tenant, "scopes": scope, "name": name, "requests_per_minute": rate, "open_jobs": open_jobs,
        "days": days,
    }  # fmt: skip
    with invocation_of(ctx).client() as client:
        made = CREATE.ask(client, {field: value for field, value in given.items() if value is not None})
    if json:
        streams.document(made)
        return
    typer.echo(made.secret)
    streams.note(f"key {made.id} of tenant {made.tenant}: it is shown this once, and kept nowhere")


@keys.command("list", help=description("keys_list"))
def list_(ctx: typer.Context, *, tenant: options.OfTenant = None, json: options.Json = False) -> None:
    """One line a key."""
    from orchestrator.operations.keys import LIST

    with invocation_of(ctx).client() as client:
        found = LIST.ask(client, {"tenant": tenant})
    if json or found.keys:
        streams.output(found, _draw, as_json=json)
    else:
        streams.note("no keys yet: `ramify keys create` makes one")


@keys.command(help=description("keys_revoke"))
def revoke(
    ctx: typer.Context,
    key_id: Annotated[str, typer.Argument(metavar="ID", help="Of a key, as `ramify keys list` shows it.")],
    *,
    json: options.Json = False,
) -> None:
    """A stream that runs by it ends within seconds."""
    from orchestrator.operations.keys import REVOKE

    with invocation_of(ctx).client() as client:
        revoked = REVOKE.ask(client, {"id": key_id})
    if json:
        streams.document(revoked)
    else:
        streams.note(f"key {revoked.id} of tenant {revoked.tenant} is refused from now on")


def _draw(found: KeyList) -> RenderableType:
    import time

    from orchestrator.cli.render.access import draw_keys

    return draw_keys(found.keys, time.time())
