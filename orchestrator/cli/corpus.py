"""`ingest`: documents into the corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of

if TYPE_CHECKING:
    from orchestrator.ingest import Progress


def ingest(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Files and folders: Markdown, plain text, JSON Lines.")
    ],
    *,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove documents whose files are gone from these paths.")
    ] = False,
    namespace: options.Namespace = None,
    tenant: options.Tenant = None,
    json: options.Json = False,
) -> None:
    """Put documents into the corpus. What has not changed is left alone; a bad file is reported and skipped."""
    with invocation_of(ctx).client(tenant) as client:
        differ = client.settings_differ()
        steps = client.ingest(paths, prune=prune, namespace=namespace or "default")
        counts, passed_over, last = follow_ingest(steps, as_json=json)
    for sentence in passed_over:
        streams.warn(f"passed over: {sentence}")
    warnings = last.warnings if last else ()
    streams.warn_all((*warnings, differ))
    if not sum(counts.values()):
        streams.warn("no documents were found there")
    if json:
        streams.line({**counts, "passed_over": passed_over, "warnings": warnings, **pace(last)})
    else:
        from orchestrator.cli.render.system import draw_ingest, draw_pace

        streams.show(draw_ingest(counts))
        if last is not None and last.read and last.seconds:
            streams.show(draw_pace(last.read, last.seconds, last.parts))
    if counts["failed"]:
        raise typer.Exit(streams.PARTIAL)


def follow_ingest(steps: Iterable[Progress], *, as_json: bool) -> tuple[dict[str, int], list[str], Progress | None]:
    """Follow an ingest to its end: documents by status with the chunks written, what was passed over, the last step."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    from shared.models import DocumentStatus

    counts = Counter[str]()
    passed_over: list[str] = []
    last: Progress | None = None
    rate = TextColumn("files  {task.fields[rate]:.0f} files/s")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate, TimeElapsedColumn())
    with streams.progress("ingest", *columns, rate=0.0) as update:
        for last in steps:
            passed_over += last.passed_over
            for document in last.outcomes:
                counts[document.status.value] += 1
                counts["chunks"] += document.chunks
                if as_json:
                    streams.line(document)
                if document.reason:
                    streams.warn(f"{document.path}: {document.reason}")
            update(completed=last.read, total=last.total, rate=last.read / last.seconds if last.seconds else 0.0)
    names = (*(status.value for status in DocumentStatus), "chunks")
    return {name: counts[name] for name in names}, passed_over, last


def pace(last: Progress | None) -> dict[str, object]:
    """How long it took, as the last line of --json says it. Parts: seconds of the workers, by what they did."""
    if last is None:
        return {}
    rate = round(last.read / last.seconds, 1) if last.seconds else None
    parts = {name: round(seconds, 3) for name, seconds in last.parts.items()}
    return {"files": last.read, "seconds": round(last.seconds, 3), "files_per_s": rate, "parts": parts}
