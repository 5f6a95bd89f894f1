"""What the reaper decides by, a job as the store has it (View) and what holds for all (World), and its decisions."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from redis import Redis

from shared.connections.heartbeat import alive_workers
from shared.contract import Queue, TaskName, lane_of, lane_queue
from shared.errors import DamagedError, shown
from shared.jobs import TERMINAL, JobStore, State
from shared.jobs.fields import Fields, damage_named, damaged, is_word
from shared.jobs.job import rank_of
from shared.jobs.keys import AdmissionKeys, JobKeys
from shared.jobs.states import LEAF_STATES
from shared.jobs.work import WorkItem, read_work, unreadable_work
from shared.models import Lane

_FIELDS = ("state", "rank", "created_at", "updated_at", "waits_until", "deadline_at", "lane", "tenant", "open")
#: Seconds after a start of Redis in which a missing heartbeat does not count: the workers have to reconnect first.
_SETTLING_S = 30
#: States in which a job has no merged pool, or needs none.
_WITHOUT_POOL = frozenset({State.QUEUED, State.PLANNING, State.SEARCHING, State.INDEXING, State.FINISHING}) | TERMINAL


@dataclass(frozen=True)
class View:
    """One job. Times are Unix seconds. `needs`: waiting leaf -> the leaves that it waits for.

    `waits_until`: when its turn must have come; `deadline_at`: None until then. `admitted`: it is under way.
    `sender_died`: when a task began that sends nodes to their first queue and whose worker was found dead now.
    `counted_open`: nodes that are open by the job's own count, which its leaves may belie. `unreadable`: names of the
    fields of its work that say nothing.
    """

    job_id: str
    state: State
    rank: int
    updated_at: float
    deadline_at: float | None
    created_at: float = 0.0
    waits_until: float = 0.0
    lane: Lane = Lane.INTERACTIVE
    tenant: str = ""
    awaiting_admission: bool = False
    admitted: bool = True
    has_pool: bool = False
    leaves: Mapping[str, str] = field(default_factory=dict)
    items: Mapping[str, WorkItem] = field(default_factory=dict)
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sender_died: float | None = None
    counted_open: int = 0
    unreadable: tuple[bytes, ...] = ()

    @property
    def waits(self) -> bool:
        """Its turn has not come: it stands in a queue of admission, or should."""
        return self.state is State.QUEUED and not self.admitted

    @property
    def ends_at(self) -> float:
        """When its time is over: by its deadline, else by the end of its wait."""
        return self.waits_until if self.waits or self.deadline_at is None else self.deadline_at

    def item(self, name: str) -> WorkItem:
        """The fields of an item; empty if it has none."""
        return self.items.get(name, WorkItem())


@dataclass(frozen=True)
class World:
    """What holds for all jobs. `waiting`: messages in each queue of the broker; `latest_taken`: as `WorkLog` has it.

    `shut`: kinds of servers that no call may go to now. `lanes_apart`: the broker has a queue for each lane, in which
    what comes first goes first; else one for both, by priorities. `broker_away`: nothing can be sent, and nobody knows
    what waits.
    """

    now: float
    living: frozenset[str] = frozenset()
    waiting: Mapping[str, int] = field(default_factory=dict)
    latest_taken: Mapping[str, float] = field(default_factory=dict)
    max_deaths: int = 3
    shut: frozenset[str] = frozenset()
    lanes_apart: bool = False
    broker_away: bool = False

    def in_queue(self, queue: Queue, rank: int) -> int:
        """How many messages wait where one of this priority would."""
        return self.waiting.get(lane_queue(queue, lane_of(rank)) if self.lanes_apart else queue.value, 0)


@dataclass(frozen=True)
class Missing:
    """An item that is to be sent again. `seen`: the state of its node as it was read; "" for a task of the job.

    `waited_for`: it is not lost, but has waited for a server of this kind. Those that go on without it have none.
    `force`: the merge goes before nodes that count as open.
    """

    item: str
    task: TaskName
    seen: str = ""
    sent_raw: str = ""
    why: str = ""
    suspect: bool = False
    waited_for: str = ""
    force: bool = False


@dataclass(frozen=True)
class Finalise:
    """The job has ended: repeat what follows from that."""


@dataclass(frozen=True)
class Expire:
    """Its time is over, and there is nothing to answer with."""

    reason: str


@dataclass(frozen=True)
class Force:
    """The deadline has passed: merge the leaves that are recorded."""

    merge: Missing


@dataclass(frozen=True)
class Redrive:
    """Send these items again: they are lost."""

    missing: tuple[Missing, ...]


@dataclass(frozen=True)
class Readmit:
    """The job neither waits nor is under way. `runs`: it should be under way, else it should wait."""

    runs: bool


@dataclass(frozen=True)
class Wait:
    """All is as it should be."""


Decision = Finalise | Expire | Force | Redrive | Readmit | Wait


@dataclass(frozen=True)
class Found:
    """What was read: the jobs as they are now, the ids of those that are gone, and those that cannot be read."""

    views: list[View] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    damaged: dict[str, DamagedError] = field(default_factory=dict)


def read_views(jobs: JobStore, job_ids: Sequence[str], under_way: Container[str] = ()) -> Found:
    """Read these jobs, each on its own: one that cannot be read costs the others nothing.

    `under_way`: those that are known to be; of others it is asked.
    """
    with jobs.client.pipeline(transaction=False) as pipe:
        for job_id in job_ids:
            keys = JobKeys(job_id)
            pipe.hmget(keys.job, list(_FIELDS))
            pipe.hgetall(keys.leaves)
            pipe.hgetall(keys.work)
        rows = pipe.execute(raise_on_error=False)
    found, known = Found(), dict[str, _Known]()
    for job_id, *stored in zip(job_ids, rows[::3], rows[1::3], rows[2::3], strict=True):
        if error := damaged(*stored):
            found.damaged[job_id] = error
        elif not (fields := Fields(dict(zip(_FIELDS, stored[0], strict=True)))):
            found.gone.append(job_id)
        else:
            try:
                known[job_id] = _Known(fields, fields.member("lane", Lane), fields.needed("tenant"), *stored[1:])
            except DamagedError as error:
                found.damaged[job_id] = error
    for job_id, place in _places(jobs.client, known, under_way).items():
        try:
            with damage_named():
                found.views.append(_view(jobs, job_id, known[job_id], place))
        except DamagedError as error:
            found.damaged[job_id] = error
    return found


class _Known(NamedTuple):
    """What was read of one job, not yet looked at but for its lane and tenant."""

    fields: Fields
    lane: Lane
    tenant: str
    leaves: Mapping[bytes, bytes]
    work: Mapping[bytes, bytes]


def _places(
    client: Redis, known: Mapping[str, _Known], under_way: Container[str]
) -> dict[str, tuple[object, object, object]]:
    """Job id -> its score in the admission queue of its tenant, whether it is under way, whether it has a pool.

    Each may be an error. Asks only what is not known.
    """
    places = {job_id: [None, 1, 0] if job_id in under_way else [None, 0, 0] for job_id in known}
    asked = list[tuple[str, int]]()
    with client.pipeline(transaction=False) as pipe:
        for job_id, job in known.items():
            if job_id not in under_way:
                pipe.zscore(AdmissionKeys(job.lane.value).waiting + job.tenant, job_id)
                pipe.hexists(AdmissionKeys.under_way, job_id)
                asked += [(job_id, 0), (job_id, 1)]
            if job.fields.guessed().text("state") not in _WITHOUT_POOL:
                pipe.exists(JobKeys(job_id).pool)
                asked.append((job_id, 2))
        for (job_id, at), reply in zip(asked, pipe.execute(raise_on_error=False), strict=True):
            places[job_id][at] = reply
    return {job_id: (score, held, pool) for job_id, (score, held, pool) in places.items()}


def _view(jobs: JobStore, job_id: str, job: _Known, place: tuple[object, object, object]) -> View:
    """Raises: DamagedError."""
    if error := damaged(*place):
        raise error
    fields, guessed = job.fields, job.fields.guessed()
    states = _leaf_states(job.leaves)
    deadline_at = fields.number("deadline_at", 0.0) or None
    bound = "waiting" in states.values() and fields.text("state") == State.SEARCHING
    nodes = jobs.nodes(job_id).values() if bound else ()
    return View(
        job_id=job_id,
        state=fields.member("state", State),
        rank=rank_of(guessed, job.lane),
        updated_at=guessed.number("updated_at", 0.0),
        deadline_at=deadline_at,
        created_at=guessed.number("created_at", 0.0),
        waits_until=(guessed if deadline_at else fields).number("waits_until", deadline_at),
        lane=job.lane,
        tenant=job.tenant,
        awaiting_admission=place[0] is not None,
        admitted=bool(place[1]),
        has_pool=bool(place[2]),
        leaves=states,
        items=read_work(job.work),
        needs={node.id: node.depends_on for node in nodes if node.depends_on},
        counted_open=int(guessed.number("open", 0.0)),
        unreadable=unreadable_work(job.work),
    )


def _leaf_states(raw: Mapping[bytes, bytes]) -> dict[str, str]:
    """Node id -> state. One that cannot be read has ended, without a result. Raises: DamagedError for a newer one."""
    states = {}
    for name, value in raw.items():
        leaf = Fields({"name": name, "state": value}, [])
        node, state = leaf.text("name"), leaf.text("state")
        if state not in LEAF_STATES and is_word(state):
            clause = f"the state of its leaf {node} is {shown(state)}, a word that this release does not know"
            raise DamagedError(clause, newer=True)
        states[node] = state
    return states


def read_world(
    jobs: JobStore, views: Iterable[View], shut: frozenset[str] = frozenset(), waiting: Mapping[str, int] | None = None
) -> World:
    """What holds for these jobs now. `shut`, `waiting`: as in World; `waiting` None: the broker does not answer."""
    workers = {item.busy.worker for view in views for item in view.items.values() if item.busy}
    return World(
        now=jobs.clock.now(),
        living=living_workers(jobs.client, workers),
        waiting=waiting or {},
        latest_taken=jobs.work.latest_taken(),
        max_deaths=jobs.settings.lanes.max_deaths,
        shut=shut,
        lanes_apart=jobs.settings.broker.rabbitmq,
        broker_away=waiting is None,
    )


def living_workers(client: Redis, workers: set[str]) -> frozenset[str]:
    """Right after a start of Redis, workers of other hosts count as alive: they have not written a heartbeat yet."""
    info: Any = client.info("server") if workers else {}
    return alive_workers(client, workers, heartbeats=int(info.get("uptime_in_seconds", _SETTLING_S)) >= _SETTLING_S)
