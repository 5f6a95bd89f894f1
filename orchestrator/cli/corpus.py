"""`ingest` and `find`: documents in, passages out, without a job."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` must not wait for Celery and Qdrant

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of
from orchestrator.cli.search import Plan, Related, TargetUri
from shared.tenants import DEFAULT_TENANT

if TYPE_CHECKING:
    from orchestrator.ingest import Progress
    from shared.models import DocumentOutcome


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
    with invocation_of(ctx).client() as client:
        whose = {"namespace": namespace or "default", "tenant": tenant or DEFAULT_TENANT}
        steps = client.ingest(paths, prune=prune, **whose)
        counts, passed_over, last = _take(steps, as_json=json)
    for sentence in passed_over:
        streams.warn(f"passed over: {sentence}")
    warnings = last.warnings if last else ()
    for sentence in warnings:
        streams.warn(sentence)
    if not sum(counts.values()):
        streams.warn("no documents were found there")
    if json:
        streams.line({**counts, "passed_over": passed_over, "warnings": warnings, **_pace(last)})
    else:
        from orchestrator.cli.render.system import draw_ingest, draw_pace

        streams.show(draw_ingest(counts))
        if last is not None and last.read and last.seconds:
            streams.show(draw_pace(last.read, last.seconds, last.parts))
    if counts["failed"]:
        raise typer.Exit(streams.PARTIAL)


def _take(steps: Iterable[Progress], *, as_json: bool) -> tuple[dict[str, int], list[str], Progress | None]:
    """Follow an ingest to its end: documents by status with the chunks written, what was passed over, the last step."""
    from shared.models import DocumentStatus

    counts = Counter[str]()
    passed_over: list[str] = []
    last: Progress | None = None
    with _progress() as advance:
        for step in steps:
            last = step
            passed_over += step.passed_over
            for document in step.outcomes:
                counts[document.status.value] += 1
                counts["chunks"] += document.chunks
                _report(document, as_json=as_json)
            advance(step)
    names = (*(status.value for status in DocumentStatus), "chunks")
    return {name: counts[name] for name in names}, passed_over, last


def _pace(last: Progress | None) -> dict[str, object]:
    """How long it took, as the last line of --json says it. Parts: seconds of the workers, by what they did."""
    if last is None:
        return {}
    rate = round(last.read / last.seconds, 1) if last.seconds else None
    parts = {name: round(seconds, 3) for name, seconds in last.parts.items()}
    return {"files": last.read, "seconds": round(last.seconds, 3), "files_per_s": rate, "parts": parts}


def _report(document: DocumentOutcome, *, as_json: bool) -> None:
    if as_json:
        streams.line(document)
    if document.reason:
        streams.warn(f"{document.path}: {document.reason}")


@contextmanager
def _progress() -> Iterator[Any]:
    """A bar on a terminal; a function that takes each step."""
    console = streams.progress_console()
    if not console.is_terminal:
        yield lambda _: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    rate = TextColumn("files  {task.fields[rate]:.0f} files/s")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate, TimeElapsedColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("ingest", total=None, rate=0.0)

        def advance(step: Progress) -> None:
            pace = step.read / step.seconds if step.seconds else 0.0
            bar.update(task, completed=step.read, total=step.total, rate=pace)

        yield advance


def find(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to search for; - reads it from stdin.")],
    *,
    mode: options.Mode = None,
    strategy: options.Strategy = None,
    explain: options.Explain = False,
    near_symbol: options.NearSymbol = None,
    depth: options.Depth = None,
    top: options.Top = None,
    after: options.After = None,
    before: options.Before = None,
    tag: options.Tag = None,
    kind: options.Kind = None,
    path: options.PathPrefix = None,
    target_uri: TargetUri = None,
    namespace: options.Namespace = None,
    tenant: options.Tenant = None,
    plan: Plan = False,
    related: Related = None,
    json: options.Json = False,
) -> None:
    """Search at once: one query, no tree, no summary."""
    from orchestrator.cli.streams import text_argument

    beside = options.given(
        plan=plan or None, related=related, target_uri=target_uri, near_symbol=near_symbol, depth=depth, tenant=tenant
    )
    chosen = (
        beside
        | options.given(mode=mode, strategy=strategy, explain=explain or None, top_n=top)
        | options.filters(after=after, before=before, tags=tag, kinds=kind, paths=path, namespace=namespace)
    )
    text = text_argument("QUERY", query)
    with invocation_of(ctx).client() as client:
        found = client.find(text, **chosen)
    if json:
        streams.document(found)
    else:
        from orchestrator.cli.render.grouped import draw_found

        streams.show(draw_found(found))
    for warning in found.warnings:
        streams.warn(warning)
