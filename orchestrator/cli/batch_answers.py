"""What became of each line of a batch, with its answer: read page by page, and told once, when its job has ended."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from orchestrator.accounting import GONE
from orchestrator.cli import streams
from orchestrator.cli.out_file import OutFile
from orchestrator.cli.out_formats import AnsweredLine
from orchestrator.client import Ramify
from shared.errors import InputError, NotRunningError, RamifyError
from shared.jobs.states import Outcome, State
from shared.models import Answer, BatchStatus
from shared.models.batch import LineRecord, LineReport

#: Lines whose jobs are read in one round trip.
_PAGE = 100
#: Seconds of one poll while lines are still being submitted, and when only the answers are awaited.
_SHORT_POLL_S, _LONG_POLL_S = 0.3, 5.0


def answered_lines(client: Ramify, batch_id: str, numbers: Sequence[int] | None = None) -> Iterator[AnsweredLine]:
    """Every line that is not blank, or those of these `numbers`, in order; one whose job is open has no answer yet."""
    for found in client.batch_report(batch_id, numbers):
        answer, fault = _answer(client, found)
        error = fault or found.error or ("it has expired" if found.state == GONE else None)
        yield AnsweredLine(**dict(found) | {"answer": answer, "error": error})


def _answer(client: Ramify, found: LineReport) -> tuple[Answer | None, str | None]:
    """The answer of a line, or why it cannot be read. Raises: NotRunningError."""
    if found.job_id is None or found.state != State.DONE:
        return None, None
    try:
        return client.result(found.job_id), None
    except NotRunningError:
        raise
    except RamifyError as error:
        return None, str(error)


class EndedLines:
    """Tells of each line of a batch once, when its job has ended: to the file of `--out`, and to `tell`.

    Holds a number and an id of each open line, and looks at the open jobs in turns, for a bounded time a poll, so that
    a large batch stays cheap to follow. `code` is the exit code that follows from all lines so far.
    """

    def __init__(
        self, client: Ramify, batch_id: str, out: OutFile | None, tell: Callable[[AnsweredLine], None] | None
    ) -> None:
        self._client, self._batch_id, self._out, self._tell = client, batch_id, out, tell
        self._open, self._ended = deque[str](), deque[int]()
        self._lines: dict[str, list[int]] = {}
        self._seen: tuple[int, int, int] | None = None
        self._polled = time.monotonic()
        self.code = streams.DONE

    def expect(self, line: LineRecord) -> None:
        """A line that was entered, now or by a command before this one.

        Raises: InputError when the file has an answer of another job under its number.
        """
        if self._out and line.number in self._out:
            if self._out.job_of(line.number) != (line.job_id or ""):
                fix = f"it holds another answer to line {line.number} than batch {self._batch_id}: name another file"
                raise InputError("--out", str(self._out.path), fix)
        elif line.job_id is None:
            self._ended.append(line.number)
        else:
            if line.job_id not in self._lines:
                self._open.append(line.job_id)
            self._lines.setdefault(line.job_id, []).append(line.number)

    def finish(self) -> None:
        """Look at all that is left, as the batch has ended."""
        self._look(math.inf)

    def poll_now_and_then(self) -> None:
        """While lines are entered: look at open jobs for a moment, once a second, if Redis answers."""
        if time.monotonic() - self._polled > 1.0:
            self._polled = time.monotonic()
            with suppress(NotRunningError):
                self._look(_SHORT_POLL_S)

    def poll(self, batch: BatchStatus) -> None:
        """Look at the open jobs, unless none has ended since they were all looked at."""
        seen = (batch.finished, batch.known_open, batch.lines)
        if seen != self._seen and self._look(_LONG_POLL_S):
            self._seen = seen

    def _look(self, seconds: float) -> bool:
        """Look at each open job once, for `seconds` at most. True when that was enough for all."""
        end, left = time.monotonic() + seconds, len(self._open)
        while self._ended and time.monotonic() < end:
            numbers = list(islice(self._ended, _PAGE))
            self._end(numbers)
            while self._ended and self._ended[0] <= numbers[-1]:
                self._ended.popleft()
        while left and time.monotonic() < end:
            page = [self._open.popleft() for _ in range(min(left, _PAGE))]
            left -= len(page)
            self._check(page)
        self._polled = time.monotonic()
        return not left and not self._ended

    def _check(self, job_ids: Sequence[str]) -> None:
        """Tell of the lines whose jobs have ended, or are gone; the other jobs are looked at again."""
        try:
            found = {status.job_id: status for status in self._client.statuses(job_ids)}
            ended = [job_id for job_id in job_ids if job_id not in found or found[job_id].terminal]
            if numbers := sorted(number for job_id in ended for number in self._lines[job_id]):
                self._end(numbers)
        finally:
            self._open.extend(job_id for job_id in job_ids if job_id in self._lines)

    def _end(self, numbers: Sequence[int]) -> None:
        for found in answered_lines(self._client, self._batch_id, numbers):
            if self._out:
                self._out.add(found)
            if self._tell:
                self._tell(found)
            if found.outcome != Outcome.DONE:
                self.code = streams.PARTIAL
            self._forget(found)

    def _forget(self, found: AnsweredLine) -> None:
        """It is told of: an outage in the middle of a page tells nothing twice."""
        if found.job_id is None:
            self._ended.popleft()
        elif left := self._lines.get(found.job_id):
            left.remove(found.line)
            if not left:
                del self._lines[found.job_id]
