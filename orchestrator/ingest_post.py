"""Carries the batches of an ingest to the index queue and the reports back. Knows no files."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress

from celery import Celery
from redis import Redis
from redis.exceptions import RedisError

from shared.contract import IndexMessage, TaskName
from shared.errors import NotRunningError, RamifyError
from shared.job_store import new_id
from shared.job_store.inbox import DocumentBatch, FinishOrder, Inbox, Report

#: Seconds without a word from the index queue after which the ingest gives up.
SILENCE_S = 300.0
#: Seconds without a word after which what is open is sent again: a worker that was killed took its messages along.
RESEND_S = 15.0
#: The same for a batch whose worker is known to be dead.
DEAD_RESEND_S = 3.0
_POLL_S = 1.0


class Post:
    """One ingest's way to the index queue and back."""

    def __init__(self, app: Celery, client: Redis) -> None:
        self._app = app
        self._id = new_id()
        self._inbox = Inbox(client, self._id)
        self._open: dict[int, TaskName] = {}
        self._sent = 0
        self._after = "0"
        self.seconds = Counter[str]()

    @property
    def open(self) -> int:
        """Batches without a report."""
        return len(self._open)

    def send(self, name: TaskName, content: DocumentBatch | FinishOrder) -> int:
        """Leave a batch in the inbox and say so on the queue; returns its number."""
        batch = self._sent
        self._inbox.put(batch, content)
        self._announce(batch, name)
        self._open[batch] = name
        self._sent += 1
        return batch

    def reports(self) -> list[Report]:
        """Wait for the next reports, none if nothing is open.

        Raises: RamifyError when a batch failed or was lost, NotRunningError after SILENCE_S without a word.
        """
        began, resent, lost = time.monotonic(), time.monotonic(), 0
        while self._open:
            if came := self._arrived():
                return came
            now = time.monotonic()
            if now - began > SILENCE_S:
                raise NotRunningError(
                    f"the index queue has been silent for {SILENCE_S:.0f} s: `ramify doctor` says whether a worker runs"
                )
            # What is reported leaves the inbox in the same step: only what is missing twice is lost.
            lost = lost + 1 if self._open.keys() - self._inbox.waiting() else 0
            if lost > 1:
                raise RamifyError("Redis lost what was on its way to the index queue: run the ingest again")
            again = self._open.keys() if now - resent > RESEND_S else set[int]()
            if not again and now - resent > DEAD_RESEND_S:
                again = self._open.keys() & self._inbox.abandoned()
            if again:
                resent = now
            for batch in again:
                self._announce(batch, self._open[batch])
        return []

    def close(self) -> None:
        """Forget the ingest. What a lost Redis keeps of it goes after a day."""
        with suppress(RedisError):
            self._inbox.clear()

    def _announce(self, batch: int, name: TaskName) -> None:
        message = IndexMessage(ingest_id=self._id, batch=batch).wire()
        self._app.send_task(name.value, args=(message,), queue=name.queue.value, ignore_result=True)

    def _arrived(self) -> list[Report]:
        came = []
        for entry, report in self._inbox.reports(self._after, _POLL_S):
            self._after = entry
            if self._open.pop(report.batch, None) is None:
                continue  # a message that came twice
            if report.error:
                raise RamifyError(f"the ingest stopped: {report.error}")
            self.seconds.update(report.seconds)
            came.append(report)
        return came
