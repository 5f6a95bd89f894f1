"""Sends documents to the index queue, a few batches at a time, and gathers what became of each.

What the store has already does not travel: files are first asked about by a hash of their bytes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from celery import Celery
from pydantic import Field
from redis import Redis
from redis.exceptions import RedisError

from shared.contract import IndexMessage, TaskName
from shared.errors import NotRunningError, RamifyError
from shared.files import FileGroup, FoundFile, discover, groups, read
from shared.jobs import new_id
from shared.jobs.inbox import DocumentBatch, FinishOrder, Inbox, IngestReport
from shared.models import Cost, DocumentOutcome, DocumentStatus, RawDocument
from shared.models.base import Model
from shared.models.ingest import FORMATS, WRITTEN
from shared.settings import Settings
from shared.tenants import checked_name, tenant_name

#: Seconds without a report from the index queue after which the ingest gives up.
SILENCE_S = 300.0
#: Seconds without a report after which open batches are announced again: a killed worker took its messages along.
RESEND_S = 15.0
#: The same for a batch whose worker is known to be dead.
DEAD_RESEND_S = 3.0
_POLL_S = 1.0
BATCH_DOCUMENTS = 32
BATCH_BYTES = 2_000_000
#: Files that a parser reads, each of which may take half a minute: the queue must not look dead meanwhile.
BATCH_PARSED = 4
#: Batches on the way at a time: enough to keep the worker busy, few enough to keep Redis small.
IN_FLIGHT = 4


class IndexChannel:
    """Sends the batches of one ingest to the index queue and reads the reports. Knows no files."""

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
        """Put a batch into the inbox and announce it on the queue; returns its number."""
        batch = self._sent
        self._inbox.put(batch, content)
        self._announce(batch, name)
        self._open[batch] = name
        self._sent += 1
        return batch

    def reports(self) -> list[IngestReport]:
        """Wait for the next reports, none if nothing is open.

        Raises: RamifyError when a batch failed or was lost, NotRunningError after SILENCE_S without a report.
        """
        began, resent, lost = time.monotonic(), time.monotonic(), 0
        while self._open:
            if reports := self._new_reports():
                return reports
            now = time.monotonic()
            if now - began > SILENCE_S:
                raise NotRunningError(
                    f"the index queue has been silent for {SILENCE_S:.0f} s: `ramify doctor` says whether a worker runs"
                )
            # A report and the end of its batch in the inbox are one transaction: a batch missing twice is lost.
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
        """Delete the inbox. If Redis is unreachable, its TTL of a day does."""
        with suppress(RedisError):
            self._inbox.clear()

    def _announce(self, batch: int, name: TaskName) -> None:
        message = IndexMessage(ingest_id=self._id, batch=batch).wire()
        self._app.send_task(name.value, args=(message,), queue=name.queue.value, ignore_result=True)

    def _new_reports(self) -> list[IngestReport]:
        reports = []
        for entry, report in self._inbox.reports(self._after, _POLL_S):
            self._after = entry
            if self._open.pop(report.batch, None) is None:
                continue  # delivered twice
            if report.error:
                raise RamifyError(f"the ingest stopped: {report.error}")
            self.seconds.update(report.seconds)
            reports.append(report)
        return reports


class Progress(Model):
    """One step of an ingest: files read so far, of how many, the outcomes that came in, warnings and cost so far.

    `seconds` since the start; `parts`: seconds of the workers so far, by what they did.
    """

    read: int
    total: int
    outcomes: tuple[DocumentOutcome, ...] = ()
    passed_over: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    cost: Cost = Cost()
    seconds: float = 0.0
    parts: dict[str, float] = Field(default_factory=dict)


class Ingest:
    """One run over some paths, for one tenant.

    Raises: InputError when the namespace or the tenant is no name.
    """

    def __init__(self, app: Celery, client: Redis, settings: Settings, namespace: str, tenant: str) -> None:
        self._settings = settings
        self._namespace, self._tenant = checked_name("namespace", namespace), tenant_name(tenant)
        self._channel = IndexChannel(app, client)
        self.cost = Cost()
        self._sources: dict[int, str] = {}
        #: Batch of hashes -> the files that the store lacks, by number; None until its report.
        self._wanted: dict[int, frozenset[int] | None] = {}
        self._seen: dict[str, list[str]] = {}
        self._unreadable: list[str] = []
        self._warnings: list[str] = []
        self._written = False
        self._began = time.monotonic()
        self._read = self._total = 0
        self._outcomes: list[DocumentOutcome] = []

    def run(self, paths: Sequence[Path], *, prune: bool) -> Iterator[Progress]:
        """Ingest everything below `paths`; with `prune`, remove what is gone from those roots.

        Raises: InputError for a missing path, NotRunningError when the index queue stays silent, RamifyError when
        the store refuses (each batch before it is in).
        """
        files, passed = discover(paths)
        self._total = len(files)
        yield self._step(passed)
        for path in paths:
            self._seen.setdefault(str(path.resolve()), [])
        try:
            yield from self._send_missing(files)
            while self._channel.open:
                self._take_reports()
                yield self._step()
            self._finish(prune=prune)
            yield self._step()
        finally:
            self._channel.close()

    def _send_missing(self, files: Sequence[FoundFile]) -> Iterator[Progress]:
        """Ask about all files, and send those that the store lacks."""
        for group, batch in self._ask_by_hash(files):
            wanted = self._lacking(group, batch)
            missing = [found for found in group.files if str(found.file) in wanted]
            self._read += len(group.files) - len(missing)
            yield self._step()
            yield from self._send_files(missing)

    def _ask_by_hash(self, files: Sequence[FoundFile]) -> Iterator[tuple[FileGroup, int]]:
        """Each group of files with the batch of its hashes; those of the next group are sent before it is yielded."""
        before: tuple[FileGroup, int] | None = None
        for group in groups(files, self._namespace, self._settings.chunking.max_document_bytes):
            batch = self._channel.send(
                TaskName.INDEX_DOCUMENTS, DocumentBatch(tenant=self._tenant, hashes=group.hashes)
            )
            self._sources[batch] = group.hashes.source
            self._wanted[batch] = None
            if before:
                yield before
            before = group, batch
        if before:
            yield before

    def _lacking(self, group: FileGroup, batch: int) -> frozenset[str]:
        """The files of `group` that the store lacks."""
        while (wanted := self._wanted[batch]) is None:
            self._take_reports()
        del self._wanted[batch]
        return group.unhashed | {group.hashes.files[number].identity for number in wanted}

    def _send_files(self, files: Sequence[FoundFile]) -> Iterator[Progress]:
        waiting: list[RawDocument] = []
        for found in files:
            for item in read(found, self._tenant, self._namespace, self._settings.chunking.max_document_bytes):
                if isinstance(item, DocumentOutcome):
                    self._note(item, "")
                    continue
                size = sum(len(document.content) for document in waiting) + len(item.content)
                parsed = sum(document.suffix in FORMATS for document in waiting)
                if waiting and (len(waiting) >= BATCH_DOCUMENTS or size > BATCH_BYTES or parsed >= BATCH_PARSED):
                    self._send(waiting)
                    waiting = []
                waiting.append(item)
            self._read += 1
            yield self._step()
        if waiting:
            self._send(waiting)

    def _send(self, documents: list[RawDocument]) -> None:
        """Send one batch of one source, when there is room."""
        while self._channel.open >= IN_FLIGHT:
            self._take_reports()
        content = DocumentBatch(tenant=self._tenant, documents=tuple(documents))
        batch = self._channel.send(TaskName.INDEX_DOCUMENTS, content)
        self._sources[batch] = documents[0].source

    def _finish(self, *, prune: bool) -> None:
        order = FinishOrder(
            tenant=self._tenant,
            namespace=self._namespace,
            keep={source: tuple(ids) for source, ids in self._seen.items()} if prune else None,
            unreadable=tuple(self._unreadable),
            written=self._written,
        )
        self._channel.send(TaskName.INDEX_FINISH, order)
        while self._channel.open:
            self._take_reports()

    def _take_reports(self) -> None:
        """Wait for the next reports and take them in."""
        for report in self._channel.reports():
            self.cost += report.cost
            self._warnings += report.warnings
            if report.batch in self._wanted:
                self._wanted[report.batch] = frozenset(report.wanted)
            for outcome in report.outcomes:
                self._note(outcome, self._sources.get(report.batch, ""))

    def _note(self, outcome: DocumentOutcome, source: str) -> None:
        if outcome.doc_id and source:
            self._seen.setdefault(source, []).append(outcome.doc_id)
        if outcome.status is DocumentStatus.FAILED:
            self._unreadable.append(outcome.path)
        self._written |= outcome.status in WRITTEN
        self._outcomes.append(outcome)

    def _step(self, passed: Sequence[str] = ()) -> Progress:
        outcomes, self._outcomes = tuple(self._outcomes), []
        return Progress(
            read=self._read,
            total=self._total,
            outcomes=outcomes,
            passed_over=tuple(passed),
            warnings=tuple(self._warnings),
            cost=self.cost,
            seconds=time.monotonic() - self._began,
            parts=dict(self._channel.seconds),
        )
