"""Hands documents over to a job with their bytes, a few items at a time: what the index pool cannot read itself."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Self

from redis.exceptions import RedisError

from orchestrator.documents.ingest import Ingesting, IngestOptions, Progress, progress
from shared.errors import NotRunningError, RamifyError
from shared.files.found import FoundFile
from shared.files.pieces import FileGroup, groups, read
from shared.files.walk import discover, discover_changed
from shared.jobs import JobReader, State
from shared.jobs.ingests import FIRST, ItemDone
from shared.models import DocumentOutcome, RawDocument
from shared.models.ingest import FORMATS, IngestItem, IngestReport
from shared.tasks.signatures import send_turn

log = logging.getLogger("ramify.hand_over")
#: Of one item: documents, their bytes, and those that a parser reads, each of which may take half a minute.
ITEM_DOCUMENTS, ITEM_BYTES, ITEM_PARSED = 64, 2_000_000, 4
_ROOM_S, _WANTED_S = 0.1, 1.0
#: Seconds between two signs of life; the reaper ends a hand-over without any after a minute.
_SIGN_S = 10.0
#: Seconds in which a job whose turn has come must take documents.
_PATIENCE_S = 300.0


class HandOver:
    """One client's documents on their way into one job, inside a `with`. Leaving it by an error does not close it.

    Methods raise RamifyError when the job takes no more of them.
    """

    def __init__(self, ingesting: Ingesting, job_id: str, options: IngestOptions) -> None:
        self._app, self._jobs, self.job_id = ingesting.app, ingesting.jobs, job_id
        self._own = {"tenant": options.tenant, "namespace": options.namespace}
        self._namespace, self._tenant = options.namespace, options.tenant
        self._most = ingesting.jobs.settings.chunking.max_document_bytes
        self._reader, self._rank, self._numbers = JobReader(ingesting.jobs.client), 0, count(1)
        self._reports, self._wanted = list[IngestReport](), dict[str, frozenset[int]]()
        #: The latest report that was taken, for `Ingesting.follow`.
        self.after = "0"
        self._left = threading.Event()

    def __enter__(self) -> Self:
        began = time.monotonic()
        while (status := self._reader.status(self.job_id)).state in {State.QUEUED, State.PLANNING}:
            if status.deadline_at is None:
                began = time.monotonic()
            if time.monotonic() - began > _PATIENCE_S:
                raise NotRunningError(f"job {self.job_id} does not begin: `ramify why {self.job_id}` says why")
            time.sleep(0.02)
        job = self._jobs.job(self.job_id)
        self._rank = job.rank if job else 0
        threading.Thread(target=self._give_signs, name="hand-over", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._left.set()
        if kind is None and (turn := self._jobs.ingests.hand_over(self.job_id, FIRST)) is not None:
            send_turn(self._app, self.job_id, self._rank, turn)

    def _give_signs(self) -> None:
        while not self._left.wait(_SIGN_S):
            try:
                self._jobs.ingests.hand_over(self.job_id)
            except RamifyError:
                return
            except RedisError as error:
                log.warning("job %s could not be told that its client is there: %s", self.job_id, type(error).__name__)

    def files(self, roots: Sequence[Path]) -> Iterator[Progress]:
        """Hand over the files below `roots` that the store lacks. Raises besides: InputError for a missing root."""
        yield from self._found(*discover(roots))
        yield from self._untold()

    def changes(self, root: Path, changed: Sequence[Path]) -> Iterator[Progress]:
        """Hand over those of these files and folders that the store lacks, and the names of those that are gone."""
        found, gone, passed = discover_changed(root, changed)
        yield from self._found(found, passed)
        if gone:
            self.put(IngestItem(source=str(root), removed=tuple(map(str, gone)), **self._own))
        yield from self._untold()

    def _untold(self) -> Iterator[Progress]:
        """What has been collected while nothing was sent: of files that the store has, nothing is."""
        if self._reports:
            yield self._step()

    def _found(self, found: Sequence[FoundFile], passed: Sequence[str]) -> Iterator[Progress]:
        report = IngestReport(item=FIRST, passed_over=tuple(passed))
        self._jobs.ingests.tell(self.job_id, ItemDone(report, files=len(found)))
        yield self._step()
        before: tuple[FileGroup, str] | None = None
        for group in groups(found, self._namespace, self._most):
            item = self._ask(group)  # answered while the group before is sent
            if before:
                yield from self._missing(*before)
            before = group, item
        if before:
            yield from self._missing(*before)

    def _ask(self, group: FileGroup) -> str:
        if not group.hashes.files:
            return ""
        return self.put(IngestItem(source=group.hashes.source, hashes=group.hashes, **self._own))

    def _missing(self, group: FileGroup, item: str) -> Iterator[Progress]:
        wanted = self._wanted_of(item) if item else frozenset[int]()
        lacking = group.unhashed | {group.hashes.files[number].identity for number in wanted}
        missing = [found for found in group.files if str(found.file) in lacking]
        for _ in self.documents(group.hashes.source, self._read(missing), counted=True):
            yield self._step()

    def _read(self, files: Sequence[FoundFile]) -> Iterator[RawDocument | DocumentOutcome | None]:
        """What is read of each file, and None behind its last piece."""
        for found in files:
            yield from read(found, self._tenant, self._namespace, self._most)
            yield None

    def documents(
        self, source: str, documents: Iterable[RawDocument | DocumentOutcome | None], *, counted: bool = False
    ) -> Iterator[int]:
        """Hand over documents of one source; yields the size of each item. None ends a file.

        `counted`: the files are in the job's total already.
        """
        waiting = _Waiting()
        for document in documents:
            if isinstance(document, RawDocument) and waiting.is_full_for(document):
                yield self._put_waiting(source, waiting, counted=counted)
                waiting = _Waiting()
            waiting.add(document)
        if waiting.ends or waiting.documents or waiting.met:
            yield self._put_waiting(source, waiting, counted=counted)

    def _put_waiting(self, source: str, waiting: _Waiting, *, counted: bool) -> int:
        content = IngestItem(
            source=source, documents=tuple(waiting.documents), met=tuple(waiting.met), ends=waiting.ends, **self._own
        )
        self.put(content, 0 if counted else waiting.ends)
        return len(waiting.documents)

    def put(self, content: IngestItem, files: int = 0) -> str:
        """Hand over one item as soon as there is room; returns its name. `files`: those that are not counted yet."""
        item = f"{FIRST}.{next(self._numbers)}"
        while (turn := self._jobs.ingests.hand_over(self.job_id, item, content, files)) is None:
            self._collect(_ROOM_S)
        send_turn(self._app, self.job_id, self._rank, turn)
        return item

    def _collect(self, timeout_s: float) -> bool:
        found = self._jobs.ingests.reports(self.job_id, self.after, timeout_s)
        for self.after, report in found:
            self._reports.append(report)
            self._wanted[report.item] = frozenset(report.wanted)
        return bool(found)

    def _wanted_of(self, item: str) -> frozenset[int]:
        """What of the hashes of an item has to be sent. Raises: RamifyError when the job ends before it says so."""
        while item not in self._wanted:
            if not self._collect(_WANTED_S) and (status := self._reader.status(self.job_id)).terminal:
                raise RamifyError(f"the ingest stopped: job {self.job_id} is {status.state}: {status.error}")
        return self._wanted.pop(item)

    def _step(self) -> Progress:
        self._collect(0.0)
        found, self._reports = self._reports, []
        return progress(self._reader.status(self.job_id), found)


class _Waiting:
    """What goes into the next item: documents, what could not be read, and how many files end with them."""

    def __init__(self) -> None:
        self.documents, self.met, self.ends = list[RawDocument](), list[DocumentOutcome](), 0
        self._size = self._parsed = 0

    def is_full_for(self, document: RawDocument) -> bool:
        """True when `document` belongs into the item behind it."""
        parsed = self._parsed + (document.suffix in FORMATS)
        full = len(self.documents) >= ITEM_DOCUMENTS or self._size + len(document.content) > ITEM_BYTES
        return bool(self.documents) and (full or parsed > ITEM_PARSED)

    def add(self, document: RawDocument | DocumentOutcome | None) -> None:
        """Take one more; None ends a file."""
        match document:
            case RawDocument():
                self.documents.append(document)
                self._size += len(document.content)
                self._parsed += document.suffix in FORMATS
            case DocumentOutcome():
                self.met.append(document)
            case None:
                self.ends += 1
