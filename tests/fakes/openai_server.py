"""A real HTTP server that speaks the OpenAI protocol, with scripted replies and faults. For tests and hand tests:
`python -m tests.fakes.openai_server --port 0` prints its URL and serves until it is interrupted.
"""

from __future__ import annotations

import argparse
import json
import socket
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.fakes.answers import body_of
from tests.fakes.replies import CutOff, Drip, Fault, Hang, Malformed, Recorded, Reply, Slow, Step

__all__ = ["CutOff", "Drip", "FakeOpenAI", "Fault", "Hang", "Malformed", "Recorded", "Reply", "Slow", "Step"]

_ENDPOINTS = {
    "/v1/chat/completions": "chat",
    "/v1/embeddings": "embeddings",
    "/v1/rerank": "rerank",
    "/v1/predict": "predict",
    "/v1/models": "models",
}
#: What stands in for the default answer of an endpoint: the request's body in, a step or a chat text out.
Handler = Callable[[dict[str, Any]], Step | str]


class FakeOpenAI:
    """`with FakeOpenAI() as server:` then ask at `server.url`, which ends in /v1.

    Steps given to `script` are used up first, one a request and endpoint; after them the handler given to `handle`,
    or the answers of tests/fakes/answers.py. With `api_key`, requests without it get 401.
    """

    def __init__(self, port: int = 0, api_key: str = "") -> None:
        self._api_key = api_key
        self._lock = threading.Lock()
        self._steps: dict[str, deque[Step]] = defaultdict(deque)
        self._handlers: dict[str, Handler] = {}
        self._requests: list[Recorded] = []
        self._server = _Server(self, port)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def url(self) -> str:
        """The base URL, as settings want it."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def connections(self) -> int:
        """TCP connections accepted so far."""
        return self._server.accepted

    def script(self, endpoint: str, *steps: Step | str) -> None:
        """Queue steps for chat, embeddings, rerank or models; a plain string is a chat reply."""
        with self._lock:
            self._steps[endpoint].extend(Reply(step) if isinstance(step, str) else step for step in steps)

    def handle(self, endpoint: str, handler: Handler) -> None:
        """Answer what is not scripted with `handler`, which may be called by several threads at once."""
        with self._lock:
            self._handlers[endpoint] = handler

    def forget(self) -> None:
        """Drop the steps that nobody used up, and the handlers."""
        with self._lock:
            self._steps.clear()
            self._handlers.clear()

    def requests(self, endpoint: str = "chat") -> list[Recorded]:
        """The requests to `endpoint` so far, in order of arrival."""
        with self._lock:
            return [request for request in self._requests if request.endpoint == endpoint]

    def prompts(self) -> list[str]:
        """The last message of each chat request."""
        return [request.body["messages"][-1]["content"] for request in self.requests("chat")]

    def close(self) -> None:
        """Stop at once: waits, drips and idle connections end too."""
        self._server.closing.set()
        self._server.shutdown()
        self._server.drop_connections()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def take(self, request: Recorded) -> Step:
        """Record the request and choose what is done with it."""
        with self._lock:
            self._requests.append(request)
            if self._api_key and request.headers.get("authorization") != f"Bearer {self._api_key}":
                return Fault(401, code="invalid_api_key")
            steps = self._steps[request.endpoint]
            if steps:
                return steps.popleft()
            handler = self._handlers.get(request.endpoint)
        step = handler(request.body) if handler else Reply()
        return Reply(step) if isinstance(step, str) else step


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # server_close then joins them, and no socket is left to the garbage collector
    request_queue_size = 128

    def __init__(self, fake: FakeOpenAI, port: int) -> None:
        self.fake, self.closing, self.accepted = fake, threading.Event(), 0
        self._open: set[socket.socket] = set()
        self._open_lock = threading.Lock()
        super().__init__(("127.0.0.1", port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._open_lock:
            self.accepted += 1
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._open_lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def drop_connections(self) -> None:
        with self._open_lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # gone already

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that give up are what many tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"  # connections are kept
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        """Tests print nothing."""

    def _answer(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        endpoint = _ENDPOINTS.get(self.path.split("?")[0])
        if endpoint is None:
            self._refuse(Fault(404, code="not_found"))
            return
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = None
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Recorded(endpoint, headers, body if isinstance(body, dict) else {})
        self._do(self.server.fake.take(request), request)

    def _do(self, step: Step, request: Recorded) -> None:
        while isinstance(step, Slow):
            self.server.closing.wait(step.seconds)
            step = step.then
        if isinstance(step, Hang):
            self.server.closing.wait(step.seconds)
            self.close_connection = True
        elif isinstance(step, Fault):
            self._refuse(step)
        elif isinstance(step, Malformed):
            self._send(HTTPStatus.OK, step.raw)
        else:
            self._reply(step, request)

    def _reply(self, step: Reply | Drip | CutOff, request: Recorded) -> None:
        reply = step if isinstance(step, Reply) else step.then if isinstance(step, Drip) else Reply()
        try:
            raw = json.dumps(body_of(reply, request)).encode()
        except (KeyError, TypeError, IndexError) as error:
            self._refuse(Fault(400, code="invalid_request", message=f"bad or missing {error}"))
            return
        if isinstance(step, CutOff):
            self._send(HTTPStatus.OK, raw[: step.after], promised=len(raw))
            self.close_connection = True
        elif isinstance(step, Drip):
            self._drip(step, raw)
        else:
            self._send(HTTPStatus.OK, raw)

    def _refuse(self, fault: Fault) -> None:
        body = {"error": {"message": fault.message, "code": fault.code, "param": fault.param, "type": "fake"}}
        self._send(fault.status, json.dumps(body).encode(), retry_after=fault.retry_after)

    def _send(self, status: int, raw: bytes, *, promised: int | None = None, retry_after: object = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw) if promised is None else promised))
        if retry_after is not None:
            self.send_header("Retry-After", str(retry_after))
        self.end_headers()
        self.wfile.write(raw)

    def _drip(self, drip: Drip, raw: bytes) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n".encode()
        if not drip.headers:
            self.wfile.write(head)
            head = b""
        whole = head + raw
        for start in range(0, len(whole), drip.size):
            self.wfile.write(whole[start : start + drip.size])
            if self.server.closing.wait(drip.pause_s):
                break


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="A fake OpenAI-protocol server.")
    parser.add_argument("--port", type=int, default=0, help="0 = a free one")
    parser.add_argument("--api-key", default="", help="ask for this bearer token")
    options = parser.parse_args()
    with FakeOpenAI(options.port, options.api_key) as server:
        print(server.url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print("stopped")


if __name__ == "__main__":
    main()
