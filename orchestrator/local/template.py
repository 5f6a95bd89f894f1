"""`python -m orchestrator.local.template SOCKET APPS PADDING`: loads the pools' code once, then copies itself.

Loading it costs seconds of CPU, a copy (fork) milliseconds: a pool that was killed is back before its work is missed,
and all pools share the memory of the code. Needs Linux. Runs no task, starts no thread, holds no connection; the
supervisor's side is `copies.py`.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from typing import TypedDict

from orchestrator.local.launcher import bind
from shared.connections.process import stat_fields

_ADOPTED_S = 5.0
#: What every program of the stack loads besides its app.
_PROGRAMS = ("celery.bin.celery", "celery.apps.worker", "kombu.transport.redis")
#: Hidden while we load: the Qdrant client imports it where it is installed, and it starts threads, which no copy has.
_HIDDEN = ("fastembed", "onnxruntime")
_LONGEST = 65_536


class Order(TypedDict):
    """What to become: `python -m celery ...` in `argv`, with its log, the supervisor's pid, and the orphan's signal."""

    argv: list[str]
    log: str
    parent: int
    orphaned: int


def main(argv: Sequence[str]) -> None:
    """Load, say so, then serve orders until the supervisor hangs up. A copy returns from here as what was ordered."""
    control = socket.socket(fileno=int(argv[0]))
    show(("-m", __spec__.name if __spec__ else "", argv[1]))
    load(argv[1].split(","))
    if threading.active_count() > 1:
        sys.exit(f"the code started threads when it was loaded: {[thread.name for thread in threading.enumerate()]}")
    gc.freeze()
    control.send(b"ready")
    order = serve(control)
    if order is not None:
        become(order, control)
        celery = importlib.import_module("celery.__main__")
        sys.exit(celery.main())


def load(apps: Sequence[str]) -> None:
    """Import the apps with their tasks. What cannot be imported is told in the log, and fails again where it runs."""
    gc.disable()  # nothing of this is garbage, and a look at it all would cost the copies their shared pages
    for name in _HIDDEN:
        sys.modules[name] = None  # type: ignore[assignment]  # documented: makes its import an ImportError
    for name in (*_PROGRAMS, *apps):
        try:
            module = importlib.import_module(name)
            if name in apps:
                module.app.loader.import_default_modules()
                module.app.finalize()
        except (Exception, SystemExit):  # noqa: BLE001 - the code of an app may do anything
            sys.stderr.write(f"{name} was not loaded:\n{traceback.format_exc()}")
    for name in _HIDDEN:
        del sys.modules[name]


def serve(control: socket.socket) -> Order | None:
    """Make a copy an order. Returns the order in the copy, and None here once the supervisor is gone."""
    while message := control.recv(_LONGEST):
        order: Order = json.loads(message)
        # Twice, so that the copy's parent is gone: the supervisor, a subreaper, adopts it.
        if (between := os.fork()) == 0:
            if os.fork():
                os._exit(0)
            return order
        os.waitpid(between, 0)
    return None


def become(order: Order, control: socket.socket) -> None:
    """Leave the template behind: a session, a log and a name of its own, bound to the supervisor; then say the pid."""
    os.setsid()
    until = time.monotonic() + _ADOPTED_S
    while os.getppid() != order["parent"] and time.monotonic() < until:
        time.sleep(0.001)
    if not bind(order["parent"], order["orphaned"]):  # it died meanwhile, or adopts nobody
        os._exit(1)
    log = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    show(order["argv"][1:])
    sys.argv = [importlib.import_module("celery").__path__[0] + "/__main__.py", *order["argv"][3:]]
    gc.enable()
    control.send(json.dumps({"pid": os.getpid()}).encode())
    control.close()


def show(words: Sequence[str]) -> None:
    """Show this interpreter with these arguments as the command line, as `ps` reads it, as far as there is room."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        start, end = map(int, stat_fields(os.getpid())[45:47])  # 48 and 49: where the arguments begin and end
        line = b"".join(os.fsencode(word) + b"\0" for word in (sys.executable, *words))[: max(0, end - start - 1)]
        if 0 < start < end:
            ctypes.memmove(start, line.ljust(end - start, b"\0"), end - start)


if __name__ == "__main__":
    main(sys.argv[1:])
