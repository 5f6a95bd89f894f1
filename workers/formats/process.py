"""A process of its own that parses what is not text: bounded in memory, time and files, without network or secrets.

A crash, a bomb or an endless file costs that one document. One process parses many files, one at a time.
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
from threading import Lock
from typing import IO, Any

from workers.formats.limits import confine, time_left
from workers.formats.parsed import MAX_TEXT_CHARS, FormatError, Parsed

#: Bytes of memory that the process may map; a parser and its libraries take 200 MB of them.
MEMORY_BYTES = 2 << 30
#: Files after which the process is exchanged: what a library leaks goes with it.
FILES = 200
_MAX_REPLY = 6 * MAX_TEXT_CHARS
_LENGTH = struct.Struct(">Q")
_ROOT = Path(__file__).parents[2]


class ParserProcess:
    """Parses files by name of their format. May be called from many threads; they wait for each other."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._parsed = 0

    def parse(self, format_name: str, content: bytes, name: str) -> Parsed:
        """The file as Markdown. Raises: FormatError with one sentence, also where the parser ends or takes too long."""
        with self._lock:
            process = self._started()
            deadline = time.monotonic() + self._timeout_s
            try:
                head = json.dumps({"format": format_name, "name": name, "seconds": self._timeout_s}).encode()
                _send(process, head, content, deadline)
                reply = json.loads(_received(process, deadline))
            except TimeoutError:
                self._end()
                raise FormatError(f"takes more than {self._timeout_s:g} s to read: split it") from None
            except (OSError, EOFError, ValueError):
                raise FormatError(f"its parser {self._end()}: save it anew, or leave it out") from None
            self._parsed += 1
            if self._parsed >= FILES:
                self._end()
        if "fault" in reply:
            raise FormatError(str(reply["fault"]))
        places = tuple((int(place), str(name)) for place, name in reply["places"])
        return Parsed(**{**reply, "places": places, "notes": tuple(reply["notes"])})

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

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

    def _end(self) -> str:
        """Kill the process; how it had ended before that."""
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
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


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


def _reply(format_name: str, content: bytes, name: str) -> dict[str, Any]:
    try:
        return dict(import_module(f"workers.formats.{format_name}").parse(content, name).as_json())
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
