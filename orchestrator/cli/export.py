"""`export`: an answer, or the answers of a batch, with their sources, as one file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, output_files, streams
from orchestrator.cli.invocation import invocation_of
from shared.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable


def export(
    ctx: typer.Context,
    id_: Annotated[str, typer.Argument(metavar="ID", help="Of a job that is done, or of a batch.")],
    *,
    form: Annotated[
        str, typer.Option("--format", help="md, html, json; of the cited documents alone: bibtex, csl.")
    ] = "md",
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR/|FILE", help="Write it there; DIR/ is made. (default: standard output)"),
    ] = None,
    tenant: options.OfTenant = None,
) -> None:
    """Write an answer, or the answers of a batch, with the documents that they cite."""
    from orchestrator.exporting import exported, kind_of

    kind = kind_of(form)
    path = None if out is None else _file_at(out, f"{id_}{kind.ending}")
    if path is not None:
        streams.writable("--out", path)
    with invocation_of(ctx).client(tenant) as client:
        pieces = exported(client, id_, kind)
        if path is None:
            for piece in pieces:
                typer.echo(piece, nl=False)
            return
        _write(path, pieces)
    streams.note(f"wrote {path}")


def _file_at(out: str, name: str) -> Path:
    """The file that is meant: of that name where `out` is a folder, or ends like one, which is made then."""
    path = Path(out)
    if not (path.is_dir() or out.endswith(("/", os.sep))):
        return path
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("--out", out, f"this folder cannot be made ({error.strerror})") from None
    return path / name


def _write(path: Path, pieces: Iterable[str]) -> None:
    """In one step: what was there stays until the new one is complete."""
    try:
        with output_files.replacing(path) as file:
            for piece in pieces:
                file.write(piece.encode("utf-8", "replace"))
    except OSError as error:
        raise InputError("--out", str(path), f"it cannot be written ({error.strerror})") from None
