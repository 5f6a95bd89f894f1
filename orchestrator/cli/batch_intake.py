"""Reads a file of questions into a batch, with flat memory; keeps what is refused. A batch that was cut off goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any, Self

from orchestrator.cli import output_files, streams
from orchestrator.cli.text import counted, duration
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
    until_question,
)  # fmt: skip
from orchestrator.outage import Outage
from orchestrator.text_lines import json_text
from shared.errors import InputError
from shared.models import BatchStatus, Lane
from shared.models.batch import BatchSource, LineRecord

#: Seconds between two notes of how far the file is read, where there is no terminal.
_NOTE_S = 10.0


@dataclass(frozen=True)
class BatchFile:
    """What is read into a batch: a file (- is stdin), and the fields of each line that does not say otherwise.

    `tenant`: that of all lines, None: each may say its own.
    """

    source: str
    rejects: Path
    defaults: Mapping[str, Any]
    tenant: str | None

    @classmethod
    def checked(cls, source: str, rejects: Path | None, defaults: Mapping[str, Any], tenant: str | None) -> BatchFile:
        """Raises: InputError for what cannot be read or written, before anything is enqueued."""
        if source != streams.STDIN:
            with streams.lines_of(source):
                pass
        name = "stdin" if source == streams.STDIN else source
        rejects = streams.writable("--rejects", rejects or Path(f"{name}.rejects.jsonl"), source)
        return cls(source, rejects, defaults, tenant)

    @classmethod
    def of(cls, kept: BatchSource, source: str | None, rejects: Path | None) -> BatchFile:
        """The file that a batch was made from; `source` and `rejects`, if given, stand in for its own.

        Raises: InputError where there is none, or stdin is to be given again.
        """
        known = kept.options.get("file")
        if known is None:
            raise InputError("--resume", kept.name, "a program has made it, and did not end: it adds the rest itself")
        if known == streams.STDIN and source is None:
            fix = "its lines came from stdin: give them again, with - behind the command"
            raise InputError("--resume", kept.name, fix)
        rejects = rejects or Path(kept.options["rejects"])
        return cls.checked(source or known, rejects, kept.defaults, kept.options["tenant"])

    def kept(self, out: Path | None) -> BatchSource:
        """What `--resume` needs, to be kept with the batch."""
        piped = self.source == streams.STDIN
        options: dict[str, Any] = {"file": self.source if piped else str(Path(self.source).absolute())}
        return BatchSource(
            name="stdin" if piped else Path(self.source).name,
            defaults=dict(self.defaults),
            options=options | {"rejects": str(self.rejects.absolute()), "tenant": self.tenant},
            out=str(out.absolute()) if out else None,
        )


@dataclass(frozen=True)
class BatchTaken:
    """A batch as its file was read: `seconds` that took, the longest that a line may take, and what kept the rest out.

    `rejects`: the file of refused lines, if there are any.
    """

    status: BatchStatus
    rejects: Path | None = None
    seconds: float = 0.0
    longest_s: float = 0.0
    full: BatchFullError | None = None

    def summary(self) -> dict[str, Any]:
        """For `--json`."""
        names = {"batch_id", "lines", "enqueued", "known", "duplicate", "rejected", "blank"}
        found = self.status.model_dump(include=names) | {"seconds": round(self.seconds, 1)}
        found["rejects_file"] = str(self.rejects) if self.rejects else None
        return found | ({"error": self.refusal(), "refused_from_line": self.full.lines[0]} if self.full else {})

    def sentence(self) -> str:
        """What was made of the lines."""
        kinds = ", ".join(f"{count:,} {name}" for name, count in self.status.kinds().items()) or "nothing"
        lines = "1 line" if self.status.lines == 1 else f"{self.status.lines:,} lines"
        took = f", in {duration(self.seconds * 1000)}" if self.seconds else ""
        return f"batch {self.status.batch_id}: {kinds} of {lines}{took}"

    def refusal(self) -> str:
        """What a full lane has kept out, as a sentence."""
        batch_id, lines = self.status.batch_id, self.full.lines if self.full else ()
        kept_out = f"{counted(len(lines), 'line')} from line {lines[0]:,} on found no room"
        later = f"`ramify batch --resume {batch_id}` goes on behind line {self.status.lines:,} later"
        return f"{self.full and self.full.reason}; batch {batch_id}: {kept_out}, {later}"


class FileIntake:
    """Reads a file, and enters its lines in a batch: a new one, or one that was cut off. Use as a context manager."""

    def __init__(self, client: Ramify, file: BatchFile, rejects: RejectsFile) -> None:
        """Raises: InputError for a default that no line could take, and for a file that cannot be read."""
        self._client, self._file, self._rejects = client, file, rejects
        check_prices(as_request("?", {"lane": Lane.BATCH, **file.defaults}), client.settings)
        self._stack = ExitStack()
        self._handle, self._size = self._stack.enter_context(streams.lines_of(file.source))
        self._read: Iterator[BatchLine] = self._watched(read_questions(self._raw_lines(), file.defaults, file.tenant))
        self._bytes, self._longest_s = 0, 0.0
        self._update: Callable[..., None] = lambda **_: None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def check_some(self, budget: Mapping[str, Any]) -> None:
        """Read up to the first question. Raises: InputError for a budget that cannot be kept, or without a question."""
        check_prices(as_budget(budget), self._client.settings)
        before, found = until_question(self._read)
        if found:
            self._read = chain(before, self._read)
            return
        for line in before:
            if line.rejected:
                self._rejects.add(line.rejected)
        reason = "it holds no question: write one question or one JSON object a line"
        if count := self._rejects.count:
            reason = f"none of its {count} lines is a question that can be taken: {self._file.rejects} says why"
        raise InputError("FILE", self._file.source, reason)

    def enter(self, batch_id: str, tell: Callable[[LineRecord], None]) -> BatchTaken:
        """Enter every line that is not in the batch yet; `tell` is given the record of each.

        Raises: InputError when the file has changed before the line up to which it was read.
        """
        began, full = time.monotonic(), None
        self._update = self._stack.enter_context(streams.progress("enqueue", total=self._size))
        self._update(advance=self._bytes)
        try:
            for record in self._client.read_into_batch(batch_id, self._read):
                tell(record)
            self._client.close_batch(batch_id)
        except BatchFullError as error:
            full = error
        status = Outage(streams.warn).retry(lambda: self._client.batch_status(batch_id))
        return BatchTaken(status, self._rejects.written, time.monotonic() - began, self._longest_s, full)

    def _raw_lines(self) -> Iterator[bytes]:
        began = noted = time.monotonic()
        silent = not streams.console(stderr=True).is_terminal
        for number, line in enumerate(bounded_lines(self._handle), 1):
            self._bytes += len(line)
            self._update(advance=len(line))
            if silent and time.monotonic() - noted > _NOTE_S:
                noted = time.monotonic()
                streams.note(f"{number:,} lines read after {duration((noted - began) * 1000)}")
            yield line

    def _watched(self, lines: Iterable[BatchLine]) -> Iterator[BatchLine]:
        """Notes the longest that a job of what is read may wait and take."""
        jobs = self._client.settings.jobs
        for line in lines:
            if found := line.request:
                own_s = found.deadline_s or (jobs.batch_deadline_s if found.lane is Lane.BATCH else jobs.deadline_s)
                own_s = jobs.queue_limit_of(found.queue_limit_s) + min(own_s, found.max_seconds or own_s)
                self._longest_s = max(self._longest_s, own_s)
            yield line


class RejectsFile:
    """The refused lines; the file is opened with the first of them. Use as a context manager."""

    def __init__(self, path: Path) -> None:
        self._path, self._stack, self.count = path, ExitStack(), 0
        self._handle: IO[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def written(self) -> Path | None:
        """The file, if it has lines."""
        return self._path if self.count else None

    def add(self, line: Rejected) -> None:
        """Raises: InputError when the file cannot be written."""
        try:
            if self._handle is None:
                self._handle = self._stack.enter_context(output_files.fresh(self._path))
            self._handle.write(f"{json_text(line)}\n".encode())
            self._handle.flush()
        except OSError as error:
            raise InputError("--rejects", str(self._path), f"it cannot be written ({error.strerror})") from None
        self.count += 1
