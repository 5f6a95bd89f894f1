"""A collector that takes OTLP over HTTP and keeps the spans, decoded from protobuf."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class ReceivedSpan:
    """One span, ids as hex."""

    name: str
    service: str
    trace_id: str
    span_id: str
    parent_id: str
    failed: bool
    seconds: float
    attributes: dict[str, Any]
    links: tuple[str, ...]


@dataclass
class OtlpReceiver:
    """Listens on loopback. `headers`: of every request."""

    spans: list[ReceivedSpan] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def __enter__(self) -> Self:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["content-length"]))
                receiver.headers.append({"path": self.path, **{k.lower(): v for k, v in self.headers.items()}})
                receiver.take(gzip.decompress(raw) if self.headers["content-encoding"] == "gzip" else raw)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, raw: bytes) -> None:
        """Keep the spans of a request."""
        for of_resource in ExportTraceServiceRequest.FromString(raw).resource_spans:
            resource = _plain(of_resource.resource.attributes)
            for of_scope in of_resource.scope_spans:
                for one in of_scope.spans:
                    self.spans.append(
                        ReceivedSpan(
                            one.name, resource["service.name"], one.trace_id.hex(), one.span_id.hex(),
                            one.parent_span_id.hex(), one.status.code == 2,
                            (one.end_time_unix_nano - one.start_time_unix_nano) / 1e9, _plain(one.attributes),
                            tuple(link.span_id.hex() for link in one.links),
                        )
                    )  # fmt: skip

    def of_job(self, job_id: str) -> list[ReceivedSpan]:
        """All spans of the trace of a job."""
        traces = {span.trace_id for span in self.spans if span.attributes.get("ramify.job_id") == job_id}
        return [span for span in self.spans if span.trace_id in traces]


def _plain(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}
