"""Processes that parse what is not text: bounded in memory, time and files, without network or secrets.

A crash, a bomb or an endless file costs that one document. A process parses many files, one at a time.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from queue import LifoQueue
from typing import IO, Any

from shared.plugins import parse_of
from workers.formats import ocr
from workers.formats.limits import confine, seconds_for, time_left
from workers.formats.parsed import MAX_TEXT_CHARS, FormatError, Parsed, Parser
from workers.formats.sniffing import NAMES, format_of

#: Bytes of memory that a process may map; a parser and its libraries take 200 MB of them.
MEMORY_BYTES = 2 << 30
#: Files after which a process is exchanged: what a library leaks goes with it.
FILES = 200
#: Processes at a time at most: each holds the libraries of the formats that it has read.
MOST_PROCESSES = 4
#: Before the name of a reader of another package stands this.
PLUGIN = "plugin:"
#: Seconds on the clock for each second of the processor that a file may take: others want the processor, too.
_PATIENCE = 3.0
_MAX_REPLY = 6 * MAX_TEXT_CHARS
_LENGTH = struct.Struct(">Q")
_ROOT = Path(__file__).parents[2]
_FROM_OUTSIDE = frozenset({signal.SIGKILL.name, signal.SIGTERM.name, signal.SIGINT.name, signal.SIGHUP.name})


class ParserKilledError(FormatError):
    """A parser was ended from outside, by a signal that no fault of its own sends."""


class ParserPool:
    """Parses files by name of their format, each in a process that is free. May be called from many threads."""

    def __init__(self, processes: int = 0) -> None:
        """`processes`: 0 for one a core, up to MOST_PROCESSES. They start when they are needed."""
        self.size = processes or min(len(os.sched_getaffinity(0)), MOST_PROCESSES)
        # The one that was used last is warm.
        self._free: LifoQueue[ParserProcess] = LifoQueue()
        self._all = [ParserProcess() for _ in range(self.size)]
        for process in reversed(self._all):
            self._free.put(process)

    def parse(self, format_name: str, content: bytes, name: str, seconds: float | None = None) -> list[Parsed]:
        """The documents of a file as Markdown, most often one.

        `seconds` of the processor; None for those of its size. Raises: FormatError with one sentence, also where the
        parser ends or takes too long.
        """
        process, seconds = self._free.get(), seconds_for(len(content)) if seconds is None else seconds
        try:
            try:
                return process.parse(format_name, content, name, seconds)
            except ParserKilledError:  # somebody has killed it: what it has read did so only if it happens again
                return process.parse(format_name, content, name, seconds)
        finally:
            self._free.put(process)

    def close(self) -> None:
        """End the processes."""
        for process in self._all:
            process.end()


class ParserProcess:
    """One process, for one caller at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._parsed = 0

    @property
    def pid(self) -> int:
        """Of the process that runs; 0 for none."""
        return self._process.pid if self._process else 0

    def parse(self, format_name: str, content: bytes, name: str, seconds: float) -> list[Parsed]:
        """As the pool does."""
        process = self._started()
        pictures = ocr.SECONDS if ocr.installed() else 0
        deadline = time.monotonic() + _PATIENCE * (seconds + pictures)
        try:
            head = json.dumps({"format": format_name, "name": name, "seconds": seconds}).encode()
            _send(process, head, content, deadline)
            reply = json.loads(_received(process, deadline))
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
        self._parsed += 1
        if self._parsed >= FILES:
            self.end()
        if "fault" in reply:
            raise FormatError(str(reply["fault"]))
        try:
            return [Parsed.of_json(one) for one in reply["documents"]]
        except (TypeError, ValueError, KeyError):
            self.end()
            raise FormatError("its parser gave no reply that can be read: leave it out") from None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "workers.formats.process"],
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
    view = memoryview(_LENGTH.pack(len(head)) + head + _LENGTH.pack(len(content)) + content)
    while view:
        _ready(deadline, write=stream)
        with contextlib.suppress(BlockingIOError):
            view = view[os.write(stream, view[:1_000_000]) :]


def _received(process: subprocess.Popen[bytes], deadline: float) -> bytes:
    stream = _stream(process.stdout)
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size, deadline))
    if length > _MAX_REPLY:
        raise ValueError("a reply that is too long")
    return _exactly(stream, length, deadline)


def _exactly(stream: int, length: int, deadline: float) -> bytes:
    found = bytearray()
    while len(found) < length:
        _ready(deadline, read=stream)
        piece = os.read(stream, min(1 << 20, length - len(found)))
        if not piece:
            raise EOFError
        found += piece
    return bytes(found)


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
    confine(MEMORY_BYTES)
    while head := requests.read(_LENGTH.size):
        asked = json.loads(requests.read(_LENGTH.unpack(head)[0]))
        content = requests.read(_LENGTH.unpack(requests.read(_LENGTH.size))[0])
        time_left(asked["seconds"])
        reply = json.dumps(_reply(asked["format"], content, asked["name"])).encode()
        replies.write(_LENGTH.pack(len(reply)) + reply)
        replies.flush()


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


def _reply(format_name: str, content: bytes, name: str) -> dict[str, Any]:
    try:
        return {"documents": [one.as_json() for one in parsed(format_name, content, name)]}
    except FormatError as error:
        return {"fault": str(error)}
    except ImportError as error:
        return {"fault": f"needs the package {error.name}: pip install 'ramify[documents]'"}
    except MemoryError:
        return {"fault": "needs too much memory to read: split it"}
    except RecursionError:
        return {"fault": "is nested too deeply: save it anew"}
    except Exception as error:  # noqa: BLE001 - a parser's fault on a broken file costs that file
        return {"fault": f"cannot be read ({type(error).__name__}): it is broken, or not what its name says"}


if __name__ == "__main__":
    main()
