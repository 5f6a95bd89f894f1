"""`store`: the store as a whole, for its operator; made, looked at, migrated, saved and restored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of
from shared.errors import InputError

if TYPE_CHECKING:
    from orchestrator.storing import Storing
    from shared.settings import Settings
    from shared.store.migration import MigrationReport
    from shared.store.snapshot_file import SnapshotFile
    from shared.store.status import CollectionReport, StoreStatus

store = typer.Typer(
    name="store",
    help="Where chunks are kept: how a Qdrant server keeps them, migrations, snapshots.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
snapshot = typer.Typer(
    name="snapshot",
    help="Save the whole store, and put it back.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
store.add_typer(snapshot)


@store.command()
def status(ctx: typer.Context, *, json: options.Json = False) -> None:
    """Collections, chunks, indexes, shards, and where they differ from the settings."""
    _show(_storing(ctx).status(), as_json=json)


@store.command()
def init(
    ctx: typer.Context,
    *,
    apply: Annotated[bool, typer.Option("--apply", help="Change in place what differs from the settings.")] = False,
    json: options.Json = False,
) -> None:
    """Make the collection, its payload indexes and its alias, where they are missing."""
    _show(_storing(ctx).init(apply=apply), as_json=json)


@store.command()
def migrate(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    *,
    to: Annotated[
        str | None, typer.Option(metavar="URL", help="Copy the embedded store to this Qdrant server.")
    ] = None,
    switch: Annotated[bool, typer.Option("--switch/--no-switch", help="Use the new collection at the end.")] = True,
    force: Annotated[bool, typer.Option("--force", help="Use it although sampled searches differ.")] = False,
    drop_old: Annotated[bool, typer.Option("--drop-old", help="Delete what was replaced, and nothing else.")] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="Give the migration up.")] = False,
    batch: Annotated[int, typer.Option(min=1, max=10_000, help="Chunks of one request.")] = 256,
    searches: Annotated[int, typer.Option(min=0, max=10_000, help="Sampled searches that are compared.")] = 64,
    json: options.Json = False,
) -> None:
    """Copy all chunks into a new collection, as the settings have it, and use that; searches and writes go on.

    Killed at any point, the same command goes on. The old collection stays until --drop-old.
    """
    if sum((to is not None, drop_old, cancel)) > 1:
        raise InputError("--to", "--drop-old, --cancel", "give one of them")
    if to is not None and not switch:
        raise InputError("--no-switch", "--to", "leave it out: the stack uses the server once its settings say so")
    storing = _storing(ctx)
    if cancel:
        name = storing.cancel_migration()
        _done({"cancelled": name}, f"{name} is deleted" if name else "no migration is under way", as_json=json)
        return
    if drop_old:
        with _progress() as tell:
            names = storing.drop_old(tell)
        _done({"dropped": names}, f"deleted {', '.join(names) or 'nothing'}", as_json=json)
        return
    from shared.store.migration import MigrationOptions

    wanted = MigrationOptions(settle_s=storing.settings.store.timeout_s, batch=batch, searches=searches)
    with _progress() as tell:
        if to is None:
            report = storing.migrate(wanted, tell, switch=switch, force=force)
        else:
            report = storing.migrate_to(_server_settings(ctx, to), wanted, tell, force=force)
    if json:
        streams.document(report)
    else:
        _tell(report, to)
    if report.fault:
        raise typer.Exit(streams.FAILED)


@snapshot.command()
def create(
    ctx: typer.Context,
    *,
    to: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Put it here, and nowhere else.", dir_okay=False)
    ] = None,
    json: options.Json = False,
) -> None:
    """Save all chunks of all tenants; searches and writes go on."""
    made = _storing(ctx).snapshot(to)
    _done(made, _line(made), as_json=json)


@snapshot.command("list")
def list_(ctx: typer.Context, *, json: options.Json = False) -> None:
    """One line a snapshot, oldest first."""
    found = _storing(ctx).snapshots()
    if json:
        streams.document(found)
        return
    for one in found:
        typer.echo(_line(one))
    if not found:
        streams.note("there is no snapshot: `ramify store snapshot create`")


@snapshot.command()
def download(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `list` shows it.", show_default=False)],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to put it.", show_default=False)],
    *,
    json: options.Json = False,
) -> None:
    """Fetch a snapshot of the server, checked by its SHA-256."""
    made = _storing(ctx).download(name, file)
    _done(made, _line(made), as_json=json)


@snapshot.command()
def delete(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `list` shows it.", show_default=False)],
    *,
    json: options.Json = False,
) -> None:
    """Remove a snapshot from the server."""
    _storing(ctx).delete_snapshot(name)
    _done({"deleted": name}, f"{name} is deleted", as_json=json)


@snapshot.command()
def restore(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A snapshot on this machine.", show_default=False)],
    *,
    json: options.Json = False,
) -> None:
    """Use what a snapshot holds. What is there now is kept beside it; an embedded store must not be in use."""
    told = _storing(ctx).restore(file)
    _done({"restored": told}, told, as_json=json)


def _storing(ctx: typer.Context) -> Storing:
    from orchestrator.storing import Storing

    return Storing(invocation_of(ctx).settings())


def _server_settings(ctx: typer.Context, url: str) -> Settings:
    """The settings with the server as the store: so its key may go there alone, and its URL is checked."""
    from shared.settings import load_settings

    overrides = invocation_of(ctx).overrides
    given = overrides.get("store") or {}
    return load_settings(**{**overrides, "store": {**given, "kind": "server", "url": url}})


@contextmanager
def _progress() -> Iterator[Callable[..., None]]:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with streams.progress("preparing", *columns) as update:

        def tell(progress: Any) -> None:
            update(description=progress.doing, completed=progress.done, total=progress.total or None)

        yield tell


def _done(value: object, sentence: str, *, as_json: bool) -> None:
    if as_json:
        streams.document(value)
    else:
        typer.echo(sentence)


def _line(one: SnapshotFile) -> str:
    where = one.path or f"{one.name} (on the server)"
    checked = f", sha256 {one.sha256}" if one.sha256 else ""
    return f"{where}: {one.bytes:,} bytes{checked}{f', {one.created}' if one.created else ''}"


def _tell(report: MigrationReport, to: str | None) -> None:
    found = report.verification
    more = f"; {report.mended:,} were mended" if report.mended else ""
    more += f"; {report.embedded:,} got their vectors afterwards" if report.embedded else ""
    typer.echo(
        f"{report.source} -> {report.target}: {found.copied:,} of {found.chunks:,} chunks{more}; {report.seconds} s"
    )
    if found.keyword_overlap is not None:
        typer.echo(
            f"{found.searches} sampled searches: keywords find {found.keyword_overlap:.1%} of what they found before"
        )
    if found.dense_overlap is not None and found.dense_before is not None:
        before = f"(before: {found.dense_before:.1%})"
        typer.echo(f"vectors find {found.dense_overlap:.1%} of what an exact search of {report.source} finds {before}")
    if report.fault:
        streams.fail(report.fault)
    elif to:
        streams.note("now end the stack, run this once more for what came meanwhile, and let the settings say:")
        typer.echo(f'[store]\nkind = "server"\nurl = "{to}"')
    elif report.switched:
        streams.note(f"{report.target} is in use; {report.source} stays until `ramify store migrate --drop-old`")
    else:
        streams.note(f"{report.target} is whole and gets every write; `ramify store migrate` lets it be used")


def _show(found: StoreStatus, *, as_json: bool) -> None:
    if as_json:
        streams.document(found)
        return
    size = f", {found.bytes / 1e6:,.1f} MB" if found.bytes is not None else ""
    server = f"Qdrant {found.server} at {found.place}" if found.server else found.place
    typer.echo(f"{found.kind}: {server}, {found.collection}{size}")
    if found.built_with:
        dense = f"{found.built_with.dense} ({found.built_with.dim} numbers)" if found.built_with.dense else "none"
        typer.echo(f"{found.chunks:,} chunks of {found.tenants} tenants, {found.built_with.sparse}, dense {dense}")
    for one in found.collections:
        typer.echo(_described(one))
    for done in found.done:
        streams.note(done)
    streams.warn_all(found.warnings)


def _described(one: CollectionReport) -> str:
    sizes = [
        f"{name} {size / 1e6:,.1f} MB"
        for name, size in (("vectors", one.vectors_bytes), ("texts", one.payload_bytes))
        if size
    ]
    parts = [
        f"{one.name}: {one.use}, {one.state}, optimizer {one.optimizer}",
        f"{one.chunks:,} chunks in {one.segments} segments, {one.indexed_vectors:,} vectors indexed",
        f"{one.shards} shards with {one.replicas} copies",
        *sizes,
    ]
    return "; ".join(parts)
