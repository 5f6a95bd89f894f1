"""RabbitMQ as the broker, without one: addresses, refusals, queues of the lanes, and sentences for what goes wrong.

With a real one: tests/cluster/test_rabbitmq.py.
"""

from __future__ import annotations

import socket
import time
from types import SimpleNamespace
from typing import Any

import pytest

from shared.connections.broker import RabbitAddress, broker_fault
from shared.contract import Queue, TaskMessage, TaskName, priority
from shared.errors import SettingsError
from shared.models import Lane
from shared.settings import Settings, load_settings
from shared.settings.broker import BrokerSettings
from shared.tasks.amqp_transport import AmqpChannel
from shared.tasks.app import make_app
from shared.tasks.broker import BrokerLostError, names_of, queue_lengths
from shared.tasks.consumer import QuarantiningConsumer
from shared.tasks.signatures import Dispatcher, send_chord, task_signature
from tests.support.redis_server import free_port


def over(url: str, **more: object) -> Settings:
    return load_settings(redis={"url": "redis://127.0.0.1:1/0"}, broker={"url": url, **more})


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("redis+cluster://h:1/0", "Redis Cluster cannot carry queues"),
        ("sentinel://h:26379/0", "redis.sentinels"),
        ("sqs://key:secret@", "SQS tells no exact length"),
        ("kafka://h:9092", "Kafka has no"),
        ("gcpubsub://projects/x", "other brokers are not supported"),
        ("redis://a:1/0;redis://b:1/0", "only RabbitMQ may have several nodes"),
        ("amqp://u:p@h:port/v", "no URL"),
    ],
)
def test_given_a_broker_that_cannot_work_when_settings_are_read_then_they_say_why(url: str, says: str) -> None:
    with pytest.raises(SettingsError, match=r"broker\.url: 'the value given'") as caught:
        over(url)
    assert says in str(caught.value)
    assert "secret" not in str(caught.value)


def test_an_address_is_told_without_its_login_and_checks_certificates() -> None:
    address = RabbitAddress(
        BrokerSettings(url="amqps://u:p%40ss@a.example/my%2Fhost?cacertfile=/ca.pem;amqps://u:p@b.example:1/v")
    )
    assert address.label == "RabbitMQ at a.example:5671, b.example:1, virtual host 'my/host'"
    assert address.celery_url == "amqps://u:p%40ss@a.example/my%2Fhost;amqps://u:p@b.example:1/v"
    assert address.tls == {"cert_reqs": 2, "server_hostname": None, "ca_certs": "/ca.pem"}
    assert RabbitAddress(BrokerSettings(url="amqps://h//?verify=verify_none")).tls == {"cert_reqs": 0}
    assert RabbitAddress(BrokerSettings(url="amqp://h")).tls is None
    for wrong in ("verify=no", "heartbeat=3"):
        with pytest.raises(SettingsError, match=r"broker\.url"):
            RabbitAddress(BrokerSettings(url=f"amqps://h/?{wrong}"))


def test_over_rabbitmq_each_lane_has_a_quorum_queue_and_a_worker_serves_both() -> None:
    app = make_app(over("amqp://u:p@127.0.0.1:1/v"))
    assert all(queue.queue_arguments["x-queue-type"] == "quorum" for queue in app.amqp.queues.values())
    assert {*app.amqp.queues} == {name for queue in Queue for name in (queue.value, f"{queue.value}.batch")}
    app.amqp.queues.select(["search", "index"])
    assert [*app.amqp.queues.consume_from] == ["search", "search.batch", "index", "index.batch"]
    assert names_of(over("redis://h:1/0"), Queue.PLAN) == ["plan"]
    assert not [step for step in QuarantiningConsumer.Blueprint.default_steps if "delayed" in step], "no countdowns"


@pytest.mark.parametrize(("lane", "queue"), [(Lane.INTERACTIVE, "search"), (Lane.BATCH, "search.batch")])
def test_a_message_goes_into_the_queue_of_its_lane(monkeypatch: pytest.MonkeyPatch, lane: Lane, queue: str) -> None:
    app, sent = make_app(over("amqp://u:p@127.0.0.1:1/v")), list[Any]()
    monkeypatch.setattr(app.amqp, "send_task_message", lambda _producer, _name, _message, **kwargs: sent.append(kwargs))
    monkeypatch.setattr(app, "producer_or_acquire", lambda *_: _Nothing())
    task_signature(
        app, TaskName.SEARCH_LEAF, TaskMessage(job_id="a" * 8, node_id="0.1"), priority(lane) + 2
    ).apply_async()
    assert [kwargs["queue"].name for kwargs in sent] == [queue]


class _Nothing:
    """A producer whose connection does nothing."""

    connection: Any = None

    def __enter__(self) -> Any:
        return SimpleNamespace(connection=SimpleNamespace(_reraise_as_library_errors=_Nothing))

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("served", [False, True])
def test_given_a_broker_that_is_away_or_silent_when_asked_then_it_is_one_sentence_in_time(
    served: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        if served:
            listening.listen()
        port = listening.getsockname()[1] if served else free_port()
        settings = over(f"amqp://u:s3cret@127.0.0.1:{port}/v", timeout_s=0.2)
        app, began = make_app(settings), time.monotonic()
        one = task_signature(app, TaskName.PLAN_JOB, TaskMessage(job_id="a" * 8), 0)
        for ask in (one.apply_async, lambda: send_chord(app, one), lambda: queue_lengths(app, settings)):
            with pytest.raises(BrokerLostError, match=rf"RabbitMQ at 127\.0\.0\.1:{port}, virtual host 'v'") as caught:
                ask()
            assert ("in time" if served else "start it") in str(caught.value)
            assert not caught.value.final
            assert "s3cret" not in str(caught.value)
        jobs = SimpleNamespace(admit=lambda: [("a" * 8, 0)], settings=settings)
        Dispatcher(app, jobs).try_run()
        assert f"RabbitMQ at 127.0.0.1:{port}" in caplog.text
        assert "BrokerLostError" not in caplog.text
        assert time.monotonic() - began < 30


def test_faults_that_stay_until_somebody_changes_something_are_final() -> None:
    said = {
        "(403) ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN": ("refuses the login", True),
        "(530) NOT_ALLOWED - vhost nix not found": ("no such virtual host", True),
        "(406) PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'plan'": ("of another kind", True),
        "(320) CONNECTION_FORCED - broker forced connection closure": ("closed the connection", False),
        "[Errno 111] Connection refused": ("does not answer", False),
        "something new": ("refused a command", False),
    }
    for text, (says, final) in said.items():
        sentence, stays = broker_fault(OSError(text))
        assert says in sentence
        assert stays is final


def test_confirmations_of_several_messages_count_each() -> None:
    channel = AmqpChannel.__new__(AmqpChannel)
    channel._open_tags, channel._refused = {1, 2, 3, 4}, False
    channel._on_basic_ack(2, multiple=True)
    assert channel._open_tags == {3, 4}
    channel._on_basic_nack(4, multiple=False)
    assert channel._open_tags == {3}
    assert channel._refused
