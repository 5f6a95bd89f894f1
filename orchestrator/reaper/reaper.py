"""The reaper: reads the jobs under way, decides by `rules`, and sends lost work again.

Runs about every two seconds in the ops pool (`loop`). Trusts the job store, not a chord's counter. What it sends
again is harmless when the first copy still comes: leaves are recorded once, a claim lets one merge run.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice

from celery import Celery, Signature
from redis import Redis

from orchestrator.reaper import rules
from orchestrator.reaper.damage import DamageGuard
from orchestrator.reaper.looks import Looks
from orchestrator.reaper.resumption import Resumption
from orchestrator.reaper.views import (
    Decision,
    Expire,
    Finalise,
    Force,
    Missing,
    Readmit,
    Redrive,
    View,
    World,
    read_views,
    read_world,
)
from shared.connections.heartbeat import WorkerBeat, alive_workers, worker_id, workers
from shared.connections.key_types import declare
from shared.contract import OF_SHARD, Queue, TaskMessage, TaskName, priority
from shared.jobs import TERMINAL, JobStore, State
from shared.jobs.codec import text
from shared.jobs.fields import Fields, damaged
from shared.jobs.keys import ACTIVE, PREFIX, JobKeys
from shared.jobs.scripts import Scripts
from shared.models import Facet, Lane, Node, NodeKind
from shared.providers.gates.state import read_gates
from shared.tasks.broker import BrokerLostError, queue_lengths
from shared.tasks.signatures import Dispatcher, merge_signature, node_signature, sent_again, task_signature

log = logging.getLogger("ramify.reaper")
_TAG = f"{PREFIX}:{{reaper}}"
LOCK, TOKEN = f"{_TAG}:lock", f"{_TAG}:token"
#: When a reaper finished its last run (Unix seconds).
LAST_RUN = f"{_TAG}:looked"
_CURSOR = f"{_TAG}:cursor"
#: A run takes milliseconds; a leader that died blocks the next one for so long.
_LOCK_MS = 10_000
#: Seconds that the counter of tokens is kept after the last run.
_TOKEN_S = 86_400
#: Jobs that a run takes from those that are due, and from all open ones in turn, in case a list was lost.
_DUE, _IN_TURN = 500, 200
#: Further pages of due jobs that a run takes: many that wait may be overdue at once.
_MORE_DUE = 10
_CURSOR_DIGITS = 20
#: Seconds that all threads of a worker may be taken before the log names it.
_FULL_S = 120.0
_PAGE = 500
#: Batches are reconciled in so many steps a run; when all have been, they are again after so many seconds.
_RECONCILE_STEPS, _RECONCILE_S = 4, 60.0
#: Seconds between two counts of the jobs that wait and are under way.
_RECOUNT_S = 6.0
#: A key for each queue, by its name: "<job id> <item>" of the one that is tried now.
SLOTS = {queue: f"{_TAG}:suspect:{queue.value}" for queue in Queue}
declare(dict.fromkeys((LOCK, TOKEN, LAST_RUN, _CURSOR, *SLOTS.values()), "string"))
#: Seconds after which the next suspect is tried, whatever became of the last one.
_SLOT_S = 20
_ENDED = frozenset({"done", "failed", "grown"})
#: States of a job in which a task of the whole job is still to be done.
_OPEN = {
    task.value: {state for state, waits_for in rules.JOB_TASKS.items() if waits_for is task}
    for task in rules.JOB_TASKS.values()
}


@contextmanager
def leading(client: Redis) -> Iterator[int]:
    """The fencing token of this leader, which the store compares; 0 while another reaper leads. Raises: RedisError."""
    run = Scripts(client)
    token = int(run("lead", [LOCK, TOKEN], [worker_id(), _LOCK_MS, _TOKEN_S]))
    try:
        yield token
    finally:
        if token:
            run("unlead", [LOCK], [token])


class Suspects:
    """Items at which two workers have died: only one at a time is sent to each queue, that is, to each pool.

    An item whose worker died because of another one ends when it is alone; a poison message dies again. May raise
    RedisError.
    """

    def __init__(self, client: Redis) -> None:
        self._client = client

    def free_slots(self, jobs: JobStore) -> None:
        """Free the slots of items that have ended."""
        for (queue, slot), held in zip(SLOTS.items(), self._client.mget(SLOTS.values()), strict=True):
            if held is not None and self._has_ended(jobs, queue, text(held)):
                self._client.delete(slot)

    @staticmethod
    def _has_ended(jobs: JobStore, queue: Queue, name: str) -> bool:
        job_id, _, item = name.partition(" ")
        keys = JobKeys(job_id)
        with jobs.client.pipeline(transaction=False) as pipe:
            pipe.hget(keys.job, "state")
            pipe.hget(keys.leaves, item)
            replies = pipe.execute(raise_on_error=False)
        fields = Fields(dict(zip(("state", "node"), replies, strict=True)), [])
        state, node = fields.text("state"), fields.text("node")
        job_ended = damaged(*replies) is not None or not state or state in TERMINAL
        if job_ended or not node:
            return job_ended or state not in _OPEN.get(item, ())
        return node in _ENDED or (queue is Queue.SEARCH and node == "searched")

    def one_at_a_time(self, job_id: str, missing: Iterable[Missing]) -> Iterator[Missing]:
        """Everything but the suspects, and of these the one whose slot is free."""
        for one in missing:
            if not one.suspect or self._takes(SLOTS[one.task.queue], f"{job_id} {one.item}"):
                yield one

    def _takes(self, slot: str, name: str) -> bool:
        """A suspect that is missing again while it holds the slot has died again: it goes on until it is retired."""
        if self._client.set(slot, name, nx=True, ex=_SLOT_S):
            return True
        held = self._client.get(slot)
        mine = held is not None and text(held) == name
        return mine and bool(self._client.set(slot, name, ex=_SLOT_S))


class Reaper:
    """Checks the jobs of one store. Of several reapers, one leads at a time."""

    def __init__(self, app: Celery, jobs: JobStore, looks: Looks | None = None) -> None:
        """`looks`: which jobs a run reads; all of them without it."""
        self._app, self._jobs = app, jobs
        self._looks = looks or Looks()
        self._dispatcher = Dispatcher(app, jobs)
        self._suspects = Suspects(jobs.client)
        self._resumption = Resumption()
        self._cycle_done = False
        self._reconciling: Iterator[int] = iter(())
        self._reconcile_at = self._recount_at = 0.0
        self._full = frozenset[str]()
        self._lost: BrokerLostError | None = None

    def run(self) -> int:
        """Check once; returns how many jobs, 0 when another reaper leads. Raises: RedisError, OperationalError.

        While RabbitMQ is away nothing can be sent, and jobs whose time is over end all the same.
        """
        with leading(self._jobs.client) as token:
            if not token:
                return 0
            self._lost = None
            self._suspects.free_slots(self._jobs)
            self._resumption.begin(read_gates(self._jobs.client, self._jobs.settings))
            under_way, beats = self._jobs.admission.under_way(), workers(self._jobs.client)
            living = alive_workers(self._jobs.client, [beat.worker for beat in beats])
            wanted = self._looks.wanted(self._jobs.due(_DUE), under_way, self._in_turn(), living)
            guard = DamageGuard(self._jobs)
            for start in range(0, len(wanted), _PAGE):
                self._check(wanted[start : start + _PAGE], token, guard, under_way)
            for _ in range(_MORE_DUE):
                if not (more := self._jobs.due(_DUE)):
                    break
                self._check(more, token, guard)
            guard.finish(under_way)
            if self._cycle_done and time.monotonic() >= self._recount_at:
                self._recount_at = time.monotonic() + _RECOUNT_S
                for lane in Lane:  # a count that is too high would keep everybody out
                    self._repair(lane, (), recount=True)
            self._reconcile()
            if self._lost is None:
                self._dispatcher.run()
            self._jobs.client.set(LAST_RUN, f"{self._jobs.clock.now():.3f}", ex=self._jobs.settings.jobs.ttl_s)
            self._name_full_pools(beats)
            if self._lost is not None:
                raise self._lost
            return len(wanted)

    def _name_full_pools(self, beats: Iterable[WorkerBeat]) -> None:
        """Log workers whose threads are all taken for longer than a call of a server lasts: once, until one is free."""
        full = {beat.worker: beat for beat in beats if beat.full and beat.longest_s > _FULL_S}
        for worker, beat in full.items():
            if worker not in self._full:
                log.warning("%s: all %d threads are taken, one since %.0f s", worker, beat.threads, beat.longest_s)
        self._full = frozenset(full)

    def _reconcile(self) -> None:
        """A few of the open jobs of batches: what nobody counted, or is gone, is counted without a client."""
        steps = list(islice(self._reconciling, _RECONCILE_STEPS))
        if counted := sum(steps):
            log.warning("%d ended jobs were not counted in their batches: corrected", counted)
        if steps:
            self._reconcile_at = time.monotonic() + _RECONCILE_S
        elif time.monotonic() >= self._reconcile_at:
            self._reconciling = self._jobs.batches.reconcile_open()

    def _in_turn(self) -> list[str]:
        """The next few of all open jobs, so that each is checked now and then even if it is in no list."""
        kept = text(self._jobs.client.get(_CURSOR) or b"0")
        cursor = int(kept) if kept.isdecimal() and len(kept) <= _CURSOR_DIGITS else 0
        cursor, found = self._jobs.client.zscan(ACTIVE, cursor, count=_IN_TURN)
        self._jobs.client.set(_CURSOR, cursor, ex=self._jobs.settings.jobs.ttl_s)
        self._cycle_done = cursor == 0
        return [text(job_id) for job_id, _ in found]

    def _check(self, job_ids: Sequence[str], token: int, guard: DamageGuard, under_way: Container[str] = ()) -> None:
        self._check_readable(job_ids, token, guard, under_way)
        guard.look_later()

    def _check_readable(
        self, job_ids: Sequence[str], token: int, guard: DamageGuard, under_way: Container[str]
    ) -> None:
        found = read_views(self._jobs, job_ids, under_way)
        guard.seen(job_ids, found.damaged)
        self._jobs.release(found.gone)
        views = [view for view in found.views if guard.goes_on(view.job_id)]
        if not views:
            return
        waiting = [view for view in views if view.awaiting_admission]
        for lane in Lane:  # a tenant with waiting jobs must be in the ring
            if tenants := {view.tenant for view in waiting if view.lane is lane}:
                self._repair(lane, tenants)
        world = read_world(self._jobs, views, self._resumption.shut, self._waiting())
        self._jobs.release([view.job_id for view in views if isinstance(rules.decide(view, world), Finalise)])
        items_of = Counter(attempt.worker for view in views for _, attempt in rules.dead_attempts(view, world))
        over = defaultdict[str, list[str]](list)
        for view in views:
            with guard.around(view.job_id):
                decision = self._drive(view, world, items_of, token)
                if isinstance(decision, Expire):
                    over[decision.reason].append(view.job_id)
        for reason, expired in over.items():
            self._jobs.endings.stop(expired, State.EXPIRED, reason)
        self._schedule([view for view in views if view.state not in TERMINAL], world.now)

    def _waiting(self) -> dict[str, int] | None:
        """Messages in each queue of the broker; None while it is away, for which it is asked once a run."""
        if self._lost is None:
            try:
                return queue_lengths(self._app, self._jobs.settings, unknown=1)
            except BrokerLostError as error:
                self._lost = error
        return None

    def _drive(self, view: View, world: World, items_of: Mapping[str, int], token: int) -> Decision:
        """Do what one job needs now, but for an expiry: many expire at a time."""
        self._jobs.work.drop(view.job_id, view.unreadable)
        current = self._without_dead(self._readmitted(view, world), world, items_of)
        decision = rules.decide(current, world)
        self._act(current, decision, token)
        return decision

    def _repair(self, lane: Lane, tenants: Iterable[str], *, recount: bool = False) -> None:
        if self._jobs.admission.repair(lane, tenants, recount=recount):
            log.warning("the admission queues of the %s lane were wrong: corrected", lane.value)

    def _readmitted(self, view: View, world: World) -> View:
        """Put a job back that neither waits for admission nor is under way."""
        decision = rules.decide(view, world)
        job = self._jobs.job(view.job_id) if isinstance(decision, Readmit) else None
        if job is None or job.terminal or not isinstance(decision, Readmit):
            return view
        self._jobs.admission.readmit(job.id, job.lane, job.request.tenant, job.created_at, runs=decision.runs)
        now = self._jobs.job(view.job_id)
        if now is None or now.terminal:  # it ended in between: what its end gave back was not there yet
            self._jobs.release([job.id])
            return view
        log.warning("job %s was in no admission queue and not under way; put back", job.id)
        return replace(view, admitted=True, awaiting_admission=not decision.runs)

    def _without_dead(self, view: View, world: World, items_of: Mapping[str, int]) -> View:
        """Count the deaths of the job's workers, and free their items. `items_of`: how many items each had."""
        dead = list(rules.dead_attempts(view, world))
        if not dead:
            return view
        for name, attempt in dead:
            deaths = self._jobs.work.record_death(
                view.job_id, name, view.items[name].busy_raw, alone=items_of[attempt.worker] == 1
            )
            log.warning("job %s: %s died at %s (death %d of it)", view.job_id, attempt.worker, name, deaths)
        senders = [attempt.begun_at for _, attempt in dead if attempt.task in rules.SENDERS]
        return replace(view, items=self._jobs.work.items(view.job_id), sender_died=min(senders, default=None))

    def _schedule(self, views: Iterable[View], now: float) -> None:
        patience = self._jobs.settings.jobs.redrive_after_s
        self._jobs.next_check(
            {
                view.job_id: view.waits_until
                if view.awaiting_admission
                else min(now + patience, max(now, view.ends_at) + rules.FORCE_AFTER_S + 0.1)
                for view in views
            }
        )

    def _act(self, view: View, decision: Decision, token: int) -> None:
        match decision:
            case Force(missing):
                self._send(view, [replace(missing, force=True)], token)
            case Redrive(missing):
                in_turn = self._resumption.in_turn(missing)
                self._send(view, self._suspects.one_at_a_time(view.job_id, in_turn), token)

    def _send(self, view: View, missing: Iterable[Missing], token: int) -> None:
        """Send what the store grants, one call per reason: what has changed since it was read is not granted.

        The messages are made before the store notes that they were sent.
        """
        by_why = defaultdict[str, dict[Missing, Signature]](dict)
        for one in missing:
            by_why[one.why][one] = self._signature(view, one)
        for why, messages in by_why.items():
            items = [(one.item, one.seen, one.sent_raw) for one in messages]
            waited = why == rules.WAITED
            granted = self._jobs.redrive(view.job_id, view.state, token, "" if waited else why, items)
            for one, signature in messages.items():
                if one.item in granted:
                    sent_again(signature, self._jobs.clock.now()).apply_async()
            if granted:
                level = logging.INFO if waited else logging.WARNING
                log.log(level, "job %s: %s sent again: %s", view.job_id, ", ".join(sorted(granted)), why)

    def _signature(self, view: View, one: Missing) -> Signature:
        """Lost work has waited already: it gets the first priority of its lane.

        A node whose record is lost is sent too: its task records that.
        """
        message, first = TaskMessage(job_id=view.job_id), priority(view.lane)
        if one.task is TaskName.MERGE_TREE:
            return merge_signature(self._app, view.job_id, first, force=one.force)
        if one.seen in {"done", "failed", ""} or one.task is TaskName.INDEX_DOCUMENTS:
            named = message.model_copy(update={"node_id": one.item if one.seen else None, "force": one.force})
            return task_signature(self._app, one.task, named, first)
        lost = Node(id=one.item, level=1, facet=Facet.CORE, query=one.item)
        node = self._jobs.node(view.job_id, one.item) or lost
        if node.shard is not None:
            return task_signature(self._app, OF_SHARD[one.task], message.model_copy(update={"node_id": node.id}), first)
        kind = NodeKind.BRANCH if one.task is TaskName.PLAN_REFINE else NodeKind.LEAF
        return node_signature(self._app, view.job_id, first, node.model_copy(update={"kind": kind}))
