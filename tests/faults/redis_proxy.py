"""A TCP proxy on loopback that treats the connections through it badly, the way networks do."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

_CHUNK = 65_536


@dataclass(eq=False)
class Link:
    """One connection through the proxy. `mute`: the bytes of both sides are thrown away, and nobody is told."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    mute: bool = False


class Proxy:
    """Listens on `port` and passes bytes to `target`; its methods may be called from any thread."""

    def __init__(self, target: int, tls: ssl.SSLContext | None = None) -> None:
        """With `tls` it speaks that to its clients, as a Redis with a certificate does."""
        self.target, self.port, self._tls = target, 0, tls
        self.links: set[Link] = set()
        self.delay_s = 0.0
        self.refusing = False
        self._swallow: tuple[bytes, int] | None = None
        self.swallowed = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    # -- what networks do ----------------------------------------------------------------------------------------

    def cut(self) -> int:
        """Reset all connections (RST); how many there were."""
        return self._each(lambda link: (_reset(link.client), _reset(link.server)))

    def half_close(self) -> int:
        """End the direction from the server to the client: the client reads the end, and may still write."""
        return self._each(lambda link: link.client.write_eof())

    def mute(self) -> int:
        """Let all connections stand, half-open: what is sent on them from now on arrives nowhere."""
        return self._each(lambda link: setattr(link, "mute", True))

    def swallow(self, request: bytes, times: int) -> None:
        """Pass on the next `times` requests that hold `request`, and cut their connection instead of the reply."""
        self._swallow = (request, times)

    # -- the machinery -------------------------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _call(self, what: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(10)

    def _each(self, what: Callable[[Link], object]) -> int:
        async def all_of_them() -> int:
            links = list(self.links)
            for link in links:
                with suppress(OSError, RuntimeError):
                    what(link)
            return len(links)

        return int(self._call(all_of_them()))

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def _close(self) -> None:
        self._server.close()
        for link in list(self.links):
            _reset(link.client)
            _reset(link.server)
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            return _reset(writer)
        try:
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            return _reset(writer)
        link = Link(writer, to_server)
        self.links.add(link)
        try:
            ways = (self._pump(reader, to_server, link, asks=True), self._pump(from_server, writer, link, asks=False))
            await asyncio.gather(*ways)
        except asyncio.CancelledError:
            pass  # the proxy ends
        finally:
            self.links.discard(link)
            _reset(writer)
            _reset(to_server)
        return None

    async def _pump(self, source: asyncio.StreamReader, to: asyncio.StreamWriter, link: Link, *, asks: bool) -> None:
        with suppress(OSError, RuntimeError):  # RuntimeError: that direction was half-closed
            while data := await source.read(_CHUNK):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                if link.mute:
                    continue
                to.write(data)
                await to.drain()
                if asks and self._swallow and self._swallow[0] in data:
                    await self._lose_reply(link)
            if link.mute:
                await asyncio.Event().wait()  # the other side is not told that this one has ended either
        if not to.is_closing():
            with suppress(OSError, RuntimeError):
                to.write_eof()

    async def _lose_reply(self, link: Link) -> None:
        assert self._swallow
        what, times = self._swallow
        self._swallow = (what, times - 1) if times > 1 else None
        self.swallowed += 1
        _reset(link.client)
        await asyncio.sleep(0.05)  # the server has read the request by now
        link.server.close()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close without a farewell, so that the other side reads ECONNRESET."""
    sock = writer.get_extra_info("socket")
    if sock is not None:
        with suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if writer.transport:
        writer.transport.abort()
