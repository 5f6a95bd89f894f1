"""Reads the facts of one job. What cannot be read is left out and named."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from celery import Celery
from kombu.exceptions import OperationalError
from redis import Redis
from redis.exceptions import ResponseError

from orchestrator.diagnosis.wording import serving
from orchestrator.reaper.rules import task_of, task_of_job
from orchestrator.reaper.views import View, World, living_workers
from shared.connections.heartbeat import SilentWorker, WorkerBeat, silent_workers, workers
from shared.contract import Queue
from shared.errors import DamagedError
from shared.jobs import TERMINAL, JobReader, JobStore, State
from shared.jobs.admission import QueuePosition
from shared.jobs.codec import text
from shared.jobs.dead_letters import DeadKeys
from shared.jobs.fields import Fields
from shared.jobs.job import rank_of
from shared.jobs.keys import AdmissionKeys, JobKeys
from shared.jobs.work import read_work
from shared.models import JobStatus, Lane, Node
from shared.models.status import Failure, Redriven
from shared.providers.gates.gate import NAMES, time_of_day
from shared.providers.gates.state import read_gates
from shared.settings import Settings
from shared.tasks.broker import BrokerLostError, queue_lengths

_EVENTS, _REDRIVES = 500, 5
T = TypeVar("T")
P = ParamSpec("P")


@dataclass
class Facts:
    """What is known of one job. `own`: jobs of its tenant under way in its lane. `known`: everything could be read.

    `broker`: why RabbitMQ carries no message now; empty where it does, or where nobody asked.
    """

    status: JobStatus
    view: View
    world: World = field(default_factory=lambda: World(now=0.0))
    place: QueuePosition | None = None
    known: bool = True
    broker: str = ""
    own: int = 0
    window: int = 0
    heartbeats: Sequence[WorkerBeat] = ()
    silent: Sequence[SilentWorker] = ()
    nodes: Mapping[str, Node] = field(default_factory=dict)
    failed: tuple[Failure, ...] = ()
    redriven: int = 0
    redrives: tuple[Redriven, ...] = ()
    dead_letters: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    faults: list[str] = field(default_factory=list)


def unavailable_providers(client: Redis, settings: Settings) -> tuple[str, ...]:
    """A sentence for each provider that the settings name and that is paused, or whose breaker lets no call pass.

    Raises: redis.exceptions.RedisError.
    """
    found = []
    for gate in read_gates(client, settings):
        name = f"{'' if gate.provider == 'qdrant' else 'the '}{NAMES[gate.provider]} at {gate.host}"
        if gate.state == "open":
            failures = f"{gate.failures} failures in a row: it {gate.why}"
            found.append(f"{name} is left alone until {time_of_day(gate.until)} after {failures}")
        elif gate.probing:
            found.append(f"{name} is tried with one call, which all others wait for, since it {gate.why}")
        elif gate.paused_until:
            found.append(f"{name} wants no request until {time_of_day(gate.paused_until)}")
    return tuple(found)


def unserved_queues(client: Redis) -> tuple[Queue, ...]:
    """The queues that no worker takes messages from, by their heartbeats. Raises: redis.exceptions.RedisError."""
    beats, silent = workers(client), silent_workers(client)
    return tuple(queue for queue in Queue if not serving(beats, silent, queue))


def _queues(view: View) -> set[Queue]:
    """The queues in which work of the job may wait."""
    if view.state in TERMINAL or view.awaiting_admission:
        return set()
    nodes = {task.queue for node in view.leaves if (task := task_of(view, node))}
    return nodes if nodes and view.state is State.SEARCHING else {task_of_job(view).queue}


def broker_outage(app: Celery, settings: Settings) -> str:
    """Why RabbitMQ carries no message now; empty where it does, and where Redis is the broker."""
    if not settings.broker.rabbitmq:
        return ""
    try:
        queue_lengths(app, settings, {Queue.PLAN})
    except BrokerLostError as error:
        return str(error)
    return ""


class FactReader:
    """Reads one job. Raises: NotFoundError, redis.exceptions.RedisError when Redis does not answer."""

    def __init__(self, app: Celery, jobs: JobStore, job_id: str) -> None:
        self._app, self._jobs, self._id = app, jobs, job_id
        self._keys = JobKeys(job_id)
        self._faults: list[str] = []
        self._broker = ""

    def facts(self) -> Facts:
        """Everything, in about ten round trips."""
        jobs, client, settings = self._jobs, self._jobs.client, self._jobs.settings
        status = JobReader(client).status(self._id)
        lane = Lane(status.lane)
        place = self._tried("its queue position", None, jobs.admission.position, self._id, lane, status.tenant)
        names = ("rank", "redriven")
        fields = Fields(dict(zip(names, client.hmget(self._keys.job, names), strict=True)), [])
        view = self._view(status, place, rank_of(fields, lane))
        facts = Facts(status=status, view=view, place=place, window=settings.lanes.under_way, faults=self._faults)
        facts.redriven = fields.whole("redriven")
        held = self._hash("its tenant's share", AdmissionKeys(lane.value).held)
        facts.own = self._tried("its tenant's share", 0, int, held.get(status.tenant) or 0)
        facts.world = self._world(view)
        facts.known, facts.broker = not (self._faults or self._broker), self._broker
        facts.heartbeats = self._tried("the workers", (), workers, client)
        facts.silent = self._tried("the silent workers", (), silent_workers, client)
        facts.nodes = self._tried("its tree", {}, jobs.nodes, self._id)
        facts.failed = self._tried("its failed leaves", (), self._failed, view, facts.nodes)
        facts.redrives = self._tried("its events", (), self._redrives)
        facts.dead_letters = self._tried("dead letters", (), self._dead_letters, view)
        facts.providers = self._tried("the providers", (), unavailable_providers, client, settings)
        return facts

    def _world(self, view: View) -> World:
        """Where heartbeats cannot be read, all workers count as alive."""
        busy = {work.busy.worker for work in view.items.values() if work.busy}
        queues, settings = _queues(view), self._jobs.settings
        if view.awaiting_admission and settings.broker.rabbitmq:
            queues = {Queue.PLAN}  # without it nothing is let in
        return World(
            now=self._jobs.clock.now(),
            living=self._tried("who lives", frozenset(busy), living_workers, self._jobs.client, busy),
            waiting=self._tried("the queues", {}, self._lengths, queues) if queues else {},
            latest_taken=self._tried("the latest taken messages", {}, self._jobs.work.latest_taken),
            max_deaths=settings.lanes.max_deaths,
            lanes_apart=settings.broker.rabbitmq,
        )

    def _lengths(self, queues: set[Queue]) -> dict[str, int]:
        return queue_lengths(self._app, self._jobs.settings, queues, unknown=1)

    def _tried(self, what: str, otherwise: T, read: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        try:
            return read(*args, **options)
        except BrokerLostError as error:
            self._broker = str(error)
            return otherwise
        except (ResponseError, DamagedError, ValueError, TypeError, OperationalError) as error:
            self._faults.append(f"{what} cannot be read ({str(error) or type(error).__name__})")
            return otherwise

    def _view(self, status: JobStatus, place: QueuePosition | None, rank: int) -> View:
        """The job as the reaper sees it."""
        return View(
            job_id=self._id,
            state=State(status.state),
            rank=rank,
            updated_at=status.updated_at,
            deadline_at=status.deadline_at,
            created_at=status.created_at,
            waits_until=status.waits_until or status.ends_by,
            awaiting_admission=bool(place and place.waiting),
            admitted=bool(place and place.under_way),
            lane=Lane(status.lane),
            tenant=status.tenant,
            has_pool=bool(self._jobs.client.exists(self._keys.pool)),
            leaves=self._hash("its leaves", self._keys.leaves),
            items=read_work(self._hash("its attempts", self._keys.work)),
        )

    def _hash(self, what: str, key: str) -> dict[str, str]:
        raw: Mapping[Any, Any] = self._tried(what, {}, self._jobs.client.hgetall, key)
        return {text(name): text(value) for name, value in raw.items()}

    def _failed(self, view: View, nodes: Mapping[str, Node]) -> tuple[Failure, ...]:
        names = [name for name, state in view.leaves.items() if state == "failed"]
        results = self._jobs.results(self._id, sorted(names))
        queries = {name: nodes[name].query if name in nodes else "" for name in results}
        return tuple(
            Failure(item=name, what=queries[name], error=result.error or "no reason was given")
            for name, result in results.items()
        )

    def _redrives(self) -> tuple[Redriven, ...]:
        """The latest, oldest first."""
        found: list[Redriven] = []
        entries: Any = self._jobs.client.xrevrange(self._keys.events, count=_EVENTS)
        for entry_id, fields in entries:
            data = {text(name): text(value) for name, value in fields.items()}
            if data.get("type") == "redriven":
                with suppress(ValueError):
                    items = tuple(str(item) for item in json.loads(data.get("items", "")))
                    at = int(text(entry_id).partition("-")[0]) / 1000
                    found.append(Redriven(at=at, items=items, why=data.get("why", "")))
        return tuple(reversed(found[:_REDRIVES]))

    def _dead_letters(self, view: View) -> tuple[str, ...]:
        names = [f"{self._id}:{item}" for item, work in view.items.items() if work.deaths or work.proof]
        kept = self._jobs.client.hmget(DeadKeys.dead_letters, names) if names else []
        return tuple(name for name, dead_letter in zip(names, kept, strict=True) if dead_letter is not None)
