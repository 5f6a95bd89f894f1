"""Bodies of any size, for work that runs in a thread: read as they come, with flat memory."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TypeVar

import anyio
from anyio import from_thread, to_thread
from fastapi import Request

from orchestrator.access.places import Places
from shared.errors import InputError

T = TypeVar("T")
#: Bodies that are read at a time in one process; each holds a thread for as long as its client sends.
_MOST_AT_ONCE = 16
_RETRY_AFTER_S = 5.0
#: Of a compressed body at most this is unpacked at once.
_UNPACKED = 1 << 18
#: Means gzip's header, to zlib.
_GZIP = 16 + zlib.MAX_WBITS


class PulledBody:
    """A body as a binary file of which only `read1` is there, in a thread that anyio has started.

    Each read lets the event loop receive the next part: nothing is buffered, and a reader that is slow slows the client
    down. `most_bytes` is of what is read, unpacked: None is no bound.
    """

    def __init__(self, parts: AsyncIterator[bytes], encoding: str = "", most_bytes: int | None = None) -> None:
        """Raises: InputError for an encoding other than gzip."""
        if encoding.strip().lower() not in {"", "identity", "gzip", "x-gzip"}:
            raise InputError("Content-Encoding", encoding, "send the body as it is, or with gzip")
        self._parts, self._most_bytes = parts, most_bytes
        self._unpack = zlib.decompressobj(_GZIP) if "gzip" in encoding.lower() else None
        self._packed, self._over = b"", False
        #: Bytes that were read, unpacked.
        self.read = 0

    def read1(self, _: int = -1) -> bytes:
        """The next part of the body; nothing at its end.

        Raises: InputError beyond the bound, and for a body that is no gzip; what the framework raises when the client
        goes away.
        """
        part = self._next_unpacked() if self._unpack else self._next_part()
        self.read += len(part)
        if self._most_bytes is not None and self.read > self._most_bytes:
            raise InputError("body", f"{self.read} bytes", f"send at most {self._most_bytes:,} bytes")
        return part

    def read_whole(self) -> bytes:
        """All of it. Raises: as `read1`."""
        return b"".join(iter(self.read1, b""))

    def _next_part(self) -> bytes:
        while not self._over:
            part: bytes | None = from_thread.run(self._receive)
            self._over = part is None
            if part:
                return part
        return b""

    async def _receive(self) -> bytes | None:
        return await anext(self._parts, None)

    def _next_unpacked(self) -> bytes:
        try:
            while True:
                if self._unpack is None or self._unpack.eof:
                    rest = (self._unpack.unused_data if self._unpack else b"") or self._next_part()
                    if not rest:
                        return b""
                    self._unpack, self._packed = zlib.decompressobj(_GZIP), rest  # gzip files may follow each other
                part = self._packed or self._next_part()
                if not part:
                    raise InputError("body", "gzip", "it ends in the middle: send all of it")
                found = self._unpack.decompress(part, _UNPACKED)
                self._packed = self._unpack.unconsumed_tail
                if found:
                    return found
        except zlib.error as error:
            raise InputError(
                "body", "gzip", f"it is no gzip ({error}): leave the header Content-Encoding out"
            ) from None


class BodyReaders:
    """Runs what reads a body in threads of its own, apart from those of the other routes."""

    def __init__(self, most: int = _MOST_AT_ONCE) -> None:
        self._limiter = anyio.CapacityLimiter(most)
        self._places = Places(most, f"{most} bodies are being read: send this one in a moment", _RETRY_AFTER_S)

    async def run(self, request: Request, work: Callable[[PulledBody], T], most_bytes: int | None = None) -> T:
        """`work` on the request's body. Raises: what it raises; TooManyRequestsError; ClientDisconnect."""
        with self._places.take(request.state.caller):
            body = PulledBody(request.stream(), request.headers.get("content-encoding", ""), most_bytes)
            return await to_thread.run_sync(partial(work, body), limiter=self._limiter)
