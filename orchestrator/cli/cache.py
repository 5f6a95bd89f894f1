"""`cache`: what is computed once and kept in Redis; shown by kind, or deleted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of
from orchestrator.cli.text import counted

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
    with _opened(ctx) as opened:
        sizes, stats, most = opened.sizes(), opened.stats(), opened.settings.max_mb
    kinds = sorted({*sizes, *stats})
    rows = [
        {
            "kind": kind,
            "entries": sizes.get(kind, (0, 0))[0],
            "bytes": sizes.get(kind, (0, 0))[1],
            "asked": stats[kind].asked if kind in stats else 0,
            "reused": round(stats[kind].hit_rate, 3) if kind in stats else 0.0,
        }
        for kind in kinds
    ]
    if json:
        streams.document({"kinds": rows, "max_mb": most})
        return
    for row in rows:
        kept = f"{counted(row['entries'], 'entry').replace('entrys', 'entries')}, {row['bytes'] / 1e6:.2f} MB"
        typer.echo(f"{row['kind']:<12} {kept}; reused {row['reused']:.0%} of {row['asked']}")
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
