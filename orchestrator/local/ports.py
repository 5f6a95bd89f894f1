"""Finds a port of this machine to listen on. A free port may be gone a moment later: callers retry."""

from __future__ import annotations

import errno
import socket

from shared.errors import InputError


def is_free(host: str, port: int) -> bool:
    """True when `port` can be bound on `host` now. Raises: OSError when `host` is no address of this machine."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: TIME_WAIT is no obstacle
        try:
            probe.bind(address)
        except OSError as error:
            if error.errno in {errno.EADDRINUSE, errno.EACCES}:  # taken, or kept for root
                return False
            raise
    return True


def pick(setting: str, host: str, wanted: int, usual: int) -> int:
    """The wanted port; without one (0), the usual port or else any free one.

    Raises: InputError naming `setting` when the wanted port is taken or the host is not this machine's.
    """
    try:
        if wanted:
            if not is_free(host, wanted):
                raise InputError(setting, wanted, f"it is taken on {host}: free it, choose another, or 0 for any")
            return wanted
        return usual if is_free(host, usual) else any_free(host)
    except OSError as error:
        name = f"{setting.split('.', maxsplit=1)[0]}.host"
        raise InputError(name, host, f"give an address of this machine ({error.strerror})") from None


def any_free(host: str) -> int:
    """A port that the system gives."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.bind(address)
        return int(probe.getsockname()[1])
