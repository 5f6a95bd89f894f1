"""`pools`: what the workers, the lanes and the servers behind gates do now."""

from __future__ import annotations

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of


def pools(ctx: typer.Context, *, json: options.Json = False) -> None:
    """Besides: how many jobs wait and run in each lane, the servers that are called, and Redis' memory."""
    from orchestrator.cli.render.pools import draw_pools
    from orchestrator.local.state import running

    invocation = invocation_of(ctx)
    with invocation.client() as client:
        operator = client.operator
        found = operator.pools(), operator.lanes(), operator.gates(), operator.stats()
    state = running(invocation.settings())
    addresses = {"HTTP": state.server_url, "Flower": state.flower_url} if state else {}
    if json:
        names = ("pools", "lanes", "gates", "stats")
        told = dict(zip(names, found, strict=True))
        streams.document({**told, "addresses": {name.lower(): url for name, url in addresses.items() if url}})
    else:
        streams.show(draw_pools(*found, addresses))
