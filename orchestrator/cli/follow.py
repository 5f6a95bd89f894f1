"""Follows a job or a batch to its end, live on a terminal and in short lines elsewhere (stderr); reads the answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress

from rich.console import RenderableType
from rich.live import Live

from orchestrator.cli import streams
from orchestrator.cli.batch_answers import EndedLines
from orchestrator.cli.render.batches import draw_batch
from orchestrator.cli.render.tree import draw
from orchestrator.cli.text import counted, read_as
from orchestrator.client import Ramify
from orchestrator.growth import Growth, apply
from orchestrator.outage import Outage
from orchestrator.text_lines import one_line
from shared.errors import NotRunningError, RamifyError
from shared.jobs.reader import PAST_TIME_S
from shared.models import BatchStatus, JobEvent, JobStatus, Node
from shared.models.route import Route

FRAMES_PER_S = 8
_POLL_S = 0.5
#: Seconds of waiting after which queues without a worker are told of.
_PATIENCE_S = 5.0
#: Seconds between two lines where there is no terminal.
_LINE_S = 10.0


def follow(client: Ramify, job_id: str, *, as_json: bool = False) -> JobStatus:
    """Show a job until it has ended, or its time is over since 90 s; returns where it stands then.

    Raises: NotFoundError, NotRunningError when Redis is unreachable at first, or for longer than `outage.OUTAGE_S`.
    """
    status, outage = client.status(job_id), Outage(streams.warn)
    with _told_of_missing_workers(client):
        _show_events(client, status, outage, as_json=as_json)
    return outage.retry(lambda: client.status(job_id))


@contextmanager
def _told_of_missing_workers(client: Ramify) -> Iterator[None]:
    """One line, where the block takes some seconds and there are queues without a worker."""
    over = threading.Event()

    def look() -> None:
        if over.wait(_PATIENCE_S):
            return
        with suppress(RamifyError):  # that Redis is away is told by who follows
            if missing := client.unserved_queues():
                streams.warn(f"no worker serves {', '.join(missing)}, and what is sent there waits: `ramify doctor`")

    threading.Thread(target=look, name="missing-workers", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _show_events(client: Ramify, status: JobStatus, outage: Outage, *, as_json: bool) -> None:
    events = client.stream(status.job_id, outage=outage)
    console = streams.console(stderr=True)
    if as_json:
        for event in events:
            streams.line(event)
    elif status.ingest is not None and console.is_terminal:
        _follow_files(events)
    elif console.is_terminal:
        growth = Growth(question=status.question)

        def frame() -> RenderableType:
            return draw(growth, time.time() * 1000)

        # The tree leaves the screen at the end, where the answer takes its place.
        with Live(console=console, get_renderable=frame, refresh_per_second=FRAMES_PER_S, transient=True):
            for event in events:
                growth = apply(growth, event)
    else:
        for event in events:
            if text := sentence(event):
                streams.note(text)


def _follow_files(events: Iterable[JobEvent]) -> None:
    """A bar of the files that an ingest has read."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with streams.progress("ingest", *columns) as update:
        for event in events:
            read, files = event.data.get("read", ""), event.data.get("files", "")
            if event.type == "indexed" and read.isdecimal() and files.isdecimal():
                update(completed=int(read), total=int(files))


def sentence(event: JobEvent) -> str:
    """An event as one short line; empty for events that are not shown."""
    data = event.data
    match event.type:
        case "state":
            return " ".join(part for part in (one_line(data.get("state", "")), one_line(data.get("error", ""))) if part)
        case "node" | "routed" | "indexed":
            return _planned(data)
        case "leaf":
            hits = f", {counted(int(data['hits']), 'hit')}" if data.get("hits", "").isdecimal() else ""
            how = f": {one_line(data.get('error', ''))}" if data.get("status") == "failed" else hits
            return f"leaf {data.get('id', '')} {data.get('status', '')}{how}"
        case "degraded" | "postponed":
            said = {"degraded": ("goes on without", "reason"), "postponed": ("waits", "why")}[event.type]
            return f"{one_line(data.get('item', ''))} {said[0]}: {one_line(data.get(said[1], ''))}"
        case "warning":
            return f"warning: {one_line(data.get('text', ''))}"
        case _:
            return ""


def _planned(data: Mapping[str, str]) -> str:
    """A route or a node, from JSON, or the files of an ingest; empty for a form that this release does not know."""
    if "files" in data:
        return f"{one_line(data.get('read', ''))} of {one_line(data['files'])} files read"
    try:
        if raw := data.get("route"):
            return f"read as {read_as(Route.of_record(raw))}"
        node = Node.of_record(data.get("node", ""))
    except ValueError:
        return ""
    return f"{node.kind.value} {node.id} {node.facet.value}: {one_line(node.query)}"


def follow_batch(
    client: Ramify,
    batch_id: str,
    *,
    longest_s: float = 0.0,
    on_change: Callable[[BatchStatus], None] | None = None,
    ended: EndedLines | None = None,
) -> BatchStatus:
    """Show a batch until all its jobs have ended, or nothing has changed for as long as a job may take.

    That is `longest_s`, or the longest wait and deadline that the settings give. `on_change` is given each new count,
    `ended` polls with it. Raises: NotFoundError, NotRunningError when Redis is away for OUTAGE_S.
    """
    console, outage = streams.console(stderr=True), Outage(streams.warn)
    counts = outage.retry(lambda: _BatchCounts(client, batch_id))
    jobs = client.settings.jobs
    patience = max(longest_s, jobs.queue_limit_s + max(jobs.batch_deadline_s, jobs.deadline_s)) + PAST_TIME_S
    live = Live(console=console, get_renderable=counts.draw, refresh_per_second=4, transient=True)
    with live if console.is_terminal else nullcontext():
        while True:
            try:
                changed = counts.refresh()
                if ended:
                    ended.poll(counts.status)
            except NotRunningError as error:
                outage.pause(error)
                continue
            outage.reset()
            if changed and on_change and not counts.status.terminal:
                on_change(counts.status)
            if counts.status.terminal or time.time() > counts.changed_at + patience:
                break
            if not console.is_terminal:
                counts.note()
            time.sleep(_POLL_S)
    if ended:
        outage.retry(ended.finish)
    return counts.status


class _BatchCounts:
    """The latest counts of a batch, and its pace since the first of them."""

    def __init__(self, client: Ramify, batch_id: str) -> None:
        self._client, self._batch_id = client, batch_id
        self.status = client.batch_status(batch_id)
        self._began, self._first = time.monotonic(), self.status.finished
        self._noted = self._began
        self.changed_at = time.time()

    def refresh(self) -> bool:
        """Read them again. True when something has changed."""
        before, self.status = self.status, self._client.batch_status(self._batch_id)
        if before == self.status:
            return False
        self.changed_at = time.time()
        return True

    def draw(self) -> RenderableType:
        """The table."""
        elapsed, done = time.monotonic() - self._began, self.status.finished - self._first
        return draw_batch(self.status, done / elapsed if done and elapsed > 0 else None, elapsed)

    def note(self) -> None:
        """A line, at most every 10 s."""
        if time.monotonic() - self._noted >= _LINE_S:
            self._noted = time.monotonic()
            streams.note(f"{self.status.finished:,} of {self.status.enqueued:,} finished")
