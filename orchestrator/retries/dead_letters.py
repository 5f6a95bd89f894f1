"""Dead letters for their operator: read, replayed or dropped."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError

from orchestrator.documents.hand_over import HandOver
from orchestrator.documents.ingest import Ingesting, IngestOptions
from orchestrator.retries.retry import Retrying
from shared.connections.quarantine import Quarantine
from shared.errors import ConflictError, NotFoundError, RamifyError
from shared.jobs import JobStore, codec, reachable
from shared.jobs.dead_letters import DeadLetterStore
from shared.jobs.keys import id_time
from shared.models import DocumentOutcome, DocumentStatus, RawDocument
from shared.models.base import Model
from shared.models.ingest import HandedOver
from shared.models.status import DeadLetter, Quarantined

#: Seconds that a replayed document may take.
REPLAY_TIMEOUT_S = 300.0
#: What a job that replays one is named after.
_REPLAYED = "dead-letter"


class Replayed(Model):
    """What a replay has made: the new job of `work`, or what became of a document. The dead letter is dropped then."""

    dead_letter_id: str
    job_id: str | None = None
    document: DocumentOutcome | None = None


class DeadLetters:
    """All dead letters, or those of one tenant. Every method raises NotRunningError when Redis does not answer."""

    def __init__(self, jobs: JobStore, retrying: Retrying, ingesting: Ingesting, tenant: str | None = None) -> None:
        self._jobs, self._retrying, self._ingesting = jobs, retrying, ingesting
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
            raise ConflictError("dead letter id", dead_letter.id, fix) from None
        return Replayed(dead_letter_id=dead_letter.id, job_id=made.job_id)

    def _replay_document(self, dead_letter: DeadLetter) -> Replayed:
        content = self._dead.content(dead_letter.id)
        if content is None:
            fix = f"its document was not kept: run `ramify ingest` again with {dead_letter.what}"
            raise ConflictError("dead letter id", dead_letter.id, fix)
        return Replayed(dead_letter_id=dead_letter.id, document=replay_document(self._ingesting, dead_letter, content))


def replay_document(ingesting: Ingesting, dead_letter: DeadLetter, content: bytes) -> DocumentOutcome:
    """Put a document (a blob of a RawDocument) in by a job of its own, and wait for it.

    Raises: InputError for what is no document of the dead letter's tenant, RamifyError when it fails again.
    """
    try:
        document = codec.unpack(content, RawDocument)
    except (ValueError, ValidationError):
        raise ConflictError(
            "dead letter id", dead_letter.id, "its document is damaged: run `ramify ingest` again"
        ) from None
    if (document.tenant, document.namespace) != (dead_letter.tenant, dead_letter.namespace):
        raise ConflictError("dead letter id", dead_letter.id, "its document is another tenant's: drop the dead letter")
    options = IngestOptions(dead_letter.tenant, dead_letter.namespace, deadline_s=REPLAY_TIMEOUT_S)
    job_id = ingesting.submit(HandedOver.DOCUMENTS, [_REPLAYED], options)
    with HandOver(ingesting, job_id, options) as hand_over:
        for _ in hand_over.documents(document.source, (document, None)):
            pass
    outcomes = [outcome for step in ingesting.follow(job_id) for outcome in step.outcomes]
    failed = [outcome for outcome in outcomes if outcome.status is DocumentStatus.FAILED]
    if failed or not outcomes:
        reason = failed[0].reason if failed else "the index queue said nothing about it"
        raise RamifyError(f"{dead_letter.what} could not be indexed: {reason}")
    return outcomes[0]
