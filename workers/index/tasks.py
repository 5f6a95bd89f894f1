"""The index queue's tasks. Embedded, they run in the search pool's process: it owns the store."""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import Any

from shared.contract import TaskName, read_request
from shared.models.stale import StaleCheckRequest
from shared.tasks.task_run import fail_job, remote
from shared.tenants import tenant_name
from workers.app import app, registry
from workers.index.item_tasks import ItemTasks
from workers.index.pipeline import Indexer
from workers.search.resources import search_resources
from workers.staleness.check import StalenessCheck

_lock = Lock()


def indexer_of(tenant: str) -> Indexer:
    """One a tenant, since it orders its writes. `cache` alone would let two threads make one each."""
    with _lock:
        return _new_indexer(tenant)


@cache
def _new_indexer(tenant: str) -> Indexer:
    settings = registry.settings
    llm = search_resources().llm() if settings.hierarchy.writer == "auto" else None
    return Indexer(search_resources().store(tenant), search_resources().dense(), settings, llm)


def staleness() -> StalenessCheck:
    """One a process, which remembers what kept answers rest on."""
    with _lock:
        return _new_staleness()


@cache
def _new_staleness() -> StalenessCheck:
    return StalenessCheck(search_resources(), registry.jobs)


_tasks = ItemTasks(app, registry.settings.chunking, indexer_of, staleness)


@remote(app, TaskName.INDEX_CHECK, ignore_result=False)
def index_check(raw: dict[str, Any]) -> str:
    """A StaleCheck, for a StaleCheckRequest."""
    request = read_request(StaleCheckRequest, raw)
    tenant, check = tenant_name(request.tenant), staleness()
    found = check.run_rechecks(tenant) if request.since is None else check.run(tenant, (), request.since)
    return found.model_dump_json()


index_documents = registry(TaskName.INDEX_DOCUMENTS, _tasks.failed, _tasks.about_document)(_tasks.documents)
index_finish = registry(TaskName.INDEX_FINISH, fail_job)(_tasks.finish)
