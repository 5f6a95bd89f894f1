"""What the index queue's tasks do for a job, item by item. Holds no store: it is given one's indexer by tenant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from celery import Celery

from shared.errors import RamifyError
from shared.jobs import State, codec
from shared.jobs.ingests import FIRST, ItemDone, SeenByAll
from shared.models import Cost, DocumentOutcome, DocumentStatus, JobRequest, Lane
from shared.models.ingest import HandedOver, IngestItem, IngestReport
from shared.models.stale import StaleCheck
from shared.models.status import DeadLetter
from shared.providers.lanes import in_lane
from shared.settings.sections import ChunkingSettings
from shared.tasks.signatures import send_turn
from shared.tasks.task_run import TaskRun, fail_job
from workers.index.dry_run import DryRun
from workers.index.items import first_document, path_of, pieces_of, walk, work
from workers.index.pipeline import Indexer, timed, timings

CUT_OFF = "The client has gone before it had handed all documents over, so that nothing was pruned: ingest them again."
NOT_CHECKED = "{} kept answers could not be held against the changes in time (staleness.check_s): that is done later."
LOST = "Redis lost what was on its way to the index queue: run the ingest again"


class Staleness(Protocol):
    """Holds a tenant's kept answers against documents that were added, changed or removed."""

    def run(self, tenant: str, outcomes: Sequence[DocumentOutcome], since: float | None = None) -> StaleCheck:
        """Mark those that are touched. `since`: also by what was written since then, and nobody has told of."""

    def rests_on(self, tenant: str, outcomes: Sequence[DocumentOutcome]) -> int:
        """How many rest on some of them."""


class ItemTasks:
    """The bodies of `index.documents` and `index.finish`, and what follows where they fail."""

    def __init__(
        self,
        app: Celery,
        sizes: ChunkingSettings,
        indexer_of: Callable[[str], Indexer],
        staleness: Callable[[], Staleness] | None = None,
    ) -> None:
        """`staleness`: what holds kept answers against changed documents; None: nothing does."""
        self._app, self._sizes, self._indexer_of, self._staleness = app, sizes, indexer_of, staleness

    def documents(self, run: TaskRun) -> None:
        """Do one item. One at which a worker has died is taken apart first, document by document."""
        with timings() as seconds, in_lane(Lane.BATCH):  # a question does not wait for the passages of an ingest
            done, cost = self._done(run)
        self._record(run, replace(done, seconds=seconds), cost)

    def _done(self, run: TaskRun) -> tuple[ItemDone, Cost]:
        request = run.job.request
        if run.node_id == FIRST and request.ingest is not None and request.ingest.by is HandedOver.PATHS:
            run.jobs.ingests.check_seal(run.job.id, request)
            return walk(run.node_id, request), Cost()
        content = _content(run)
        if run.begun is not None and run.begun.before.deaths and (parts := content.single()):
            return ItemDone(IngestReport(item=run.node_id), content.source, parts=parts), Cost()
        return work(run.node_id, content, self._worker_of(request), self._sizes.max_document_bytes)

    def _worker_of(self, request: JobRequest) -> Indexer | DryRun:
        """What does the items of a job."""
        indexer, ingest = self._indexer_of(request.tenant), request.ingest
        return DryRun(indexer.store, self._sizes) if ingest is not None and ingest.dry_run else indexer

    def about_document(self, run: TaskRun, dead_letter: DeadLetter) -> tuple[DeadLetter, bytes]:
        """The dead letter of an item that has killed its workers, about its document, with the bytes of that."""
        content = _content(run)
        if not (content.spans or content.documents):
            return dead_letter, b""
        path, raw = path_of(content), first_document(content, self._sizes.max_document_bytes)
        changes = {"kind": "document", "item": path, "what": path}
        return dead_letter.model_copy(update=changes), codec.pack(raw) if raw is not None else b""

    def failed(self, run: TaskRun, reason: str) -> None:
        """A document that kills its workers costs itself alone; where the store refuses, the ingest ends."""
        content = _content(run) if run.retired else None
        if content is None or not (content.spans or content.documents):
            fail_job(run, reason)
            return
        outcome = DocumentOutcome(path=path_of(content), status=DocumentStatus.FAILED, reason=reason)
        report = IngestReport(item=run.node_id, outcomes=(outcome,))
        done = ItemDone(report, content.source, read=1, gave_up=True, pieces=pieces_of(content))
        self._record(run, done, Cost())

    def _record(self, run: TaskRun, done: ItemDone, cost: Cost) -> None:
        send_turn(self._app, run.job.id, run.job.rank, run.record_item(done, cost))

    def finish(self, run: TaskRun) -> None:
        """End an ingest: prune removed files, refit BM25's average length, join links; then optimise the store."""
        job, ingests = run.job, run.jobs.ingests
        ingest, namespace = job.request.ingest, job.request.filters.namespace
        whole = ingests.start_finishing(job.id, run.claimant, force=run.message.force)
        if whole is None or ingest is None:
            return
        seen = ingests.seen(job.id, ingest.sources) if whole else SeenByAll({}, [], {})
        keep = seen.ids if ingest.prune else None
        counts, indexer = ingests.counts(job.id), self._indexer_of(job.request.tenant)
        if ingest.dry_run:
            removed = DryRun(indexer.store, self._sizes).finish(keep, seen.unreadable, namespace, pieces=seen.pieces)
            self._finish_dry_run(run, removed)
            return
        with timings() as seconds, in_lane(Lane.BATCH):
            written = bool(counts.added or counts.changed or counts.removed)
            removed = indexer.finish(keep, seen.unreadable, namespace, written=written, pieces=seen.pieces)
        warnings, cost = indexer.directories.take_report()
        run.annotate(cost, (*warnings, *([] if whole else [CUT_OFF])))
        report = IngestReport(item=run.item, outcomes=tuple(removed))
        ingests.tell(job.id, ItemDone(report, seconds=seconds))
        self._mark_stale(run, removed)
        run.jobs.finish_ingest(job, partial=bool(counts.failed) or not whole)
        indexer.optimize()

    def _finish_dry_run(self, run: TaskRun, removed: Sequence[DocumentOutcome]) -> None:
        """Tell what would be removed, and how many answers rest on what would change or go."""
        job, ingests = run.job, run.jobs.ingests
        outcomes = [*ingests.changed(job.id), *removed]
        stale = self._staleness().rests_on(job.request.tenant, outcomes) if self._staleness is not None else 0
        ingests.tell(job.id, ItemDone(IngestReport(item=run.item, outcomes=tuple(removed)), stale=stale))
        run.jobs.finish_ingest(job, partial=bool(ingests.counts(job.id).failed))

    def _mark_stale(self, run: TaskRun, removed: Sequence[DocumentOutcome]) -> None:
        """Mark the answers that this ingest has touched. What fails here costs the marks, and is said."""
        if self._staleness is None:
            return
        job, ingests = run.job, run.jobs.ingests
        changed = [*ingests.changed(job.id), *removed]
        # What was done twice has told the second time that nothing was left to do.
        since = job.created_at if job.state is State.FINISHING or ingests.redriven(job.id) else None
        try:
            with timings() as seconds, timed("stale answers"):
                found = self._staleness().run(job.request.tenant, changed, since)
        except RamifyError as error:
            run.annotate(warnings=[f"Kept answers were not held against what has changed: {error}"])
            return
        ingests.tell(job.id, ItemDone(IngestReport(item=run.item), seconds=seconds, stale=found.answers))
        if found.left:
            run.annotate(warnings=[NOT_CHECKED.format(found.left)])


def _content(run: TaskRun) -> IngestItem:
    """What the item is of. Raises: RamifyError where that is lost, and for what is not this job's."""
    content = run.jobs.ingests.content(run.job.id, run.node_id)
    if content is None:
        raise RamifyError(LOST)
    of_job = (run.job.request.tenant, run.job.request.filters.namespace)
    if (content.tenant, content.namespace) != of_job:
        raise RamifyError(f"item {run.node_id} is of another tenant or namespace than its job")
    return content
