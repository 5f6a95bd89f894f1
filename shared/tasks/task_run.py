"""Wraps every task of a job: reads message and job, skips ended jobs, notes the attempt, records failures.

A task never raises into Celery for a fault of its own: a raising chord member would keep the chord's body from running.
One that is to wait for a server ends, too: the reaper sends it again, and no thread waits meanwhile.
Only a lost Redis or broker is raised; the reaper then sends again what is missing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from celery import Celery
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from shared.contract import TaskMessage, TaskName, read_message
from shared.errors import DamagedError, DeadlineError, MessageVersionError, RamifyError, TransientError, shown
from shared.jobs import Job, JobStore, State, connect
from shared.jobs.budget import Ledger
from shared.jobs.fields import damage, damage_named
from shared.jobs.ingests import ItemDone, NextItems
from shared.jobs.note import Note
from shared.jobs.store import read_node
from shared.jobs.work import StartedWork
from shared.models import Answer, Cost, JobRequest, Lane, LeafResult, LeafStatus, MergedPool, Node, SearchResult
from shared.models.degraded import OnOutage
from shared.models.manifest import Manifest
from shared.models.status import DeadLetter
from shared.providers.fallbacks import Fallbacks, PostponedError, noting
from shared.providers.gates.cut_off import calls_of
from shared.providers.lanes import in_lane
from shared.providers.metering import Tally, metered, tallied
from shared.settings import Settings
from shared.settings.changed import changed
from shared.tasks.app import settings_of
from shared.tasks.result_backend import LAST
from shared.tasks.run_context import in_task, tell
from shared.tasks.signatures import AnyTask, Dispatcher, delivery, merge_signature, skip_rest
from shared.tasks.work_tracker import WorkTracker, already_done

log = logging.getLogger("ramify.tasks")
#: Of a failure, in what a task returns; Flower shows it.
_MOST_REASON_CHARS = 300


@dataclass(frozen=True)
class TaskRun:
    """One run of one task for one job."""

    task: AnyTask
    jobs: JobStore
    job: Job
    message: TaskMessage
    fallbacks: Fallbacks = field(default_factory=Fallbacks)
    tally: Tally = field(default_factory=Tally)
    #: The costs that are in the job's account.
    booked: list[Cost] = field(default_factory=list)
    #: How many nodes were open after each leaf that it has recorded; negative: the record did not count.
    open_after: list[int] = field(default_factory=list)
    #: Why it failed, if it did.
    failures: list[str] = field(default_factory=list)
    #: For `on_error`: it failed only because the job's time was up.
    out_of_time: bool = False
    #: For `on_error`: the item has killed too many workers.
    retired: bool = False
    #: What it found when it began; None outside of a worker.
    begun: StartedWork | None = None

    @property
    def item(self) -> str:
        """The piece of the job's work that it is: a node's id, or its task's name."""
        return self.message.node_id or self.task.name

    @property
    def settings(self) -> Settings:
        """Those of this process, with what a replay changes."""
        replay = self.job.request.replay
        return changed(self.jobs.settings, replay.settings) if replay else self.jobs.settings

    def annotate(self, cost: Cost | None = None, warnings: Iterable[str] = (), item: str = "") -> None:
        """Add to the job's costs and warnings, with the reasons for what this run has gone on without since.

        They are noted at `item`, or else at its own.
        """
        self.jobs.annotate(self.job.id, cost, warnings, item=item or self.item, degraded=self.fallbacks.take())
        if cost is not None:
            self.booked.append(cost)

    def record_leaf(
        self, result: LeafResult, cost: Cost | None = None, warnings: Iterable[str] = (), *, last: bool = False
    ) -> None:
        """Record a leaf of the job, once. Behind the last node of the tree the merge is sent when the task returns."""
        with self._leaving(cost, warnings, last=last) as note:
            self.open_after.append(self.jobs.record_leaf(self.job.id, result, note))

    def put_candidates(self, found: SearchResult, cost: Cost | None = None, warnings: Iterable[str] = ()) -> bool:
        """Hand candidates to the rerank task: the last change of a search."""
        with self._leaving(cost, warnings) as note:
            return self.jobs.put_candidates(self.job.id, self.node_id, found, note)

    def put_pool(self, pool: MergedPool) -> None:
        """Keep the merged pool for the root rerank: the last change of a merge."""
        with self._leaving() as note:
            self.jobs.put_pool(self.job.id, pool, note)

    def start_summarising(self, pool: MergedPool, cost: Cost | None = None, warnings: Iterable[str] = ()) -> None:
        """Put the pool into its final order: the last change of a merge or root rerank."""
        with self._leaving(cost, warnings) as note:
            self.jobs.start_summarising(self.job.id, pool, note)

    def record_item(self, done: ItemDone, cost: Cost | None = None, warnings: Iterable[str] = ()) -> NextItems:
        """Record an item of an ingest: the last change of its task."""
        with self._leaving(cost, warnings) as note:
            return self.jobs.ingests.record(self.job.id, self.node_id, done, self.job.request, note)

    def finish(self, answer: Answer, manifest: Manifest) -> bool:
        """End the job with its answer: the last change of a summary. True for the one call that ended it."""
        ended = self.jobs.finish(self.job, answer, self.item, manifest)
        if ended and self.begun is not None:
            self.begun.ended.set()
        return ended

    def candidates(self) -> SearchResult | None:
        """What its search has left; None where that is lost: it is searched anew. Raises: DamagedError next time."""
        found = self.jobs.candidates(self.job.id, self.node_id, self.begun.candidates if self.begun else None)
        if found is None and not self.jobs.work.search_once_more(self.job.id, self.node_id):
            raise DamagedError("what its search found is lost")
        return found

    @contextmanager
    def _leaving(self, cost: Cost | None = None, warnings: Iterable[str] = (), *, last: bool = True) -> Iterator[Note]:
        """What goes with a change in one script. `last`: so does the end of the attempt."""
        begun = self.begun if last else None
        attempt = begun.attempt if begun is not None else None
        yield Note(self.item, cost, tuple(warnings), self.fallbacks.take(), attempt)
        if cost is not None:
            self.booked.append(cost)
        if begun is not None:
            begun.ended.set()

    @property
    def node_id(self) -> str:
        """The node that the task is about."""
        if self.message.node_id is None:
            raise MessageVersionError(f"{self.task.name} needs a node id")
        return self.message.node_id

    def node(self) -> Node:
        """Its record in the tree. Raises: DamagedError when that is lost, or cannot be read."""
        found = self.known_node()
        if found is None:
            raise DamagedError(f"the record of node {self.node_id} is lost")
        return found

    def known_node(self) -> Node | None:
        """The same; None when it is lost, or cannot be read."""
        if self.begun is not None:
            return read_node(self.begun.node)
        return self.jobs.node(self.job.id, self.node_id)

    def node_state(self) -> str:
        """The state of its node when it began."""
        if self.begun is not None:
            return self.begun.node_state
        return self.jobs.leaf_states(self.job.id).get(self.node_id, "")

    def leaf_seconds(self, undone: str) -> float:
        """Seconds that the leaf may take. Raises: DeadlineError when none are left; `undone` says what it was not."""
        seconds = self.job.remaining(self.job.leaf_reserve)
        if seconds <= 0:
            raise DeadlineError(f"the job's time was up before this leaf was {undone}")
        return seconds

    @property
    def claimed(self) -> bool:
        """True when it alone may do what its task is for: it has claimed that when it began."""
        return self.begun is not None and self.begun.claimed

    @property
    def claimant(self) -> str:
        """Who claims a stage: this task's id, the same when it is delivered again."""
        return str(self.task.request.id)


TaskBody = Callable[[TaskRun], None]
OnError = Callable[[TaskRun, str], None]
#: What a dead letter about a task's item says, and the document that it is about.
OnPoison = Callable[[TaskRun, DeadLetter], tuple[DeadLetter, bytes]]


class TaskRegistry:
    """Registers functions of a TaskRun as Celery tasks, on one app and one job store."""

    def __init__(self, app: Celery) -> None:
        self.app = app
        self.settings = settings_of(app)
        self.jobs = JobStore(connect(self.settings), self.settings)
        self.jobs.endings.on_end = Dispatcher(app, self.jobs).try_run
        self._ledger = Ledger(self.jobs.client, self.settings, self.jobs.clock)
        self._tracker = WorkTracker(self.jobs)

    def __call__(
        self, name: TaskName, on_error: OnError, on_poison: OnPoison | None = None
    ) -> Callable[[TaskBody], AnyTask]:
        """Decorator: register a function as task `name`; `on_error` records its failure.

        `on_poison`: completes the dead letter of an item that has killed too many workers, before `on_error`.
        """

        def register(body: TaskBody) -> AnyTask:
            def run(task: AnyTask, raw: Mapping[str, object]) -> dict[str, str]:
                return self._run(task, dict(raw), body, on_error, on_poison)

            task: AnyTask = self.app.task(name=name.value, bind=True, shared=False)(run)
            return task

        return register

    def _run(
        self,
        task: AnyTask,
        raw: dict[str, object],
        body: TaskBody,
        on_error: OnError,
        on_poison: OnPoison | None = None,
    ) -> dict[str, str]:
        try:
            message = read_message(raw)
        except MessageVersionError as error:
            return self._refused(task, raw, error)
        came = delivery(task.request)
        if came.redelivered and self.settings.broker.rabbitmq and self._tracker.begun_before(message, task.name):
            skip_rest(task)
            return {"node": message.node_id or "", "skipped": "it was begun before: the reaper looks after it"}
        try:
            with self._tracker.tracked(message, task.name, came, str(task.request.id)) as begun:
                if begun.job is None or begun.job.terminal:
                    return {"skipped": "the job has ended"}
                if begun.before.postponed is not None:  # the rest of its chain, or a message that came twice
                    return {"node": message.node_id or "", "postponed": begun.before.postponed.why}
                run = TaskRun(task, self.jobs, begun.job, message, self._fallbacks(begun.job), begun=begun)
                with in_task(begun.job, message, task.name) as traced:
                    try:
                        self._run_noted(run, begun, body, on_error, on_poison)
                        said = self._said(run)
                    except PostponedError as postponed:
                        said = self._postpone(run, postponed)
                    tell(traced, said)
                    return said if "postponed" in said else {**said, **self._settled(run, begun)}
        except DamagedError as error:
            return self._set_aside(message, task.name, error)

    @staticmethod
    def _said(run: TaskRun) -> dict[str, str]:
        """What a task returns of itself, for Flower and the counts."""
        failed = {"failed": run.failures[0][:_MOST_REASON_CHARS]} if run.failures else {}
        degraded = {"degraded": ", ".join(sorted(run.fallbacks.taken))} if run.fallbacks.taken else {}
        return {"node": run.message.node_id or "", **failed, **degraded}

    def _settled(self, run: TaskRun, begun: StartedWork) -> dict[str, str]:
        """What tells the chord that the last node has ended; without a chord the body is sent here.

        That is whoever has recorded the last one, or comes behind a search that failed. A chain goes on by itself. The
        body's claim in the job store lets it run once.
        """
        failed_before = begun.node_state == LeafStatus.FAILED and run.job.open == 0 and run.job.state is State.SEARCHING
        request: Any = run.task.request
        if not (failed_before or 0 in run.open_after) or request.chain:
            return {}
        if not request.chord:
            merge_signature(self.app, run.job.id, run.job.rank).apply_async()
            return {}
        return {LAST: "1"}

    def _fallbacks(self, job: Job) -> Fallbacks:
        """Those of a task of `job`: until when it is postponed where a server fails."""
        waits = on_outage(job.request, self.settings) is OnOutage.WAIT
        return Fallbacks(time.monotonic() + job.wait_s) if waits else Fallbacks()

    def _run_noted(
        self, run: TaskRun, begun: StartedWork, body: TaskBody, on_error: OnError, on_poison: OnPoison | None
    ) -> None:
        """Raises: PostponedError, DamagedError."""
        with damage_named():
            meter = self._ledger.meter(run.job)
        with metered(meter), tallied(run.tally), in_lane(run.job.lane), calls_of(run.job.id), noting(run.fallbacks):
            with self._failures_recorded(run, on_error):
                if (dead_letter := self._tracker.poison(begun, run.message, run.task.name)) is not None:
                    dead_letter, *content = on_poison(run, dead_letter) if on_poison is not None else (dead_letter,)
                    self._tracker.retire(dead_letter, *content)
                    run.failures.append(dead_letter.reason)
                    on_error(replace(run, retired=True), dead_letter.reason)
                elif not already_done(run.task.name, begun.node_state):
                    body(run)
            run.annotate()

    def _postpone(self, run: TaskRun, postponed: PostponedError) -> dict[str, str]:
        """Note that the item waits for a server, and book what this attempt has cost. Nothing else of it is kept."""
        why, error = str(postponed), postponed.error
        run.fallbacks.take()
        run.annotate(run.tally.total - sum(run.booked, Cost()))
        self.jobs.work.postpone(run.job, run.item, postponed.provider, why, error.retry_after or 0.0)
        log.info("%s of job %s, node %s waits: %s", run.task.name, run.job.id, run.message.node_id, why)
        return {"node": run.message.node_id or "", "postponed": why}

    def _set_aside(self, message: TaskMessage, task: str, error: DamagedError) -> dict[str, str]:
        """The job cannot be read: it costs itself only. What is to become of it, the reaper decides."""
        log.error("%s of job %s cannot go on: %s", task, message.job_id, error)
        self.jobs.damaged.add(message.job_id, error)
        return {"damaged": str(error)}

    @contextmanager
    def _failures_recorded(self, run: TaskRun, on_error: OnError) -> Iterator[None]:
        """An error in the block goes to `on_error` and no further, unless it says that Redis or the broker is lost.

        Where not even the failure can be recorded, the job ends. Raises: DamagedError for what only a newer release
        can read, PostponedError for the failure of a server that the job waits for and nothing stands in for.
        """
        try:
            yield
        except Exception as error:
            if isinstance(error, TransientError) and run.fallbacks.postpones(error):
                raise PostponedError(error.provider, error) from error
            found = _own_fault(error)
            if isinstance(found, DamagedError) and found.newer:
                raise found from error
            try:
                self._record_failure(run, found, on_error)
            except Exception as second:  # noqa: BLE001 - a task that raises would break its chord
                fail_job(run, reason_of(_own_fault(second)))

    def _record_failure(self, run: TaskRun, error: Exception, on_error: OnError) -> None:
        reason = reason_of(error)
        run.failures.append(reason)
        log.log(
            logging.WARNING if isinstance(error, RamifyError) else logging.ERROR,
            "%s of job %s, node %s failed: %s", run.task.name, run.job.id, run.message.node_id, reason,
            exc_info=not isinstance(error, RamifyError),
        )  # fmt: skip
        run.annotate(getattr(error, "cost", None))  # what it has spent, and gone on without, before it failed
        on_error(replace(run, out_of_time=isinstance(error, DeadlineError)), reason)

    def _refused(self, task: AnyTask, raw: Mapping[str, object], error: MessageVersionError) -> dict[str, str]:
        """A message that cannot be read here. The reaper soon finds it lost and sends it again, while the job has time.

        So a worker of the release that it is of gets it in the end; what follows it in its chain would run too early.
        """
        skip_rest(task)
        log.warning("%s: message refused: %s", task.name, error)
        job_id = raw.get("job_id")
        if isinstance(job_id, str):
            self.jobs.next_check({job_id: self.jobs.clock.now() + 5.0})  # then it counts as in no queue any more
            if not error.other_release:
                self.jobs.annotate(job_id, warnings=[f"A worker refused a message: {error}"])
        return {"refused": str(error)}


def on_outage(request: JobRequest, settings: Settings) -> OnOutage:
    """What a job does while a server fails: what its request says, else its lane."""
    lanes = settings.lanes
    usual = {Lane.INTERACTIVE: lanes.on_outage_interactive, Lane.BATCH: lanes.on_outage_batch}
    return request.on_outage or usual[request.lane]


def _own_fault(error: Exception) -> Exception:
    """`error`, as DamagedError where it says so of stored data. Raises it when Redis or the broker is lost."""
    found = damage(error)
    if found is None and isinstance(error, RedisError | OperationalError):
        raise error
    return found or error


def fail_job(run: TaskRun, reason: str) -> None:
    """`on_error` of tasks without which there is no answer."""
    run.jobs.stop(run.job, State.FAILED, f"{run.task.name}: {reason}")


def reason_of(error: Exception) -> str:
    """A failure as one sentence for people: our own errors speak for themselves, others are named by type."""
    if isinstance(error, DamagedError):
        return f"what is stored of the job cannot be read: {error}"
    if isinstance(error, RamifyError):
        return str(error)
    return f"internal error, {type(error).__name__}: {shown(str(error))}"


def remote(app: Celery, name: TaskName, **options: Any) -> Callable[[Callable[..., Any]], AnyTask]:
    """Decorator for tasks outside jobs (find, ingest): registered under their contract name.

    On this app alone: Celery would give them to every other app of the process too.
    """
    decorate: Callable[[Callable[..., Any]], AnyTask] = app.task(name=name.value, shared=False, **options)
    return decorate
