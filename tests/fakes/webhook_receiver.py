"""A receiver of webhooks on loopback, that takes, fails, hangs, redirects and dribbles as it is told to."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class Received:
    """One POST, with its headers in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    def json(self) -> Any:
        return json.loads(self.body)


class WebhookReceiver:
    """`statuses`: what it answers, one after another, the last one for ever; "hang" and "dribble" never end."""

    def __init__(self, *statuses: int | str) -> None:
        self.statuses: list[int | str] = list(statuses or (204,))
        self.headers: dict[str, str] = {}
        self.received: list[Received] = []
        self.ended = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?of=test"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.received.append(Received(self.path, headers, body))
                status = receiver.statuses[0] if len(receiver.statuses) == 1 else receiver.statuses.pop(0)
                if isinstance(status, str):
                    self._never(status)
                    return
                self.send_response(status)
                for name, value in receiver.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def _never(self, how: str) -> None:
                while how == "dribble" and not receiver.ended.wait(0.05):
                    self.wfile.write(b"H")
                receiver.ended.wait(30)

            def log_message(self, *_: object) -> None: ...

        return Handler
