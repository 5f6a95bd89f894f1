"""`webhooks`: endpoints that are told of ended jobs and batches, and what was delivered to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of
from orchestrator.operations.descriptions import description

if TYPE_CHECKING:
    from orchestrator.operations.operation import Operation

webhooks = typer.Typer(
    name="webhooks", help="Tell URLs of ended jobs and batches.", no_args_is_help=True, pretty_exceptions_enable=False
)
_Endpoint = Annotated[str, typer.Argument(metavar="ID", help="Of an endpoint, as `ramify webhooks list` shows it.")]


@webhooks.command(help=description("webhooks_add"))
def add(
    ctx: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="https://host/path of the receiver.")],
    *,
    events: Annotated[
        str | None,
        typer.Option(
            help="job.done, job.failed, job.expired, job.cancelled, batch.done, standing.notice; commas. (default: all)"
        ),
    ] = None,
    tenant: options.OfTenant = None,
    json: options.Json = False,
) -> None:
    """Print the secret on stdout, and nothing else."""
    from orchestrator.operations.webhooks import ADD

    given = {"url": url, "events": [one.strip() for one in events.split(",")] if events else ()}
    made = _run(ctx, ADD, tenant, **given)
    if json:
        streams.document(made)
        return
    typer.echo(made.secret)
    streams.note(f"endpoint {made.id} is told of {', '.join(made.events)}; this secret is shown this once")


@webhooks.command("list", help=description("webhooks_list"))
def list_(ctx: typer.Context, *, tenant: options.OfTenant = None, json: options.Json = False) -> None:
    """One line an endpoint."""
    from orchestrator.operations.webhooks import LIST

    found = _run(ctx, LIST, tenant)
    if json:
        streams.document(found)
    elif found.endpoints:
        from orchestrator.cli.render.access import draw_endpoints

        streams.show(draw_endpoints(found.endpoints))
    else:
        streams.note("no endpoints yet: `ramify webhooks add URL` registers one")


@webhooks.command(help=description("webhooks_remove"))
def remove(
    ctx: typer.Context, endpoint_id: _Endpoint, *, tenant: options.OfTenant = None, json: options.Json = False
) -> None:
    """Forget it."""
    from orchestrator.operations.webhooks import REMOVE

    removed = _run(ctx, REMOVE, tenant, id=endpoint_id)
    _say(removed, f"endpoint {removed.id} is told of nothing more", as_json=json)


@webhooks.command(help=description("webhooks_enable"))
def enable(
    ctx: typer.Context, endpoint_id: _Endpoint, *, tenant: options.OfTenant = None, json: options.Json = False
) -> None:
    """What waits for it is tried at once."""
    from orchestrator.operations.webhooks import ENABLE

    enabled = _run(ctx, ENABLE, tenant, id=endpoint_id)
    _say(enabled, f"endpoint {enabled.id} is on", as_json=json)


@webhooks.command(help=description("webhooks_deliveries"))
def deliveries(
    ctx: typer.Context,
    *,
    endpoint: Annotated[str | None, typer.Option(metavar="ID", help="Of this endpoint only.")] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=1000, help="How many.")] = 20,
    tenant: options.OfTenant = None,
    json: options.Json = False,
) -> None:
    """One line a delivery."""
    from orchestrator.operations.webhooks import DELIVERIES

    found = _run(ctx, DELIVERIES, tenant, limit=limit, **({"endpoint": endpoint} if endpoint else {}))
    if json:
        streams.document(found)
    elif found.deliveries:
        from orchestrator.cli.render.access import draw_deliveries

        streams.show(draw_deliveries(found.deliveries))
    else:
        streams.note("no deliveries")


@webhooks.command(help=description("webhooks_redeliver"))
def redeliver(
    ctx: typer.Context,
    delivery_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Of deliveries.")],
    *,
    tenant: options.OfTenant = None,
    json: options.Json = False,
) -> None:
    """They are tried again for as long as new ones."""
    from orchestrator.operations.webhooks import REDELIVER

    for delivery_id in delivery_ids:
        again = _run(ctx, REDELIVER, tenant, id=delivery_id)
        _say(again, f"delivery {again.id} is sent again", as_json=json, lines=len(delivery_ids) > 1)


@webhooks.command(help=description("webhooks_secret"))
def secret(ctx: typer.Context, *, tenant: options.Tenant = None, json: options.Json = False) -> None:
    """Print it on stdout, and nothing else."""
    from orchestrator.operations.webhooks import SECRET

    made = _run(ctx, SECRET, tenant)
    if json:
        streams.document(made)
        return
    typer.echo(made.secret)
    streams.note(f"signs what goes to URLs that requests of the tenant {made.tenant} name; it is shown this once")


def _run(ctx: typer.Context, operation: Operation[Any], tenant: str | None, **given: Any) -> Any:
    with invocation_of(ctx).client(tenant) as client:
        return operation.ask(client, {**given, **({} if tenant is None else {"tenant": tenant})})


def _say(done: Any, sentence: str, *, as_json: bool, lines: bool = False) -> None:
    if not as_json:
        streams.note(sentence)
    elif lines:
        streams.line(done)
    else:
        streams.document(done)
