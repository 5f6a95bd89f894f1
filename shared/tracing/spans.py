"""Spans: one trace a job, from its submission over every task to the calls of servers. Knows no OpenTelemetry.

Where a span begins is said by a W3C `traceparent`, carried in the message of a task and in the hash of its job.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from threading import Lock
from typing import NamedTuple

from shared.errors import RamifyError
from shared.settings import Settings
from shared.settings.telemetry import TelemetrySettings
from shared.tracing.protocols import Attribute, Kind, Tracer, TraceSpan

_TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


class _NoSpan:
    """Stands for every span while nothing is traced."""

    traceparent = ""

    def set(self, **attributes: Attribute) -> None: ...

    def fail(self, error: str, detail: str = "") -> None: ...


class _Current(NamedTuple):
    """The span of this context, and the job that it is of."""

    traceparent: str = ""
    job_id: str = ""


NO_SPAN: TraceSpan = _NoSpan()
_NOTHING = _Current()
_CURRENT: ContextVar[_Current] = ContextVar("ramify_span", default=_NOTHING)
_LINKS: ContextVar[tuple[str, ...]] = ContextVar("ramify_span_links", default=())
_lock = Lock()


class _Own:
    """What this process traces with. The tracer has a thread: it is made at its first span, behind every fork."""

    settings: TelemetrySettings | None = None
    service = "ramify"
    tracer: Tracer | None = None
    pid = 0


def configure(settings: Settings) -> None:
    """Trace as these settings say, from the next span on. Raises: RamifyError when OpenTelemetry is not installed."""
    wanted = settings.telemetry if settings.telemetry.otlp_url else None
    if wanted and find_spec("opentelemetry.exporter") is None:
        raise RamifyError("telemetry.otlp_url needs OpenTelemetry: `pip install 'ramify[telemetry]'` adds it")
    with _lock:
        if wanted != _Own.settings:
            _Own.settings, _Own.tracer = wanted, None


def name_service(name: str) -> None:
    """The name of this process in traces, such as `ramify-search`; to be given before its first span."""
    _Own.service = name


def _tracer() -> Tracer | None:
    if _Own.settings is None:
        return None
    if _Own.tracer is None or _Own.pid != os.getpid():
        from shared.tracing.export import OtlpTracer  # noqa: PLC0415 - loads OpenTelemetry, which may not be installed

        with _lock:
            if _Own.settings is not None and (_Own.tracer is None or _Own.pid != os.getpid()):
                _Own.tracer, _Own.pid = OtlpTracer(_Own.settings, _Own.service), os.getpid()
    return _Own.tracer


@contextmanager
def span(  # noqa: PLR0913 - named options
    name: str,
    kind: Kind = "internal",
    *,
    parent: str | None = "",
    job_id: str = "",
    links: Sequence[str] = (),
    attributes: Mapping[str, Attribute] | None = None,
) -> Iterator[TraceSpan]:
    """A span for the block, `NO_SPAN` while nothing is traced. An exception that leaves the block fails it.

    `job_id`: messages that the block sends for this job carry it on. `links`: traceparents of others that it serves.
    """
    tracer = _tracer()
    if tracer is None:
        yield NO_SPAN
        return
    links = [link for link in (*links, *_LINKS.get()) if link]
    with tracer.start(name, kind, parent, links, attributes or {}) as started:
        token = _CURRENT.set(_Current(started.traceparent, job_id or _CURRENT.get().job_id))
        try:
            yield started
        except BaseException as error:
            started.fail(type(error).__name__, str(error))
            raise
        finally:
            _CURRENT.reset(token)


def current() -> str:
    """The traceparent of the span around; empty where nothing is traced."""
    return _CURRENT.get().traceparent


def carried(job_id: str) -> str | None:
    """What a message for a job carries: the span around where it is that job's, and never that of another one."""
    found = _CURRENT.get()
    return found.traceparent if found.traceparent and found.job_id == job_id else None


def submitted(job_id: str) -> str | None:
    """What the hash of a new job carries: the span around where it submits this job alone, else one of the job's own.

    One of its own begins a trace, with a link to the span around: many jobs of one batch are no one trace.
    """
    if _Own.settings is None:
        return None
    if (found := carried(job_id)) is not None:
        return found
    with span("submit", "producer", parent=None, job_id=job_id, links=[current()], attributes=of_job(job_id)) as own:
        return own.traceparent


def of_job(job_id: str, **more: Attribute | None) -> dict[str, Attribute]:
    """The attributes of a span of a job."""
    told = {f"ramify.{name}": value for name, value in more.items() if value is not None}
    return {"ramify.job_id": job_id, **told}


@contextmanager
def linked(traceparents: Sequence[str]) -> Iterator[None]:
    """Spans inside serve these, too."""
    token = _LINKS.set((*_LINKS.get(), *filter(None, traceparents)))
    try:
        yield
    finally:
        _LINKS.reset(token)


def parent_of(job_id: str, *told: str | None) -> str:
    """Where a task of a job goes on: the first of these that is a traceparent, else a place that all its tasks know.

    So a job that was submitted by a process that traces nothing has one trace as well.
    """
    if _Own.settings is None:
        return ""
    given = next((one for one in told if one and _TRACEPARENT.fullmatch(one)), "")
    return given or _known(job_id, _Own.settings.sample)


def _known(job_id: str, sample: float) -> str:
    digest = hashlib.sha256(job_id.encode()).digest()
    sampled = int.from_bytes(digest[8:16], "big") < sample * 2**64
    return f"00-{digest[:16].hex()}-{digest[16:24].hex()}-{int(sampled):02x}"


def valid(traceparent: str) -> str:
    """A traceparent that came from outside; empty for what is none."""
    return traceparent if _TRACEPARENT.fullmatch(traceparent) else ""


def contents(**texts: str) -> dict[str, Attribute]:
    """Attributes that hold texts of users; none unless `telemetry.content` says so."""
    wanted = _Own.settings is not None and _Own.settings.content
    return {f"ramify.{name}": text for name, text in texts.items()} if wanted else {}
