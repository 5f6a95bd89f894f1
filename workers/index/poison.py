"""Finds a document that kills its worker, retires it as a dead letter and indexes the rest of its batch.

A batch that has killed a worker is indexed one document at a time, each marked before it is read. A document that
was marked at `lanes.max_deaths` deaths, the batch's included, is not tried again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from redis import Redis

from shared.connections.heartbeat import alive_workers, worker_id
from shared.jobs import codec
from shared.jobs.codec import text
from shared.jobs.dead_letters import DeadLetterStore
from shared.jobs.inbox import BATCH
from shared.jobs.keys import IngestKeys
from shared.jobs.work import Attempt, read_attempt
from shared.models import Cost, DocumentOutcome, DocumentStatus, RawDocument
from shared.models.status import DeadLetter
from shared.settings import Settings

log = logging.getLogger("ramify.index.poison")
_TTL_S = 86_400
Index = Callable[[Sequence[RawDocument]], tuple[list[DocumentOutcome], Cost]]


class PoisonGuard:
    """Indexes the batches of one ingest. May raise redis.exceptions.RedisError.

    The hash `ramify:{INGEST}:work` has, for each item (a batch, or a document of one), `busy:<item>` with the mark of
    the worker that is at it, and `proof:<item>` with the marks of those that died at it, one a line.
    """

    def __init__(self, client: Redis, ingest_id: str, settings: Settings, now: Callable[[], float]) -> None:
        self._client, self._ingest_id, self._settings, self._now = client, ingest_id, settings, now
        self._key = IngestKeys(ingest_id).work

    def index(
        self, batch: int, documents: Sequence[RawDocument], index: Index, task: str
    ) -> tuple[list[DocumentOutcome], Cost]:
        """What `index` returns: for all at once, unless the batch has killed a worker. Raises what it raises."""
        item = f"{BATCH}:{batch}"
        deaths = self._begin(item, task)
        try:
            if not deaths:
                return index(documents)
            log.warning("batch %d of ingest %s has killed %d workers: one by one", batch, self._ingest_id, len(deaths))
            return self._one_by_one(batch, documents, index, task, deaths)
        finally:
            self._end(item)

    def _one_by_one(
        self, batch: int, documents: Sequence[RawDocument], index: Index, task: str, batch_deaths: list[str]
    ) -> tuple[list[DocumentOutcome], Cost]:
        outcomes, cost = list[DocumentOutcome](), Cost()
        for place, raw in enumerate(documents):
            item = f"{batch}/{place}"
            deaths = self._begin(item, task)
            if len(deaths) >= max(1, self._settings.lanes.max_deaths - 1):  # the first one was the whole batch's
                outcomes.append(self._retired(item, raw, task, (*batch_deaths, *deaths)))
            else:
                found, spent = index([raw])
                outcomes += found
                cost = cost + spent
            self._end(item)
        return outcomes, cost

    def _begin(self, item: str, task: str) -> list[str]:
        """Leave this worker's mark at an item. Returns the marks of the workers that died at it."""
        with self._client.pipeline(transaction=True) as pipe:
            pipe.hmget(self._key, f"busy:{item}", f"proof:{item}")
            pipe.hset(self._key, f"busy:{item}", str(Attempt(self._now(), worker_id(), task)))
            pipe.expire(self._key, _TTL_S)
            before, proof = (text(value or "") for value in pipe.execute()[0])
        deaths: list[str] = proof.splitlines()
        last = read_attempt(before)
        if last is not None and last.worker not in alive_workers(self._client, [last.worker]):
            deaths.append(before)
            self._client.hset(self._key, f"proof:{item}", "\n".join(deaths))
        return deaths

    def _end(self, item: str) -> None:
        self._client.hdel(self._key, f"busy:{item}")

    def _retired(self, item: str, raw: RawDocument, task: str, deaths: Sequence[str]) -> DocumentOutcome:
        proof = tuple({line.split(" ")[1]: line for line in deaths}.values())  # a worker has marked both
        dead_letter_id = f"{self._ingest_id}:{item}"
        reason = f"it killed its worker {len(proof)} times and is not tried again; `ramify dead show {dead_letter_id}`"
        log.error("%s of ingest %s: %s", raw.path, self._ingest_id, reason)
        dead_letter = DeadLetter(
            id=dead_letter_id, kind="document", at=self._now(), tenant=raw.tenant,
            job_id=self._ingest_id, item=raw.path, task=task, what=raw.path, reason=reason, proof=proof,
            namespace=raw.namespace,
        )  # fmt: skip
        DeadLetterStore(self._client, self._settings).add(dead_letter, codec.pack(raw))
        return DocumentOutcome(path=raw.path, status=DocumentStatus.FAILED, reason=reason)
