"""A loopback server that answers every request with the same bytes, whatever they are."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self

_WAIT_S = 2.0


class RawServer:
    """`with RawServer() as server:` then set `server.answer`. It closes when it has answered, or lets the peer wait."""

    def __init__(self) -> None:
        self.answer, self.lingers = b"", False
        self.asked = b""  # the head of the last request
        self._ending = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._socket.settimeout(0.05)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The base URL, as settings want it."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while not self._ending.is_set():
            with suppress(TimeoutError):
                connection, _ = self._socket.accept()
                with connection, suppress(OSError):
                    self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        connection.settimeout(_WAIT_S)
        head, _, body = b"", b"", b""
        while b"\r\n\r\n" not in head:
            piece = connection.recv(65_536)
            if not piece:
                return
            head += piece
        head, _, body = head.partition(b"\r\n\r\n")
        self.asked = head
        length = next(
            (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
        )
        while len(body) < length and (piece := connection.recv(65_536)):
            body += piece
        connection.sendall(self.answer)
        connection.shutdown(socket.SHUT_WR)
        if self.lingers:
            with suppress(TimeoutError):
                connection.recv(1)
