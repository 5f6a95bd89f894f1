"""What became of each line of a batch, with its answer: read page by page, and told once, when its job has ended."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from orchestrator.answered_lines import answered_lines
from orchestrator.cli import streams
from orchestrator.cli.out_file import OutFile
from orchestrator.client import Ramify
from orchestrator.out_formats import AnsweredLine
from shared.errors import InputError, NotRunningError
from shared.jobs.states import Outcome
from shared.models import BatchStatus
from shared.models.batch import LineRecord

#: Jobs that are looked at, and lines that are reported, in one round trip.
_PAGE, _LINES_PAGE = 100, 20
#: Seconds of one poll while lines are still being submitted, and when only the answers are awaited.
_SHORT_POLL_S, _LONG_POLL_S = 0.3, 5.0


class EndedLines:
    """Tells of each line of a batch once, when its job has ended: to the file of `--out`, and to `tell`.

    Holds a number and an id of each open line, looks at the open jobs in turns, and tells of lines for a bounded time a
    poll: a large batch stays cheap to follow, and lines are entered while many answers are still to be written.
    `code` is the exit code that follows from all lines so far.
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
        if self._out and line.line in self._out:
            if self._out.job_of(line.line) != (line.job_id or ""):
                fix = f"it holds another answer to line {line.line} than batch {self._batch_id}: name another file"
                raise InputError("--out", str(self._out.path), fix)
        elif line.job_id is None:
            self._ended.append(line.line)
        else:
            if line.job_id not in self._lines:
                self._open.append(line.job_id)
            self._lines.setdefault(line.job_id, []).append(line.line)

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
        while (self._ended or left) and time.monotonic() < end:
            if self._ended:
                self._tell_some(end)
            else:
                count = min(left, _PAGE)
                self._check([self._open.popleft() for _ in range(count)])
                left -= count
        self._polled = time.monotonic()
        return not left and not self._ended

    def _check(self, job_ids: Sequence[str]) -> None:
        """Choose the lines whose jobs have ended, or are gone; the other jobs are looked at again."""
        try:
            found = {status.job_id: status for status in self._client.statuses(job_ids)}
            for job_id in job_ids:
                if job_id not in found or found[job_id].terminal:
                    self._ended.extend(self._lines.pop(job_id))
        finally:
            self._open.extend(job_id for job_id in job_ids if job_id in self._lines)

    def _tell_some(self, end: float) -> None:
        """Tell of a page of the chosen lines, or as many as fit before `end`: an outage tells nothing twice."""
        left = dict.fromkeys(self._ended.popleft() for _ in range(min(len(self._ended), _LINES_PAGE)))
        try:
            for found in answered_lines(self._client, self._batch_id, list(left)):
                self._tell_of(found)
                left.pop(found.line, None)
                if time.monotonic() > end:
                    return
            left.clear()  # what is no longer kept of the batch
        finally:
            self._ended.extendleft(reversed(left))

    def _tell_of(self, found: AnsweredLine) -> None:
        if self._out:
            self._out.add(found)
        if self._tell:
            self._tell(found)
        if found.outcome != Outcome.DONE:
            self.code = streams.PARTIAL
