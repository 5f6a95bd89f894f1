"""Builds the Celery application that both sides use: broker, reliability and result settings in one place."""

from __future__ import annotations

import base64
import gc
import json
import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from celery import Celery, current_app
from celery.exceptions import CPendingDeprecationWarning
from celery.result import AsyncResult
from celery.signals import (
    setup_logging,
    task_postrun,
    task_prerun,
    worker_init,
    worker_process_init,
    worker_process_shutdown,
    worker_shutdown,
)
from celery.utils.nodenames import anon_nodename
from kombu.exceptions import OperationalError
from kombu.pools import ProducerPool
from kombu.utils.uuid import uuid
from redis.exceptions import RedisError

from shared.connections.addresses import Address, health_check_s
from shared.connections.connect import LOST, connect, refuse_cluster
from shared.connections.heartbeat import Heartbeat, set_node_name, under_way
from shared.contract import Queue, TaskName, lane_of, lane_queue, without_lane
from shared.errors import NotRunningError
from shared.jobs.scripts import Scripts
from shared.jobs.totals import add_runs
from shared.logs import log_to_stderr
from shared.process_counts import counts
from shared.settings import Settings
from shared.tasks import broker
from shared.tasks.celery_command import leave_out_working_folder
from shared.tasks.redis_transport import Channel, SentinelChannel, install
from shared.tasks.result_backend import BACKENDS
from shared.tasks.task_events import AppEvents
from shared.tracing import spans

_RESULT_TTL_S = 3600
#: Seconds between two additions of what a worker has counted.
_COUNTS_S = 10.0
#: Objects that a worker makes before the collector looks for cycles among them; Python's own 700 took 7 % of a job's
#: processor time, for next to no cycles.
_COLLECTED_AFTER = 10_000
#: What a task of a job returns beside its node, the first that counts.
_OUTCOMES = ("refused", "damaged", "skipped", "postponed", "failed", "degraded")


class _HeldProducer:
    """Context of a producer of the pool, during which its thread takes no second one."""

    def __init__(self, held: threading.local, producer: Any) -> None:
        self._held, self._producer = held, producer

    def __enter__(self) -> Any:
        self._held.producer = self._producer
        return self._producer.__enter__()

    def __exit__(self, *error: object) -> None:
        self._held.producer = None
        self._producer.__exit__(*error)


class _ProducerPool(ProducerPool):
    """Waits for a connection no longer than the app does for a producer; kombu's own waits without end."""

    def __init__(self, *args: Any, timeout_s: float, **kwargs: Any) -> None:
        self._timeout_s = timeout_s
        untyped: Any = super()
        untyped.__init__(*args, **kwargs)

    def _acquire_connection(self) -> Any:
        own: Any = self
        return own.connections.acquire(block=True, timeout=self._timeout_s)


_TASKS = frozenset(TaskName)
#: What Celery's canvas passes on of the tasks of a job; with anything else it sends a message itself.
_PASSED = frozenset({"queue", "priority", "chain", "chord", "headers", "task_id", "root_id", "parent_id"})
#: What it passes as well, and a message needs nothing of.
_NOT_SENT = frozenset({"ignore_result", "reply_to", "task_type", "producer", "result_cls", "serializer"})


def _own_message(name: str, args: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """A message as Celery 5.7 and kombu's Redis transport write it (protocol 2), of options in `_PASSED`.

    Their own way, through routes, declarations and retries that ours do not need, takes four times as long.
    """
    task_id = options.get("task_id") or uuid()
    headers = {
        "lang": "py", "task": name, "id": task_id, "shadow": None, "eta": None, "expires": None, "group": None,
        "group_index": None, "retries": 0, "timelimit": [None, None], "root_id": options.get("root_id") or task_id,
        "parent_id": options.get("parent_id"), "argsrepr": repr(args), "kwargsrepr": "{}", "origin": anon_nodename(),
        "ignore_result": True, "replaced_task_nesting": 0, "stamped_headers": None, "stamps": {},
        **(options.get("headers") or {}),
    }  # fmt: skip
    follows = {"callbacks": None, "errbacks": None, "chain": options.get("chain"), "chord": options.get("chord")}
    return {
        "body": base64.b64encode(json.dumps([args, {}, follows]).encode()).decode(),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": headers,
        "properties": {
            "correlation_id": task_id, "reply_to": "", "delivery_mode": 2, "body_encoding": "base64",
            "delivery_info": {"exchange": "", "routing_key": options["queue"]},
            "priority": options.get("priority") or 0, "delivery_tag": uuid(),
        },
    }  # fmt: skip


class App(Celery):
    """Celery, with one producer a thread at a time, and no wait for one without a deadline.

    A chord holds a producer while it sends its header, and each chain in there asks for another one: as many threads as
    the pool has producers wait for each other without end. No upstream issue is known.

    Over RabbitMQ a message goes into the queue of its lane, and what fails is one sentence.
    """

    events_cls = f"{AppEvents.__module__}:{AppEvents.__name__}"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._held = threading.local()

    def send_task(self, name: str, *args: Any, **options: Any) -> Any:
        """As Celery's, which all messages of tasks pass. Raises: BrokerLostError, RedisError."""
        celery: Any = super()
        settings = settings_of(self)
        if settings.broker.rabbitmq and name in _TASKS:
            options["queue"] = lane_queue(TaskName(name).queue, lane_of(options.get("priority")))
        elif options.get("ignore_result") and (sent := self._sent(name, *args, **options)) is not None:
            return sent
        with broker.reached(settings):
            return celery.send_task(name, *args, **options)

    def _sent(self, name: str, args: Any = None, kwargs: Any = None, **options: Any) -> AsyncResult[Any] | None:
        """What is sent here, over Redis: a task of a job. None for others, and where the connection is lost.

        Celery then sends it by its own rules of trying again.
        """
        given = {key: value for key, value in options.items() if value is not None}
        if name not in _TASKS or kwargs or not given.keys() <= _PASSED | _NOT_SENT or "queue" not in given:
            return None
        parent: Any = self.current_worker_task
        if parent is not None:
            own = {"root_id": parent.request.root_id or parent.request.id, "parent_id": parent.request.id}
            given = {**own, **given}
        message = _own_message(name, args or (), given)
        try:
            with self.producer_or_acquire(given.get("producer")) as producer:
                channel: Any = producer.channel
                if not isinstance(channel, Channel | SentinelChannel):
                    return None
                channel.send(message)
        except (*LOST, OperationalError):
            return None
        return self.AsyncResult(message["headers"]["id"])

    @property
    def producer_pool(self) -> Any:
        """The one of the process; made anew after a fork."""
        amqp: Any = self.amqp
        if amqp._producer_pool is None:  # noqa: SLF001 - where Celery keeps it, and forgets it after a fork
            connections, seconds = self.pool, self.conf.broker_pool_acquire_timeout
            pool = _ProducerPool(connections, limit=connections.limit, Producer=amqp.Producer, timeout_s=seconds)
            amqp._producer_pool = pool  # noqa: SLF001
        return amqp._producer_pool  # noqa: SLF001

    def _acquire_producer(self, timeout: float | None = None) -> Any:
        held = getattr(self._held, "producer", None)
        own: Any = super()
        return nullcontext(held) if held is not None else _HeldProducer(self._held, own._acquire_producer(timeout))  # noqa: SLF001 - of the same object


def make_app(settings: Settings, include: tuple[str, ...] = ()) -> Celery:
    """A Celery app; `settings_of` gives its settings.

    Results are ignored except where somebody waits for them; a chord counts its header without them.
    Raises: NotRunningError when no Redis is known.
    """
    if not settings.redis.url.get_secret_value():
        raise NotRunningError("no Redis is known: start the stack with `ramify up -d`, or set redis.url")
    leave_out_working_folder()
    install()
    spans.configure(settings)
    address = Address(settings.redis)
    backend = settings.redis.result_url.get_secret_value() or address.celery_url
    amqp = broker.RabbitQueues if settings.broker.rabbitmq else None
    app = App("ramify", backend=backend, include=list(include), amqp=amqp)
    untyped: Any = app
    untyped.loader.override_backends = BACKENDS
    untyped.ramify = settings  # not in `app.conf`, which every worker tells to whoever inspects it
    app.conf.update(_conf(settings) | broker.options(settings) | _backend(settings, address))
    return app


def settings_of(app: Any) -> Settings:
    """The settings that `make_app` built a Celery app with."""
    found: Settings = app.ramify
    return found


def _conf(settings: Settings) -> dict[str, Any]:
    """Acknowledge late, keep no results, take one message at a time so that interactive work overtakes."""
    return {
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "task_ignore_result": True,
        "task_default_queue": Queue.OPS.value,
        "task_routes": {name.value: {"queue": name.queue.value} for name in TaskName},
        "task_track_started": False,
        "result_expires": _RESULT_TTL_S,
        "worker_consumer": "shared.tasks.consumer:QuarantiningConsumer",
        "worker_prefetch_multiplier": 1,
        "worker_send_task_events": settings.pools.task_events,
        "worker_hijack_root_logger": False,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
    }


def _backend(settings: Settings, address: Address) -> dict[str, Any]:
    """The result backend holds the replies that somebody waits for."""
    own = not settings.redis.result_url.get_secret_value()
    return {
        "redis_backend_use_ssl": address.celery_tls if own else None,
        "redis_socket_timeout": settings.redis.timeout_s,
        "redis_socket_connect_timeout": settings.redis.timeout_s,
        "redis_socket_keepalive": True,
        "redis_retry_on_timeout": True,
        "redis_backend_health_check_interval": health_check_s(settings.redis),
        "result_backend_transport_options": address.celery_options if own else {},
    }


class _OwnHeartbeat:
    """This process's heartbeat, if it is a worker: clients and Flower have none."""

    heartbeat: Heartbeat | None = None
    pid = 0


@worker_init.connect
def start_heartbeat(sender: Any, **_: object) -> None:
    """Name the worker by its node name and begin before it takes a task, which would look like a dead worker's."""
    settings, served = settings_of(sender.app), set(map(str, sender.app.amqp.queues.consume_from))
    _refuse_to_start(sender.app, settings)
    gc.set_threshold(_COLLECTED_AFTER)
    set_node_name(str(sender.hostname))
    spans.name_service(f"ramify-{str(sender.hostname).partition('@')[0]}")
    # Over RabbitMQ it takes as many messages from each queue.
    under_way.threads = int(sender.concurrency or 0) * (len(served) if settings.broker.rabbitmq else 1)
    _begin(settings, tuple(sorted(set(map(without_lane, served)))))


def _refuse_to_start(app: Celery, settings: Settings) -> None:
    """End a worker whose broker or store refuses it for good; one that is away is waited for. Raises: SystemExit."""
    try:
        with connect(settings, retries=0) as client:
            refuse_cluster(client, settings)
    except RedisError:
        pass
    except NotRunningError as error:
        sys.exit(str(error))
    try:
        broker.require_broker(app, settings)
    except broker.BrokerLostError as error:
        if error.final:
            sys.exit(str(error))


@task_prerun.connect
def note_begin(task_id: str, task: Any, **_: object) -> None:
    """For the heartbeat: a pool whose threads are all taken takes no message, and `ramify why` says so."""
    under_way.begin(task_id, task.name)


@task_postrun.connect
def note_end(task_id: str, task: Any, retval: object = None, state: str | None = None, **_: object) -> None:
    """Also of a task that raised."""
    counts.add(f"task:{task.name}", outcome_of_run(state, retval), under_way.end(task_id))


def outcome_of_run(state: str | None, returned: object) -> str:
    """How a run ended, by what `TaskRegistry` says of it: done, or the first of these words."""
    if state not in {None, "SUCCESS"}:
        return "raised"
    said = returned if isinstance(returned, dict) else {}
    return next((word for word in _OUTCOMES if word in said), "done")


@worker_process_init.connect
def start_heartbeat_of_child(**_: object) -> None:
    """A forked worker process runs tasks itself: the heartbeat that it inherited is its parent's."""
    settings = getattr(current_app, "ramify", None)
    if settings is not None:
        _begin(settings, _OwnHeartbeat.heartbeat.queues if _OwnHeartbeat.heartbeat else ())


def _begin(settings: Settings, queues: tuple[str, ...]) -> None:
    if _OwnHeartbeat.pid == os.getpid():  # a pool of one process sends both signals
        return
    _OwnHeartbeat.pid = os.getpid()
    # Without retries: the first timeout is a sign that the process' other connections are dead too.
    client = connect(settings, retries=0)
    _OwnHeartbeat.heartbeat = Heartbeat(client, settings, queues, _CountsAdder(Scripts(client), settings.jobs.ttl_s))
    _OwnHeartbeat.heartbeat.start()


class _CountsAdder:
    """Adds what this process has counted to Redis, every ten seconds: five calls each time, whatever the load.

    What Redis may have added, where its reply was lost, is added again.
    """

    def __init__(self, run: Scripts, ttl_s: int) -> None:
        self._run, self._ttl_s, self._due = run, ttl_s, 0.0

    def __call__(self, ending: bool) -> None:
        """Once a heartbeat. Raises: RedisError; then they are added the next time."""
        if not ending and time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _COUNTS_S
        if sums := counts.take():
            try:
                add_runs(self._run, sums, self._ttl_s)
            except Exception:
                counts.put_back(sums)
                raise


@worker_shutdown.connect
@worker_process_shutdown.connect
def end_heartbeat(**_: object) -> None:
    """A worker that ends by itself deletes its heartbeat: nobody has to wait until it expires."""
    if _OwnHeartbeat.heartbeat:
        _OwnHeartbeat.heartbeat.stop()


class _WithoutContent(logging.Filter):
    """Of a command of remote control that fails, only the kind of its error: the rest may repeat what was sent."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Always True: the record stays, shortened."""
        kind = record.exc_info[0] if record.exc_info else None
        record.msg, record.args = f"{str(record.msg).partition(':')[0]} ({kind.__name__ if kind else 'unknown'})", ()
        record.exc_info = record.exc_text = None
        return True


@setup_logging.connect
def set_up_logging(loglevel: int | str = logging.INFO, **_: object) -> None:
    """One line per record, without colours; Celery's own formats would print task arguments."""
    log_to_stderr(getattr(current_app, "ramify", None), loglevel or logging.INFO)
    # Eight lines at every lost connection, about `worker_cancel_long_running_tasks_on_connection_loss` above.
    warnings.filterwarnings("ignore", category=CPendingDeprecationWarning)
    for name in ("httpx", "celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in ("celery.worker.pidbox", "kombu.pidbox"):
        logging.getLogger(name).addFilter(_WithoutContent())
