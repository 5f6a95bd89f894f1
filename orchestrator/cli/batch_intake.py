"""Reads a file of questions into a batch, with flat memory but for the ids; keeps what is refused."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import IO, Any

from orchestrator.cli import streams
from orchestrator.cli.follow import GRACE_S
from orchestrator.cli.streams import STDIN, lines_of, writable
from orchestrator.cli.wording import counted
from orchestrator.client import Ramify
from orchestrator.intake import (
    BatchFullError,
    Rejected,
    as_budget,
    as_request,
    bounded_lines,
    check_prices,
    read_questions,
)
from shared.errors import InputError
from shared.models import JobRequest, Lane
from shared.settings.sections import JobSettings

#: Requests whose lines are known: more than the client submits at a time.
_REMEMBERED = 1000


@dataclass(frozen=True)
class Files:
    """The files of one batch: what is read, where answers and refused lines go."""

    source: str
    out: Path | None
    rejects: Path

    @classmethod
    def checked(cls, source: str, out: Path | None, rejects: Path | None) -> Files:
        """Raises: InputError for what cannot be read or written, before anything is enqueued."""
        with ExitStack() as opened:
            if source != STDIN:
                opened.enter_context(lines_of(source))
        if out:
            writable("--out", out, source)
        name = "stdin" if source == STDIN else source
        kept = writable("--rejects", rejects or Path(f"{name}.rejects.jsonl"), source)
        return cls(source, out, kept)


@dataclass(frozen=True)
class Taken:
    """A batch as it was enqueued: job ids in order of submission. `until`: when the last job must have ended.

    `full`: why a lane took no more, from line `refused_from` on; `later`: lines behind that one that were taken all the
    same, since other tenants had room.
    """

    batch_id: str
    job_ids: tuple[str, ...]
    rejected: int
    rejects: Path | None
    until: float
    full: str | None = None
    refused_from: int | None = None
    later: int = 0

    def summary(self) -> dict[str, Any]:
        """For `--json`."""
        file = str(self.rejects) if self.rejects else None
        return {
            "batch_id": self.batch_id,
            "enqueued": len(self.job_ids),
            "rejected": self.rejected,
            "rejects_file": file,
        } | ({"error": self.refusal(), "refused_from_line": self.refused_from} if self.full else {})

    def refusal(self) -> str:
        """What a full lane has kept out, as a sentence."""
        taken = counted(len(self.job_ids), "question")
        but = f", but for {counted(self.later, 'line')} of other tenants" if self.later else ""
        return f"{self.full}; batch {self.batch_id}: {taken} taken, nothing from line {self.refused_from} on{but}"


def take(client: Ramify, files: Files, defaults: Mapping[str, Any], budget: Mapping[str, Any] | None = None) -> Taken:
    """Enqueue every line that can be taken; the others go to the rejects file. `budget` is the batch's.

    Raises: InputError for a default that no line could take, for a budget that cannot be kept, and for a file without a
    usable line: then there is no batch at all.
    """
    checked = as_request("?", {"lane": Lane.BATCH, **defaults})
    for limits in (checked, as_budget(budget or {})):
        check_prices(limits, client.settings)
    with ExitStack() as open_files:
        handle, size = open_files.enter_context(lines_of(files.source))
        refused = open_files.enter_context(_Refused.into(files.rejects))
        show = open_files.enter_context(_progress(size))
        reader = _Reader(client.settings.jobs, refused)
        requests = reader.requests(read_questions(_counted(bounded_lines(handle), show), defaults))
        first = next(requests, None)
        if first is None:
            raise InputError("FILE", files.source, _nothing(refused))
        batch_id = client.open_batch(budget)
        job_ids, full = _entered(client, batch_id, chain([first], requests))
        client.count_rejected(batch_id, refused.count)
        rejects = files.rejects if refused.count else None
        taken = Taken(batch_id, tuple(dict.fromkeys(job_ids)), refused.count, rejects, reader.until)
        if full is None:
            return taken
        later = max(0, len(job_ids) - full.places[0])
        return replace(taken, full=full.reason, refused_from=reader.line(full.places[0]), later=later)


def _entered(client: Ramify, batch_id: str, requests: Iterator[JobRequest]) -> tuple[list[str], BatchFullError | None]:
    """The jobs that were taken, and what kept the others out."""
    job_ids = list[str]()
    try:
        for job_id in client.add_to_batch(batch_id, requests):
            job_ids.append(job_id)
    except BatchFullError as error:
        return job_ids, error
    except BaseException:
        streams.note(f"batch {batch_id} holds only the questions that were enqueued so far")
        raise
    return job_ids, None


class _Reader:
    """Parts lines that can be taken from those that cannot, and notes the last deadline."""

    def __init__(self, jobs: JobSettings, refused: _Refused) -> None:
        self._jobs, self._refused = jobs, refused
        self._longest_s = 0.0
        self._lines = deque[int](maxlen=_REMEMBERED)
        self._count = 0
        self.until = 0.0

    def line(self, place: int) -> int:
        """The line of one of the last requests, by its place among all (from 0)."""
        return self._lines[place - self._count]

    def requests(self, lines: Iterable[tuple[int, JobRequest | Rejected]]) -> Iterator[JobRequest]:
        for number, found in lines:
            if isinstance(found, Rejected):
                self._refused.add(found)
                continue
            lane_s = self._jobs.batch_deadline_s if found.lane is Lane.BATCH else self._jobs.deadline_s
            own_s = found.deadline_s or lane_s
            self._longest_s = max(self._longest_s, min(own_s, found.max_seconds or own_s))
            self._lines.append(number)
            self._count += 1
            yield found
            self.until = time.time() + self._longest_s + GRACE_S


class _Refused:
    """The rejects file; it is written from the first refused line on."""

    def __init__(self, path: Path) -> None:
        self.path, self.count = path, 0
        self._handle: IO[str] | None = None

    @classmethod
    @contextmanager
    def into(cls, path: Path) -> Iterator[_Refused]:
        refused = cls(path)
        try:
            yield refused
        finally:
            if refused._handle:
                refused._handle.close()

    def add(self, line: Rejected) -> None:
        """Raises: InputError when the file cannot be written."""
        try:
            if self._handle is None:
                self._handle = self.path.open("w", encoding="utf-8")
            self._handle.write(f"{streams.encoded(line)}\n")
        except OSError as error:
            raise InputError("--rejects", str(self.path), f"it cannot be written ({error.strerror})") from None
        self.count += 1


def _nothing(refused: _Refused) -> str:
    if not refused.count:
        return "it holds no question: write one question or one JSON object a line"
    return f"none of its {refused.count} lines is a question that can be taken: {refused.path} says why"


def _counted(lines: Iterator[bytes], show: Any) -> Iterator[bytes]:
    for line in lines:
        show(len(line))
        yield line


@contextmanager
def _progress(size: int | None) -> Iterator[Any]:
    """A bar over the file's bytes on a terminal; a function that takes the size of each line read."""
    console = streams.progress_console()
    if not console.is_terminal:
        yield lambda _: None
        return
    from rich.progress import Progress  # noqa: PLC0415 - only where there is a terminal

    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("enqueue", total=size)
        yield lambda count: bar.advance(task, count)
