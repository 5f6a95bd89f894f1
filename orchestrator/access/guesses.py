"""Slows down who tries logins: so many wrong ones of an address, then none for the rest of a minute."""

from __future__ import annotations

import time
from ipaddress import IPv6Address, ip_address, ip_network

#: Wrong logins of one address in one window of so many seconds, and addresses that are kept in mind.
GUESSES, WINDOW_S, ADDRESSES = 20, 60.0, 1000


class Guesses:
    """Wrong logins by address; the oldest addresses are forgotten first."""

    def __init__(self) -> None:
        self._windows: dict[str, tuple[float, int]] = {}

    def too_many(self, address: str) -> bool:
        """True until the window of an address with too many ends."""
        return self._of(address)[1] >= GUESSES

    def note(self, address: str) -> None:
        """Count one more; the window begins with the first."""
        began, count = self._of(address)
        self._windows[_network(address)] = (began, count + 1)
        if len(self._windows) > ADDRESSES:
            del self._windows[next(iter(self._windows))]

    def _of(self, address: str) -> tuple[float, int]:
        began, count = self._windows.get(_network(address), (0.0, 0))
        now = time.monotonic()
        if count and now - began < WINDOW_S:
            return began, count
        self._windows.pop(_network(address), None)
        return now, 0


def _network(address: str) -> str:
    """What one guesser has: an address of IPv4, or 2**64 of IPv6."""
    try:
        found = ip_address(address)
    except ValueError:
        return address  # of a socket of Unix: empty
    return str(ip_network(f"{found}/64", strict=False)) if isinstance(found, IPv6Address) else str(found)
