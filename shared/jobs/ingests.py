"""The items of a job that puts documents in: what is to be done, in which order, what became of it.

An item is named like a node of a question's tree: `0` is the walk over the roots or the hand-over by a client, `0.3`
what came of it, `0.3.1` a part of that. Few are at workers at a time: the others wait in the job's line.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import SecretStr
from redis import Redis

from shared.connections.clock import ServerClock
from shared.errors import ConflictError, IngestUnderWayError, RamifyError
from shared.files.found import FoundFile
from shared.jobs import codec
from shared.jobs.codec import text
from shared.jobs.fields import Fields, stored
from shared.jobs.keys import INGEST_ROOTS, IngestKeys, JobKeys
from shared.jobs.note import Note
from shared.jobs.scripts import Scripts
from shared.models import DocumentOutcome, DocumentStatus, JobRequest
from shared.models.base import Model
from shared.models.ingest import CHANGING, HandedOver, IngestCounts, IngestItem, IngestReport, IngestRequest
from shared.settings import Settings
from shared.settings.path_key import is_sealed, path_key, seal

#: The item that a job begins with.
FIRST = "0"
#: Items of one job at workers at a time: enough to keep a pool busy, few enough to leave room for other tenants'.
AT_WORKERS = 4
#: Items that a client may have handed over and that have not ended: they stand in Redis with their bytes.
HANDED_OVER = 8
_REPORTS, _FAILURES = 1_000, 1_000
#: Seconds in which a job that has claimed its roots must be there.
_CLAIM_S = 60
_COUNT, _PART = "ingest:", "us:"
UNSEALED = (
    "the request names files without the seal of this stack's data folder, so nothing was read: run `ramify ingest` as "
    "the user who started the stack"
)


class Seen(Model):
    """What an item has met: for a prune, the ids of its source's documents, and the paths of those that failed.

    `files` are those of which it had a piece.
    """

    source: str
    ids: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class SeenByAll(NamedTuple):
    """What all items of a job have met: source -> ids, paths of what failed, and file that came in pieces -> ids.

    Of a file in pieces that could not be read whole, nothing.
    """

    ids: dict[str, list[str]]
    unreadable: list[str]
    pieces: dict[str, list[str]]


@dataclass(frozen=True)
class ItemDone:
    """What became of an item: its report, how many files it has found and read, and the items it is split into."""

    report: IngestReport
    source: str = ""
    files: int = 0
    read: int = 0
    parts: Sequence[IngestItem] = ()
    #: Files of which it had a piece.
    pieces: Sequence[str] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    #: Kept answers that it has made stale.
    stale: int = 0
    #: It was given up, and its report says why.
    gave_up: bool = False

    def counts(self) -> dict[str, int]:
        """What is added to the job's counts, by name."""
        found = Counter({"files": self.files, "read": self.read})
        for outcome in self.report.outcomes:
            found[outcome.status.value] += 1
            found["chunks"] += outcome.chunks
        found["stale"] += self.stale
        found.update({f"{_PART}{name}": round(1_000_000 * seconds) for name, seconds in self.seconds.items()})
        return {name: number for name, number in found.items() if number}


@dataclass(frozen=True)
class NextItems:
    """What follows from a change: whether it counted, how many items have not ended, and those to be sent now."""

    taken: bool
    open: int = -1
    send: tuple[str, ...] = ()


class Ingests:
    """The items of all ingests. Every method may raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings, clock: ServerClock) -> None:
        self._client, self._settings, self._clock = client, settings, clock
        self._run = Scripts(client)
        self._key: SecretStr | None = None

    def _head(self) -> list[Any]:
        jobs = self._settings.jobs
        return [f"{self._clock.now():.6f}", jobs.ttl_s, jobs.max_events]

    def claim_roots(self, job_id: str, request: JobRequest) -> None:
        """Claim the roots of a job that is about to be enqueued. Raises: IngestUnderWayError."""
        ingest = request.ingest
        if ingest is None:
            return
        before, behind = JobKeys("\n").job.split("\n")
        scope = f"{request.tenant} {request.filters.namespace}"
        args = [*self._head()[:2], job_id, scope, before, behind, _CLAIM_S, *ingest.sources]
        if other := text(self._run("claim_roots", [INGEST_ROOTS], args)):
            raise IngestUnderWayError(other, ", ".join(ingest.sources))

    def release_roots(self, job_id: str) -> None:
        """Give up the claim of a job that was not taken."""
        self._client.hdel(INGEST_ROOTS, job_id)

    def start(self, job_id: str, ingest: IngestRequest, left_by: str | None = None) -> NextItems:
        """From planning to indexing. `left_by`: an ended job whose handed-over items are taken over."""
        keys, own = JobKeys(job_id), IngestKeys(job_id)
        left = self._client.hgetall(IngestKeys(left_by).inbox) if left_by else {}
        first = {HandedOver.PATHS: "walk", HandedOver.DOCUMENTS: "hand_over"}[ingest.by]
        blobs: list[Any] = []
        if ingest.by is HandedOver.DOCUMENTS and left_by:
            first, blobs = "left", [part for pair in left.items() for part in pair]
        names = [keys.job, keys.leaves, keys.events, keys.work, own.inbox, own.line]
        verdict, *send = self._run("start_indexing", names, [*self._head(), first, AT_WORKERS, *blobs])
        return NextItems(bool(verdict), send=tuple(map(text, send)))

    def hand_over(
        self, job_id: str, item: str = "", content: IngestItem | None = None, files: int = 0
    ) -> NextItems | None:
        """Add an item with `files` files; without content, `FIRST` closes the hand-over, and "" says: still here.

        None where too many items have not ended yet. Raises: RamifyError when the job takes none (any more).
        """
        keys, own = JobKeys(job_id), IngestKeys(job_id)
        blob = b"" if content is None else codec.pack(content)
        names = [keys.job, keys.leaves, own.inbox, keys.work, own.line]
        out = self._run("hand_over", names, [*self._head(), AT_WORKERS, HANDED_OVER, files, item, blob])
        if int(out[0]) < 0:
            raise RamifyError(f"job {job_id} takes no more documents: `ramify why {job_id}` says why")
        return NextItems(taken=True, open=int(out[1]), send=tuple(map(text, out[2:]))) if int(out[0]) else None

    def record(self, job_id: str, item: str, done: ItemDone, request: JobRequest, note: Note) -> NextItems:
        """Record an item once. What failed, and what a prune must know, is kept apart from the reports."""
        keys, own, report = JobKeys(job_id), IngestKeys(job_id), done.report
        self._keep_passed_over(job_id, report)
        counts = [part for pair in done.counts().items() for part in pair]
        failed = [one.model_dump_json(exclude_defaults=True) for one in report.outcomes if _failed(one)]
        seen = _seen(done) if done.pieces or (request.ingest is not None and request.ingest.prune) else b""
        said = report.outcomes or report.wanted or report.passed_over
        parts = [
            part
            for number, content in enumerate(done.parts, 1)
            for part in (f"{item}.{number}", self._packed(job_id, f"{item}.{number}", content))
        ]
        status = "failed" if done.gave_up else "grown" if done.parts else "done"
        args = [
            *self._head(), note.wire(), item, status, AT_WORKERS, codec.pack(report) if said else b"", _REPORTS,
            _FAILURES, seen, len(counts) // 2, *counts, len(failed), *failed, *parts,
        ]  # fmt: skip
        names = [
            keys.job, keys.leaves, keys.events, keys.work, own.inbox, own.line, own.outcomes, own.failures, own.seen
        ]  # fmt: skip
        verdict, *rest = self._run("record_item", names, args)
        return (
            NextItems(taken=True, open=int(rest[0]), send=tuple(map(text, rest[1:])))
            if int(verdict)
            else NextItems(taken=False)
        )

    def _packed(self, job_id: str, item: str, content: IngestItem) -> bytes:
        """As it stands in the inbox: what names files carries a seal in front of it."""
        blob = codec.pack(content)
        if not content.names_files:
            return blob
        return self._seal(job_id, item, blob).encode() + b" " + blob

    def _seal(self, job_id: str, item: str, blob: bytes) -> str:
        key = self._own_key()
        if key is None:
            raise RamifyError(UNSEALED)
        return seal(key, job_id.encode(), item.encode(), blob)

    def _own_key(self) -> SecretStr | None:
        if self._key is None:
            self._key = path_key(self._settings)
        return self._key

    def content(self, job_id: str, item: str) -> IngestItem | None:
        """What an item is of; None when it is lost, or was done. Raises: RamifyError for files without a seal."""
        raw: object = self._client.hget(IngestKeys(job_id).inbox, item)
        if not isinstance(raw, bytes):
            return None
        mark, blank, blob = raw.partition(b" ")
        sealed = blank and len(mark) == _SEAL_CHARS and is_sealed(
            self._own_key(), mark.decode("ascii", "replace"), job_id.encode(), item.encode(), blob
        )  # fmt: skip
        found = codec.unpack(blob if sealed else raw, IngestItem)
        if found.names_files and not sealed:
            raise RamifyError(UNSEALED)
        return found

    def sealed(self, job_id: str, request: JobRequest) -> JobRequest:
        """A request that names paths, with the seal of this data folder. Raises: RamifyError without its key."""
        ingest = request.ingest
        if ingest is None or ingest.by is not HandedOver.PATHS:
            return request
        made = self._seal(job_id, "", _named(request))
        return request.model_copy(update={"ingest": ingest.model_copy(update={"seal": made})})

    def again(self, job_id: str, old: str, request: JobRequest) -> JobRequest:
        """The request of a job that tries `old` again: its files are walked anew, or what was handed over and not done.

        Raises: ConflictError where nothing of it is left, or another ingest is at the files; RamifyError without a key.
        """
        ingest = request.ingest
        if ingest is not None and ingest.by is HandedOver.DOCUMENTS:
            if not self._client.exists(IngestKeys(old).inbox):
                fix = "all that its client had handed over was done: run the ingest, or push the documents, again"
                raise ConflictError("job id", old, fix)
            return request.model_copy(update={"ingest": ingest.model_copy(update={"prune": False})})
        self.claim_roots(job_id, request)
        return self.sealed(job_id, request)

    def check_seal(self, job_id: str, request: JobRequest) -> None:
        """Raises: RamifyError for a request whose paths nobody has sealed who may name them."""
        given = request.ingest.seal if request.ingest else ""
        if not is_sealed(self._own_key(), given, job_id.encode(), b"", _named(request)):
            raise RamifyError(UNSEALED)

    def start_finishing(self, job_id: str, claimant: str, *, force: bool = False) -> bool | None:
        """From indexing to finishing. None when `claimant` may not; True when all that there is was handed over."""
        keys = JobKeys(job_id)
        args = [*self._head(), claimant, self._settings.jobs.redrive_after_s, int(force)]
        verdict = int(self._run("start_finishing", [keys.job, keys.leaves, keys.events], args))
        return None if not verdict else verdict > 1

    def seen(self, job_id: str, sources: Iterable[str]) -> SeenByAll:
        """What the items of a job with these sources have met; of one without a prune, those with pieces of files."""
        keep, unreadable = {source: list[str]() for source in sources}, list[str]()
        pieces, shown = dict[str, list[str]](), dict[str, str]()
        for _, blob in self._client.hscan_iter(IngestKeys(job_id).seen, count=100):
            seen = codec.unpack(blob, Seen)
            keep.setdefault(seen.source, []).extend(seen.ids)
            unreadable += seen.unreadable
            for file in seen.files:
                pieces.setdefault(file, []).extend(seen.ids)
                shown[file] = FoundFile(Path(seen.source), Path(file)).shown
        failed = set(unreadable)
        return SeenByAll(keep, unreadable, {file: ids for file, ids in pieces.items() if shown[file] not in failed})

    def tell(self, job_id: str, done: ItemDone) -> None:
        """Add to the counts and reports of a job outside of any item: what its finish has removed."""
        keys, own, counts = JobKeys(job_id), IngestKeys(job_id), done.counts()
        self._keep_passed_over(job_id, done.report)
        with self._client.pipeline(transaction=True) as pipe:
            for name, number in counts.items():
                pipe.hincrby(keys.job, f"{_COUNT}{name}", number)
            if done.report.outcomes or done.report.passed_over:
                pipe.xadd(own.outcomes, {"report": codec.pack(done.report)}, maxlen=_REPORTS)
                pipe.expire(own.outcomes, self._settings.jobs.ttl_s)
            pipe.execute()

    def reports(self, job_id: str, after: str, timeout_s: float) -> list[tuple[str, IngestReport]]:
        """(stream id, report) of what came since `after`; waits up to `timeout_s` for the first."""
        key = IngestKeys(job_id).outcomes
        block = {"block": int(timeout_s * 1000)} if timeout_s >= 0.001 else {}
        reply: Any = self._client.xread({key: after}, count=100, **block)
        return [
            (text(entry_id), _for_people(codec.unpack(fields[b"report"], IngestReport)))
            for _, entries in reply or []
            for entry_id, fields in entries
        ]

    def changed(self, job_id: str) -> list[DocumentOutcome]:
        """What became of the documents that it has added, changed or removed, by the reports that are kept."""
        reports: Any = self._client.xrange(IngestKeys(job_id).outcomes)
        outcomes = (one for _, fields in reports for one in codec.unpack(fields[b"report"], IngestReport).outcomes)
        return [one for one in outcomes if one.doc_id and one.status in CHANGING]

    def redriven(self, job_id: str) -> bool:
        """Whether work of it was sent again, so that some may have been done twice and told once."""
        return self._client.hexists(JobKeys(job_id).job, "redriven")

    def counts(self, job_id: str) -> IngestCounts:
        """How far a job is."""
        raw = {text(name): value for name, value in self._client.hgetall(JobKeys(job_id).job).items()}
        return ingest_counts(Fields(raw, []), raw)

    def _keep_passed_over(self, job_id: str, report: IngestReport) -> None:
        """What a walk has left out outlives its report; a walk that is done again says it again."""
        if report.passed_over:
            key = IngestKeys(job_id).passed_over
            with self._client.pipeline(transaction=True) as pipe:
                pipe.delete(key)
                pipe.rpush(key, *report.passed_over)
                pipe.expire(key, self._settings.jobs.ttl_s)
                pipe.execute()

    def passed_over(self, job_id: str) -> tuple[str, ...]:
        """What was left out, as sentences."""
        return tuple(map(text, self._client.lrange(IngestKeys(job_id).passed_over, 0, -1)))

    def failures(self, job_id: str) -> tuple[DocumentOutcome, ...]:
        """The first thousand documents that failed."""
        rows = self._client.lrange(IngestKeys(job_id).failures, 0, -1)
        return tuple(stored(DocumentOutcome, row, "a failure") for row in rows)


_SEAL_CHARS = 64


def _named(request: JobRequest) -> bytes:
    """What a seal of a request covers: whose documents, where they go, which files."""
    ingest = request.ingest
    assert ingest is not None  # noqa: S101 - callers have looked
    said = [request.tenant, request.filters.namespace, ingest.sources, ingest.changed, ingest.prune]
    return json.dumps(said).encode()


def _for_people(report: IngestReport) -> IngestReport:
    outcomes = tuple(one.but(fresh=()) if one.fresh else one for one in report.outcomes)
    return report.but(outcomes=outcomes)


def _failed(outcome: DocumentOutcome) -> bool:
    return outcome.status is DocumentStatus.FAILED


def _seen(done: ItemDone) -> bytes:
    outcomes = done.report.outcomes
    ids = tuple(one.doc_id for one in outcomes if one.doc_id)
    unreadable = tuple(one.path for one in outcomes if _failed(one))
    seen = Seen(source=done.source, ids=ids, unreadable=unreadable, files=tuple(done.pieces))
    return codec.pack(seen) if ids or unreadable else b""


def ingest_counts(fields: Fields, names: Iterable[str]) -> IngestCounts:
    """The counts in a job's hash, `names` being those of all its fields."""
    known = [name.removeprefix(_COUNT) for name in names if name.startswith(_COUNT)]
    parts = {name.removeprefix(_PART): fields.whole(_COUNT + name) / 1e6 for name in known if name.startswith(_PART)}
    counted = {name: max(0, fields.whole(_COUNT + name)) for name in known if name in IngestCounts.model_fields}
    return IngestCounts(**counted, parts=parts)
