"""Follows one job to its end: a live tree on a terminal, short lines elsewhere (both on stderr), or JSON lines."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from rich.console import Console, RenderableType
from rich.live import Live

from orchestrator.cli import streams
from orchestrator.cli.render.tree import Growth, apply, draw
from orchestrator.cli.wording import counted, one_line, read_as
from orchestrator.client import Ramify
from orchestrator.outage import Outage
from shared.models import JobEvent, JobStatus, Node
from shared.models.route import Route

#: Seconds past a job's deadline after which nobody waits for it any more: the reaper gives it up before.
GRACE_S = 90.0
FRAMES_PER_S = 8


def follow(client: Ramify, job_id: str, *, as_json: bool = False) -> JobStatus:
    """Show a job until it has ended, or its deadline lies 90 s behind; returns where it stands then.

    Raises: NotFoundError, NotRunningError when Redis is away at first, or for longer than `outage.OUTAGE_S`.
    """
    status, outage = client.status(job_id), Outage(streams.warn)
    events = client.stream(job_id, max(0.0, status.deadline_at - time.time()) + GRACE_S, outage=outage)
    console = streams.progress_console()
    if as_json:
        for event in events:
            streams.line(event)
    elif console.is_terminal:
        _live(events, status.question, console)
    else:
        for event in events:
            if said := sentence(event):
                streams.note(said)
    return outage.retry(lambda: client.status(job_id))


def _live(events: Iterator[JobEvent], question: str, console: Console) -> None:
    """The tree; it leaves the screen at the end, where the answer takes its place."""
    growth = Growth(question=question)

    def frame() -> RenderableType:
        return draw(growth, time.time() * 1000)

    with Live(console=console, get_renderable=frame, refresh_per_second=FRAMES_PER_S, transient=True):
        for event in events:
            growth = apply(growth, event)


def sentence(event: JobEvent) -> str:
    """An event as one short line; empty for what nobody needs to read."""
    data = event.data
    match event.type:
        case "state":
            return " ".join(part for part in (one_line(data.get("state", "")), one_line(data.get("error", ""))) if part)
        case "node" | "routed":
            return _read(data)
        case "leaf" if data.get("status") == "failed":
            return f"leaf {data.get('id', '')} failed: {one_line(data.get('error', ''))}"
        case "leaf":
            hits = f", {counted(int(data['hits']), 'hit')}" if data.get("hits", "").isdecimal() else ""
            return f"leaf {data.get('id', '')} {data.get('status', '')}{hits}"
        case "warning":
            return f"warning: {one_line(data.get('text', ''))}"
        case _:
            return ""


def _read(data: Mapping[str, str]) -> str:
    """A route or a node as JSON; empty for a form that this release does not know."""
    try:
        if raw := data.get("route"):
            return f"read as {read_as(Route.model_validate_json(raw))}"
        node = Node.model_validate_json(data.get("node", ""))
    except ValueError:
        return ""
    return f"{node.kind.value} {node.id} {node.facet.value}: {one_line(node.query)}"
