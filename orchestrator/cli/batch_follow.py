"""Follows a batch to its end: counts, pace and time left on stderr, and each job as it ends for whoever asks."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

from rich.live import Live

from orchestrator.cli import output
from orchestrator.cli.follow import GRACE_S
from orchestrator.cli.render.tables import draw_batch
from orchestrator.client import Ramify
from orchestrator.outage import Outage
from shared.errors import NotFoundError, NotRunningError
from shared.models import BatchStatus, JobStatus

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
    console = output.progress_console()
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
        self.outage = Outage(output.warn)

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
            output.note(f"{self.status.finished} of {self.status.total} finished")

    def _rate(self) -> float | None:
        done, elapsed = self.status.finished - self._first, time.monotonic() - self._began
        return done / elapsed if done and elapsed > 0 else None
