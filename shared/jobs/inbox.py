"""The inbox of an ingest: documents wait here for the index queue, reports come back on a stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field
from redis import Redis

from shared.connections.heartbeat import alive_workers
from shared.jobs import codec
from shared.jobs.codec import text
from shared.jobs.keys import IngestKeys
from shared.jobs.work import read_work
from shared.models import Cost, DocumentOutcome, RawDocument
from shared.models.base import Model
from shared.models.ingest import FileHashes
from shared.models.request import TenantName

#: An ingest that is this old and not done was given up.
_TTL_S = 86_400
#: Item of a batch in the hash `work`, followed by `:` and its number.
BATCH = "batch"


class DocumentBatch(Model):
    """Documents of one source of a tenant that travel together, or hashes of files, to ask which of them need to."""

    tenant: TenantName
    documents: tuple[RawDocument, ...] = ()
    hashes: FileHashes | None = None


class FinishOrder(Model):
    """How a tenant's ingest ends. `keep`: source -> ids that were seen there, to prune the rest; None prunes nothing.

    `written`: it added or changed something.
    """

    tenant: TenantName
    namespace: str = "default"
    keep: dict[str, tuple[str, ...]] | None = None
    unreadable: tuple[str, ...] = ()
    written: bool = True


class IngestReport(Model):
    """The outcome of one batch and its cost; `error` when it failed as a whole.

    `wanted` are the numbers of the hashes whose files must travel; `seconds` is where the time went, by part;
    `warnings` concern no document.
    """

    batch: int
    outcomes: tuple[DocumentOutcome, ...] = ()
    error: str | None = None
    cost: Cost = Cost()
    wanted: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: dict[str, float] = Field(default_factory=dict)


class Inbox:
    """The documents and reports of one ingest. Every key carries a TTL of a day. May raise RedisError."""

    def __init__(self, client: Redis, ingest_id: str) -> None:
        self.client, self.ingest_id = client, ingest_id
        self._keys = IngestKeys(ingest_id)

    def put(self, batch: int, content: DocumentBatch | FinishOrder) -> None:
        """Store a batch, or the order to finish, for the index queue."""
        with self.client.pipeline(transaction=True) as pipe:
            pipe.hset(self._keys.inbox, str(batch), codec.pack(content))
            pipe.expire(self._keys.inbox, _TTL_S)
            pipe.execute()

    def documents(self, batch: int) -> DocumentBatch | None:
        """A batch; None when it was done before (a repeated message)."""
        return codec.unpack_or_none(self.client.hget(self._keys.inbox, str(batch)), DocumentBatch)

    def order(self, batch: int) -> FinishOrder | None:
        """How to finish; None when that was done before."""
        return codec.unpack_or_none(self.client.hget(self._keys.inbox, str(batch)), FinishOrder)

    def waiting(self) -> set[int]:
        """The batches that are not reported yet."""
        return {int(text(batch)) for batch in self.client.hkeys(self._keys.inbox)}

    def abandoned(self) -> set[int]:
        """The batches whose worker is dead."""
        items = read_work(self.client.hgetall(self._keys.work))
        busy = {name: item.busy.worker for name, item in items.items() if item.busy}
        alive = alive_workers(self.client, busy.values())
        names = (item.removeprefix(f"{BATCH}:") for item, worker in busy.items() if worker not in alive)
        return {int(name) for name in names if name.isdecimal()}

    def report(self, report: IngestReport) -> None:
        """Add the outcome of a batch to the stream and delete the batch."""
        with self.client.pipeline(transaction=True) as pipe:
            pipe.xadd(self._keys.outcomes, {"report": codec.pack(report)})
            pipe.expire(self._keys.outcomes, _TTL_S)
            pipe.hdel(self._keys.inbox, str(report.batch))
            pipe.execute()

    def reports(self, after: str, timeout_s: float) -> Iterator[tuple[str, IngestReport]]:
        """(stream id, report) of what has come since `after`; waits up to `timeout_s` for the first."""
        block = max(1, int(timeout_s * 1000))
        reply: Any = self.client.xread({self._keys.outcomes: after}, block=block)
        for _, entries in reply or []:
            for entry_id, fields in entries:
                yield text(entry_id), codec.unpack(fields[b"report"], IngestReport)

    def clear(self) -> None:
        """Forget the ingest."""
        self.client.delete(self._keys.inbox, self._keys.outcomes, self._keys.work)
