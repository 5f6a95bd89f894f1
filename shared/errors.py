"""One tree of errors. Every message is a sentence that says what the reader can do next."""

from __future__ import annotations

import json
from contextlib import suppress

_SHOWN, _LONGEST_NAME, _LONGEST_FIX = 80, 300, 1500


class RamifyError(Exception):
    """Root of all errors that Ramify raises on purpose.

    `exit_code` is what the CLI ends with; `calls` counts the HTTP calls made before it was raised, `tokens` those that
    an embedding server reported for them.
    """

    exit_code = 1
    calls: int = 0
    tokens: int = 0


class InputError(RamifyError):
    """A value that a caller gave cannot be used.

    `field` is the name of the setting, option or column, `value` what was given, `fix` what to give instead.
    """

    exit_code = 2

    def __init__(self, field: str, value: object, fix: str) -> None:
        self.field, self.value, self.fix = field, value, fix
        super().__init__(f"{_line(field, _LONGEST_NAME)}: {shown(value)} cannot be used: {_line(fix, _LONGEST_FIX)}")


class MissingError(InputError):
    """A field that has to be given is not there."""

    def __init__(self, field: str, fix: str = "it is missing: give it") -> None:
        super().__init__(field, None, fix)
        self.args = (f"{_line(field, _LONGEST_NAME)}: {fix}",)


class SettingsError(InputError):
    """A setting is unknown, of the wrong type or out of range."""


class NotFoundError(InputError):
    """No job, batch or file of that name."""


class ConflictError(InputError):
    """What was asked for does not fit what there is now: the state of a job, or several documents of one name."""


class NotRunningError(RamifyError):
    """Redis, a worker pool or another part of the stack does not answer."""


class IngestUnderWayError(ConflictError):
    """Another ingest, `job_id`, is at the same files."""

    def __init__(self, job_id: str, paths: str) -> None:
        self.job_id = job_id
        fix = f"{job_id} is at these files already: wait for its end (`ramify status {job_id} --watch`) or cancel it"
        super().__init__("PATH", paths, fix)


class NoAnswerError(RamifyError):
    """A job has no answer, no list or no report: not yet, or not at all. `terminal`: it has ended.

    `of_ingest`: it puts documents in, and never has an answer.
    """

    def __init__(self, message: str, *, terminal: bool, of_ingest: bool = False) -> None:
        self.terminal, self.of_ingest = terminal, of_ingest
        super().__init__(message)


class UnknownCallerError(RamifyError):
    """A caller over the network has not shown who it is, or its key is not known (any more)."""


class NotAllowedError(RamifyError):
    """A caller is known, but may not do this."""


class TooManyRequestsError(RamifyError):
    """A caller asks more than it may; `retry_after`: seconds until it may again."""

    def __init__(self, message: str, retry_after: float) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class LaneFullError(RamifyError):
    """The lane has no room for more waiting jobs. `refused`: ids of the jobs that were not taken."""

    def __init__(self, message: str, refused: list[str]) -> None:
        self.refused = refused
        super().__init__(message)


class BatchCancelledError(RamifyError):
    """The batch was cancelled while its lines were submitted: it takes no more of them. `read`: the last one taken."""

    exit_code = 3

    def __init__(self, batch_id: str, read: int) -> None:
        self.batch_id, self.read = batch_id, read
        super().__init__(
            f"batch {batch_id} was cancelled after line {read:,}: it takes no more lines, and `ramify batch report "
            f"{batch_id}` says what became of those"
        )


class TransientError(RamifyError):
    """May succeed when tried again: connection lost, 429, 5xx, timeout.

    `retry_after`: seconds that the server asked for, if it did. `provider`: the kind of server that failed, as its gate
    names it ("llm"); empty where no gate was passed.
    """

    provider: str = ""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class PermanentError(RamifyError):
    """Will fail again however often it is tried: bad key, bad request, wrong model.

    `param`: the option that the server refused, if it named one.
    """

    param: str = ""


class ReplyError(RamifyError):
    """A model's reply is unusable. The message names the fault, for the repeated request and the warning."""


class StoreError(PermanentError):
    """The vector store cannot be opened, read or written."""


class StoreInUseError(StoreError):
    """Another process has the embedded store open."""


class StoreMismatchError(StoreError):
    """The collection was built with another encoder than the one configured now."""


class DamagedError(RamifyError):
    """What is stored of a job cannot be read. The message is a clause about the job: "its field rank is ...".

    `newer`: a newer release may have written it so.
    """

    def __init__(self, clause: str, *, newer: bool = False) -> None:
        self.newer = newer
        super().__init__(clause)


class DeadlineError(RamifyError):
    """The job's time is up."""


class MessageVersionError(PermanentError):
    """A queue message that this worker cannot read. `other_release`: a worker of another release may."""

    def __init__(self, message: str, *, other_release: bool = False) -> None:
        self.other_release = other_release
        super().__init__(message)


def _line(text: str, most: int) -> str:
    """`text` as one printable line: callers write some names of fields, and fixes repeat what was given."""
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[: most + 1])
    return line if len(line) <= most else f"{line[:most]}…"


def shown(value: object) -> str:
    """`value` as one printable line of at most 80 characters; control characters are escaped, lists are JSON."""
    text = repr(value) if isinstance(value, str) else _as_json(value)
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def _as_json(value: object) -> str:
    """As callers write it: null, true, {"a": 1}; numbers and what JSON does not know as Python does."""
    if value is None or isinstance(value, bool | dict | list | tuple):
        with suppress(ValueError, TypeError, RecursionError):
            return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def encodable(text: str) -> bool:
    """False for half a surrogate pair, which is no UTF-8: Python decodes stray bytes of arguments into such."""
    return not any("\ud800" <= c <= "\udfff" for c in set(text))
