"""A worker whose places are all taken by batch tasks that wait takes interactive messages, over a real Redis."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from queue import Empty
from typing import Any

import pytest
import redis
from kombu import Connection, Consumer, Producer

from shared.contract import Queue, priority
from shared.models import Lane
from shared.providers.lanes import LENT_PLACES
from shared.settings import Settings
from shared.tasks.app import make_app

PLACES = 2


class Worker:
    """The broker's side of a worker: it takes messages from some queues, and acknowledges none by itself."""

    def __init__(self, connection: Connection, queues: dict[str, Any]) -> None:
        self._connection, self._queues = connection, queues
        self._producer = Producer(connection.channel())
        channel = connection.channel()
        channel.basic_qos(0, PLACES, False)
        self.taken: list[Any] = []
        self._consumer = Consumer(channel, list(queues.values()), on_message=self.taken.append)
        self._consumer.consume()

    def send(self, body: str, lane: Lane, queue: Queue = Queue.PLAN) -> None:
        self._producer.publish(body, routing_key=queue.value, priority=priority(lane), serializer="json")

    def takes(self) -> list[str]:
        """What it takes now of what was sent."""
        before = len(self.taken)
        while True:
            try:
                self._connection.drain_events(timeout=0.6)
            except (TimeoutError, Empty):
                return [message.payload for message in self.taken[before:]]

    def end(self, body: str) -> None:
        next(message for message in self.taken if message.payload == body).ack()


@pytest.fixture
def worker(settings: Settings, client: redis.Redis) -> Iterator[Worker]:
    app = make_app(settings)
    names = (Queue.PLAN.value, Queue.INDEX.value)
    queues = {name: app.amqp.queues[name] for name in names}
    with app.connection_for_read() as connection:
        yield Worker(connection, queues)
    app.close()


def test_given_batch_tasks_that_wait_then_their_places_are_lent_to_interactive_messages_alone(worker: Worker) -> None:
    for body in ("b1", "b2", "b3"):
        worker.send(body, Lane.BATCH)
    assert worker.takes() == ["b1", "b2"]
    worker.send("passages", Lane.INTERACTIVE, Queue.INDEX)
    for body in ("i1", "i2", "i3", "i4"):
        worker.send(body, Lane.INTERACTIVE)
    assert worker.takes() == [], "both places are taken"

    with ExitStack() as waiting:
        waiting.enter_context(LENT_PLACES.lent())
        assert worker.takes() == ["i1"], "one place is lent"
        for _ in range(5):
            waiting.enter_context(LENT_PLACES.lent())
        assert worker.takes() == ["i2"], "never more than it has"
        worker.end("i1")
        assert worker.takes() == ["i3"]
        for body in ("b1", "i2"):
            worker.end(body)
        assert worker.takes() == ["i4"], "still one more than it has of its own"

    for body in ("b2", "i3"):
        worker.end(body)
    assert worker.takes() == ["passages"]
    worker.end("i4")
    assert worker.takes() == ["b3"]
