"""`ramify up -d` and `ramify down`: start the supervisor as a process of its own, and stop it.

Signals only processes of the stack.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from typing import Any

from orchestrator.local import commands
from orchestrator.local.child_process import importable, launcher
from orchestrator.local.state import StackState, log_dir, make_folders, read_state, remove_state, rotate, tail
from shared.connections.process import alive, signal_process, wait_gone
from shared.errors import RamifyError
from shared.models.base import Model
from shared.settings import Settings

#: Redis may take 20 s (120 while it loads its file), the pools 60, a failed start another 20 to clean up.
_READY_S = 220.0
#: The supervisor needs at most 10 s for the pools, 10 for Redis, and a few to kill.
_STOP_S = 40.0
_REDIS_STOP_S = 10.0


class Stopped(Model):
    """What `down` found. `was_running`: a supervisor lived; `killed`: what did not stop by itself, by name."""

    was_running: bool
    seconds: float
    killed: tuple[str, ...] = ()


def start(settings: Settings, *, bound: bool = False) -> StackState:
    """Start the stack in the background and return its state when it is ready.

    `bound`: it stops when this process dies (Linux); call from the main thread then. Raises: what `Stack.run` raises;
    RamifyError when the supervisor says nothing in time.
    """
    make_folders(settings)
    log = rotate(log_dir(settings) / "supervisor.log")
    command = (*(launcher(signal.SIGTERM) if bound else ()), sys.executable, "-m", "orchestrator.local")
    with log.open("ab") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, **importable(), **commands.environment(settings)},
            start_new_session=True,
        )
    try:
        answer = _answer(process, _READY_S)
    except BaseException:  # also Ctrl-C: who gives up waiting does not want it either
        process.terminate()
        raise
    if answer is None:
        process.terminate()
        raise RamifyError(f"the supervisor did not start; the end of {log}:\n{tail(log)}")
    if "error" in answer:
        process.wait(timeout=60)
        failure = RamifyError(answer["error"])
        failure.exit_code = int(answer["exit_code"])
        raise failure
    process.returncode = 0  # it outlives this process by design: no ResourceWarning when the object is collected
    return StackState.model_validate(answer["state"])


def _answer(process: subprocess.Popen[bytes], seconds: float) -> dict[str, Any] | None:
    """The JSON line that the supervisor writes when it is ready or has failed; None when it ends or stays silent."""
    if process.stdout is None:
        return None
    with process.stdout as pipe:
        written = select.select([pipe], [], [], seconds)[0]
        line = pipe.readline() if written else b""
    return dict(json.loads(line)) if line.endswith(b"\n") else None


def down(settings: Settings) -> Stopped:
    """Stop the stack of this data folder and wait until it is gone, at most about 50 s. Harmless when nothing runs."""
    began, state = time.monotonic(), read_state(settings)
    if state is None:
        return Stopped(was_running=False, seconds=0.0)
    supervisor = (state.pid, state.mark)
    was_running, killed = signal_process(*supervisor, signal.SIGTERM), []
    if was_running and wait_gone([supervisor], _STOP_S):
        signal_process(*supervisor, signal.SIGKILL)
        wait_gone([supervisor], 5.0)
        killed.append("supervisor")
    killed += clear_leftovers(settings, state)
    return Stopped(was_running=was_running, seconds=time.monotonic() - began, killed=tuple(killed))


def clear_leftovers(settings: Settings, state: StackState | None = None) -> list[str]:
    """End the children of a supervisor that is gone; returns their names. Call it when no supervisor runs.

    Workers are killed (their tasks are delivered again); Redis gets 10 s to write its file. `state`: None reads it.
    """
    state = state or read_state(settings)
    left = [child for child in state.children if alive(child.pid, child.mark)] if state else []
    for child in left:
        if child.name != "redis":
            signal_process(child.pid, child.mark, signal.SIGKILL, group=True)
    for child in left:
        if child.name == "redis" and signal_process(child.pid, child.mark, signal.SIGTERM):
            wait_gone([(child.pid, child.mark)], _REDIS_STOP_S)
            signal_process(child.pid, child.mark, signal.SIGKILL)
    wait_gone([(child.pid, child.mark) for child in left], 5.0)
    remove_state(settings)
    return [child.name for child in left]
