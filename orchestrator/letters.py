"""Dead letters for their operator: read, replayed or dropped (A5, G10)."""

from __future__ import annotations

import time
from collections.abc import Iterator

from celery import Celery
from pydantic import ValidationError
from redis import Redis

from orchestrator.ingest_post import Post
from orchestrator.retrying import Retrying
from shared.contract import TaskName
from shared.errors import InputError, RamifyError
from shared.job_store import JobStore, codec, reachable
from shared.job_store.dead import DeadLetters
from shared.job_store.inbox import DocumentBatch, FinishOrder
from shared.job_store.keys import made_at
from shared.models import DocumentOutcome, DocumentStatus, RawDocument
from shared.models.base import Model
from shared.models.dead import DeadLetter

_WRITTEN = frozenset({DocumentStatus.ADDED, DocumentStatus.CHANGED})
#: Seconds that a replayed document may take.
PATIENCE_S = 300.0


class Replayed(Model):
    """What a replay has made: the new job of `work`, or what became of a document. The letter is dropped then."""

    letter_id: str
    job_id: str | None = None
    document: DocumentOutcome | None = None


class Letters:
    """All dead letters. Every method raises NotRunningError when Redis does not answer."""

    def __init__(self, app: Celery, jobs: JobStore, retrying: Retrying) -> None:
        self._app, self._jobs, self._retrying = app, jobs, retrying
        self._dead = DeadLetters(jobs.client, jobs.settings)

    def list(self, limit: int = 100) -> Iterator[DeadLetter]:
        """The newest first."""
        with reachable(self._jobs.settings):
            yield from self._dead.list(limit)

    def count(self) -> int:
        """How many there are."""
        with reachable(self._jobs.settings):
            return self._dead.count()

    def get(self, letter_id: str) -> DeadLetter:
        """One letter. Raises: NotFoundError."""
        with reachable(self._jobs.settings):
            return self._dead.get(letter_id)

    def drop(self, letter_id: str) -> bool:
        """Forget a letter. False when there was none."""
        with reachable(self._jobs.settings):
            return self._dead.drop(letter_id)

    def replay(self, letter_id: str) -> Replayed:
        """Try a letter's work again, as if nobody had died of it: a new job, or the document is indexed again.

        Raises: NotFoundError, InputError when that cannot be, LaneFullError, NotRunningError. The letter stays then.
        """
        with reachable(self._jobs.settings):
            letter = self._dead.get(letter_id)
            done = self._document(letter) if letter.kind == "document" else self._work(letter)
            self._dead.drop(letter_id)
            return done

    def _work(self, letter: DeadLetter) -> Replayed:
        """A new job has no marks: the deaths of its old one are forgotten with it. One job replays all its letters."""
        old = self._jobs.retries.read([letter.job_id]).get(letter.job_id)
        if old is not None and old.retried_as and made_at(old.retried_as) > letter.at:
            return Replayed(letter_id=letter.id, job_id=old.retried_as)
        made = self._retrying.job(letter.job_id, letter.tenant)
        if made is None:
            fix = f"its job {letter.job_id} has expired: `ramify dead drop {letter.id}`"
            raise InputError("letter id", letter.id, fix)
        return Replayed(letter_id=letter.id, job_id=made.job_id)

    def _document(self, letter: DeadLetter) -> Replayed:
        content = self._dead.content(letter.id)
        if content is None:
            fix = f"its document was not kept: run `ramify ingest` again with {letter.what}"
            raise InputError("letter id", letter.id, fix)
        return Replayed(letter_id=letter.id, document=replay_document(self._app, self._jobs.client, letter, content))


def replay_document(app: Celery, client: Redis, letter: DeadLetter, content: bytes) -> DocumentOutcome:
    """Send a document (a blob of a RawDocument) to the index queue, as `ramify ingest` does, and wait for it.

    Raises: InputError for what is no document of the letter's tenant, RamifyError when the index queue refuses it,
    NotRunningError when that stays silent.
    """
    try:
        document = codec.unpack(content, RawDocument)
    except (ValueError, ValidationError):
        raise InputError("letter id", letter.id, "its document is damaged: run `ramify ingest` again") from None
    if (document.tenant, document.namespace) != (letter.tenant, letter.namespace):
        raise InputError("letter id", letter.id, "its document is another tenant's: drop the letter")
    post = Post(app, client)
    try:
        post.send(TaskName.INDEX_DOCUMENTS, DocumentBatch(tenant=letter.tenant, documents=(document,)))
        outcomes = _outcomes(post)
        written = any(outcome.status in _WRITTEN for outcome in outcomes)
        post.send(TaskName.INDEX_FINISH, FinishOrder(tenant=letter.tenant, namespace=letter.namespace, written=written))
        _outcomes(post)
    finally:
        post.close()
    failed = [outcome for outcome in outcomes if outcome.status is DocumentStatus.FAILED]
    if failed or not outcomes:
        reason = failed[0].reason if failed else "the index queue said nothing about it"
        raise RamifyError(f"{letter.what} could not be indexed: {reason}")
    return outcomes[0]


def _outcomes(post: Post) -> list[DocumentOutcome]:
    """What became of all that is open. Raises: RamifyError after PATIENCE_S."""
    found, end = list[DocumentOutcome](), time.monotonic() + PATIENCE_S
    while post.open:
        for report in post.reports():
            found += report.outcomes
        if time.monotonic() > end:
            raise RamifyError(f"the index queue has not finished within {PATIENCE_S:.0f} s: `ramify doctor`")
    return found
