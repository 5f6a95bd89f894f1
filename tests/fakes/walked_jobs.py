"""Jobs in every state, on a real Redis without workers: the methods of the job store bring them there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import redis

from orchestrator.client import Ramify
from shared.contract import PRIORITY_STEPS, Queue
from shared.jobs import Job, JobStore
from shared.jobs.keys import ACTIVE, AdmissionKeys
from shared.jobs.lines import NewLine, Page
from shared.language.routing import route_by_rules
from shared.models import Answer, Facet, JobRequest, Lane, LeafResult, LeafStatus, MergedPool, Node
from shared.models.batch import LineRecord
from shared.models.manifest import Manifest, Record, RunRecord
from shared.models.route import Route

WAITING, ADMITTED = "waiting", "admitted"
#: How far a job may have come before it has ended.
PLACES = (WAITING, ADMITTED, "planning", "searching", "merging", "summarising")
LEAVES = ("0.0", "0.1", "0.2")


def node(node_id: str, **fields: object) -> Node:
    values = {"id": node_id, "parent_id": "0", "level": 1, "facet": Facet.CORE, "query": f"question {node_id}"}
    return Node.model_validate({**values, **fields})


def leaf(node_id: str, status: LeafStatus = LeafStatus.DONE) -> LeafResult:
    return LeafResult(node_id=node_id, status=status, error=None if status is LeafStatus.DONE else "no store")


def answer(job: Job, *, partial: bool = False) -> Answer:
    return Answer(job_id=job.id, question="why?", state="done", coverage="3 of 3 leaves answered", partial=partial)


def manifest(job: Job) -> Manifest:
    return Manifest.of(Record(question=job.request.question), RunRecord(job_id=job.id))


def route() -> Route:
    from orchestrator.planning.route import table_route
    from shared.settings import load_settings

    return table_route(route_by_rules("Why do queues lose messages?"), load_settings())


def enter(store: JobStore, batch_id: str, jobs: Iterable[tuple[str, JobRequest]], **more: str) -> list[LineRecord]:
    """The next lines of a batch, as a client enters them. `more`: fields of the jobs."""
    at = store.batches.position(batch_id)
    lines = [
        NewLine(number, store.new_job(job_id, request, batch_id=batch_id, **more), key=request.idempotency_key)
        for number, (job_id, request) in enumerate(jobs, at.read + 1)
    ]
    return store.batches.enter(batch_id, Page(at.read, at.digest, at.read + len(lines), at.digest, lines))


@dataclass
class WalkedJob:
    """One job, taken from state to state as workers would."""

    store: JobStore
    id: str

    @property
    def job(self) -> Job:
        job = self.store.job(self.id)
        assert job is not None
        return job

    def planning(self) -> bool:
        return self.store.start_planning(self.id, "worker")

    def searching(self) -> bool:
        self.store.route(self.id, route())
        return self.store.start_searching(self.id, [node(name) for name in LEAVES])

    def merging(self, failed: tuple[str, ...] = ()) -> bool:
        for name in LEAVES:
            self.store.record_leaf(self.id, leaf(name, LeafStatus.FAILED if name in failed else LeafStatus.DONE))
        return self.store.start_merging(self.id, "worker")

    def summarising(self) -> bool:
        return self.store.start_summarising(self.id, MergedPool())

    def done(self, *, partial: bool = False) -> bool:
        leaves = tuple(self.store.results(self.id).values())
        made = answer(self.job, partial=partial).model_copy(update={"leaves": leaves})
        return self.store.finish(self.job, made, manifest=manifest(self.job))

    def to(self, place: str) -> WalkedJob:
        """Go on to this state."""
        for name in PLACES[2 : PLACES.index(place) + 1]:
            assert getattr(self, name)()
        return self

    def finish(self, place: str) -> bool:
        """What is left from `place` on; True when that ended the job."""
        for name in PLACES[max(2, PLACES.index(place) + 1) :]:
            getattr(self, name)()
        return self.done()


def admission_is_empty(client: redis.Redis, lane: Lane = Lane.INTERACTIVE) -> bool:
    """No job waits or is under way, and the reaper has none to check."""
    keys = AdmissionKeys(lane.value)
    counts = [int(value or 0) for value in client.hmget(keys.counts, ["waiting", "held"])]
    left = [client.hlen(AdmissionKeys.under_way), client.hlen(keys.held), client.llen(keys.ring), client.zcard(ACTIVE)]
    return counts == [0, 0] and left == [0, 0, 0, 0]


def queued(client: redis.Redis) -> dict[str, int]:
    """Messages in each queue."""
    names = {
        queue.value: [f"{queue.value}\x06\x16{step}" if step else queue.value for step in PRIORITY_STEPS]
        for queue in Queue
    }
    return {name: total for name, keys in names.items() if (total := sum(client.llen(key) for key in keys))}


def submitted(ramify: Ramify, count: int, **options: object) -> list[str]:
    return [ramify.submit(JobRequest.model_validate({"question": f"why, {n}?", **options})) for n in range(count)]
