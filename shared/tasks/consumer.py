"""Celery's consumer of a worker, for 5.7: what it cannot run is set aside, and never printed.

Celery logs the whole body of a message of an unknown task, and lets an error while it looks at headers end the worker.
Over RabbitMQ it declares 28 queues for messages with a countdown, which Ramify has none of.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

from celery.worker import consumer
from celery.worker.control import Panel
from kombu import Message
from redis.exceptions import RedisError, ResponseError

from shared.connections.connect import connect
from shared.connections.quarantine import Quarantine
from shared.tasks.app import settings_of
from shared.tasks.message_faults import COMMANDS, read_task
from shared.tasks.redis_transport import Channel, SentinelChannel

#: Seconds before a worker connects again to a Redis that has refused a command.
_PAUSE_S = 1.0
#: Seconds between two tries to reach a broker that is away, at most.
_RECONNECT_S = 5.0
#: Seconds that events of tasks are collected for before they are published, if there are not 24 of them before.
_EVENTS_S = 0.5
_BLUEPRINT: Any = consumer.Consumer.Blueprint
_log = logging.getLogger(__name__)


class QuarantiningConsumer(consumer.Consumer):
    """Named by the setting `worker_consumer`."""

    class Blueprint(_BLUEPRINT):  # type: ignore[misc]  # Celery's types know only its name
        """Without Celery's queues for delayed messages."""

        default_steps = [step for step in _BLUEPRINT.default_steps if "delayed" not in step]  # noqa: RUF012 - Celery's

    connection_errors: Any
    hub: Any
    _flush_due = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in {*Panel.data} - COMMANDS:  # over RabbitMQ nothing else looks at them before Celery does
            del Panel.data[name]

    def on_send_event_buffered(self) -> None:  # type: ignore[override]  # nobody uses what Celery returns
        """Publish the events of tasks together: Celery's own flushes them with every turn of the event loop."""
        if self.hub and not self._flush_due:
            self._flush_due = True
            self.hub.call_later(_EVENTS_S, self._flush_events)

    def _flush_events(self) -> None:
        self._flush_due = False
        celery: Any = super()
        celery._flush_events()  # noqa: SLF001 - of the same object

    def ensure_connected(self, conn: Any) -> Any:
        """Celery waits for two seconds more after each try to connect, and in the end for half a minute."""
        conn.ensure_connection = partial(conn.ensure_connection, interval_max=_RECONNECT_S)
        celery: Any = super()
        return celery.ensure_connected(conn)

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        """A Redis that answers with an error would be asked again at once, many times a second."""
        super().on_connection_error_after_connected(exc)
        if isinstance(exc, ResponseError):
            time.sleep(_PAUSE_S)

    def create_task_handler(self, *args: Any, **kwargs: Any) -> Callable[[Message], None]:
        """Celery's own, which lets only errors of the connection through."""
        handle = super().create_task_handler(*args, **kwargs)
        errors: Any = (*self.connection_errors, *self.app.connection().channel_errors)

        def guarded(message: Any) -> None:
            content, fault = None, _type_fault(message)
            if not fault:
                content, fault = read_task(message.headers, _bytes(message.body))
            if fault:
                self._set_aside(message, fault)
                return
            message._decoded_cache = content  # noqa: SLF001 - kombu decodes it no more
            try:
                handle(message)
            except Exception as error:
                # kombu counts KeyError among the errors of its connection, for sockets that it has forgotten.
                if isinstance(error, errors) and not isinstance(error, KeyError):
                    raise
                self._set_aside(message, f"Celery cannot read it ({type(error).__name__})")

        return guarded

    def on_unknown_task(self, body: object, message: Message, exc: Exception) -> None:  # noqa: ARG002 - Celery's signature
        """A task that this release does not have; the reaper sends again what a job misses."""
        self._set_aside(message, "a task that is not known here")

    def on_invalid_task(self, body: object, message: Message, exc: Exception) -> None:  # noqa: ARG002 - Celery's signature
        """Headers that make no request."""
        self._set_aside(message, "no valid task")

    def on_decode_error(self, message: Message, exc: Exception) -> None:  # noqa: ARG002 - Celery's signature
        """A body in another format than JSON."""
        self._set_aside(message, "of a format that is not taken")

    def _set_aside(self, message: Any, reason: str) -> None:
        channel, content = message.channel, _bytes(message.body)
        raw = json.dumps([message.headers, content.decode("utf-8", "backslashreplace")], default=str)
        kept = channel.quarantine if isinstance(channel, Channel | SentinelChannel) else self._quarantine
        try:
            kept.add(str(message.delivery_info.get("routing_key")), raw.encode(), reason)
        except RedisError as error:
            _log.error("dropped a message of %d bytes (%s): %s", len(content), type(error).__name__, reason)
        message.ack_log_error(_log, self.connection_errors)

    @cached_property
    def _quarantine(self) -> Quarantine:
        """In the job store, where the broker is not Redis."""
        return Quarantine(connect(settings_of(self.app)))


def _bytes(body: Any) -> bytes:
    """A body as it came; amqp decodes those that name an encoding."""
    return body.encode("utf-8", "surrogatepass") if isinstance(body, str) else bytes(body or b"")


def _type_fault(message: Any) -> str:
    """Celery would ask its decoders for others than JSON."""
    return "" if message.content_type == "application/json" else "of another content type than JSON"
