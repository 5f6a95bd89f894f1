"""Dead letters for their operator: read, replayed or dropped."""

from __future__ import annotations

import time
from collections.abc import Iterator

from celery import Celery
from pydantic import ValidationError
from redis import Redis

from orchestrator.ingest import IndexChannel
from orchestrator.retry import Retrying
from shared.connections.quarantine import Quarantine
from shared.contract import TaskName
from shared.errors import InputError, NotFoundError, RamifyError
from shared.jobs import JobStore, codec, reachable
from shared.jobs.dead_letters import DeadLetterStore
from shared.jobs.inbox import DocumentBatch, FinishOrder
from shared.jobs.keys import id_time
from shared.models import DocumentOutcome, DocumentStatus, RawDocument
from shared.models.base import Model
from shared.models.ingest import WRITTEN
from shared.models.status import DeadLetter, Quarantined

#: Seconds that a replayed document may take.
REPLAY_TIMEOUT_S = 300.0


class Replayed(Model):
    """What a replay has made: the new job of `work`, or what became of a document. The dead letter is dropped then."""

    dead_letter_id: str
    job_id: str | None = None
    document: DocumentOutcome | None = None


class DeadLetters:
    """All dead letters, or those of one tenant. Every method raises NotRunningError when Redis does not answer."""

    def __init__(self, app: Celery, jobs: JobStore, retrying: Retrying, tenant: str | None = None) -> None:
        self._app, self._jobs, self._retrying = app, jobs, retrying
        self._dead, self._tenant = DeadLetterStore(jobs.client, jobs.settings, tenant), tenant

    def list(self, limit: int = 100) -> Iterator[DeadLetter]:
        """The newest first."""
        with reachable(self._jobs.settings):
            yield from self._dead.list(limit)

    def count(self) -> int:
        """How many there are."""
        with reachable(self._jobs.settings):
            return self._dead.count()

    def get(self, dead_letter_id: str) -> DeadLetter:
        """One dead letter. Raises: NotFoundError."""
        with reachable(self._jobs.settings):
            return self._dead.get(dead_letter_id)

    def drop(self, dead_letter_id: str) -> bool:
        """Forget a dead letter. False when there was none."""
        with reachable(self._jobs.settings):
            return self._dead.drop(dead_letter_id)

    def quarantined(self, *, drop: bool = False) -> tuple[Quarantined, ...]:
        """What stood in Redis and is not ours, the newest first; with `drop` it is forgotten then.

        Nobody knows whose it was: a client that is bound to a tenant finds none.
        """
        with reachable(self._jobs.settings):
            quarantine = Quarantine(self._jobs.client)
            found = () if self._tenant else tuple(quarantine.list())
            if drop and not self._tenant:
                quarantine.clear()
            return found

    def replay(self, dead_letter_id: str) -> Replayed:
        """Try a dead letter's work again, its recorded deaths forgotten: a new job, or the document is indexed again.

        It stays where that fails.
        Raises: NotFoundError, InputError when that cannot be, LaneFullError, NotRunningError.
        """
        with reachable(self._jobs.settings):
            dead_letter = self._dead.get(dead_letter_id)
            replay = self._replay_document if dead_letter.kind == "document" else self._replay_work
            done = replay(dead_letter)
            self._dead.drop(dead_letter_id)
            return done

    def _replay_work(self, dead_letter: DeadLetter) -> Replayed:
        """A new job has no marks, so no recorded deaths. It replays all dead letters of its old one."""
        old = self._jobs.retries.read([dead_letter.job_id]).get(dead_letter.job_id)
        if old is not None and old.retried_as and id_time(old.retried_as) > dead_letter.at:
            return Replayed(dead_letter_id=dead_letter.id, job_id=old.retried_as)
        try:
            made = self._retrying.job(dead_letter.job_id, dead_letter.tenant)
        except NotFoundError:
            fix = f"its job {dead_letter.job_id} has expired: `ramify dead drop {dead_letter.id}`"
            raise InputError("dead letter id", dead_letter.id, fix) from None
        return Replayed(dead_letter_id=dead_letter.id, job_id=made.job_id)

    def _replay_document(self, dead_letter: DeadLetter) -> Replayed:
        content = self._dead.content(dead_letter.id)
        if content is None:
            fix = f"its document was not kept: run `ramify ingest` again with {dead_letter.what}"
            raise InputError("dead letter id", dead_letter.id, fix)
        return Replayed(
            dead_letter_id=dead_letter.id, document=replay_document(self._app, self._jobs.client, dead_letter, content)
        )


def replay_document(app: Celery, client: Redis, dead_letter: DeadLetter, content: bytes) -> DocumentOutcome:
    """Send a document (a blob of a RawDocument) to the index queue, as `ramify ingest` does, and wait for it.

    Raises: InputError for what is no document of the dead letter's tenant, RamifyError when the index queue refuses it,
    NotRunningError when that stays silent.
    """
    try:
        document = codec.unpack(content, RawDocument)
    except (ValueError, ValidationError):
        raise InputError(
            "dead letter id", dead_letter.id, "its document is damaged: run `ramify ingest` again"
        ) from None
    if (document.tenant, document.namespace) != (dead_letter.tenant, dead_letter.namespace):
        raise InputError("dead letter id", dead_letter.id, "its document is another tenant's: drop the dead letter")
    channel = IndexChannel(app, client)
    try:
        channel.send(TaskName.INDEX_DOCUMENTS, DocumentBatch(tenant=dead_letter.tenant, documents=(document,)))
        outcomes = _outcomes(channel)
        written = any(outcome.status in WRITTEN for outcome in outcomes)
        channel.send(
            TaskName.INDEX_FINISH,
            FinishOrder(tenant=dead_letter.tenant, namespace=dead_letter.namespace, written=written),
        )
        _outcomes(channel)
    finally:
        channel.close()
    failed = [outcome for outcome in outcomes if outcome.status is DocumentStatus.FAILED]
    if failed or not outcomes:
        reason = failed[0].reason if failed else "the index queue said nothing about it"
        raise RamifyError(f"{dead_letter.what} could not be indexed: {reason}")
    return outcomes[0]


def _outcomes(channel: IndexChannel) -> list[DocumentOutcome]:
    """What became of all that is open. Raises: RamifyError after REPLAY_TIMEOUT_S."""
    found, end = list[DocumentOutcome](), time.monotonic() + REPLAY_TIMEOUT_S
    while channel.open:
        for report in channel.reports():
            found += report.outcomes
        if time.monotonic() > end:
            raise RamifyError(f"the index queue has not finished within {REPLAY_TIMEOUT_S:.0f} s: `ramify doctor`")
    return found
