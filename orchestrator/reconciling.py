"""After a restore: which of Redis and store is the older, what that has lost, and which answers are outdated by it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from celery.exceptions import TimeoutError as NoReplyError

from orchestrator.client import Ramify
from orchestrator.remote import call_pool, reply_of
from shared.contract import TaskName
from shared.errors import NotRunningError, RamifyError
from shared.jobs import reachable
from shared.jobs.corpus_written import SKEW_S, CorpusWritten, older_one, seconds_of
from shared.models.base import Model
from shared.models.stale import StaleCheck, StaleCheckRequest
from shared.models.told import ServerPath
from shared.settings import Settings
from shared.tasks.app import make_app

#: Seconds for what the store holds, and for holding a tenant's answers against it.
_INFO_S, _CHECK_S = 15.0, 600.0
#: Jobs that are looked at for ingests that have ended behind the store's last write.
_MOST_JOBS = 10_000


class LostIngest(Model):
    """An ingest that has ended after the store was written last: what it put in may not be there."""

    job_id: str
    sources: tuple[ServerPath, ...]
    finished_at: float


class Reconciled(Model):
    """Times are Unix seconds, 0: not known. `known_at`: when the store was written last, as far as the jobs know.

    `checks`: what became of a tenant's answers; its `left`: those that are still looked at closely; more may become
    stale, or fresh again. `lost`: ingests to be run again.
    """

    store_at: float
    known_at: float
    checks: dict[str, StaleCheck]
    lost: tuple[LostIngest, ...] = ()

    @property
    def said(self) -> str:
        """Which is the older, as one sentence."""
        return older_one(self.store_at, self.known_at) or "The store is as the jobs know it."


def reconcile(client: Ramify) -> Reconciled:
    """Hold all kept answers against the store as it is, and find the ingests that it has lost.

    Raises: NotRunningError where no search worker answers, RamifyError of the store.
    """
    settings = client.settings
    with make_app(settings) as app:
        collection = _stored(app, settings)
        with reachable(settings):
            known_at = seconds_of(CorpusWritten(client.redis, settings).known())
        store_at = seconds_of(int(collection.get("index_version", 0)))
        # Where Redis is the older, documents that are newer than what it knows have touched its answers. Else any may.
        since = known_at - SKEW_S if 0 < known_at < store_at else 0.0
        checks = {}
        for tenant in sorted(collection.get("tenants", {})):
            request = StaleCheckRequest(tenant=tenant, since=since)
            check = StaleCheck.of_record(call_pool(app, settings, TaskName.INDEX_CHECK, request, _CHECK_S))
            checks[tenant] = check.model_copy(update={"left": client.unchecked_answers(tenant=tenant)})
    lost = tuple(_lost(client, store_at)) if 0 < store_at < known_at else ()
    return Reconciled(store_at=store_at, known_at=known_at, checks=checks, lost=lost)


def _stored(app: Any, settings: Settings) -> Mapping[str, Any]:
    """The whole collection, as the search pool sees it; empty where nothing is ingested."""
    try:
        with reachable(settings):
            answer = reply_of(app, TaskName.SEARCH_INFO, (), _INFO_S)
    except NoReplyError:
        raise NotRunningError(f"no search worker answered in {_INFO_S:.0f} s: `ramify doctor` says why") from None
    if not answer.get("ok"):
        raise RamifyError(str(answer.get("error")))
    return answer.get("collection") or {}


def _lost(client: Ramify, store_at: float) -> Iterator[LostIngest]:
    for status in client.jobs(_MOST_JOBS, state=("done", "partial", "degraded")):
        if status.ingest is None or not status.finished_at or status.finished_at < store_at:
            continue
        counts = status.ingest
        if counts.added or counts.changed or counts.removed:
            sources = client.ingest_result(status.job_id).sources
            yield LostIngest(job_id=status.job_id, sources=sources, finished_at=status.finished_at)
