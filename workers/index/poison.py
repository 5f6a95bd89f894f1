"""A document that kills its worker is found, retired and shown; the rest of its batch goes in.

A batch that has killed a worker is gone through one document at a time, each marked before it is read. The one that
stood marked at two more deaths is not tried again.
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


class Marks:
    """Who is at which batch, or document of a batch, of one ingest. May raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, ingest_id: str, now: Callable[[], float]) -> None:
        self._client, self._now = client, now
        self._key = IngestKeys(ingest_id).work

    def begin(self, item: str, task: str) -> int:
        """This process begins an item. Returns how many workers have died at it."""
        mark = str(Attempt(self._now(), worker_id(), task))
        with self._client.pipeline(transaction=True) as pipe:
            pipe.hget(self._key, f"busy:{item}")
            pipe.hset(self._key, f"busy:{item}", mark)
            pipe.hget(self._key, f"dead:{item}")
            pipe.expire(self._key, _TTL_S)
            before, _, dead, _ = pipe.execute()
        return int(dead or 0) + self._died(item, text(before) if before else "")

    def _died(self, item: str, mark: str) -> int:
        """1 when the mark's worker is dead; its death is counted, and the evidence kept."""
        found = read_attempt(mark)
        if found is None or found.worker in alive_workers(self._client, [found.worker]):
            return 0
        proof = text(self._client.hget(self._key, f"proof:{item}") or b"")
        with self._client.pipeline(transaction=True) as pipe:
            pipe.hincrby(self._key, f"dead:{item}", 1)
            pipe.hset(self._key, f"proof:{item}", f"{proof}\n{mark}".strip())
            pipe.execute()
        return 1

    def end(self, item: str) -> None:
        """This process has ended the item."""
        self._client.hdel(self._key, f"busy:{item}")

    def proof(self, item: str) -> tuple[str, ...]:
        """The marks of the workers that died at it."""
        return tuple(text(self._client.hget(self._key, f"proof:{item}") or b"").splitlines())


class Careful:
    """Indexes the batches of one ingest."""

    def __init__(self, client: Redis, ingest_id: str, settings: Settings, now: Callable[[], float]) -> None:
        self._client, self._ingest_id, self._settings, self._now = client, ingest_id, settings, now
        self._marks = Marks(client, ingest_id, now)

    def index(
        self, batch: int, documents: Sequence[RawDocument], index: Index, task: str
    ) -> tuple[list[DocumentOutcome], Cost]:
        """What `index` says of them: all at once, unless the batch has killed a worker. Raises what it raises."""
        item = f"{BATCH}:{batch}"
        deaths = self._marks.begin(item, task)
        try:
            if not deaths:
                return index(documents)
            log.warning("batch %d of ingest %s has killed %d workers: one by one", batch, self._ingest_id, deaths)
            return self._one_by_one(batch, documents, index, task)
        finally:
            self._marks.end(item)

    def _one_by_one(
        self, batch: int, documents: Sequence[RawDocument], index: Index, task: str
    ) -> tuple[list[DocumentOutcome], Cost]:
        outcomes, cost = list[DocumentOutcome](), Cost()
        for place, raw in enumerate(documents):
            item = f"{batch}/{place}"
            deaths = self._marks.begin(item, task)
            if deaths >= max(1, self._settings.lanes.max_deaths - 1):  # the first one was the whole batch's
                outcomes.append(self._retired(batch, item, raw, task))
            else:
                found, spent = index([raw])
                outcomes += found
                cost = cost + spent
            self._marks.end(item)
        return outcomes, cost

    def _retired(self, batch: int, item: str, raw: RawDocument, task: str) -> DocumentOutcome:
        told = (*self._marks.proof(f"{BATCH}:{batch}"), *self._marks.proof(item))
        proof = tuple({line.split(" ")[1]: line for line in told}.values())  # a worker has marked both
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
