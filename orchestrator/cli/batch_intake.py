"""Reads a file of questions into a batch, with flat memory but for the ids; keeps what is refused."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import IO, Any

from orchestrator.cli import streams
from orchestrator.cli.text import counted
from orchestrator.client import Ramify
from orchestrator.intake import (
    BatchFullError,
    BatchLine,
    Rejected,
    as_budget,
    as_request,
    bounded_lines,
    check_prices,
    read_questions,
)  # fmt: skip
from shared.errors import InputError
from shared.jobs.reader import PAST_TIME_S
from shared.models import Lane
from shared.settings.sections import JobSettings


def check_files(source: str, out: Path | None, rejects: Path | None) -> Path:
    """The rejects file. Raises: InputError for what cannot be read or written, before anything is enqueued."""
    if source != streams.STDIN:
        with streams.lines_of(source):
            pass
    if out:
        streams.writable("--out", out, source)
    name = "stdin" if source == streams.STDIN else source
    return streams.writable("--rejects", rejects or Path(f"{name}.rejects.jsonl"), source)


@dataclass(frozen=True)
class EnqueuedBatch:
    """A batch as it was enqueued: job ids in order of submission. `until`: when the last job must have ended.

    `lane_full`: why a lane took no more, from line `refused_from` on; `later`: lines behind that one that were taken
    all the same, since other tenants had room.
    """

    batch_id: str
    job_ids: tuple[str, ...]
    rejected: int
    rejects: Path | None
    until: float
    lane_full: str | None = None
    refused_from: int | None = None
    later: int = 0

    def summary(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "batch_id": self.batch_id,
            "enqueued": len(self.job_ids),
            "rejected": self.rejected,
            "rejects_file": str(self.rejects) if self.rejects else None,
        } | ({"error": self.refusal(), "refused_from_line": self.refused_from} if self.lane_full else {})

    def refusal(self) -> str:
        """What a full lane has kept out, as a sentence."""
        taken = counted(len(self.job_ids), "question")
        but = f", but for {counted(self.later, 'line')} of other tenants" if self.later else ""
        return f"{self.lane_full}; batch {self.batch_id}: {taken} taken, nothing from line {self.refused_from} on{but}"


def enqueue(
    client: Ramify, source: str, rejects_file: Path, defaults: Mapping[str, Any], budget: Mapping[str, Any]
) -> EnqueuedBatch:
    """Enqueue every line that can be taken; the others go to the rejects file. `budget` is the batch's.

    Raises: InputError for a default that no line could take, for a budget that cannot be kept, and for a file without a
    usable line: then there is no batch at all.
    """
    for limits in (as_request("?", {"lane": Lane.BATCH, **defaults}), as_budget(budget)):
        check_prices(limits, client.settings)
    with ExitStack() as stack:
        handle, size = stack.enter_context(streams.lines_of(source))
        rejects = _RejectsFile(rejects_file, stack)
        update = stack.enter_context(streams.progress("enqueue", total=size))

        def lines() -> Iterator[bytes]:
            for line in bounded_lines(handle):
                update(advance=len(line))
                yield line

        waits = _LongestWait(client.settings.jobs)
        read = waits.watched(read_questions(lines(), defaults, client.tenant))
        first = list[BatchLine]()
        for line in read:
            first.append(line)
            if line.request:
                break
        else:
            for line in first:
                if line.rejected:
                    rejects.add(line.rejected)
            reason = f"none of its {rejects.count} lines is a question that can be taken: {rejects_file} says why"
            empty = "it holds no question: write one question or one JSON object a line"
            raise InputError("FILE", source, reason if rejects.count else empty)
        batch_id = client.open_batch(budget)
        job_ids, full = _add(client, batch_id, chain(first, read), rejects)
        written = rejects_file if rejects.count else None
        batch = EnqueuedBatch(batch_id, tuple(dict.fromkeys(job_ids)), rejects.count, written, waits.until)
        if full is None:
            client.close_batch(batch_id)
            return batch
        later = sum(1 for record in client.batch_lines(batch_id) if record.job_id and record.number > full.lines[0])
        return replace(batch, lane_full=full.reason, refused_from=full.lines[0], later=later)


def _add(
    client: Ramify, batch_id: str, lines: Iterable[BatchLine], rejects: _RejectsFile
) -> tuple[list[str], BatchFullError | None]:
    """The jobs that were taken, and what kept the others out."""
    job_ids = list[str]()
    try:
        for record in client.read_into_batch(batch_id, lines):
            if record.job_id:
                job_ids.append(record.job_id)
            else:
                rejects.add(Rejected(line=record.number, reason=record.reason or "", text=record.text or ""))
    except BatchFullError as error:
        return job_ids, error
    except BaseException:
        streams.note(f"batch {batch_id} holds only the questions that were enqueued so far")
        raise
    return job_ids, None


class _LongestWait:
    """Notes the last deadline of what is read: `until`."""

    def __init__(self, jobs: JobSettings) -> None:
        self._jobs = jobs
        self._longest_s = self.until = 0.0

    def watched(self, lines: Iterable[BatchLine]) -> Iterator[BatchLine]:
        for line in lines:
            if found := line.request:
                lane_s = self._jobs.batch_deadline_s if found.lane is Lane.BATCH else self._jobs.deadline_s
                own_s = found.deadline_s or lane_s
                wait_s = self._jobs.queue_limit_of(found.queue_limit_s)
                self._longest_s = max(self._longest_s, wait_s + min(own_s, found.max_seconds or own_s))
            yield line
            self.until = time.time() + self._longest_s + PAST_TIME_S


class _RejectsFile:
    """The refused lines; the file is opened with the first of them, and closed by `stack`."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self._path, self._stack, self.count = path, stack, 0
        self._handle: IO[str] | None = None

    def add(self, line: Rejected) -> None:
        """Raises: InputError when the file cannot be written."""
        try:
            if self._handle is None:
                self._handle = self._stack.enter_context(self._path.open("w", encoding="utf-8"))
            self._handle.write(f"{streams.encoded(line)}\n")
        except OSError as error:
            raise InputError("--rejects", str(self._path), f"it cannot be written ({error.strerror})") from None
        self.count += 1
