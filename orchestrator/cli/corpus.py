"""`ingest`: documents into the corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of
from orchestrator.cli.text import counted
from shared.errors import InputError

if TYPE_CHECKING:
    from orchestrator.client import Ramify
    from orchestrator.documents.ingest import Progress
    from orchestrator.documents.watching import FolderWatch


def ingest(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Files and folders: Markdown, PDF, office files, code ...")
    ],
    *,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove documents whose files are gone from these paths.")
    ] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Print the job's id and end; the job goes on.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Then keep one folder fresh: each change is ingested, until ctrl-C.")
    ] = False,
    poll: Annotated[
        bool, typer.Option("--poll", help="With --watch, where the file system tells of no changes (network folders).")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done, and how many answers it would touch.")
    ] = False,
    deadline_s: Annotated[
        float | None, typer.Option("--deadline", help="Seconds that the job may take. (default: a day)")
    ] = None,
    namespace: options.Namespace = None,
    tenant: options.Tenant = None,
    json: options.Json = False,
) -> None:
    """Put documents into the corpus. What has not changed is left alone; a bad file is reported and skipped."""
    if watch and (detach or len(paths) != 1 or not paths[0].is_dir()):
        raise InputError("--watch", " ".join(map(str, paths)), "name one folder, without --detach")
    if dry_run and (watch or detach):
        raise InputError("--dry-run", "beside --watch or --detach", "give it without them")
    namespace = namespace or "default"
    with invocation_of(ctx).client(tenant) as client, _watched(paths if watch else [], poll=poll) as watched:
        differ = client.settings_differ()
        if detach:
            streams.warn_all((differ,))
            _detach(client, paths, prune=prune, deadline_s=deadline_s, namespace=namespace, as_json=json)
            return
        steps = client.ingest(paths, prune=prune, deadline_s=deadline_s, namespace=namespace, dry_run=dry_run)
        seen = _JobSeen(steps)
        try:
            counts, passed_over, last = follow_ingest(seen, as_json=json)
        except KeyboardInterrupt:
            streams.note(seen.goes_on)
            raise typer.Exit(streams.INTERRUPTED) from None
        code = _told(counts, passed_over, last, differ, as_json=json)
        _tell_stale(last, dry_run=dry_run)
        if watched is not None:
            from orchestrator.cli.watching import watch_folder

            code = watch_folder(client, watched, namespace=namespace, as_json=json)
    raise typer.Exit(code)


def _tell_stale(last: Progress | None, *, dry_run: bool) -> None:
    """How many kept answers it has touched, or would."""
    if dry_run:
        answers = f"up to {counted(last.stale if last else 0, 'kept answer')} would be stale"
        streams.note(f"nothing was put in; {answers}, besides those that new documents would touch")
    elif last is not None and last.stale:
        answers = counted(last.stale, "kept answer")
        streams.note(f"it made {answers} stale: `ramify jobs --stale`, `ramify refresh --stale`")


def _watched(paths: list[Path], *, poll: bool) -> AbstractContextManager[FolderWatch | None]:
    """The folder, watched from before its first ingest on: what changes meanwhile is in the next one."""
    if not paths:
        return nullcontext()
    from orchestrator.documents.watching import FolderWatch

    return FolderWatch(paths[0], poll=poll)


class _JobSeen:
    """The steps of an ingest, and what a person should know who stops listening to them."""

    def __init__(self, steps: Iterable[Progress]) -> None:
        self._steps, self._last, self._other = iter(steps), "", ""

    def __iter__(self) -> Iterator[Progress]:
        for step in self._steps:
            if step.waits and self._other != step.job_id:
                self._other = step.job_id
                streams.note(f"job {step.job_id} is at these files: this one begins when it has ended")
            if not step.waits:
                self._last = step.job_id
            yield step

    @property
    def goes_on(self) -> str:
        """A sentence for ctrl-C."""
        if not self._last:
            return "nothing was submitted"
        return (
            f"job {self._last} goes on with what it has: `ramify status {self._last} --watch` follows it, "
            f"`ramify cancel {self._last}` ends it"
        )


def _detach(  # noqa: PLR0913 - what the command line says
    client: Ramify, paths: list[Path], *, prune: bool, deadline_s: float | None, namespace: str, as_json: bool
) -> None:
    """Submit, print the id, end; where bytes must travel, when all are handed over."""
    if not client.reads_by_name():
        streams.note("the index pool cannot read the files of this machine: they are handed over, this takes a while")
    job_id = client.start_ingest(paths, prune=prune, namespace=namespace, deadline_s=deadline_s)
    if as_json:
        streams.document({"job_id": job_id})
        return
    typer.echo(job_id)
    streams.note(f"`ramify status {job_id} --watch` follows it, `ramify result {job_id}` says what became of it")


def _told(
    counts: dict[str, int], passed_over: list[str], last: Progress | None, differ: str | None, *, as_json: bool
) -> int:
    """What became of an ingest, for people or as the last line of JSON; returns the exit code."""
    for sentence in passed_over:
        streams.warn(f"passed over: {sentence}")
    warnings = last.warnings if last else ()
    streams.warn_all((*warnings, differ))
    if not sum(counts.values()):
        streams.warn("no documents were found there")
    if as_json:
        job = {"job_id": last.job_id} if last and last.job_id else {}
        stale = {"stale": last.stale} if last else {}
        streams.line({**job, **counts, **stale, "passed_over": passed_over, "warnings": warnings, **pace(last)})
    else:
        from orchestrator.cli.render.ingests import draw_ingest, draw_pace

        streams.show(draw_ingest(counts))
        if last is not None and last.read and last.seconds:
            streams.show(draw_pace(last.read, last.seconds, last.parts))
    return streams.PARTIAL if counts["failed"] else streams.DONE


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
