"""The index queue's tasks. Embedded, they run in the search pool's process: it owns the store."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any

from pydantic import ValidationError

from shared.connections.clock import ServerClock
from shared.contract import IndexMessage, TaskName
from shared.errors import RamifyError
from shared.jobs import connect
from shared.jobs.inbox import Inbox, IngestReport
from shared.models import Lane
from shared.providers.lanes import in_lane
from shared.tasks.app import settings_of
from shared.tasks.task_run import reason_of, remote
from workers.app import app
from workers.index.pipeline import Indexer, timings
from workers.index.poison import PoisonGuard
from workers.search.resources import search_resources

log = logging.getLogger("ramify.index")
_lock = Lock()
#: (ingest, batch) that a thread of this process works on: the client that waits for one sends its message again.
_running: set[tuple[str, int]] = set()


def _indexer(tenant: str) -> Indexer:
    """One a tenant, since it orders its writes. `cache` alone would let two threads make one each."""
    with _lock:
        return _new_indexer(tenant)


@cache
def _new_indexer(tenant: str) -> Indexer:
    settings = settings_of(app)
    llm = search_resources().llm() if settings.hierarchy.writer == "auto" else None
    return Indexer(search_resources().store(tenant), search_resources().dense(), settings, llm)


@remote(app, TaskName.INDEX_DOCUMENTS)
def index_documents(raw: dict[str, Any]) -> None:
    """Put one batch of an ingest into the store, or report which of its files are stored and need not be sent."""

    def work(inbox: Inbox, batch: int) -> IngestReport | None:
        content = inbox.documents(batch)
        if content is None:
            return None
        if content.hashes is not None:
            known, wanted = _indexer(content.tenant).split_known(content.hashes)
            return IngestReport(batch=batch, outcomes=tuple(known), wanted=tuple(wanted))
        guard = PoisonGuard(inbox.client, inbox.ingest_id, settings_of(app), ServerClock(inbox.client).now)
        index = _indexer(content.tenant).index
        outcomes, cost = guard.index(batch, content.documents, index, TaskName.INDEX_DOCUMENTS.value)
        return IngestReport(batch=batch, outcomes=tuple(outcomes), cost=cost)

    _answer(raw, work)


@remote(app, TaskName.INDEX_FINISH)
def index_finish(raw: dict[str, Any]) -> None:
    """End an ingest: prune removed files, refit BM25's average length, optimise the store."""

    def work(inbox: Inbox, batch: int) -> IngestReport | None:
        order = inbox.order(batch)
        if order is None:
            return None
        indexer = _indexer(order.tenant)
        removed = indexer.finish(order.keep, order.unreadable, order.namespace, written=order.written)
        warnings, cost = indexer.directories.take_report()
        return IngestReport(batch=batch, outcomes=tuple(removed), warnings=warnings, cost=cost)

    _answer(raw, work)


def _answer(raw: dict[str, Any], work: Callable[[Inbox, int], IngestReport | None]) -> None:
    """Run `work` and report its result or its error: the client waits for a report on every batch."""
    try:
        message = IndexMessage.model_validate(raw)
    except ValidationError as error:
        log.warning("message refused: not one of an ingest: %s", error.errors(include_input=False)[0]["msg"])
        return
    at = (message.ingest_id, message.batch)
    with _lock:
        if at in _running:
            return
        _running.add(at)
    try:
        _report(message, work)
    finally:
        with _lock:
            _running.discard(at)


def _report(message: IndexMessage, work: Callable[[Inbox, int], IngestReport | None]) -> None:
    inbox = Inbox(connect(settings_of(app)), message.ingest_id)
    try:
        with timings() as seconds, in_lane(Lane.BATCH):  # a question does not wait for the passages of an ingest
            report = work(inbox, message.batch)
    except Exception as error:
        log.log(
            logging.WARNING if isinstance(error, RamifyError) else logging.ERROR,
            "batch %s of ingest %s failed: %s", message.batch, message.ingest_id, reason_of(error),
            exc_info=not isinstance(error, RamifyError),
        )  # fmt: skip
        inbox.report(IngestReport(batch=message.batch, error=reason_of(error)))
    else:
        if report is not None:
            inbox.report(report.model_copy(update={"seconds": seconds}))
