"""`show`, and `corpus` with its commands: passages of documents, and what documents there are."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of
from orchestrator.cli.text import counted
from orchestrator.text_lines import one_line

if TYPE_CHECKING:
    from shared.models import DocumentOutcome
    from shared.models.corpus import Passage

#: A citation of a job's answer.
_CITED = re.compile(r"([0-9a-z\-]{8,40})#(\d{1,4})")
_SHOWN = 12
#: The namespace of a command that names none.
DEFAULT = "default"

corpus = typer.Typer(
    name="corpus",
    help="The documents: how many of which kind, folder, format, language, date and size, and how fresh they are.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
)
Document = Annotated[str, typer.Argument(metavar="DOC", help="Id, path or title of a document, or a part of one.")]


def show(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    document: Annotated[
        str, typer.Argument(metavar="DOC|JOB#N", help="Id, path or title of a document; or a citation of an answer.")
    ],
    *,
    page: Annotated[int | None, typer.Option(min=1, help="This page (or slide).")] = None,
    chunk: Annotated[str | None, typer.Option(metavar="ID", help="This chunk, marked.")] = None,
    quote: Annotated[str | None, typer.Option(metavar="TEXT", help="This quote, marked.")] = None,
    around: Annotated[int, typer.Option(min=0, max=20_000, help="Characters before and behind what is marked.")] = 600,
    width: Annotated[int | None, typer.Option(min=20, help="Columns at which lines are broken.")] = None,
    namespace: options.Namespace = None,
    tenant: options.Tenant = None,
    json: options.Json = False,
) -> None:
    with invocation_of(ctx).client(tenant) as client:
        if cited := _CITED.fullmatch(document):
            passage = client.corpus.cited(cited[1], int(cited[2]), around)
        else:
            wanted = {"page": page, "chunk_id": chunk, "quote": quote, "around": around}
            passage = client.corpus.passage(document, namespace=namespace or DEFAULT, **wanted)
    _print(passage, width, as_json=json)


def _print(passage: Passage, width: int | None, *, as_json: bool) -> None:
    if as_json:
        streams.document(passage)
        return
    from orchestrator.cli.render.documents import draw_passage

    console = streams.console()
    on_terminal = console.is_terminal
    if width is not None:
        console.width = width
    elif not on_terminal:
        console.width = max(80, max(map(len, passage.text.split("\n"))) * 2)
    console.print(draw_passage(passage, styled=on_terminal))


@corpus.callback()
def overview(
    ctx: typer.Context,
    *,
    namespace: Annotated[str | None, typer.Option(help="Of this namespace alone. (default: all)")] = None,
    tenant: options.Tenant = None,
    json: options.Json = False,
) -> None:
    """What documents there are, counted, and how fresh they are."""
    if ctx.invoked_subcommand is not None:
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn

    from orchestrator.cli.render.documents import draw_overview

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with invocation_of(ctx).client(tenant) as client, streams.progress("documents", *columns) as update:
        found = client.corpus.overview(namespace, lambda done, total: update(completed=done, total=total))
    streams.output(found, draw_overview, as_json=json)


@corpus.command("show")
def show_document(
    ctx: typer.Context,
    document: Document,
    *,
    namespace: options.Namespace = None,
    tenant: options.Tenant = None,
    json: options.Json = False,
) -> None:
    """`ramify show` prints its text."""
    from orchestrator.cli.render.documents import draw_document

    with invocation_of(ctx).client(tenant) as client:
        streams.output(client.corpus.document(document, namespace or DEFAULT), draw_document, as_json=json)


@corpus.command()
def remove(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    documents: Annotated[list[str], typer.Argument(metavar="DOC|FOLDER...", help="Documents, or folders of them.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    namespace: options.Namespace = None,
    tenant: options.Tenant = None,
    json: options.Json = False,
) -> None:
    with invocation_of(ctx).client(tenant) as client:
        chosen = client.corpus.chosen(documents, namespace or DEFAULT)
        if not yes:
            _confirm([one.path for one in chosen])
        outcomes = list(client.corpus.remove(chosen))
    _removed(outcomes, as_json=json)


def _confirm(paths: list[str]) -> None:
    """Ask on a terminal. Raises: InputError elsewhere, typer.Exit where the answer is no."""
    from shared.errors import InputError

    if not sys.stdin.isatty():
        raise InputError(
            "corpus remove", counted(len(paths), "document"), "add --yes to remove them without a question"
        )
    for path in paths[:_SHOWN]:
        streams.note(one_line(path))
    if len(paths) > _SHOWN:
        streams.note(f"... and {len(paths) - _SHOWN} more")
    if not typer.confirm(f"Remove {counted(len(paths), 'document')} from the corpus?", err=True):
        raise typer.Exit(streams.FAILED)


def _removed(outcomes: list[DocumentOutcome], *, as_json: bool) -> None:
    if as_json:
        streams.document({"removed": outcomes})
    else:
        streams.note(f"removed {counted(len(outcomes), 'document')}")


@corpus.command()
def export(
    ctx: typer.Context,
    to: Annotated[Path, typer.Argument(metavar="DIR|FILE.jsonl", help="A folder, or a file of JSON lines.")],
    *,
    namespace: options.Namespace = None,
    tenant: options.Tenant = None,
    json: options.Json = False,
) -> None:
    """Write all documents with text and metadata as JSON lines, which `ramify ingest` reads."""
    from rich.progress import MofNCompleteColumn, TextColumn

    columns = (TextColumn("{task.description}"), MofNCompleteColumn())
    written = 0
    with invocation_of(ctx).client(tenant) as client, streams.progress("documents", *columns) as update:
        for written, _ in enumerate(client.corpus.export(to, namespace or DEFAULT), start=1):
            update(completed=written)
    if json:
        streams.document({"documents": written, "path": str(to)})
    else:
        streams.note(f"wrote {counted(written, 'document')} to {one_line(str(to))}")
