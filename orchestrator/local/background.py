"""`ramify up -d`: runs the supervisor as a process of its own and returns when the stack is ready."""

from __future__ import annotations

import atexit
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from typing import IO, Any

from orchestrator.local import commands
from orchestrator.local.child_process import importable
from orchestrator.local.state import StackState, log_dir, make_folders, read_state, remove_state, rotate, tail
from shared.connections.process import alive, signal_process, wait_gone
from shared.errors import RamifyError
from shared.models.base import Model
from shared.settings import Settings

#: Redis may take 20 s (120 while it loads its file), the pools 60, a failed start another 20 to clean up.
_READY_S = 220.0
#: Kept, so that a supervisor which outlives us by design is no "subprocess still running" to the garbage collector.
_started: list[subprocess.Popen[bytes]] = []


@atexit.register
def _let_go() -> None:
    for process in _started:
        if process.poll() is None:
            process.returncode = 0


def start(settings: Settings, *, bound: bool = False) -> StackState:
    """Start the stack in the background and return its state when it is ready.

    `bound`: it stops when this process dies (Linux); call from the main thread then. Raises: what `Stack.run` raises;
    RamifyError when the supervisor says nothing in time.
    """
    make_folders(settings)
    log = log_dir(settings) / "supervisor.log"
    rotate(log)
    command = [sys.executable, "-m", "orchestrator.local"]
    if bound:
        binding = [str(os.getpid()), str(int(signal.SIGTERM)), "--"]
        command = [sys.executable, "-m", "orchestrator.local.launcher", *binding, *command]
    with log.open("ab") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, **importable(), **commands.environment(settings)},
            start_new_session=True,
        )
    _started.append(process)
    try:
        answer = _first_line(process, _READY_S)
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
    return StackState.model_validate(answer["state"])


def _first_line(process: subprocess.Popen[bytes], seconds: float) -> dict[str, Any] | None:
    """The JSON object that the supervisor writes when it is ready or has failed; None when it ends or stays silent."""
    pipe: IO[bytes] | None = process.stdout
    if pipe is None:
        return None
    received, until = b"", time.monotonic() + seconds
    with pipe, selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while not received.endswith(b"\n"):
            if not selector.select(max(0.0, until - time.monotonic())):
                return None
            piece = os.read(pipe.fileno(), 65_536)
            if not piece:
                return None
            received += piece
    answer: dict[str, Any] = json.loads(received)
    return answer


# --- `ramify down`: asks the supervisor to stop, and clears what a killed one left. Signals no process but the
# stack's.

#: The supervisor needs at most 10 s for the pools, 10 for Redis, and a few to kill.
_WAIT_S = 40.0
_REDIS_S = 10.0


class Stopped(Model):
    """What `down` found. `was_running`: a supervisor lived; `killed`: what did not stop by itself, by name."""

    was_running: bool
    seconds: float
    killed: tuple[str, ...] = ()


def down(settings: Settings) -> Stopped:
    """Stop the stack of this data folder and wait until it is gone, at most about 50 s. Harmless when nothing runs."""
    began, state = time.monotonic(), read_state(settings)
    if state is None:
        return Stopped(was_running=False, seconds=0.0)
    was_running = signal_process(state.pid, state.mark, signal.SIGTERM)
    killed: list[str] = []
    if was_running and wait_gone([(state.pid, state.mark)], _WAIT_S):
        signal_process(state.pid, state.mark, signal.SIGKILL)
        wait_gone([(state.pid, state.mark)], 5.0)
        killed.append("supervisor")
    killed += _clear(state)
    remove_state(settings)
    return Stopped(was_running=was_running, seconds=time.monotonic() - began, killed=tuple(killed))


def clear_leftovers(settings: Settings) -> list[str]:
    """End the children of a supervisor that was killed; returns their names. Call it with the lock held."""
    state = read_state(settings)
    names = _clear(state) if state else []
    remove_state(settings)
    return names


def _clear(state: StackState) -> list[str]:
    """Workers are killed (their tasks are delivered again), Redis is given time to write its file."""
    left = [child for child in state.children if alive(child.pid, child.mark)]
    for child in left:
        if child.name != "redis":
            signal_process(child.pid, child.mark, signal.SIGKILL, group=True)
    for child in left:
        if child.name == "redis" and signal_process(child.pid, child.mark, signal.SIGTERM):
            wait_gone([(child.pid, child.mark)], _REDIS_S)
            signal_process(child.pid, child.mark, signal.SIGKILL)
    wait_gone([(child.pid, child.mark) for child in left], 5.0)
    return [child.name for child in left]
