"""What the parser's process forbids itself before it reads the first byte of a file."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from ctypes import CDLL
from pathlib import Path
from typing import Any, Never

#: Bytes of memory that a process may map at most, and at least; a parser and its libraries take 200 MB of them.
MEMORY_BYTES, _LEAST_BYTES = 2 << 30, 512 << 20
#: What the worker beside the parsers needs of a container's or unit's memory.
_WORKER_BYTES = 512 << 20
_OPEN_FILES = 64
#: Processor seconds of a file: some for the libraries that its format loads, and a share of its size.
_BASE_S, _S_PER_MB, _MOST_S = 8.0, 4.0, 60.0
#: clone flags of Linux: a user namespace, which lets anyone have a network namespace, with nothing but a dead loopback.
_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
_DENIED = ("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.kill", "os.remove",
           "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "urllib.")  # fmt: skip


def confine(memory_bytes: int) -> None:
    """No more memory and files than given, no core dump, no network, no other process, nothing written.

    The hook holds Python; a library's code that is taken over is held by the limits and, where the kernel gives one, by
    the network namespace.
    """
    with contextlib.suppress(OSError, AttributeError):
        CDLL(None).unshare(_NEW_USER | _NEW_NET)
    for name, limit in ((resource.RLIMIT_AS, memory_bytes), (resource.RLIMIT_NOFILE, _OPEN_FILES)):
        _lower(name, limit)
    for name in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        _lower(name, 0)
    sys.addaudithook(_refuse)


def memory_for(processes: int, own: Path = Path("/proc/self/cgroup"), groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that each of so many parsers may map: all fit beside the worker, below the limit of its cgroup (version 2).

    Where the kernel ends a process of a container for want of memory, it may end all of them.
    """
    try:
        group = next(line for line in own.read_text().splitlines() if line.startswith("0::"))
        limit = int((groups / group.removeprefix("0::").lstrip("/") / "memory.max").read_text())
    except (OSError, ValueError, StopIteration):  # no cgroup, or "max": no limit
        return MEMORY_BYTES
    return min(MEMORY_BYTES, max(_LEAST_BYTES, (limit - _WORKER_BYTES) // processes))


def seconds_for(size: int) -> float:
    """Processor seconds that a file of `size` bytes may take: what is small must not take long."""
    return min(_BASE_S + _S_PER_MB * size / 1_000_000, _MOST_S)


def time_left(seconds: float) -> None:
    """Processor seconds from now on; the kernel ends the process after them."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime + seconds) + 2
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def _lower(name: int, limit: int) -> None:
    hard = resource.getrlimit(name)[1]
    most = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(name, (most, most))


def _refuse(event: str, args: tuple[Any, ...]) -> None:
    if event.startswith(_DENIED):
        _deny(event)
    if event == "open" and len(args) > 2 and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR):
        _deny(f"writing {args[0]}")


def _deny(what: str) -> Never:
    raise PermissionError(f"a parser may not do this: {what}")
