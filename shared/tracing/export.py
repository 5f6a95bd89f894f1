"""Spans over OTLP by HTTP. A collector that is away costs its spans alone: the queue is bounded, so is every wait."""

from __future__ import annotations

import atexit
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, StatusCode, TraceFlags

from shared.settings.server_url import with_login
from shared.settings.telemetry import TelemetrySettings
from shared.tracing.protocols import Attribute, Kind

_log = logging.getLogger("ramify.tracing")
#: Spans that wait to be sent: more are dropped. How often they are sent, and for how long one request is tried (s).
_MOST_WAITING, _EVERY_S, _REQUEST_S = 4096, 1.0, 3.0
#: Seconds that the end of a process waits for its last spans.
_END_S = 2.0


class OtlpTracer:
    """Makes spans and sends them, on a thread of its own."""

    def __init__(self, settings: TelemetrySettings, service: str) -> None:
        self._content = settings.content
        for name in ("opentelemetry.sdk", "opentelemetry.exporter"):  # a line for every batch; ours are told once
            logging.getLogger(name).setLevel(logging.CRITICAL)
        url = with_login(settings.otlp_url).rstrip("/")
        pairs = (one.partition("=") for one in settings.otlp_headers.get_secret_value().split(",") if one.strip())
        sender = OTLPSpanExporter(
            endpoint=f"{url}/v1/traces",
            headers={name.strip().lower(): value.strip() for name, _, value in pairs},
            timeout=_REQUEST_S,
            compression=Compression.Gzip,
        )
        self._exporter = _BoundedExporter(sender, str(settings.otlp_url))
        self._provider = TracerProvider(
            resource=Resource.create({"service.name": service}),
            sampler=ParentBased(TraceIdRatioBased(settings.sample)),
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(
            BatchSpanProcessor(
                self._exporter, max_queue_size=_MOST_WAITING, schedule_delay_millis=1000 * _EVERY_S,
                max_export_batch_size=512,
            )
        )  # fmt: skip
        self._tracer = self._provider.get_tracer("ramify")
        atexit.register(self.close)

    @contextmanager
    def start(
        self, name: str, kind: Kind, parent: str | None, links: Sequence[str], attributes: Mapping[str, Attribute]
    ) -> Iterator[OtelSpan]:
        """See `Tracer.start`."""
        context = Context() if parent is None else None
        if parent:
            context = trace.set_span_in_context(NonRecordingSpan(_context(parent)), Context())
        started = self._tracer.start_span(
            name, context, SpanKind[kind.upper()], attributes, [Link(_context(link)) for link in links]
        )
        with trace.use_span(started, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            yield OtelSpan(started, content=self._content)

    def close(self) -> None:
        """Send what waits, for two seconds at most."""
        self._exporter.end_by = time.monotonic() + _END_S
        self._provider.shutdown()


class OtelSpan:
    """One of OpenTelemetry's, see `TraceSpan`."""

    def __init__(self, span: trace.Span, *, content: bool) -> None:
        self._span, self._content = span, content
        found = span.get_span_context()
        self.traceparent = f"00-{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags:02x}"

    def set(self, **attributes: Attribute) -> None:
        """Add attributes."""
        for name, value in attributes.items():
            self._span.set_attribute(name.replace("__", "."), value)

    def fail(self, error: str, detail: str = "") -> None:
        """Note that it failed."""
        self._span.set_attribute("error.type", error)
        self._span.set_status(StatusCode.ERROR, detail if self._content else None)


class _BoundedExporter(SpanExporter):
    """Sends no more when the process is to end, and tells of an outage once."""

    def __init__(self, inner: Any, url: str) -> None:
        self._inner, self._url = inner, url
        self.end_by = float("inf")
        self._failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch, or drop it."""
        if time.monotonic() >= self.end_by:
            return SpanExportResult.FAILURE
        result: SpanExportResult = self._inner.export(spans)
        failed = result is not SpanExportResult.SUCCESS
        if failed != self._failing:
            if failed:
                _log.warning("traces cannot be sent to %s: they are dropped until it answers", self._url)
            else:
                _log.info("traces are sent to %s again", self._url)
        self._failing = failed
        return result

    def shutdown(self) -> None:
        """Close the connections."""
        self._inner.shutdown()


def _context(traceparent: str) -> SpanContext:
    _, trace_id, span_id, flags = traceparent.split("-")
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16)))
