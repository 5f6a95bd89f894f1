"""One run of `ramify batch`: enters the lines of a file, follows their jobs, and writes the answers as they come."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from orchestrator.cli import streams
from orchestrator.cli.batch_answers import EndedLines
from orchestrator.cli.batch_intake import BatchFile, BatchTaken, FileIntake, RejectsFile
from orchestrator.cli.follow import follow_batch
from orchestrator.cli.out_file import OutFile
from orchestrator.cli.render.batches import accounts_line, draw_batch
from orchestrator.cli.text import counted, plain
from orchestrator.client import Ramify
from orchestrator.intake import Rejected
from orchestrator.out_formats import AnsweredLine, format_of
from shared.errors import BatchCancelledError, InputError, RamifyError
from shared.models.batch import LineRecord


class BatchRun:
    """Makes a batch, or goes on with one. Both return the exit code."""

    def __init__(self, client: Ramify, out: Path | None, *, wait: bool, as_json: bool) -> None:
        self._client, self._out, self._follows, self._as_json = client, out, wait, as_json

    def begin(
        self,
        source: str,
        rejects: Path | None,
        defaults: Mapping[str, Any],
        budget: Mapping[str, Any],
        webhook: str | None = None,
    ) -> int:
        """Raises: InputError for what cannot be read, written or taken; then there is no batch."""
        self._check_out(source)
        file = BatchFile.checked(source, rejects, defaults, self._client.tenant)
        self._check_apart(file.rejects)
        with ExitStack() as stack:
            refused = stack.enter_context(RejectsFile(file.rejects))
            intake = stack.enter_context(FileIntake(self._client, file, refused))
            intake.check_some(budget)
            out = stack.enter_context(OutFile(self._out)) if self._out else None
            batch_id = self._client.open_batch(budget, file.kept(self._out), webhook)
            streams.note(f"batch {batch_id}: if this command is cut off, `ramify batch --resume {batch_id}` goes on")
            if out:
                out.begin(batch_id, resume=False)
            return self._run(batch_id, intake, refused, out)

    def resume(self, batch_id: str, source: str | None, rejects: Path | None) -> int:
        """Submit the lines that were not, and write the answers that were not.

        Raises: NotFoundError, InputError when the file is another one than the batch was made of; BatchCancelledError
        when there is nothing to write either.
        """
        found = self._client.resume_batch(batch_id)
        kept = found.source
        if self._out is None and kept.out:
            self._out = Path(kept.out)
        self._check_out(source or kept.options.get("file", streams.STDIN))
        status = self._client.batch_status(batch_id)
        if status.cancelled_early and not self._follows:
            raise BatchCancelledError(batch_id, found.read)
        closed = status.closed_at is not None or status.cancelled_early
        rejects = rejects or Path(kept.options.get("rejects", f"{batch_id}.rejects.jsonl"))
        self._check_apart(rejects)
        file = None if closed else BatchFile.of(kept, source, rejects)
        with ExitStack() as stack:
            refused = stack.enter_context(RejectsFile(rejects))
            intake = stack.enter_context(FileIntake(self._client, file, refused)) if file else None
            out = stack.enter_context(OutFile(self._out)) if self._out else None
            submitted = "it was cancelled, and takes no more lines" if status.cancelled_early else "all is submitted"
            streams.note(f"batch {batch_id}: " + (f"goes on behind line {found.read:,}" if intake else submitted))
            if out:
                out.begin(batch_id, resume=True)
            return self._run(batch_id, intake, refused, out, resume=True)

    def _check_out(self, source: str) -> None:
        if self._out:
            format_of(self._out)
            streams.writable("--out", self._out, source, grows=True)
            self._follows = True

    def _check_apart(self, rejects: Path) -> None:
        if self._out and streams.is_same_file(self._out, rejects):
            raise InputError("--out", str(self._out), "it is the file of the rejects: name another")

    def _run(
        self,
        batch_id: str,
        intake: FileIntake | None,
        refused: RejectsFile,
        out: OutFile | None,
        *,
        resume: bool = False,
    ) -> int:
        """`intake` None: all lines were entered before."""
        tell = _print_line if self._as_json and self._follows else None
        ended = EndedLines(self._client, batch_id, out, tell) if out or tell else None
        try:
            taken = self._enter(batch_id, intake, refused, ended, resume=resume)
        except (KeyboardInterrupt, RamifyError) as error:
            if intake and not isinstance(error, BatchCancelledError):
                streams.note(
                    f"batch {batch_id} holds the lines read so far: `ramify batch --resume {batch_id}` goes on"
                )
            if isinstance(error, KeyboardInterrupt):
                return streams.INTERRUPTED
            raise
        if taken.rejects:
            streams.warn(f"refused: {counted(taken.status.rejected, 'line')}; {taken.rejects} says why")
        streams.warn_about(self._client, batch_id)
        if taken.full or not self._follows:
            return self._show(taken)
        streams.note(taken.sentence())
        return self._follow(taken, ended, out)

    def _enter(
        self, batch_id: str, intake: FileIntake | None, refused: RejectsFile, ended: EndedLines | None, *, resume: bool
    ) -> BatchTaken:
        """Enter what is left of the file; refused lines go to theirs, and `ended` expects all others."""

        def entered(record: LineRecord) -> None:
            if not record.job_id:
                refused.add(Rejected(line=record.line, reason=record.reason or "", text=record.text or ""))
            if ended:
                ended.expect(record)
                ended.poll_now_and_then()

        for record in self._client.batch_lines(batch_id) if resume else ():
            entered(record)
        if intake:
            return intake.enter(batch_id, entered)
        return BatchTaken(self._client.batch_status(batch_id), refused.written)

    def _show(self, taken: BatchTaken) -> int:
        """What was enqueued, without waiting for it."""
        if self._as_json:
            (streams.line if self._follows else streams.document)(taken.summary())
        if taken.full:
            streams.fail(taken.refusal())
            return streams.FAILED
        if not self._as_json:
            batch_id = taken.status.batch_id
            streams.show(plain(taken.sentence()))
            streams.note(f"`ramify status {batch_id} --watch` follows it, `ramify result {batch_id}` reads it")
        return streams.PARTIAL if taken.status.rejected else streams.DONE

    def _follow(self, taken: BatchTaken, ended: EndedLines | None, out: OutFile | None) -> int:
        batch_id = taken.status.batch_id
        try:
            found = follow_batch(self._client, batch_id, longest_s=taken.longest_s, ended=ended)
        except (KeyboardInterrupt, RamifyError) as error:
            streams.note(f"batch {batch_id} goes on; `ramify batch --resume {batch_id} --wait` follows it again")
            if isinstance(error, KeyboardInterrupt):
                return streams.INTERRUPTED
            raise
        if out and found.terminal:
            out.finish(accounts_line(found))
        streams.line(found) if self._as_json else streams.show(draw_batch(found))
        if not found.terminal:
            open_jobs = counted(found.open + found.known_open, "job")
            streams.fail(f"{open_jobs} still open long after the deadline: `ramify doctor`")
            return streams.FAILED
        return max(streams.batch_exit_code(found), ended.code if ended else streams.DONE)


def _print_line(found: AnsweredLine) -> None:
    streams.line(found.model_dump(mode="json", exclude={"answer"}))
