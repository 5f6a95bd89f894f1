"""Batches: many jobs under one id, with accounts that add up at every moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any

from redis import Redis
from redis.exceptions import ResponseError

from shared.connections.clock import ServerClock
from shared.errors import BatchCancelledError, DamagedError, InputError, NotFoundError
from shared.jobs.admission import AdmissionQueues
from shared.jobs.budget import budget_fields, spending
from shared.jobs.codec import text
from shared.jobs.fields import Fields, stored
from shared.jobs.keys import BATCHES, BatchKeys, JobKeys, batch_idempotency
from shared.jobs.lines import Page, script_input
from shared.jobs.scripts import Scripts
from shared.jobs.states import Outcome
from shared.jobs.tenant_scope import no_such_batch
from shared.models import BatchStatus
from shared.models.batch import BatchPosition, BatchSource, LineKind, LineRecord
from shared.models.cost import Budget
from shared.settings import Settings

_PAGE = 500
#: Batches that the list of batches keeps.
_MOST_BATCHES = 10_000
#: The counts in a batch's hash.
_COUNTS = (
    "lines", "enqueued", "known", "duplicate", "rejected", "blank", "open", *Outcome, "finished", "known_open",
)  # fmt: skip
_REASON = "reason:"
_VERDICT = "verdict:"


class Batches:
    """The accounts of batches, and the records of their lines.

    Whoever ends a job counts it in the same step. `reconcile` counts jobs that are gone from Redis.
    """

    def __init__(self, client: Redis, settings: Settings, clock: ServerClock, admission: AdmissionQueues) -> None:
        self._client, self._clock, self._admission = client, clock, admission
        self._ttl = settings.jobs.ttl_s
        self._run = Scripts(client)

    def open(
        self,
        batch_id: str,
        budget: Budget | None = None,
        source: BatchSource | None = None,
        *,
        key: str | None = None,
        **more: str | None,
    ) -> str:
        """Create an empty batch; returns its id, or that of the batch that was opened with the same `key`.

        `budget`: what all its jobs may spend together; `source`: where it is from; `key`: an idempotency key of the
        tenant's. `more`: fields of its hash; those that are None are left out: `tenant` (whose it is, if one's),
        `retry_of` (the batch that it tries again), `webhook` (the URL that is told when it is done).
        """
        keys, now = BatchKeys(batch_id), self._clock.now()
        fields: dict[Any, Any] = dict.fromkeys(_COUNTS, 0) | {"read": 0, "digest": "", "created_at": f"{now:.3f}"}
        fields["source"] = (source or BatchSource()).model_dump_json(exclude_defaults=True)
        fields |= {name: value for name, value in more.items() if value}
        given = [value for pair in (fields | budget_fields(budget or Budget())).items() for value in pair]
        own = [batch_idempotency(more.get("tenant"), key)] if key else []
        args = [batch_id, now, self._ttl, _MOST_BATCHES, *given]
        return text(self._run("open_batch", [keys.batch, BATCHES, *own], args))

    def close(self, batch_id: str) -> None:
        """Note that all lines have been read."""
        self._run("close_batch", [BatchKeys(batch_id).batch], [f"{self._clock.now():.3f}", self._ttl])

    def webhook(self, batch_id: str) -> str | None:
        """The URL that is told when the batch is done, if its request named one."""
        named = self._client.hget(BatchKeys(batch_id).batch, "webhook")
        return None if named is None else text(named)

    def cancel(self, batch_id: str) -> bool:
        """Take no more lines, as a batch that is still read. False when all had been read. Its jobs go on."""
        return bool(self._run("cancel_batch", [BatchKeys(batch_id).batch], [f"{self._clock.now():.3f}", self._ttl]))

    def position(self, batch_id: str) -> BatchPosition:
        """How far it was read, and from where. Raises: NotFoundError, DamagedError."""
        names = ["read", "digest", "source", "tenant"]
        read, digest, source, tenant = self._client.hmget(BatchKeys(batch_id).batch, names)
        if read is None:
            raise no_such_batch(batch_id)
        of = None if tenant is None else text(tenant)
        number = max(0, Fields({"read": read}).whole("read"))
        return BatchPosition(read=number, digest=text(digest), source=_source(source), tenant=of)

    def enter(self, batch_id: str, page: Page) -> list[LineRecord]:
        """Enter lines and create their jobs, in one step; the same page again changes nothing. Returns their records.

        Raises: NotFoundError, BatchCancelledError, InputError when other lines were entered in their place.
        """
        return self.send(batch_id, page)()

    def send(self, batch_id: str, page: Page) -> Callable[[], list[LineRecord]]:
        """As `enter`: what is returned waits until they are entered, and has to be called."""
        reply = self._run.ahead("enter_lines", *script_input(batch_id, page, self._admission))
        return lambda: _entered(batch_id, page, reply())

    def lines(self, batch_id: str, numbers: Sequence[int] | None = None) -> Iterator[list[LineRecord]]:
        """The records of all lines, or of those with `numbers`, in order, page by page.

        Raises: NotFoundError, DamagedError.
        """
        key = BatchKeys(batch_id).lines
        wanted = range(1, self.position(batch_id).read + 1) if numbers is None else numbers
        left, rest = self._client.hlen(key), iter(wanted)
        while left > 0 and (asked := list(islice(rest, _PAGE))):
            found: Any = self._client.hmget(key, list(map(str, asked)))
            if page := [_record(number, raw) for number, raw in zip(asked, found, strict=True) if raw is not None]:
                left -= len(page) if numbers is None else 0
                yield page

    def failed(self, batch_id: str) -> list[str]:
        """The last jobs that failed or expired, the newest first, at most 200."""
        return [text(job_id) for job_id in self._client.lrange(BatchKeys(batch_id).failed, 0, -1)]

    def members(self, batch_id: str) -> Iterator[tuple[str, str]]:
        """All (job id, outcome or empty) of a batch's own jobs, unordered. Raises: NotFoundError."""
        keys = BatchKeys(batch_id)
        if not self._client.exists(keys.batch):
            raise no_such_batch(batch_id)
        return self._pairs(keys.members)

    def _pairs(self, key: str) -> Iterator[tuple[str, str]]:
        for job_id, outcome in self._client.hscan_iter(key, count=_PAGE):
            yield text(job_id), text(outcome)

    def outcomes(self, batch_id: str, job_ids: Sequence[str]) -> list[str]:
        """How these jobs ended, as the batch has counted it: empty for what is open or not of it."""
        if not job_ids:
            return []
        keys = BatchKeys(batch_id)
        with self._client.pipeline(transaction=False) as pipe:
            pipe.hmget(keys.members, list(job_ids))
            pipe.hmget(keys.known, list(job_ids))
            own, known = pipe.execute()
        return [text(one or other or b"") for one, other in zip(own, known, strict=True)]

    def status(self, batch_id: str) -> BatchStatus:
        """The counts. Raises: NotFoundError."""
        raw = {text(k): v for k, v in self._client.hgetall(BatchKeys(batch_id).batch).items()}
        if not raw:
            raise no_such_batch(batch_id)
        return _status(batch_id, raw, self._clock.now())

    def newest(self, limit: int, tenant: str | None = None) -> list[BatchStatus]:
        """The newest batches, newest first: those that `tenant` has opened, or everybody's."""
        now = self._clock.now()
        found = (
            (one, raw) for page in self._all() for one, raw in page if tenant in {None, Fields(raw, []).text("tenant")}
        )
        return [_status(batch_id, raw, now) for batch_id, raw in islice(found, limit)]

    def _all(self) -> Iterator[list[tuple[str, dict[str, bytes]]]]:
        """Id and hash of all batches, newest first, page by page. Those that have expired leave the list."""
        ids = [text(batch_id) for batch_id in self._client.zrevrange(BATCHES, 0, -1)]
        for page in _pages(ids):
            with self._client.pipeline(transaction=False) as pipe:
                for batch_id in page:
                    pipe.hgetall(BatchKeys(batch_id).batch)
                rows = pipe.execute(raise_on_error=False)  # one that is of another type is passed over
            if gone := [batch_id for batch_id, raw in zip(page, rows, strict=True) if raw == {}]:
                self._client.zrem(BATCHES, *gone)
            read = ({text(k): v for k, v in raw.items()} if isinstance(raw, dict) else {} for raw in rows)
            yield [(batch_id, raw) for batch_id, raw in zip(page, read, strict=True) if raw]

    def reconcile(self, batch_id: str) -> int:
        """Count jobs that ended without being counted, or that are gone. Returns how many. Raises: NotFoundError."""
        return sum(self._reconciled(batch_id))

    def _reconciled(self, batch_id: str) -> Iterator[int]:
        """Page by page, how many were counted."""
        keys = BatchKeys(batch_id)
        pairs = chain(self.members(batch_id), self._pairs(keys.known))
        for page in _pages(job_id for job_id, outcome in pairs if not outcome):
            with self._client.pipeline(transaction=False) as pipe:
                for job_id in page:
                    self._run("count_ended", [keys.batch, JobKeys(job_id).job], [self._ttl, job_id], client=pipe)
                yield sum(pipe.execute())

    def reconcile_open(self) -> Iterator[int]:
        """Reconcile all batches with open jobs, in steps of milliseconds; each gives how many were counted."""
        for page in self._all():
            yield 0
            for batch_id, raw in page:
                if any(raw.get(name, b"0") != b"0" for name in ("open", "known_open")):
                    with suppress(ResponseError, NotFoundError):  # one that cannot be read keeps no other waiting
                        yield from self._reconciled(batch_id)


def _entered(batch_id: str, page: Page, found: Any) -> list[LineRecord]:
    """The records of lines by the reply of their script. Raises: as `Batches.enter`."""
    if found == 0:
        raise no_such_batch(batch_id)
    if found == -1:
        fix = "another client is adding lines to it: let one at a time do that, and resume when it has ended"
        raise InputError("batch id", batch_id, fix)
    if found == -2:
        raise BatchCancelledError(batch_id, page.read_before)
    simple, records = text(found[0]), iter(found[1:])
    return [
        line.enqueued() if one == "1" else _record(line.line, next(records))
        for line, one in zip(page.lines, simple, strict=True)
    ]


def _record(number: int, raw: bytes) -> LineRecord:
    try:
        return stored(LineRecord, raw, "its record")
    except DamagedError as error:
        return LineRecord(line=number, kind=LineKind.REJECTED, reason=str(error))


def _source(raw: str | bytes | None) -> BatchSource:
    try:
        return stored(BatchSource, raw or "{}", "its source")
    except DamagedError:
        return BatchSource()


def _status(batch_id: str, raw: Mapping[str, object], now: float) -> BatchStatus:
    """What cannot be read is as if it was missing: it keeps nobody from the rest."""
    fields = Fields(raw, [])
    reasons, verdicts = (
        {name.removeprefix(kind): fields.whole(name) for name in raw if name.startswith(kind)}
        for kind in (_REASON, _VERDICT)
    )
    try:
        budget = spending({name: fields.text(name) for name in raw}, now)
    except (ValueError, KeyError):
        budget = None
    return BatchStatus(
        batch_id=batch_id, **{name: fields.whole(name) for name in _COUNTS}, reasons=reasons, verdicts=verdicts,
        budget=budget,
        created_at=fields.number("created_at", 0.0),
        **{name: fields.number(name, 0.0) or None for name in ("closed_at", "cancelled_at")},
        source=_source(fields.text("source")).name,
        **{name: fields.text(name) or None for name in ("tenant", "retry_of", "retried_as")},
        **{name: tuple(filter(None, fields.text(name).split(","))) for name in ("retries", "repairs", "refreshes")},
    )  # fmt: skip


def _pages(job_ids: Iterable[str]) -> Iterator[list[str]]:
    stream = iter(job_ids)
    while page := list(islice(stream, _PAGE)):
        yield page
