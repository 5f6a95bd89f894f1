"""The file of `--out`: one record a line of the input, appended as jobs end; a file that was cut off goes on.

Only whole records count: what a kill has left of one is cut off before the next is written.
"""

from __future__ import annotations

import fcntl
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from orchestrator.cli import output_files
from orchestrator.out_formats import AnsweredLine, OutFormat, format_of
from shared.errors import InputError


@dataclass(frozen=True)
class _Record:
    """Where a record stands in the file (bytes), and whose it is."""

    start: int
    end: int
    job_id: str


class OutFile:
    """Open for appending; locked, so that two commands never write the same. Every method raises InputError."""

    def __init__(self, path: Path) -> None:
        """Changes nothing yet. A link of one's own is followed: it stays, and the file that it names is written."""
        self.path, self._batch_id = path, ""
        self._format: OutFormat = format_of(path)
        self._records: dict[int, _Record] = {}
        try:
            self._handle: IO[bytes] = output_files.growing("--out", path)
        except OSError as error:
            raise self._error(error) from None
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._handle.close()
            if isinstance(error, BlockingIOError):
                raise InputError("--out", str(path), "another command is writing it: wait for its end") from None
            raise self._error(error) from None

    def begin(self, batch_id: str, *, resume: bool) -> None:
        """Go on with the answers of this batch, or (`resume` False) replace what the file holds."""
        self._batch_id = batch_id
        try:
            end = self._read() if resume else 0
            self._handle.truncate(end)
            if not end:
                self._append(self._format.head(self._batch_id))
        except OSError as error:
            raise self._error(error) from None

    def _read(self) -> int:
        """Note the whole records; returns where the last of them ends, 0 when there is nothing to go on with."""
        head = self._format.head(self._batch_id).encode()
        *_, last_of_head = [b"", *head.splitlines(keepends=True)]
        begun, before, place, end = not head, b"", 0, 0
        self._handle.seek(0)
        with open(self._handle.fileno(), "rb", closefd=False) as lines:
            for number, line in enumerate(lines, 1):
                place += len(line)
                if not begun:
                    begun, before = line == last_of_head, before + line[: len(head) + 1]
                elif found := line.endswith(b"\n") and self._format.read_end(line):
                    self._records[found[0]] = _Record(end, place, found[1])
                elif line.endswith(b"\n") and not self._format.sorted_head:
                    raise self._foreign(number)
                else:
                    continue
                end = place if begun else 0
        if not begun and not head.startswith(before):
            raise self._foreign(1)
        return end

    def _foreign(self, line: int) -> InputError:
        return InputError("--out", str(self.path), f"its line {line} is none of an answer file: name another file")

    def __contains__(self, line: int) -> bool:
        return line in self._records

    def job_of(self, line: int) -> str:
        """The id of the job whose answer stands under this line of the input; empty for one without a job."""
        return self._records[line].job_id

    def add(self, found: AnsweredLine) -> None:
        """Append the record of a line, whole or not at all; a line that has one keeps it."""
        if found.line in self._records:
            return
        start = os.fstat(self._handle.fileno()).st_size
        try:
            end = start + self._append(self._format.record(found))
        except OSError as error:
            os.ftruncate(self._handle.fileno(), start)
            raise self._error(error) from None
        self._records[found.line] = _Record(start, end, found.job_id or "")

    def finish(self, counts: str) -> None:
        """All records are there. A report is put in the order of the lines, below `counts`, and replaced at once."""
        try:
            if self._format.sorted_head:
                self._sort(self._format.sorted_head(self._batch_id, counts))
            os.fsync(self._handle.fileno())
        except OSError as error:
            raise self._error(error) from None

    def _sort(self, head: str) -> None:
        with output_files.replacing(self.path, follow=True) as sorted_file:
            os.fchmod(sorted_file.fileno(), stat.S_IMODE(os.fstat(self._handle.fileno()).st_mode))
            sorted_file.write(head.encode())
            for _, record in sorted(self._records.items()):
                self._handle.seek(record.start)
                sorted_file.write(self._handle.read(record.end - record.start))

    def _append(self, text: str) -> int:
        """Returns how many bytes were written."""
        left = memoryview(text.encode("utf-8", "replace"))
        size = len(left)
        while left:
            left = left[self._handle.write(left) :]
        return size

    def _error(self, error: OSError) -> InputError:
        return InputError("--out", str(self.path), f"it cannot be written ({error.strerror})")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._handle.close()
