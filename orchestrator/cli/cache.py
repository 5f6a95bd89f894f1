"""`cache`: what is computed once and kept in Redis; shown by kind, or deleted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of

if TYPE_CHECKING:
    from shared.cache import Cache

cache = typer.Typer(
    name="cache",
    help="The cache: LLM replies, embeddings, reranks and leaves that are reused across jobs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@contextmanager
def _opened(ctx: typer.Context) -> Iterator[Cache]:
    from orchestrator.local.state import connection
    from shared.cache import Cache
    from shared.jobs import connect

    settings = connection(invocation_of(ctx).settings())
    with connect(settings) as client:
        yield Cache(client, settings)


@cache.command()
def show(ctx: typer.Context, *, json: options.Json = False) -> None:
    """Show entries, bytes and how often they were reused, by kind."""
    from shared.cache import CacheStats

    with _opened(ctx) as opened:
        sizes, stats, most = opened.sizes(), opened.stats(), opened.settings.max_mb
    rows = [(kind, *sizes.get(kind, (0, 0)), stats.get(kind, CacheStats())) for kind in sorted({*sizes, *stats})]
    if json:
        kinds = [
            {"kind": kind, "entries": entries, "bytes": size, "asked": said.asked, "reused": round(said.hit_rate, 3)}
            for kind, entries, size, said in rows
        ]
        streams.document({"kinds": kinds, "max_mb": most})
        return
    for kind, entries, size, said in rows:
        kept = f"{entries:,} {'entry' if entries == 1 else 'entries'}, {size / 1e6:.2f} MB"
        typer.echo(f"{kind:<12} {kept}; reused {said.hit_rate:.0%} of {said.asked:,}")
    total = sum(size for _, size in sizes.values()) / 1e6
    streams.note(f"{total:.2f} MB in all" + (f", at most {most} MB (cache.max_mb)" if most else ""))


@cache.command()
def clear(ctx: typer.Context, *, json: options.Json = False) -> None:
    """Delete all entries: what is asked again is computed again, and paid for again."""
    with _opened(ctx) as opened:
        deleted = opened.clear()
    if json:
        streams.document({"deleted": deleted})
    else:
        streams.note(f"deleted {deleted:,} of the cache's entries")
