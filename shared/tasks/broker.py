"""What differs by the broker, Redis or RabbitMQ: Celery's options, the names of queues, errors as one sentence.

RabbitMQ gets quorum queues, which survive the loss of a node. Before RabbitMQ 4 these have no priorities, so each lane
has a queue of its own, and a worker takes as many messages from each as it has places: an interactive one waits behind
no batch. Nothing is sent with a countdown, which would have to wait in a worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from celery import Celery
from celery.app.amqp import AMQP, Queues
from kombu import Exchange
from kombu import Queue as DeclaredQueue
from kombu.exceptions import OperationalError

from shared.connections.addresses import KEEPALIVE, Address, health_check_s
from shared.connections.broker import RabbitAddress, broker_fault
from shared.contract import PRIORITY_STEPS, Queue, lane_queue
from shared.errors import NotRunningError
from shared.models import Lane
from shared.settings import Settings

#: More than the threads that any pool may have, those of lent places included: no thread waits for a connection.
MOST_CONNECTIONS = 1024
#: A task is acknowledged when it has ended, and none runs for longer than the longest deadline, of a day.
_ACKNOWLEDGED_S = 90_000
_QUORUM = "quorum"


class BrokerLostError(NotRunningError, OperationalError):
    """RabbitMQ does not answer, or refuses what was asked. `final`: until somebody changes something."""

    final = False


class _LaneQueues(Queues):
    """`-Q search` serves both lanes of it."""

    def select(self, include: Any) -> None:
        """Raises: nothing; a name that is no queue of ours is created, as Celery does."""
        names = [include] if isinstance(include, str) else list(include or ())
        super().select([one for name in names for one in _names(name)])


class RabbitQueues(AMQP):
    """Named by `Celery(amqp=...)`."""

    queues_cls = _LaneQueues


def _names(queue: str) -> list[str]:
    return [lane_queue(Queue(queue), lane) for lane in Lane] if queue in set(Queue) else [queue]


def names_of(settings: Settings, queue: Queue) -> list[str]:
    """The queues of the broker that hold the messages of one of ours; with RabbitMQ one a lane."""
    return _names(queue.value) if settings.broker.rabbitmq else [queue.value]


def options(settings: Settings) -> dict[str, Any]:
    """Celery's options for the connection: reconnect without end, whatever the broker answers.

    Raises: SettingsError for an address that cannot be used.
    """
    common = {
        "broker_connection_retry_on_startup": True,
        "broker_pool_limit": MOST_CONNECTIONS,
        "broker_pool_acquire_timeout": settings.redis.timeout_s,
        "broker_connection_max_retries": None,
        # Else OOM, READONLY or MISCONF as the answer to one command ends the worker.
        "broker_channel_error_retry": True,
        # Else a worker that was busy when the connection was lost takes fewer messages from then on.
        "worker_enable_prefetch_count_reduction": False,
    }
    return common | (_rabbitmq(settings) if settings.broker.rabbitmq else _redis(settings))


def _redis(settings: Settings) -> dict[str, Any]:
    """A half-open connection is noticed by `health_check_interval` alone.

    Kombu drops a BRPOP that is overdue by so much, and pub/sub after twice that.
    """
    url, address = settings.broker.url.get_secret_value(), Address(settings.redis)
    return {
        "broker_url": url or address.celery_url,
        "broker_use_ssl": None if url else address.celery_tls,
        "broker_transport_options": {
            "priority_steps": list(PRIORITY_STEPS),
            "queue_order_strategy": "priority",
            "max_connections": MOST_CONNECTIONS,
            "socket_timeout": settings.redis.timeout_s,
            "socket_connect_timeout": settings.redis.timeout_s,
            "socket_keepalive": True,
            "socket_keepalive_options": dict(KEEPALIVE),
            "health_check_interval": health_check_s(settings.redis),
            **({} if url else address.celery_options),
        },
    }


def _rabbitmq(settings: Settings) -> dict[str, Any]:
    """Every message of a task is confirmed; queues of remote control live as long as somebody reads them."""
    address, own = RabbitAddress(settings.broker), settings.broker
    return {
        "broker_url": address.celery_url,
        "broker_use_ssl": address.tls,
        "broker_connection_timeout": own.timeout_s,
        "broker_heartbeat": own.heartbeat_s,
        "task_queues": [_declared(name) for queue in Queue for name in _names(queue.value)],
        "task_create_missing_queue_type": _QUORUM,
        "task_default_exchange": "ramify",
        # RabbitMQ is about to give up queues that are neither durable nor exclusive; an exclusive one is refused to a
        # worker that comes back before its old connection was found dead.
        "control_queue_exclusive": False,
        "control_queue_durable": True,
        "task_publish_retry_policy": {"max_retries": 1, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.2},
        "broker_transport_options": {
            "confirm_publish": True,
            "answer_s": own.timeout_s,
            "write_timeout": own.timeout_s,
            "socket_settings": dict(KEEPALIVE),
            # Of a connection that is made for a message or a question; workers try without end.
            "max_retries": 1, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.2,
        },
    }  # fmt: skip


def _declared(name: str) -> DeclaredQueue:
    """RabbitMQ before 3.12 does not know the timeout as an argument: there the server's `consumer_timeout` counts."""
    arguments = {"x-queue-type": _QUORUM, "x-consumer-timeout": _ACKNOWLEDGED_S * 1000}
    return DeclaredQueue(name, Exchange(""), routing_key=name, queue_arguments=arguments)


@contextmanager
def reached(settings: Settings) -> Iterator[None]:
    """Turns an error of RabbitMQ inside the block into one sentence. Raises: BrokerLostError, and all other errors."""
    try:
        yield
    except Exception as error:
        if not settings.broker.rabbitmq or isinstance(error, BrokerLostError) or not _of_broker(error):
            raise
        says, final = broker_fault(error)
        lost = BrokerLostError(f"{RabbitAddress(settings.broker).label} {says}")
        lost.final = final
        raise lost from error


def _of_broker(error: Exception) -> bool:
    return isinstance(error, OSError | OperationalError) or type(error).__module__.partition(".")[0] == "amqp"


def require_broker(app: Celery, settings: Settings) -> None:
    """Declare all queues in RabbitMQ; nothing where Redis is the broker.

    Raises: BrokerLostError where it does not answer or refuses.
    """
    if not settings.broker.rabbitmq:
        return
    with reached(settings), app.connection_for_write() as connection:
        connection.ensure_connection(max_retries=1, interval_start=0)
        channel: Any
        with connection.channel() as channel:
            for queue in app.amqp.queues.values():
                queue(channel).declare()


def queue_lengths(
    app: Celery, settings: Settings, queues: Iterable[Queue] = Queue, *, unknown: int = 0
) -> dict[str, int]:
    """Messages in each of the broker's queues for these; one that is not declared yet is empty.

    `unknown`: what is said of an empty queue of RabbitMQ without consumers. After a start of RabbitMQ that may be one
    whose messages it has not counted yet. Raises: BrokerLostError, and what Redis raises.
    """
    lengths, unserved = {}, unknown if settings.broker.rabbitmq else 0
    with reached(settings), app.connection_for_read() as connection:  # one from the pool may have outlived an outage
        connection.ensure_connection(max_retries=1, interval_start=0)
        for name in (one for queue in queues for one in names_of(settings, queue)):
            try:
                channel: Any
                with connection.channel() as channel:
                    told = channel.queue_declare(name, passive=True)
                    lengths[name] = int(told.message_count) or (0 if told.consumer_count else unserved)
            except connection.channel_errors as error:
                if "no queue" not in str(error):
                    raise
                lengths[name] = unserved
    return lengths


def queued(app: Celery, settings: Settings) -> dict[Queue, int]:
    """Messages in each of our queues, over its lanes. Raises: as `queue_lengths`."""
    lengths = queue_lengths(app, settings)
    return {queue: sum(lengths[name] for name in names_of(settings, queue)) for queue in Queue}
