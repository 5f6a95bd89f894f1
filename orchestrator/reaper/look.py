"""Reads views of jobs and of the world: one round trip for a page of jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from celery import Celery
from redis import Redis

from orchestrator.reaper.view import View, World
from shared.contract import Queue, priority
from shared.heartbeat import living
from shared.job_store import JobStore, State
from shared.job_store.codec import text
from shared.job_store.keys import JobKeys, LineKeys
from shared.job_store.work import read_items
from shared.models import Lane

_FIELDS = ("state", "rank", "updated_at", "deadline_at", "lane", "tenant", "created_at")
#: Seconds after a start of Redis in which a missing heartbeat says nothing yet: the workers have to come back first.
_SETTLING_S = 30


def read_views(jobs: JobStore, job_ids: Sequence[str]) -> tuple[list[View], list[str]]:
    """The jobs as they are now, and the ids of those that are gone."""
    with jobs.client.pipeline(transaction=False) as pipe:
        for job_id in job_ids:
            keys = JobKeys(job_id)
            pipe.hmget(keys.job, list(_FIELDS))
            pipe.hgetall(keys.leaves)
            pipe.hgetall(keys.work)
            pipe.exists(keys.pool)
        rows = pipe.execute()
    found = list(zip(job_ids, rows[::4], rows[1::4], rows[2::4], rows[3::4], strict=True))
    known = {job_id: _fields(values) for job_id, values, *_ in found if values[0] and values[3]}
    places = _places(jobs.client, known)
    views = [
        _view(jobs, job_id, known[job_id], leaves, work, bool(pool), places[job_id])
        for job_id, _, leaves, work, pool in found
        if job_id in known
    ]
    return views, [job_id for job_id in job_ids if job_id not in known]


def _fields(values: Iterable[Any]) -> dict[str, str]:
    return {name: text(value) if value is not None else "" for name, value in zip(_FIELDS, values, strict=True)}


def _places(client: Redis, known: Mapping[str, Mapping[str, str]]) -> dict[str, tuple[bool, bool]]:
    """Job id -> whether it waits in its line, whether it is counted as under way."""
    with client.pipeline(transaction=False) as pipe:
        for job_id, fields in known.items():
            pipe.zscore(LineKeys(fields["lane"]).of + fields["tenant"], job_id)
            pipe.hexists(LineKeys.under_way, job_id)
        rows = iter(pipe.execute())
    return {job_id: (next(rows) is not None, bool(next(rows))) for job_id in known}


def _view(  # noqa: PLR0913, PLR0917 - what the rows hold
    jobs: JobStore,
    job_id: str,
    fields: Mapping[str, str],
    leaves: Mapping[Any, Any],
    work: Mapping[Any, Any],
    pool: bool,
    place: tuple[bool, bool],
) -> View:
    states = {text(node): text(state) for node, state in leaves.items()}
    return View(
        job_id=job_id,
        state=State(fields["state"]),
        rank=int(fields["rank"] or priority(Lane(fields["lane"]))),
        updated_at=float(fields["updated_at"] or 0),
        deadline_at=float(fields["deadline_at"]),
        lane=Lane(fields["lane"]),
        tenant=fields["tenant"],
        in_line=place[0],
        counted=place[1],
        has_pool=pool,
        leaves=states,
        items=read_items(work),
        needs=_needs(jobs, job_id) if "waiting" in states.values() else {},
    )


def _needs(jobs: JobStore, job_id: str) -> dict[str, tuple[str, ...]]:
    return {node.id: node.depends_on for node in jobs.nodes(job_id).values() if node.depends_on}


def read_world(app: Celery, jobs: JobStore, views: Iterable[View]) -> World:
    """What holds for these jobs now."""
    workers = {item.busy.worker for view in views for item in view.items.values() if item.busy}
    return World(
        now=jobs.clock.now(),
        living=living_workers(jobs.client, workers),
        waiting=queue_lengths(app),
        front=jobs.work.front(),
        max_deaths=jobs.settings.lanes.max_deaths,
    )


def living_workers(client: Redis, workers: set[str]) -> frozenset[str]:
    """Right after a start of Redis a worker of another host is taken to live: its heartbeat has not come back yet."""
    info: Any = client.info("server") if workers else {}
    return living(client, workers, heartbeats=int(info.get("uptime_in_seconds", _SETTLING_S)) >= _SETTLING_S)


def queue_lengths(app: Celery, queues: Iterable[Queue] = Queue) -> dict[Queue, int]:
    """Messages that wait in each of these queues, on any broker; one that nobody has declared yet is empty."""
    lengths = {}
    with app.connection_for_read() as connection:  # a new one: one from the pool may have outlived an outage
        for queue in queues:
            try:
                channel: Any
                with connection.channel() as channel:
                    lengths[queue] = int(channel.queue_declare(queue.value, passive=True).message_count)
            except connection.channel_errors:
                lengths[queue] = 0
    return lengths
