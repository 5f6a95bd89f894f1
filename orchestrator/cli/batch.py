"""`batch`: many questions from a file or stdin, streamed into one batch; refused lines go to a file of their own."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` must not wait for Celery and Qdrant

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.live import Live

from orchestrator.cli import options, streams
from orchestrator.cli.follow import GRACE_S
from orchestrator.cli.invocation import invocation_of
from orchestrator.cli.render.tables import draw_batch
from orchestrator.cli.wording import counted
from orchestrator.client import Ramify
from orchestrator.outage import Outage
from shared.errors import InputError, NotFoundError, NotRunningError, RamifyError
from shared.models import Answer, BatchStatus, JobStatus
from shared.models.base import Model

# --- Follows a batch to its end: counts, pace and time left on stderr, and each job as it ends for whoever asks.

_POLL_S = 0.5
#: Seconds between two looks for jobs that ended uncounted: it reads every open job.
_RECONCILE_S = 10.0
#: Seconds between two lines where there is no terminal.
_LINE_S = 10.0
#: Open jobs looked at in one round.
_ROUND = 500


class EndedJobs:
    """Tells of each job once, when it has ended; looks at the open ones in turns, so that a large batch stays cheap."""

    def __init__(self, client: Ramify, job_ids: Iterable[str], tell: Callable[[JobStatus], None]) -> None:
        self._client, self._tell = client, tell
        self._open = deque(dict.fromkeys(job_ids))
        self._told = 0

    def look(self, finished: int) -> None:
        """Look at the next open jobs, while fewer were told of than have `finished`."""
        for _ in range(min(_ROUND, len(self._open))):
            if self._told >= finished:
                return
            job_id = self._open.popleft()
            try:
                status = self._client.status(job_id)
            except NotFoundError:  # expired: nothing more will come of it
                self._told += 1
                continue
            except NotRunningError:
                self._open.appendleft(job_id)
                raise
            if status.terminal:
                self._told += 1
                self._tell(status)
            else:
                self._open.append(job_id)

    def rest(self) -> None:
        """Tell of all that have ended and were not told of yet."""
        for _ in range(-(-len(self._open) // _ROUND)):
            self.look(self._told + len(self._open))


def follow_batch(
    client: Ramify,
    batch_id: str,
    *,
    until: float | None = None,
    on_change: Callable[[Any], None] | None = None,
    ended: EndedJobs | None = None,
) -> BatchStatus:
    """Show a batch until all its jobs have ended, or `until` (Unix seconds) is past.

    Without `until`: the longest deadline that the settings give, from the last change on. `on_change` is given each
    new count, `ended` each look. Raises: NotFoundError, NotRunningError when Redis is away for longer than OUTAGE_S.
    """
    console = streams.progress_console()
    watch = _Watch(client, batch_id)
    live = Live(console=console, get_renderable=watch.draw, refresh_per_second=4, transient=True)
    with live if console.is_terminal else nullcontext():
        patience = max(client.settings.jobs.batch_deadline_s, client.settings.jobs.deadline_s) + GRACE_S
        while True:
            try:
                changed = watch.look()
                if ended:
                    ended.look(watch.status.finished)
            except NotRunningError as error:
                watch.outage.pause(error)
                continue
            watch.outage.reset()
            if changed and on_change and not watch.status.terminal:
                on_change(watch.status)
            limit = until if until is not None else watch.changed_at + patience
            if watch.status.terminal or time.time() > limit:
                break
            if not console.is_terminal:
                watch.say()
            time.sleep(_POLL_S)
    if ended:
        watch.outage.retry(ended.rest)
    return watch.status


class _Watch:
    """The latest counts and the pace since we look."""

    def __init__(self, client: Ramify, batch_id: str) -> None:
        self._client, self._batch_id = client, batch_id
        self.status = client.batch_status(batch_id)
        self._began, self._first = time.monotonic(), self.status.finished
        self._reconciled = self._said = self._began
        self.changed_at = time.time()
        self.outage = Outage(streams.warn)

    def look(self) -> bool:
        """Ask again. True when something has changed."""
        now = time.monotonic()
        reconcile = now - self._reconciled >= _RECONCILE_S
        if reconcile:
            self._reconciled = now
        before, self.status = self.status, self._client.batch_status(self._batch_id, reconcile=reconcile)
        changed = before != self.status
        if changed:
            self.changed_at = time.time()
        return changed

    def draw(self) -> Any:
        """The table."""
        return draw_batch(self.status, self._rate(), time.monotonic() - self._began)

    def say(self) -> None:
        """A line, now and then."""
        if time.monotonic() - self._said >= _LINE_S:
            self._said = time.monotonic()
            streams.note(f"{self.status.finished} of {self.status.total} finished")

    def _rate(self) -> float | None:
        done, elapsed = self.status.finished - self._first, time.monotonic() - self._began
        return done / elapsed if done and elapsed > 0 else None


# --- The answers of many jobs, in order; a job without one is a line that says why. Prints nothing.


class NoAnswer(Model):
    """A job that has no answer: where it stands, and why."""

    job_id: str
    question: str = ""
    state: str
    error: str | None = None


def answers(client: Ramify, job_ids: Iterable[str]) -> Iterator[Answer | NoAnswer]:
    """One for each id, in the order of the ids."""
    for job_id in job_ids:
        try:
            status = client.status(job_id)
        except NotFoundError:
            yield NoAnswer(job_id=job_id, state="unknown", error="it has expired")
            continue
        if status.state == "done":
            try:
                yield client.result(job_id)
                continue
            except NotFoundError as error:
                gone = str(error)
            except RamifyError as error:
                gone = str(error)
            yield NoAnswer(job_id=job_id, question=status.question, state=status.state, error=gone)
        else:
            yield NoAnswer(job_id=job_id, question=status.question, state=status.state, error=status.error)


def complete(found: Answer | NoAnswer) -> bool:
    """True for an answer to which every leaf has given its part."""
    return isinstance(found, Answer) and not found.partial


def row(found: Answer | NoAnswer) -> tuple[str, str, bool, str, str]:
    """Job id, state, partial, question, and the summary or the error: a line for `draw_answers`."""
    if isinstance(found, Answer):
        return found.job_id, found.state, found.partial, found.question, found.summary.text
    return found.job_id, found.state, False, found.question, found.error or ""


def write_answers(client: Ramify, job_ids: Iterable[str], path: Path) -> None:
    """One JSON line a job. The file appears under its name when it is whole. Raises: InputError when it cannot."""
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("w", encoding="utf-8") as handle:
            for found in answers(client, job_ids):
                handle.write(f"{streams.encoded(found)}\n")
        part.replace(path)
    except OSError as error:
        raise InputError("--out", str(path), f"it cannot be written ({error.strerror})") from None


if TYPE_CHECKING:
    from orchestrator.cli.batch_intake import Files, Taken
    from orchestrator.client import Ramify


def batch(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="JSON Lines: one question or one object a line; - reads stdin.")
    ],
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Return when all jobs have ended.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write the answers there as JSON lines; implies --wait.")] = None,
    rejects: Annotated[
        Path | None, typer.Option(help="Where refused lines go (default: FILE.rejects.jsonl)", show_default=False)
    ] = None,
    mode: options.Mode = None,
    strategy: options.Strategy = None,
    top: options.Top = None,
    after: options.After = None,
    before: options.Before = None,
    tag: options.Tag = None,
    kind: options.Kind = None,
    path: options.PathPrefix = None,
    namespace: options.Namespace = None,
    summary: options.Summary = None,
    decompose: options.Decompose = None,
    deadline: options.Deadline = None,
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_seconds: options.MaxSeconds = None,
    max_cost: options.MaxCost = None,
    batch_max_calls: options.BatchMaxCalls = None,
    batch_max_tokens: options.BatchMaxTokens = None,
    batch_max_seconds: options.BatchMaxSeconds = None,
    batch_max_cost: options.BatchMaxCost = None,
    tenant: options.Tenant = None,
    json: options.Json = False,
) -> None:
    """Ask many questions. The options hold for every line that does not say otherwise."""
    from orchestrator.cli import batch_intake

    chosen = options.given(
        mode=mode,
        strategy=strategy,
        top_n=top,
        summary=summary,
        decompose=decompose,
        deadline_s=deadline,
        max_calls=max_calls,
        max_tokens=max_tokens,
        max_seconds=max_seconds,
        max_cost=max_cost,
        tenant=tenant,
    ) | options.filters(after=after, before=before, tags=tag, kinds=kind, paths=path, namespace=namespace)
    together = options.given(
        max_calls=batch_max_calls, max_tokens=batch_max_tokens, max_seconds=batch_max_seconds, max_cost=batch_max_cost
    )
    files = batch_intake.Files.checked(file, out, rejects)
    with invocation_of(ctx).client() as client:
        taken = batch_intake.take(client, files, chosen, together)
        _report(taken)
        if taken.full:
            raise typer.Exit(_refused(taken, as_json=json))
        raise typer.Exit(_wait(client, taken, files, as_json=json) if wait or out else _enqueued(taken, as_json=json))


def _report(taken: Taken) -> None:
    if taken.rejected:
        streams.warn(f"refused: {counted(taken.rejected, 'line')}; {taken.rejects} says why")


def _refused(taken: Taken, *, as_json: bool) -> int:
    """A lane was full: what was taken runs, and nobody waits for it."""
    if as_json:
        streams.document(taken.summary())
    streams.fail(taken.refusal())
    return streams.FAILED


def _enqueued(taken: Taken, *, as_json: bool) -> int:
    if as_json:
        streams.document(taken.summary())
    else:
        refused = f"{counted(taken.rejected, 'line')} refused"
        typer.echo(f"batch {taken.batch_id}: {counted(len(taken.job_ids), 'question')} enqueued, {refused}")
        streams.note(f"`ramify status {taken.batch_id} --watch` follows it, `ramify result {taken.batch_id}` reads it")
    return streams.PARTIAL if taken.rejected else streams.DONE


def _wait(client: Ramify, taken: Taken, files: Files, *, as_json: bool) -> int:
    # FIXME import vanished
    # FIXME import vanished

    streams.note(f"batch {taken.batch_id}: {counted(len(taken.job_ids), 'question')} enqueued")
    try:
        ended = EndedJobs(client, taken.job_ids, streams.line) if as_json else None
        found = follow_batch(client, taken.batch_id, until=taken.until, ended=ended)
    except KeyboardInterrupt:
        streams.note(f"batch {taken.batch_id} goes on: `ramify status {taken.batch_id} --watch` follows it")
        return streams.INTERRUPTED
    if files.out:
        write_answers(client, taken.job_ids, files.out)
    if as_json:
        streams.line(found)
    else:
        from orchestrator.cli.render.tables import draw_batch

        streams.show(draw_batch(found))
    if not found.terminal:
        streams.fail(
            f"{counted(found.total - found.finished, 'job')} still open long after the deadline: `ramify doctor`"
        )
        return streams.FAILED
    return streams.of_batch(found)
