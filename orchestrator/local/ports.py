"""Finds a port of this machine to listen on. A free port may be taken a moment later: callers retry, or listen."""

from __future__ import annotations

import errno
import socket

from shared.errors import InputError

#: The ports of HTTP and of Flower where none are asked for.
SERVER_PORT, FLOWER_PORT = 8321, 5555
_TRIES, _WAITING = 5, 1024


def free_port(host: str, port: int = 0) -> int | None:
    """`port` (0: any that the system gives) if it can be bound on `host` now, else None.

    Raises: OSError when `host` is no address of this machine.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: TIME_WAIT is no obstacle
        try:
            probe.bind(address)
        except OSError as error:
            if error.errno in {errno.EADDRINUSE, errno.EACCES}:  # taken, or kept for root
                return None
            raise
        return int(probe.getsockname()[1])


def listen(setting: str, host: str, wanted: int, usual: int) -> socket.socket:
    """A socket that listens on the port that `pick` gives: connections wait in it for whoever will answer them.

    Raises: InputError, as `pick`.
    """
    for _ in range(_TRIES):
        port = pick(setting, host, wanted, usual)
        family, _, _, _, _ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        try:
            made = socket.create_server((host, port), family=family, backlog=_WAITING)
        except OSError:  # taken since
            continue
        # Of a socket whose protocol is not known, asyncio leaves Nagle's algorithm on: 40 ms for each response.
        return socket.socket(fileno=made.detach())
    raise InputError(setting, wanted, f"no port of {host} stayed free: choose another")


def pick(setting: str, host: str, wanted: int, usual: int) -> int:
    """The wanted port; without one (0), the usual port or else any free one.

    Raises: InputError naming `setting` when the wanted port is taken or the host is not this machine's.
    """
    try:
        port = free_port(host, wanted) if wanted else free_port(host, usual) or free_port(host)
    except OSError as error:
        name = f"{setting.split('.', maxsplit=1)[0]}.host"
        raise InputError(name, host, f"give an address of this machine ({error.strerror})") from None
    if port is None:
        raise InputError(setting, wanted, f"it is taken on {host}: free it, choose another, or 0 for any")
    return port
