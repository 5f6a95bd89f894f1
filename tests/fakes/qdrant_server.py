"""A real HTTP server that answers as a Qdrant server does to searches, and with each fault that one can show."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

POINT = {"id": "6b1e5a4e-5f0c-4b43-9a5e-0d6f3f7f8d11", "version": 1, "score": 0.5}
CHUNK = {"doc_id": "d", "path": "p.md", "title": "标题", "text": "正文", "day": 739_747, "document_hash": "h"}


class Answer(NamedTuple):
    """`body` as JSON, or bytes as they are; `cut` after so many bytes; `slow` seconds before it."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] | None = None
    cut: int | None = None
    slow: float = 0


def good(path: str) -> dict[str, Any]:
    """What Qdrant says when all is well."""
    points = [{**POINT, "payload": CHUNK, "vector": {"dense": [0.6, 0.8]}}]
    result: Any = {"operation_id": 1, "status": "completed"}
    for ending, answer in {
        "/query/batch": [{"points": points}],
        "/exists": {"exists": True},
        "/count": {"count": 1},
    }.items():
        result = answer if path.split("?", maxsplit=1)[0].endswith(ending) else result
    return {"result": result, "status": "ok", "time": 0.001}


@dataclass
class FakeQdrant:
    """`with FakeQdrant() as server:`; answers in `script` go first, then `always`, or what a good server says."""

    script: deque[Answer] = field(default_factory=deque)
    always: Answer | None = None
    seen: list[tuple[float, str, str]] = field(default_factory=list)  # time, method, path
    bodies: list[Any] = field(default_factory=list)
    url: str = ""

    def __enter__(self) -> Self:
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, self._closing))
        self._server.daemon_threads = False
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, method: str, path: str) -> Answer:
        self.seen.append((time.monotonic(), method, path))
        if self.script:
            return self.script.popleft()
        return self.always or Answer(body=good(path))


def _handler(fake: FakeQdrant, closing: threading.Event) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            fake.bodies.append(json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"null"))
            answer = fake.take(self.command, self.path)
            closing.wait(answer.slow)
            raw = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", **(answer.headers or {})}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw if answer.cut is None else raw[: answer.cut])

        do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815 - the base class's names

        def log_message(self, *_: object) -> None:
            """Tests print nothing."""

    return Handler
