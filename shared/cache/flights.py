"""Single flight among the threads of one process: one thread asks Redis and computes, the others wait for it."""

from __future__ import annotations

import time
from threading import Event, Lock

from pydantic import BaseModel


class Flight:
    """One value on its way."""

    def __init__(self) -> None:
        self.opened = time.monotonic()
        self._landed = Event()
        self.value: BaseModel | None = None

    def wait(self, timeout_s: float) -> bool:
        """True when the flight has landed within `timeout_s`; its value is None when its leader failed."""
        return self._landed.wait(max(0.0, timeout_s))

    def land(self, value: BaseModel | None) -> None:
        """Let the followers go."""
        self.value = value
        self._landed.set()


class Flights:
    """All flights of one process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._open: dict[str, Flight] = {}

    def join(self, name: str, longest_s: float) -> tuple[Flight, bool]:
        """The flight of that name, and True for whoever opened it: that thread must land it, whatever happens.

        A flight older than `longest_s` seconds is given up and a new one opened: its leader hangs.
        """
        with self._lock:
            flight = self._open.get(name)
            if flight is not None and time.monotonic() - flight.opened <= longest_s:
                return flight, False
            self._open[name] = flight = Flight()
            return flight, True

    def land(self, name: str, flight: Flight, value: BaseModel | None) -> None:
        """End a flight that this thread opened; None when it failed, and a follower may open the next one."""
        with self._lock:
            if self._open.get(name) is flight:
                del self._open[name]
        flight.land(value)
