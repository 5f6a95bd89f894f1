"""`python -m orchestrator.local.template SOCKET APPS PADDING`: loads the pools' code once, then forks for each pool.

Loading costs seconds of CPU, a fork milliseconds, and all pools share the memory of the code. Needs Linux. Runs no
task, starts no thread, holds no connection. The supervisor's side is `copies.py`.
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
from typing import Any

from orchestrator.local.launcher import bind
from shared.connections.process import stat_fields
from shared.tasks import celery_command

_ADOPTED_S = 5.0
#: What every program of the stack loads besides its app.
_PROGRAMS = ("celery.bin.celery", "celery.apps.worker", "kombu.transport.redis")
#: Hidden while we load: the Qdrant client imports it where it is installed, and it starts threads, which no copy has.
_HIDDEN = ("fastembed", "onnxruntime")
_LONGEST = 65_536


#: `argv` (`python -m shared.tasks.celery_command ...`),
#: its `log`, `parent` (the supervisor's pid), `signal` (sent when the parent dies).
Order = dict[str, Any]


def main(argv: Sequence[str]) -> None:
    """Load, report ready, then serve orders until the supervisor disconnects. In a copy: run what was ordered."""
    control = socket.socket(fileno=int(argv[0]))
    show(("-m", __spec__.name if __spec__ else "", argv[1]))
    load(argv[1].split(","))
    if threading.active_count() > 1:
        sys.exit(f"the code started threads when it was loaded: {[thread.name for thread in threading.enumerate()]}")
    gc.freeze()
    control.send(b"ready")
    if order := serve(control):
        become(order, control)
        celery_command.run()


def load(apps: Sequence[str]) -> None:
    """Import the apps with their tasks. An import that fails is logged here, and fails again in the pool itself."""
    celery_command.leave_out_working_folder()
    gc.disable()  # a collection would write to the pages that copies share with the template
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
    """Fork once for each order. Returns the order in the copy, and None here once the supervisor is gone."""
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
    """Take a session, a log and a command line of its own, bound to the supervisor; then report the pid."""
    os.setsid()
    until = time.monotonic() + _ADOPTED_S
    while os.getppid() != order["parent"] and time.monotonic() < until:
        time.sleep(0.001)
    if not bind(order["parent"], order["signal"]):  # the supervisor has died, or is no subreaper
        os._exit(1)
    log = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
    show(order["argv"][1:])
    sys.argv = [celery_command.__file__, *order["argv"][3:]]
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
