"""Sends documents to the index queue, a few batches at a time, and gathers what became of each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from celery import Celery
from redis import Redis

from orchestrator.files import find, read
from shared.contract import IndexMessage, TaskName
from shared.errors import NotRunningError, RamifyError
from shared.job_store import new_id
from shared.job_store.inbox import DocumentBatch, FinishOrder, Inbox
from shared.models import Cost, DocumentOutcome, DocumentStatus, RawDocument
from shared.models.base import Model
from shared.settings import Settings

BATCH_DOCUMENTS = 32
BATCH_BYTES = 2_000_000
#: Batches on the way at a time: enough to keep the worker busy, few enough to keep Redis small.
IN_FLIGHT = 4
#: Seconds without a word from the index queue after which the ingest gives up.
SILENCE_S = 300.0
_POLL_S = 1.0


class Progress(Model):
    """One step of an ingest: files read so far, of how many, the outcomes that came in, and the cost so far."""

    read: int
    total: int
    outcomes: tuple[DocumentOutcome, ...] = ()
    passed_over: tuple[str, ...] = ()
    cost: Cost = Cost()


class Ingest:
    """One run over some paths."""

    def __init__(self, app: Celery, client: Redis, settings: Settings, namespace: str = "default") -> None:
        self._app, self._settings, self._namespace = app, settings, namespace
        self._id = new_id()
        self._inbox = Inbox(client, self._id)
        self.cost = Cost()
        self._sent = 0
        self._open: set[int] = set()
        self._after = "0"
        self._sources: dict[int, str] = {}
        self._seen: dict[str, list[str]] = {}
        self._unreadable: list[str] = []

    def run(self, paths: Sequence[Path], *, prune: bool) -> Iterator[Progress]:
        """Ingest everything below `paths`; with `prune`, remove what is gone from those roots.

        Raises: InputError for a missing path, NotRunningError when the index queue stays silent, RamifyError when
        the store refuses (each batch before it is in).
        """
        files, passed = find(paths)
        yield Progress(read=0, total=len(files), passed_over=tuple(passed))
        for path in paths:
            self._seen.setdefault(str(path.resolve()), [])
        waiting: list[RawDocument] = []
        for count, found in enumerate(files, 1):
            outcomes: list[DocumentOutcome] = []
            for item in read(found, self._namespace, self._settings.chunking.max_document_bytes):
                if isinstance(item, DocumentOutcome):
                    outcomes.append(self._noted(item, ""))
                    continue
                if waiting and (waiting[0].source != item.source or _full(waiting, item)):
                    outcomes += self._send(waiting)
                    waiting = []
                waiting.append(item)
            yield Progress(read=count, total=len(files), outcomes=tuple(outcomes))
        if waiting:
            yield Progress(read=len(files), total=len(files), outcomes=tuple(self._send(waiting)))
        while self._open:
            yield Progress(read=len(files), total=len(files), outcomes=tuple(self._gather()))
        yield Progress(read=len(files), total=len(files), outcomes=tuple(self._finish(prune=prune)), cost=self.cost)
        self._inbox.clear()

    def _send(self, documents: list[RawDocument]) -> list[DocumentOutcome]:
        """Send one batch, when there is room; returns what came in meanwhile."""
        outcomes = []
        while len(self._open) >= IN_FLIGHT:
            outcomes += self._gather()
        self._sources[self._sent] = documents[0].source
        self._order(TaskName.INDEX_DOCUMENTS, DocumentBatch(documents=tuple(documents)))
        return outcomes

    def _finish(self, *, prune: bool) -> list[DocumentOutcome]:
        keep = {source: tuple(ids) for source, ids in self._seen.items()} if prune else None
        self._order(
            TaskName.INDEX_FINISH, FinishOrder(namespace=self._namespace, keep=keep, unreadable=tuple(self._unreadable))
        )
        outcomes = []
        while self._open:
            outcomes += self._gather()
        return outcomes

    def _order(self, name: TaskName, content: DocumentBatch | FinishOrder) -> None:
        self._inbox.put(self._sent, content)
        message = IndexMessage(ingest_id=self._id, batch=self._sent).wire()
        self._app.send_task(name.value, args=(message,), queue=name.queue.value, ignore_result=True)
        self._open.add(self._sent)
        self._sent += 1

    def _gather(self) -> list[DocumentOutcome]:
        """Wait for the next reports."""
        end = time.monotonic() + SILENCE_S
        outcomes: list[DocumentOutcome] = []
        while not outcomes and self._open:
            came = list(self._inbox.reports(self._after, _POLL_S))
            for self._after, report in came:
                self._open.discard(report.batch)
                if report.error:
                    raise RamifyError(f"the ingest stopped: {report.error}")
                source = self._sources.get(report.batch, "")
                self.cost += report.cost
                outcomes += [self._noted(outcome, source) for outcome in report.outcomes]
            if came:
                break
            if time.monotonic() > end:
                raise NotRunningError(
                    f"the index queue has been silent for {SILENCE_S:.0f} s: `ramify doctor` says whether a worker runs"
                )
        return outcomes

    def _noted(self, outcome: DocumentOutcome, source: str) -> DocumentOutcome:
        if outcome.doc_id and source:
            self._seen.setdefault(source, []).append(outcome.doc_id)
        if outcome.status is DocumentStatus.FAILED:
            self._unreadable.append(outcome.path)
        return outcome


def _full(waiting: Sequence[RawDocument], item: RawDocument) -> bool:
    size = sum(len(document.content) for document in waiting) + len(item.content)
    return len(waiting) >= BATCH_DOCUMENTS or size > BATCH_BYTES
