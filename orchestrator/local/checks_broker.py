"""`ramify doctor` on RabbitMQ, where that is the broker: whether it answers, its release, what waits in its queues."""

from __future__ import annotations

from collections.abc import Sequence

from celery import Celery

from orchestrator.local.checks import Check, failed, passed
from shared.connections.broker import RabbitAddress
from shared.contract import Queue
from shared.settings import Settings
from shared.tasks.app import make_app
from shared.tasks.broker import BrokerLostError, names_of, queue_lengths, reached, require_broker

#: The first release with quorum queues.
_OLDEST = (3, 8)


def broker(connected: Settings | None) -> Sequence[Check]:
    """Nothing where Redis is the broker, or nothing runs."""
    if connected is None or not connected.broker.rabbitmq:
        return ()
    with make_app(connected) as app:
        try:
            return (_release(app, connected), _queues(app, connected))
        except BrokerLostError as error:
            label = RabbitAddress(connected.broker).label
            return (failed("broker", str(error), f"see the log of {label.partition(',')[0]}; docs/operations.md"),)


def _release(app: Celery, settings: Settings) -> Check:
    """Raises: BrokerLostError."""
    label = RabbitAddress(settings.broker).label
    with reached(settings), app.connection_for_read() as connection:
        told = connection.ensure_connection(max_retries=1).connection.server_properties
    release = str(told.get("version", "unknown"))
    known = tuple(int(part) for part in release.split(".")[:2] if part.isdecimal())
    if known and known < _OLDEST:
        return failed("broker", f"{label} is release {release}, without quorum queues", "upgrade it to 3.10 or later")
    require_broker(app, settings)
    return passed(
        "broker", f"{label} answers, release {release}, quorum queues (tenants take turns at admission alone)"
    )


def _queues(app: Celery, settings: Settings) -> Check:
    """Raises: BrokerLostError."""
    lengths = queue_lengths(app, settings)
    waiting = []
    for queue in Queue:
        counts = [lengths[name] for name in names_of(settings, queue)]
        if any(counts):
            waiting.append(f"{queue} {'+'.join(map(str, counts))}")
    return passed("queues", f"waiting, interactive+batch: {', '.join(waiting)}" if waiting else "nothing waits")
