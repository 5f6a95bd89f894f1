"""`ramify down`: asks the supervisor to stop, and clears what a killed one left. Signals no process but the stack's."""

from __future__ import annotations

import signal
import time

from orchestrator.local.state import StackState, read_state, remove_state
from shared.models.base import Model
from shared.process import alive, signal_process, wait_gone
from shared.settings import Settings

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
