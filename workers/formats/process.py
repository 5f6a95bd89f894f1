"""Processes that parse what is not text: bounded in memory, time and files, without network or secrets.

A crash, a bomb or an endless file costs that one document. A process parses many files, one at a time.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from queue import LifoQueue
from typing import IO, Any, Protocol, TypeVar

from shared.plugins import parse_of
from workers.formats import ocr
from workers.formats.limits import confine, memory_for, seconds_for, time_left
from workers.formats.parsed import MAX_TEXT_CHARS, FormatError, Parsed, Parser
from workers.formats.sniffing import NAMES, format_of

#: Files after which a process is exchanged: what a library leaks goes with it.
FILES = 1_000
#: Processes at a time at most: each holds the libraries of the formats that it has read.
MOST_PROCESSES = 4
#: Before the name of a reader of another package stands this.
PLUGIN = "plugin:"
#: Seconds of the processor that cutting and encoding what was read may take: the most text takes half of them.
CUT_S = 120.0
#: Seconds on the clock for each second of the processor that a file may take: others want the processor, too.
_PATIENCE = 3.0
#: Objects made before the collector looks for cycles among them: Python's own 700 take 4 % of the time for none.
_COLLECTED_AFTER = 50_000
_MAX_REPLY = 20 * MAX_TEXT_CHARS
#: What the processes do beside parsing: the functions of this module, each a Handler.
_HANDLERS = "workers.index.made"
#: The first byte of a reply: what was asked for, or one sentence.
_GIVEN, _FAULT = b"+", b"-"
_LENGTH = struct.Struct(">Q")
_ROOT = Path(__file__).parents[2]
_FROM_OUTSIDE = frozenset({signal.SIGKILL.name, signal.SIGTERM.name, signal.SIGINT.name, signal.SIGHUP.name})


T = TypeVar("T")


class Handler(Protocol):
    """Work of a process: the reply to what was asked, in parts. Raises: FormatError with one sentence."""

    def __call__(self, asked: Mapping[str, Any], content: bytes, /, *, is_read: Callable[[], None]) -> Sequence[bytes]:
        """`is_read` is called when nothing of the content is left to be read: the seconds of cutting begin."""


class ParserKilledError(FormatError):
    """A parser was ended from outside, by a signal that no fault of its own sends."""


class ParserPool:
    """Parses files by name of their format, each in a process that is free. May be called from many threads."""

    def __init__(self, processes: int = 0) -> None:
        """`processes`: 0 for one a core, up to MOST_PROCESSES. They start when they are needed."""
        self.size = processes or min(len(os.sched_getaffinity(0)), MOST_PROCESSES)
        # The one that was used last is warm.
        self._free: LifoQueue[ParserProcess] = LifoQueue()
        memory = memory_for(self.size)
        self._all = [ParserProcess(memory) for _ in range(self.size)]
        for process in reversed(self._all):
            self._free.put(process)

    def parse(self, format_name: str, content: bytes, name: str, seconds: float | None = None) -> list[Parsed]:
        """The documents of a file as Markdown, most often one.

        `seconds` of the processor; None for those of its size. Raises: FormatError with one sentence, also where the
        parser ends or takes too long.
        """
        asked = {"format": format_name, "name": name, "files": 1}
        return self.ask("parse", asked, content, _documents_of, seconds)

    def ask(
        self,
        task: str,
        asked: Mapping[str, Any],
        content: bytes,
        read: Callable[[memoryview], T],
        seconds: float | None = None,
    ) -> T:
        """What `read` makes of the reply to a task: "parse", or a function of `_HANDLERS`. Raises as `parse`.

        `asked` is all that it is told beside the content, and `files` how many of that a parser reads.
        `read` raises TypeError, ValueError or KeyError for what cannot be a reply.
        """
        process, seconds = self._free.get(), seconds_for(len(content)) if seconds is None else seconds
        head = {**asked, "task": task, "seconds": seconds}
        try:
            try:
                return process.ask(head, content, read)
            except ParserKilledError:  # somebody has killed it: what it has read did so only if it happens again
                return process.ask(head, content, read)
        finally:
            self._free.put(process)

    def close(self) -> None:
        """End the processes."""
        for process in self._all:
            process.end()


class ParserProcess:
    """One process, for one caller at a time."""

    def __init__(self, memory: int) -> None:
        """`memory`: bytes that it may map."""
        self._memory = memory
        self._process: subprocess.Popen[bytes] | None = None
        self._parsed = 0

    @property
    def pid(self) -> int:
        """Of the process that runs; 0 for none."""
        return self._process.pid if self._process else 0

    def ask(self, asked: Mapping[str, Any], content: bytes, read: Callable[[memoryview], T]) -> T:
        """As the pool does; `asked` names the task and its seconds."""
        process, seconds = self._started(), float(asked["seconds"])
        pictures = ocr.SECONDS if ocr.installed() else 0
        deadline = time.monotonic() + _PATIENCE * (seconds + pictures)
        try:
            _send(process, json.dumps(asked).encode(), content, deadline)
            reply = _received(process, deadline)
            if not reply:
                reply = _received(process, time.monotonic() + _PATIENCE * CUT_S)
        except TimeoutError:
            self.end()
            raise FormatError(_too_long(seconds, len(content))) from None
        except (OSError, EOFError, ValueError):
            how = self.end()
            if how == signal.SIGXCPU.name:
                raise FormatError(_too_long(seconds, len(content))) from None
            kind = ParserKilledError if how in _FROM_OUTSIDE else FormatError
            how = f"was ended by {how}" if how.startswith("SIG") else how
            raise kind(f"its parser {how}: save it anew, or leave it out") from None
        self._parsed += int(asked["files"])
        if self._parsed >= FILES:
            self.end()
        if reply.startswith(_FAULT):
            raise FormatError(reply[len(_FAULT) :].decode("utf-8", "replace"))
        try:
            return read(memoryview(reply)[len(_GIVEN) :])
        except (TypeError, ValueError, KeyError):
            self.end()
            raise FormatError("its parser gave no reply that can be read: leave it out") from None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "workers.formats.process", str(self._memory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(),
                cwd="/",
                start_new_session=True,
            )
            self._parsed = 0
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    os.set_blocking(stream.fileno(), False)
        return self._process

    def end(self) -> str:
        """Kill the process; how it had ended before that, a signal by its name."""
        process, self._process = self._process, None
        if process is None:
            return "has ended"
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
        code = process.poll()
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        if code is None:
            return "gave no reply that can be read"
        return signal.Signals(-code).name if code < 0 else f"ended with code {code}"


def _too_long(seconds: float, size: int) -> str:
    return f"takes more than {seconds:.3g} s to read, too long for its {size:,} bytes: split it, or save it anew"


def _environment() -> Mapping[str, str]:
    """What Python needs, and no secret."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT") if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}


def _send(process: subprocess.Popen[bytes], head: bytes, content: bytes, deadline: float) -> None:
    stream = _stream(process.stdin)
    for part in (_LENGTH.pack(len(head)) + head + _LENGTH.pack(len(content)), content):
        view = memoryview(part)
        while view:
            _ready(deadline, write=stream)
            with contextlib.suppress(BlockingIOError):
                view = view[os.write(stream, view[:1_000_000]) :]


def _received(process: subprocess.Popen[bytes], deadline: float) -> bytearray:
    stream = _stream(process.stdout)
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size, deadline))
    if length > _MAX_REPLY:
        raise ValueError("a reply that is too long")
    return _exactly(stream, length, deadline)


def _exactly(stream: int, length: int, deadline: float) -> bytearray:
    found = bytearray()
    while len(found) < length:
        _ready(deadline, read=stream)
        piece = os.read(stream, min(1 << 20, length - len(found)))
        if not piece:
            raise EOFError
        found += piece
    return found


def _ready(deadline: float, *, read: int | None = None, write: int | None = None) -> None:
    reads, writes = [] if read is None else [read], [] if write is None else [write]
    left = deadline - time.monotonic()
    if left <= 0 or not any(select.select(reads, writes, [], left)):
        raise TimeoutError


def _stream(stream: IO[bytes] | None) -> int:
    if stream is None:
        raise OSError("it has no pipe")
    return stream.fileno()


def main() -> None:
    """The process: requests on stdin, replies on what was stdout; what libraries print goes nowhere."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    confine(int(sys.argv[1]))
    gc.set_threshold(_COLLECTED_AFTER)

    def send(*parts: bytes) -> None:
        replies.write(_LENGTH.pack(sum(map(len, parts))))
        replies.writelines(parts)
        replies.flush()

    def is_read() -> None:
        time_left(CUT_S)
        send()

    while head := requests.read(_LENGTH.size):
        asked = json.loads(requests.read(_LENGTH.unpack(head)[0]))
        content = requests.read(_LENGTH.unpack(requests.read(_LENGTH.size))[0])
        time_left(asked["seconds"])
        send(*_reply(asked, content, is_read))


def _documents_of(reply: memoryview) -> list[Parsed]:
    return [Parsed.of_json(one) for one in json.loads(bytes(reply))]


def _parse(asked: Mapping[str, Any], content: bytes, /, *, is_read: Callable[[], None]) -> Sequence[bytes]:
    del is_read
    return (json.dumps([one.as_json() for one in parsed(asked["format"], content, asked["name"])]).encode(),)


def parsed(format_name: str, content: bytes, name: str) -> list[Parsed]:
    """The documents of a file, read as what its content says that it is. Raises: FormatError; what a parser raises."""
    if format_name.startswith(PLUGIN):
        given = parse_of(format_name.removeprefix(PLUGIN))(content, name)
        return [Parsed(given) if isinstance(given, str) else given] if isinstance(given, str | Parsed) else list(given)
    read_as = format_of(content, format_name)
    found = _parser(read_as)(content, name)
    documents = [found] if isinstance(found, Parsed) else list(found)
    if read_as != format_name and documents:
        documents[0] = documents[0].noted(f"is {NAMES[read_as]}, whatever its name says, and was read as one")
    return documents


def _parser(format_name: str) -> Parser:
    parser: Parser = import_module(f"workers.formats.{format_name}").parse
    return parser


def _reply(asked: Mapping[str, Any], content: bytes, is_read: Callable[[], None]) -> Sequence[bytes]:
    task = asked["task"]
    try:
        handler: Handler = _parse if task == "parse" else getattr(import_module(_HANDLERS), task)
        return _GIVEN, *handler(asked, content, is_read=is_read)
    except FormatError as error:
        fault = str(error)
    except ImportError as error:
        fault = f"needs the package {error.name}: pip install 'ramify[documents]'"
    except MemoryError:
        fault = "needs too much memory to read: split it"
    except RecursionError:
        fault = "is nested too deeply: save it anew"
    except Exception as error:  # noqa: BLE001 - a parser's fault on a broken file costs that file
        fault = f"cannot be read ({type(error).__name__}): it is broken, or not what its name says"
    return _FAULT, fault.encode("utf-8", "replace")


if __name__ == "__main__":
    main()
