"""The two streams (data on stdout, everything else on stderr), the exit codes, and reading from files or stdin."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from orchestrator.cli import output_files
from orchestrator.text_lines import json_text
from shared.errors import InputError
from shared.hidden import visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import ProgressColumn

    from orchestrator.client import Ramify
    from shared.models import BatchStatus, JobStatus

#: Exit codes. 2, bad usage or input, comes with the errors.
DONE = 0
FAILED = 1
PARTIAL = 3
INTERRUPTED = 130

STDIN = "-"
_MAX_STDIN_BYTES = 100_000
T = TypeVar("T")


def job_exit_code(job: JobStatus) -> int:
    """A job that is still open counts as done: asking how far it is has worked."""
    if job.partial or (job.degraded and job.state == "done"):
        return PARTIAL
    return FAILED if job.terminal and job.state != "done" else DONE


def batch_exit_code(batch: BatchStatus) -> int:
    """Partial as soon as one job ended otherwise than done, or a line was refused, or lines were never read."""
    unread = batch.terminal and not batch.read_whole
    return PARTIAL if batch.finished > batch.done or batch.rejected or unread else DONE


def console(*, stderr: bool = False, columns: int = 0) -> Console:
    """Tables on stdout, progress on stderr. Reads no markup and no emoji codes: what it prints is not ours.

    `columns`: prints as if the terminal had so many at least, and leaves it to the terminal to wrap them.
    """
    from rich.console import Console

    made = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    made.width = max(made.width, columns)
    return made


def room() -> int | None:
    """Characters of a line of the terminal, or what COLUMNS says; None where stdout is none and nothing limits it."""
    made = console()
    return made.width if made.is_terminal or os.environ.get("COLUMNS", "").isdecimal() else None


@contextmanager
def progress(
    name: str, *columns: ProgressColumn, total: int | None = None, **fields: Any
) -> Iterator[Callable[..., None]]:
    """A bar on stderr, where that is a terminal; yields its `update(completed=..., advance=..., total=...)`."""
    from rich.progress import Progress

    where = console(stderr=True)
    with Progress(*columns, console=where, transient=True, disable=not where.is_terminal) as bar:
        yield partial(bar.update, bar.add_task(name, total=total, **fields))


def show(renderable: RenderableType, columns: int = 0) -> None:
    """Print for people, on stdout. `columns` as of `console`."""
    console(columns=columns).print(renderable)


def output(value: T, draw: Callable[[T], RenderableType], *, as_json: bool) -> None:
    """Print a command's one result on stdout, as JSON or as `draw` shows it to people."""
    if as_json:
        document(value)
    else:
        show(draw(value))


def document(value: Any) -> None:
    """The one JSON document of a command, on stdout. `value` is a model, or plain data that may hold models."""
    _write(json_text(value, ascii_only=not _is_utf8(), indent=2))


def line(value: Any) -> None:
    """One line of a JSON stream, on stdout, at once."""
    _write(json_text(value, ascii_only=not _is_utf8()))


def note(sentence: str) -> None:
    """A plain line on stderr."""
    sys.stderr.write(f"{visible(sentence)}\n")
    sys.stderr.flush()


def warn(sentence: str) -> None:
    """A warning on stderr."""
    note(f"warning: {sentence}")


def warn_all(sentences: Iterable[str | None]) -> None:
    """A warning for each sentence that there is."""
    for sentence in filter(None, sentences):
        warn(sentence)


def warn_about(client: Ramify, id_: str) -> None:
    """What the submitter of a job or batch should know: other settings in the pools, and that it will wait too long."""
    warn_all((client.settings_differ(), client.too_slow(id_)))


def fail(sentence: str) -> None:
    """An error on stderr."""
    note(f"error: {sentence}")


def stop_writing() -> None:
    """After a reader has gone (`ramify jobs | head`): nothing more is written, and no complaint at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _write(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _is_utf8() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def text_argument(name: str, given: str) -> str:
    """The argument itself, or stdin for "-". Raises: InputError for what is no UTF-8; its length is checked later."""
    if given != STDIN:
        return given
    raw = sys.stdin.buffer.read(_MAX_STDIN_BYTES)
    try:
        return raw.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise InputError(name, f"byte {error.start} of stdin", "write it in UTF-8") from None


@contextmanager
def lines_of(name: str) -> Iterator[tuple[IO[bytes], int | None]]:
    """A file (or stdin for "-") open for reading, and its size in bytes where it has one.

    Raises: InputError for a folder, a missing file or one that cannot be read.
    """
    if name == STDIN:
        yield sys.stdin.buffer, None
        return
    path = Path(name)
    if path.is_dir():
        raise InputError("FILE", name, "it is a folder: name a JSON Lines file")
    if not path.exists():
        raise InputError("FILE", name, "there is no such file")
    try:
        handle = path.open("rb")
    except OSError as error:
        raise InputError("FILE", name, f"it cannot be read ({error.strerror})") from None
    with handle:
        yield handle, path.stat().st_size if path.is_file() else None


def writable(option: str, path: Path, source: str = STDIN, *, grows: bool = False) -> Path:
    """`path`, if a file can be put there, or (`grows`) be written where it links to. Raises: InputError if not."""
    if path.is_dir():
        raise InputError(option, str(path), "it is a folder: name a file in it")
    output_files.check_way(option, path, follow=grows)
    target = path.resolve() if grows else path
    folder = target.absolute().parent
    if not folder.is_dir():
        raise InputError(option, str(path), f"there is no folder {folder}: create it first")
    if not os.access(target if target.exists() and (grows or output_files.is_device(target)) else folder, os.W_OK):
        raise InputError(option, str(path), "it cannot be written: name a file in another folder")
    if source != STDIN and is_same_file(path, Path(source)):
        raise InputError(option, str(path), "it is the file that is read: name another")
    return path


def is_same_file(one: Path, other: Path) -> bool:
    """Whether two paths name one file, which need not be there yet."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)
