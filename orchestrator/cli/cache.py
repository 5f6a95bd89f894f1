"""`cache`: what is computed once and kept in Redis; shown by kind, or deleted."""

from __future__ import annotations

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of

cache = typer.Typer(
    name="cache",
    help="The cache: LLM replies, embeddings, reranks and leaves that are reused across jobs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@cache.command()
def show(ctx: typer.Context, *, json: options.Json = False) -> None:
    with invocation_of(ctx).client() as client:
        found = client.operator.cache()
    if json:
        streams.document(found)
        return
    for one in found.kinds:
        kept = f"{one.entries:,} {'entry' if one.entries == 1 else 'entries'}, {one.bytes / 1e6:.2f} MB"
        typer.echo(f"{one.kind:<12} {kept}; reused {one.reused:.0%} of {one.asked:,}")
    total = sum(one.bytes for one in found.kinds) / 1e6
    streams.note(f"{total:.2f} MB in all" + (f", at most {found.max_mb} MB (cache.max_mb)" if found.max_mb else ""))


@cache.command()
def clear(ctx: typer.Context, *, json: options.Json = False) -> None:
    with invocation_of(ctx).client() as client:
        deleted = client.operator.clear_cache()
    if json:
        streams.document({"deleted": deleted})
    else:
        streams.note(f"deleted {deleted:,} of the cache's entries")
