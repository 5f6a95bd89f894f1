"""The reaper: one look at the jobs under way, and what follows from it.

Runs every two seconds in the ops pool (`loop`). A chord's counter may be lost; the store's count is the truth.
What it sends again is harmless when the first copy still comes: leaves are recorded once, bodies run by a claim.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from celery import Celery, Signature
from redis import Redis

from orchestrator.reaper import rules
from orchestrator.reaper.leader import LOOKED, leading
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
from shared.contract import OF_SHARD, Queue, TaskMessage, TaskName, priority
from shared.jobs import TERMINAL, JobStore, State
from shared.jobs.codec import text
from shared.jobs.keys import ACTIVE, PREFIX, JobKeys
from shared.models import Lane, NodeKind
from shared.tasks.signatures import Dispatcher, merge_signature, node_signature, sent_again, task_signature

log = logging.getLogger("ramify.reaper")
_CURSOR = f"{PREFIX}:{{reaper}}:cursor"
#: Jobs that a look takes from those that are due, and from all in turn, so that no list is trusted blindly.
_DUE, _IN_TURN = 500, 200
_CURSOR_DIGITS = 20
_PAGE = 500
#: A key for each queue, by its name: "<job id> <item>" of the one that is tried now.
SLOTS = {queue: f"{PREFIX}:{{reaper}}:suspect:{queue.value}" for queue in Queue}
#: Seconds after which the next suspect is tried, whatever became of the last one.
_SLOT_S = 20
_ENDED = frozenset({"done", "failed", "grown"})
#: States of a job in which a step of the whole is still to be done.
_OPEN = {
    TaskName.PLAN_JOB.value: {State.QUEUED, State.PLANNING},
    TaskName.MERGE_TREE.value: {State.SEARCHING, State.MERGING},
    TaskName.MERGE_SUMMARISE.value: {State.SUMMARISING},
}


class Suspects:
    """Sends work at which two workers have died one at a time on each queue, that is, on each pool.

    What only died beside such work may be innocent; by itself it ends, or dies alone. May raise RedisError.
    """

    def __init__(self, client: Redis) -> None:
        self._client = client

    def let_go(self, jobs: JobStore) -> None:
        """The next ones may be tried as soon as the last have ended."""
        for (queue, slot), held in zip(SLOTS.items(), self._client.mget(SLOTS.values()), strict=True):
            if held is not None and self._has_left(jobs, queue, text(held)):
                self._client.delete(slot)

    @staticmethod
    def _has_left(jobs: JobStore, queue: Queue, name: str) -> bool:
        job_id, _, item = name.partition(" ")
        keys = JobKeys(job_id)
        with jobs.client.pipeline(transaction=False) as pipe:
            pipe.hget(keys.job, "state")
            pipe.hget(keys.leaves, item)
            state, node = pipe.execute()
        over = state is None or text(state) in TERMINAL
        if over or node is None:
            return over or text(state) not in _OPEN.get(item, ())
        return text(node) in _ENDED or (queue is Queue.SEARCH and text(node) == "searched")

    def one_at_a_time(self, job_id: str, missing: Iterable[Missing]) -> Iterator[Missing]:
        """Everything but the suspects, and of these the one that may be tried now."""
        for one in missing:
            if not one.suspect or self._may(SLOTS[one.task.queue], f"{job_id} {one.item}"):
                yield one

    def _may(self, slot: str, name: str) -> bool:
        """A suspect that is missing again while it holds the place has died again: it may go on, and be retired."""
        if self._client.set(slot, name, nx=True, ex=_SLOT_S):
            return True
        held = self._client.get(slot)
        if held is not None and text(held) == name:
            self._client.set(slot, name, ex=_SLOT_S)
            return True
        return False


class Reaper:
    """Looks after the jobs of one store. Two of them at once do the work of one."""

    def __init__(self, app: Celery, jobs: JobStore) -> None:
        self._app, self._jobs = app, jobs
        self._dispatcher = Dispatcher(app, jobs)
        self._suspects = Suspects(jobs.client)
        self._turned = False

    def run(self) -> int:
        """One look; returns at how many jobs, 0 when another reaper leads. Raises: RedisError, OperationalError."""
        with leading(self._jobs.client) as token:
            if not token:
                return 0
            self._suspects.let_go(self._jobs)
            under_way = self._jobs.admission.under_way()
            wanted = list(dict.fromkeys([*under_way, *self._jobs.due(_DUE), *self._in_turn()]))
            for start in range(0, len(wanted), _PAGE):
                self._look(wanted[start : start + _PAGE], token)
            if self._turned:
                self._recount()
            self._dispatcher.run()
            self._jobs.client.set(LOOKED, f"{self._jobs.clock.now():.3f}", ex=self._jobs.settings.jobs.ttl_s)
            return len(wanted)

    def _in_turn(self) -> list[str]:
        """The next few of all open jobs: whatever happened to the lists, each is looked at now and then."""
        kept = text(self._jobs.client.get(_CURSOR) or b"0")
        cursor = int(kept) if kept.isdecimal() and len(kept) <= _CURSOR_DIGITS else 0
        cursor, found = self._jobs.client.zscan(ACTIVE, cursor, count=_IN_TURN)
        self._jobs.client.set(_CURSOR, cursor, ex=self._jobs.settings.jobs.ttl_s)
        self._turned = cursor == 0
        return [text(job_id) for job_id, _ in found]

    def _look(self, job_ids: Sequence[str], token: int) -> None:
        views, gone = read_views(self._jobs, job_ids)
        self._jobs.release(gone)
        if not views:
            return
        self._give_turns([view for view in views if view.awaiting_admission])
        world = read_world(self._app, self._jobs, views)
        self._jobs.release([view.job_id for view in views if isinstance(rules.decide(view, world), Finalise)])
        at_once = Counter(mark.worker for view in views for _, mark in rules.dead_attempts(view, world))
        for view in views:
            closer = self._without_dead(self._counted(view, world), world, at_once)
            self._do(closer, rules.decide(closer, world), token)
        self._look_again([view for view in views if view.state not in TERMINAL], world.now)

    def _give_turns(self, waiting: Sequence[View]) -> None:
        """Whatever happened to the lists: a tenant of whom a job waits gets its turns."""
        for lane in Lane:
            if tenants := {view.tenant for view in waiting if view.lane is lane}:
                self._mended(lane, self._jobs.admission.repair(lane, tenants, recount=False))

    def _recount(self) -> None:
        """Once for all open jobs: a count that is too high would let nobody in any more."""
        for lane in Lane:
            self._mended(lane, self._jobs.admission.repair(lane, (), recount=True))

    def _mended(self, lane: Lane, things: int) -> None:
        if things:
            log.warning("the lists of the %s lane were wrong: put right", lane.value)

    def _counted(self, view: View, world: World) -> View:
        """Whatever happened to the lists: a job that waits is in its line, one that runs is among those under way."""
        decision = rules.decide(view, world)
        job = self._jobs.job(view.job_id) if isinstance(decision, Readmit) else None
        if job is None or not isinstance(decision, Readmit):
            return view
        self._jobs.admission.readmit(job.id, job.lane, job.request.tenant, job.created_at, runs=decision.runs)
        log.warning("job %s stood in no list; put back", job.id)
        return replace(view, admitted=True, awaiting_admission=not decision.runs)

    def _without_dead(self, view: View, world: World, at_once: Mapping[str, int]) -> View:
        """Count the deaths of the job's workers: their work is nobody's now. `at_once`: pieces that each had."""
        dead = list(rules.dead_attempts(view, world))
        if not dead:
            return view
        for name, mark in dead:
            deaths = self._jobs.work.record_death(
                view.job_id, name, view.items[name].busy_raw, alone=at_once[mark.worker] == 1
            )
            log.warning("job %s: %s died at %s (death %d of it)", view.job_id, mark.worker, name, deaths)
        senders = [mark.begun_at for _, mark in dead if mark.task in rules.SENDERS]
        return replace(view, items=self._jobs.work.items(view.job_id), sender_died=min(senders, default=None))

    def _look_again(self, views: Iterable[View], now: float) -> None:
        patience = self._jobs.settings.jobs.redrive_after_s
        self._jobs.next_check(
            {
                view.job_id: view.deadline_at + rules.GRACE_S
                if view.awaiting_admission
                else min(now + patience, max(now, view.deadline_at) + rules.GRACE_S + 0.1)
                for view in views
            }
        )

    # -- what follows ------------------------------------------------------------------------------------------

    def _do(self, view: View, decision: Decision, token: int) -> None:
        match decision:
            case Expire(reason):
                self._jobs.endings.stop([view.job_id], State.EXPIRED, reason)
            case Force(missing):
                self._send(view, [missing], token, force=True)
            case Redrive(missing):
                self._send(view, self._suspects.one_at_a_time(view.job_id, missing), token)
            case _:
                pass

    def _send(self, view: View, missing: Iterable[Missing], token: int, *, force: bool = False) -> None:
        """Ask for leave by the reason, then send: a look that something has overtaken gets none."""
        by_why = defaultdict[str, list[Missing]](list)
        for one in missing:
            by_why[one.why].append(one)
        for why, ones in by_why.items():
            items = [(one.item, one.seen, one.sent_raw) for one in ones]
            granted = self._jobs.redrive(view.job_id, view.state, token, why, items)
            for one in ones:
                if one.item in granted:
                    sent_again(self._signature(view, one, force=force), self._jobs.clock.now()).apply_async()
            if granted:
                log.warning("job %s: %s sent again: %s", view.job_id, ", ".join(sorted(granted)), why)

    def _signature(self, view: View, one: Missing, *, force: bool) -> Signature:
        """What was lost has waited its turn already: it goes before all else of its lane."""
        message, first = TaskMessage(job_id=view.job_id), priority(view.lane)
        if one.task is TaskName.MERGE_TREE:
            return merge_signature(self._app, view.job_id, first, force=force)
        if one.seen in {"done", "failed", ""}:
            node_id = one.item if one.seen else None
            return task_signature(self._app, one.task, message.model_copy(update={"node_id": node_id}), first)
        node = self._jobs.nodes(view.job_id)[one.item]
        if node.shard is not None:
            return task_signature(self._app, OF_SHARD[one.task], message.model_copy(update={"node_id": node.id}), first)
        kind = NodeKind.BRANCH if one.task is TaskName.PLAN_REFINE else NodeKind.LEAF
        return node_signature(self._app, view.job_id, first, node.model_copy(update={"kind": kind}))
