"""Kombu's Redis transport with patches for a lost connection, for interactive work, and for what is no message.

For kombu 5.7 and redis-py 8.

Installed, as is `shared.tasks.thread_pool`, under the names that kombu and Celery have for their own (`redis`,
`threads`), so that URLs and command lines stay what their documentation says.
"""

from __future__ import annotations

import json
import logging
from functools import cached_property, partial
from queue import Empty
from typing import Any

from celery import concurrency
from kombu.transport import TRANSPORT_ALIASES, redis, virtual
from kombu.utils.json import dumps
from kombu.utils.scheduling import priority_cycle
from redis.backoff import NoBackoff
from redis.client import PubSub
from redis.exceptions import ConnectionError, ResponseError  # noqa: A004 - kombu expects this class
from redis.retry import Retry

from shared.connections.connect import WholeCommands, remember
from shared.connections.key_types import declare
from shared.connections.mending import MendingClient, mended, wrong_type
from shared.connections.quarantine import Quarantine
from shared.contract import Queue, priority, queue_keys
from shared.models import Lane
from shared.providers.lanes import LENT_PLACES
from shared.tasks.message_faults import control_fault, read_message
from shared.tasks.together import gathered

#: One more try, on a new connection.
_RETRIES = 1
#: While all places of its own are taken, a worker looks so long for interactive messages before it looks again whether
#: one has become free for any message (s).
_LENT_POLL_S = 0.25
#: Routing key, pattern and queue.
_PARTS_OF_BINDING = 3
#: In the names of the channels of remote control; the others are those of events.
_COMMANDS = b".pidbox"
#: The end of the names of the queues of its replies, and how long one is kept (s).
_REPLIES, _REPLY_S = ".reply.celery.pidbox", 60
_log = logging.getLogger(__name__)
declare(
    {key: "list" for queue in Queue for key in queue_keys(queue)}
    | {"_kombu.binding_deadlines": "zset"}
    | dict.fromkeys(("_kombu.binding.*", "_kombu.binding_permanent.*"), "set")
)


class ReadySub(PubSub):
    """Reads only what has arrived, and never waits.

    Kombu reads a pub/sub socket in its event loop once it is readable. When the connection was reset, redis-py makes a
    new one inside the same call and waits for a message on it without a timeout: the worker blocks, connected and
    alive, until a remote control command arrives. Related: celery/celery#2606; no upstream issue known for this cause.
    """

    def parse_response(self, block: bool = True, timeout: float = 0) -> Any:
        """The next message; None when there is none. Raises: RedisError."""
        connection: Any = self.connection
        read: Any = super().parse_response
        if block and not connection.can_read(timeout=0):
            return None
        return read(block=False, timeout=timeout or connection.socket_timeout or 1)


class LendingQoS(virtual.QoS):
    """Counts the places of a worker: while batch tasks wait at a gate, theirs are lent, to interactive messages alone.

    Else an interactive message waits in the broker until one of the batch tasks has had its turn at a provider: every
    thread of a pool may stand in line there. At most as many places are lent as the worker has.
    No upstream issue is known.

    What a worker has taken it knows by itself. Kombu's own keeps it in Redis as well, four commands a message, and
    brings it back after a time-out longer than any task: what dies with a worker, the reaper has long sent again.
    """

    def can_consume(self) -> bool:
        """Whether there is a place, of its own or lent."""
        if self.has_place():
            return True
        own: Any = self
        places, taken = int(own.prefetch_count), len(own._delivered) - len(own._dirty)  # noqa: SLF001 - as kombu counts
        return taken < places + min(LENT_PLACES.count, places)

    def has_place(self) -> bool:
        """Whether there is one of its own."""
        return bool(super().can_consume())


class _PatchedChannel:
    """Patches of both kinds of channels. No upstream issue is known for the retries.

    A popped message is noted as taken by a command of its own; without a retry a dead connection loses the message
    until the reaper misses it (celery/kombu#305 is about lost messages in general). Connections of the event loop must
    not retry: redis-py would replace a socket that the loop still waits on.
    """

    QoS: Any = LendingQoS
    _shared_client: Any = None
    #: No unacknowledged messages in Redis.
    ack_emulation = False
    #: The last BRPOP found a key of a wrong type.
    _wrong_before = False

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.QoS = LendingQoS  # without emulation kombu takes its plain one

    def _put(self: Any, queue: str, message: Any, **kwargs: Any) -> None:
        key = self._q_for_pri(queue, self._get_message_priority(message, reverse=False))
        if queue.endswith(_REPLIES):
            self._reply(key, message)
            return
        messages = gathered((self, key), partial(self._push, key))
        if messages is None:
            super()._put(queue, message, **kwargs)  # type: ignore[misc]
        else:
            messages.append(dumps(message))

    def send(self: Any, message: dict[str, Any]) -> None:
        """Put a whole message of a task into its queue. Raises: RedisError."""
        address = message["properties"]
        key = self._q_for_pri(address["delivery_info"]["routing_key"], address["priority"])
        messages = gathered((self, key), partial(self._push, key))
        if messages is None:
            self._push(key, [json.dumps(message)])
        else:
            messages.append(json.dumps(message))

    def _reply(self: Any, key: str, message: Any) -> None:
        """Answer remote control. Kombu lets the asker's process alone expire the list, which may have gone by now."""
        with self.conn_or_acquire() as client, client.pipeline() as pipe:
            pipe.lpush(key, dumps(message))
            pipe.expire(key, _REPLY_S)
            pipe.execute()

    def _push(self: Any, key: str, messages: list[str]) -> None:
        with self.conn_or_acquire() as client:
            client.lpush(key, *messages)

    def _create_client(self: Any, asynchronous: bool = False) -> Any:
        """Kombu makes one for each command; those that are not of the event loop share one a pool of connections."""
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[misc]
        pool = self.pool
        if self._shared_client is None or self._shared_client.connection_pool is not pool:
            self._shared_client = super()._create_client()  # type: ignore[misc]
        return self._shared_client

    def _restore(self: Any, message: Any, leftmost: bool = False) -> None:
        """Put back what a worker has taken and not done when it ends; to be taken first, unlike kombu's own."""
        address = message.delivery_info
        with self.conn_or_acquire() as client:
            self._do_restore_message(message._raw, address["exchange"], address["routing_key"], client, leftmost)  # noqa: SLF001 - as kombu does

    def _brpop_start(self: Any, timeout: float | None = None) -> None:
        if self.qos.has_place():
            super()._brpop_start(timeout)  # type: ignore[misc]
            return
        queues, steps = self._queue_cycle, self.priority_steps
        self._queue_cycle = priority_cycle([queue for queue in self.active_queues if queue != Queue.INDEX])
        self.priority_steps = [step for step in steps if step < priority(Lane.BATCH)]
        try:
            super()._brpop_start(_LENT_POLL_S)  # type: ignore[misc]
        finally:
            self._queue_cycle, self.priority_steps = queues, steps

    def _brpop_read(self: Any, **options: Any) -> bool:
        """Deliver the message that BRPOP brought; set aside what is none. Raises: Empty, the connection's errors."""
        try:
            try:
                popped = self.client.parse_response(self.client.connection, "BRPOP", **options)
            except self.connection_errors:
                self.client.connection.disconnect()
                raise
            except ResponseError as error:
                if not wrong_type(error) or (not mended(self._create_client()) and self._wrong_before):
                    raise
                popped, self._wrong_before = None, True
            else:
                self._wrong_before = False
            if not popped:
                raise Empty
            queue = popped[0].decode().rsplit(self.sep, 1)[0]
            self._queue_cycle.rotate(queue)
            message, fault = read_message(popped[1])
            if fault:
                self.quarantine.add(queue, popped[1], fault)
            else:
                self.connection._deliver(message, queue)  # noqa: SLF001 - as kombu does
            return True
        finally:
            self._in_poll = None
            self._flush_brpop_reauth()

    def _handle_message(self: Any, client: Any, r: Any) -> dict[str, Any]:
        """A broadcast that is no command or no event is dropped before it is decoded: each reader has its own copy."""
        found: dict[str, Any] = super()._handle_message(client, r)  # type: ignore[misc]
        data = found["data"]
        of_message = isinstance(data, bytes) and found["type"] in {b"message", b"pmessage"}
        fault = ""
        if of_message:
            fault = control_fault(data) if _COMMANDS in found["channel"] else read_message(data)[1]
        if fault:
            _log.error("dropped a broadcast of %d bytes: %s", len(data), fault)
            found["data"] = None
        return found

    def get_table(self: Any, exchange: Any) -> Any:
        """The bindings of an exchange; what is none is set aside."""
        key, table = self.keyprefix_queue % exchange, list[tuple[str, ...]]()
        with self.conn_or_acquire() as client:
            for member in client.smembers(key):
                parts = tuple(member.decode(errors="replace").split(self.sep))
                if len(parts) == _PARTS_OF_BINDING:
                    table.append(parts)
                else:
                    self.quarantine.add(key, member, "no binding of a queue")
                    client.srem(key, member)
        return table

    def _get_client(self: Any) -> Any:
        return MendingClient

    @cached_property
    def quarantine(self: Any) -> Quarantine:
        """Where what is no message is kept, in the broker."""
        return Quarantine(self._create_client())

    def _connparams(self: Any, asynchronous: bool = False) -> dict[str, Any]:
        if getattr(self.connection, "client", None) is None:
            # The error of celery/kombu#83: AttributeError for a closed connection, which no caller expects: the
            # acknowledgement of a task that outlived its connection ended the whole worker.
            raise ConnectionError("the connection to the broker was closed")
        params: dict[str, Any] = super()._connparams(asynchronous)  # type: ignore[misc]
        if not asynchronous:
            params |= {"retry": Retry(NoBackoff(), _RETRIES), "command_packer": WholeCommands()}
        return params

    def _get_pool(self: Any, asynchronous: bool = False) -> Any:
        pool = super()._get_pool(asynchronous)  # type: ignore[misc]
        if not asynchronous:
            remember(pool)
        return pool

    @cached_property
    def subclient(self: Any) -> ReadySub:
        """The connection of remote control."""
        return ReadySub(self._create_client(asynchronous=True).connection_pool)


class Channel(_PatchedChannel, redis.Channel):
    """To one Redis."""


class SentinelChannel(_PatchedChannel, redis.SentinelChannel):
    """To the master that Sentinel names."""


class Transport(redis.Transport):
    """redis:// and rediss://."""

    Channel = Channel


class SentinelTransport(redis.SentinelTransport):
    """sentinel://."""

    Channel = SentinelChannel


def install() -> None:
    """Make kombu use these for its URLs, and Celery our pool of threads, in this process. Repeatable."""
    pools: dict[str, str] = vars(concurrency)["ALIASES"]
    pools["threads"] = "shared.tasks.thread_pool:ThreadPool"
    TRANSPORT_ALIASES.update(dict.fromkeys(("redis", "rediss"), "shared.tasks.redis_transport:Transport"))
    TRANSPORT_ALIASES["sentinel"] = "shared.tasks.redis_transport:SentinelTransport"
    TRANSPORT_ALIASES.update(
        amqp="shared.tasks.amqp_transport:AmqpTransport", amqps="shared.tasks.amqp_transport:TlsTransport"
    )
