"""Kombu's transport for RabbitMQ, with messages of tasks that are confirmed and no wait without end.

For kombu 5.7 and amqp 5.4. Imported by kombu where `broker.url` begins with amqp. Without these patches a thread waits
without end for the reply of a RabbitMQ that is stopped or has no memory left, and each message of a chord waits for its
own confirmation. No upstream issue is known.
"""

from __future__ import annotations

import time
from typing import Any

from amqp.exceptions import MessageNacked, RecoverableConnectionError
from kombu.transport import pyamqp

from shared.tasks.together import gathered

_ANSWER_S = 5.0


class _Bounded:
    """Waits for a reply of the server no longer than the connection's `answer_s`."""

    connection: Any

    def wait(self, method: Any, callback: Any = None, timeout: float | None = None, returns_tuple: bool = False) -> Any:
        """As amqp's. Raises: TimeoutError, an error of the connection."""
        own: Any = super()
        seconds = timeout or getattr(self.connection, "answer_s", _ANSWER_S)
        return own.wait(method, callback, seconds, returns_tuple)


class AmqpChannel(_Bounded, pyamqp.Channel):
    """Waits until messages in queues are confirmed; events, commands and replies, which go to exchanges, are not."""

    _confirm_selected: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._tag, self._open_tags, self._refused = 0, set[int](), False

    def basic_publish_confirm(self, msg: Any, exchange: str = "", **options: Any) -> None:
        """Publish. Raises: what amqp raises, MessageNacked for a message that the server did not take."""
        own: Any = self
        options.pop("confirm_timeout", None)
        if not exchange and not self._confirm_selected:
            self._confirm_selected = True
            self._tag, self._open_tags, self._refused = 0, set(), False
            own.confirm_select()
        self._tag += 1
        if not exchange:
            self._open_tags.add(self._tag)
        own._basic_publish(msg, exchange=exchange, **options)  # noqa: SLF001 - as amqp does
        if not exchange and gathered(self, lambda _: self.wait_confirmed()) is None:
            self.wait_confirmed()

    def wait_confirmed(self) -> None:
        """Until nothing is unconfirmed. Raises: as `basic_publish_confirm`."""
        end = time.monotonic() + getattr(self.connection, "answer_s", _ANSWER_S)
        while self._open_tags:
            if self.connection is None:
                raise RecoverableConnectionError("the connection was closed before a message was confirmed")
            self.connection.drain_events(timeout=max(0.01, end - time.monotonic()))
        if self._refused:
            self._refused = False
            raise MessageNacked("a message was refused")

    def _on_basic_ack(self, delivery_tag: int, multiple: bool) -> None:
        passed = {tag for tag in self._open_tags if tag < delivery_tag} if multiple else set[int]()
        self._open_tags -= passed | {delivery_tag}

    def _on_basic_nack(self, delivery_tag: int, multiple: bool) -> None:
        self._refused = True
        self._on_basic_ack(delivery_tag, multiple)


class Connection(_Bounded, pyamqp.Connection):
    """One whose channels are those above. `answer_s`: seconds for a reply or a confirmation."""

    Channel = AmqpChannel

    def __init__(self, *args: Any, answer_s: float = _ANSWER_S, **kwargs: Any) -> None:
        self.answer_s = answer_s
        super().__init__(*args, **kwargs)


class AmqpTransport(pyamqp.Transport):
    """amqp://."""

    Connection = Connection


class TlsTransport(pyamqp.SSLTransport):
    """amqps://."""

    Connection = Connection
