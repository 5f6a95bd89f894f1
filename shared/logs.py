"""Log lines: as text, or one JSON object each with the ids of job, node and trace. Control characters are escaped."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, HttpUrl, SecretStr

from shared.settings import Settings
from shared.settings.server_url import with_login
from shared.tracing.spans import current

_ABOUT: ContextVar[Mapping[str, str]] = ContextVar("ramify_log_about", default=MappingProxyType({}))
#: Characters that a terminal obeys or that end a line: C0 and C1, line and paragraph separators, directions of writing.
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
#: Shorter values of secrets are no secrets: they would be found in every word.
_LEAST_SECRET = 6
_PASSWORD = re.compile(r"(?<=://)([^/\s:@]*):([^/\s@]+)@")


@contextmanager
def about(**ids: str) -> Iterator[None]:
    """Log lines of the block are about these; empty ones are left out."""
    token = _ABOUT.set({**_ABOUT.get(), **{name: value for name, value in ids.items() if value}})
    try:
        yield
    finally:
        _ABOUT.reset(token)


def escaped(text: str) -> str:
    """`text` on one line, with control characters as their numbers; tabs stay."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class SafeFormatter(logging.Formatter):
    """Text. What is logged cannot forge a line or move a terminal's cursor, and no secret of the settings is told."""

    def __init__(self, secrets: frozenset[str] = frozenset()) -> None:
        super().__init__(_TEXT)
        self._secrets = sorted(secrets, key=len, reverse=True)

    def hidden(self, text: str) -> str:
        """`text` without secrets."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return _PASSWORD.sub(r"\1:***@", text)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's
        """The line, without a traceback."""
        return escaped(self.hidden(super().formatMessage(record)))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's
        """A traceback: its lines stay lines."""
        return "\n".join(map(escaped, self.hidden(super().formatException(ei)).split("\n")))


class JsonFormatter(SafeFormatter):
    """One JSON object a line: time, level, logger, message; job, node, task, trace and span where they are known."""

    def format(self, record: logging.LogRecord) -> str:
        """See the class."""
        told: dict[str, str] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.processName or "",
            "thread": record.threadName or "",
            **_ABOUT.get(),
        }
        if traceparent := current():
            _, told["trace_id"], told["span_id"], _ = traceparent.split("-")
        if record.exc_info:
            told["exception"] = logging.Formatter.formatException(self, record.exc_info)
        return escaped(json.dumps({name: self.hidden(value) for name, value in told.items()}, ensure_ascii=False))


def secrets_of(model: BaseModel) -> frozenset[str]:
    """All secret values of the settings, and the passwords of their addresses."""
    found = set[str]()
    for name in type(model).model_fields:
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            found |= secrets_of(value)
        elif isinstance(value, SecretStr):
            found.add(value.get_secret_value())
        elif isinstance(value, HttpUrl):
            found.add(HttpUrl(with_login(value)).password or "")
    return frozenset(secret for secret in found if len(secret) >= _LEAST_SECRET)


def formatter(settings: Settings) -> SafeFormatter:
    """The one that `telemetry.logs` names."""
    kind = JsonFormatter if settings.telemetry.logs == "json" else SafeFormatter
    return kind(secrets_of(settings))


def log_to_stderr(settings: Settings | None, level: int | str = logging.INFO) -> None:
    """Let all loggers of this process write there; as text where it has no settings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(settings) if settings else SafeFormatter())
    logging.basicConfig(level=level, handlers=[handler])
