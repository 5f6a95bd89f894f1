"""Waits a little for a job and tells how it gets on: a step for each leaf and each stage, no more than it needs."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import anyio
from anyio import CapacityLimiter, from_thread, to_thread

from orchestrator.client import Ramify
from orchestrator.mcp.shortened import one_line
from orchestrator.outage import Outage
from shared.errors import RamifyError
from shared.models import JobEvent, Node, NodeKind

#: Seconds that Redis may be away while a call waits, and that the end of a job takes that nobody waits for any more.
_OUTAGE_S, _CANCEL_S = 5.0, 5.0
#: Stages of a job that are told; each is a step besides the leaves.
_STAGES = {
    "planning": "it is being planned",
    "searching": "the documents are being searched",
    "merging": "the findings are being merged",
    "summarising": "the answer is being written",
    "indexing": "documents are being read",
    "finishing": "the index is being finished",
}
_LONGEST = 120


class Step(NamedTuple):
    """`done` steps of `total`, as far as is known, and what the last one was."""

    done: float
    total: float
    said: str


def taken(job_id: str) -> Step:
    """The step before all others: whoever loses the connection can ask for that job."""
    return Step(0, len(_STAGES), f"job {job_id} was taken")


Tell = Callable[[Step], Coroutine[Any, Any, None]]


class Steps:
    """A job's events as steps. The number of those that are done grows with each, and the total with the tree."""

    def __init__(self) -> None:
        self._done = 0.0
        self._queries: dict[str, str] = {}
        self._shards = set[str]()

    def take(self, event: JobEvent) -> Step | None:
        """The step that the event is; None for what is none."""
        data = event.data
        if event.type == "node":
            self._note(data.get("node", ""))
            return None
        if event.type == "indexed" and data.get("read", "").isdecimal() and data.get("files", "").isdecimal():
            return self._files(int(data["read"]), int(data["files"]))
        said = self._said(event)
        if not said:
            return None
        self._done += 1
        return Step(self._done, max(len(_STAGES) + len(self._queries), self._done + 1), said)

    def _note(self, raw: str) -> None:
        """A leaf of the tree; a node that this release cannot read is none."""
        try:
            node = Node.of_record(raw)
        except ValueError:
            return
        if node.kind is NodeKind.LEAF:
            self._queries[node.id] = one_line(node.query, _LONGEST)
        if node.shard is not None:
            self._shards.add(node.id)

    def _files(self, read: int, files: int) -> Step | None:
        """Files of an ingest, of which thousands may end in a second: a step for each hundredth."""
        if read - self._done < max(1, files // 100) and read < files:
            return None
        before, self._done = self._done, max(self._done, read)
        return Step(self._done, files, f"{read} of {files} files read") if self._done > before else None

    def _said(self, event: JobEvent) -> str:
        data = event.data
        if event.type == "state":
            return _STAGES.get(data.get("state", ""), "")
        if event.type != "leaf" or data.get("status") not in {"done", "failed"}:
            return ""
        query = self._queries.get(data.get("id", ""), f"part {data.get('id', '')}")
        if data["status"] == "failed":
            return f"failed: {query}"
        if data.get("id") in self._shards:  # rows of a list, which are not counted as hits
            return f"listed: {query}"
        return f"searched, {data.get('hits', '0')} passages: {query}"


class Waiting:
    """Waits for jobs, `wait_s` for each call, for `places` calls at once: the next ones do not wait."""

    def __init__(self, wait_s: float, places: int) -> None:
        self._wait_s, self._limiter = wait_s, CapacityLimiter(places)

    async def for_end(self, client: Ramify, job_id: str, tell: Tell) -> float:
        """Return when the job has ended or the time is over; gives the seconds that it may have waited.

        Raises: NotFoundError; NotRunningError when Redis is away for more than a few seconds.
        """
        if not self._wait_s or not self._limiter.available_tokens:
            return 0.0
        follow = partial(_follow, client, job_id, self._wait_s, tell)
        await to_thread.run_sync(follow, abandon_on_cancel=True, limiter=self._limiter)
        return self._wait_s


async def cancel_unheard(client: Ramify, job_id: str) -> None:
    """End the job of a call that the client has cancelled: nobody waits for it."""
    with anyio.move_on_after(_CANCEL_S, shield=True), suppress(RamifyError):
        cancel = partial(client.cancel, job_id, reason="the MCP client cancelled the call")
        await to_thread.run_sync(cancel, abandon_on_cancel=True)


def _follow(client: Ramify, job_id: str, wait_s: float, tell: Tell) -> None:
    steps = Steps()
    for event in client.stream(job_id, wait_s, outage=Outage(limit_s=_OUTAGE_S)):
        from_thread.check_cancelled()
        if step := steps.take(event):
            from_thread.run(tell, step)
