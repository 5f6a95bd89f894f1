"""Launcher: `python -m orchestrator.local.launcher PARENT SIGNAL -- COMMAND...` becomes COMMAND, bound to its parent.

When the parent dies, however it dies, the kernel sends SIGNAL (Linux; elsewhere the next `ramify up` or `down` clears
what is left). Done here, between fork and exec, because `preexec_fn` is unsafe in a program with threads. Imports
nothing of the project: it must start at once.
"""

from __future__ import annotations

import ctypes
import os
import sys

_PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> None:
    """Bind to the parent, then become the command. Never returns."""
    parent, signum, command = int(argv[0]), int(argv[1]), argv[3:]
    if not bind(parent, signum):
        sys.exit(1)
    try:
        os.execvp(command[0], command)  # noqa: S606 - no shell is wanted
    except OSError as error:
        sys.exit(f"{command[0]} cannot be started: {error.strerror}")


def bind(parent: int, signum: int) -> bool:
    """Let this process get the signal when its parent dies. False when the parent is another one: it has died."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signum, 0, 0, 0)
    return os.getppid() == parent


if __name__ == "__main__":
    main(sys.argv[1:])
