"""Starts a retry from the tree and the recorded leaves of the job that it tries again, and runs what is missing.

A repair also runs again what was made without something (`ramify retry --degraded`).
It may be killed at any point: what it has not recorded is still pending, and the reaper sends that again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from celery import Celery, Signature, chord

from orchestrator.planning.tree import MIN_CHILDREN
from shared.contract import TaskMessage, TaskName
from shared.errors import DamagedError, RamifyError
from shared.jobs import Job, JobReader, JobStore, State
from shared.jobs.endings import Again
from shared.jobs.scripts import grown_branches
from shared.jobs.stale import StaleAnswers
from shared.models import LeafResult, LeafStatus, Node, NodeKind
from shared.models.plan import holding
from shared.models.replay import PlanningNotes, ReplayStage
from shared.models.route import PlannerName, Route
from shared.tasks.signatures import merge_signature, node_signature, send_chord, task_signature
from shared.tasks.task_run import TaskRun

#: Retries of retries that are looked through for one that had been planned.
_MAX_CHAIN = 16
_EVENTS = 1000


@dataclass(frozen=True)
class ResumedTree:
    """`nodes`: the tree as it starts; `kept`: ids of the recorded leaves that hold; `start`: nodes to be run.

    `notify`: settled leaves whose end must be announced once more, since others wait for nothing else.
    """

    nodes: tuple[Node, ...]
    kept: tuple[str, ...]
    start: tuple[Node, ...]
    notify: tuple[str, ...]

    def holds(self, item: str) -> bool:
        """True for what is taken over of the old job's work: its plan, a leaf, or a branch that has grown."""
        return item == TaskName.PLAN_JOB or item in self.kept or item in grown_branches(self.nodes)


def resumed_tree(
    nodes: Mapping[str, Node],
    states: Mapping[str, str],
    again: frozenset[str] = frozenset(),
) -> ResumedTree:
    """What of a tree holds and what has to run again; `states` are the leaves' and `again` nodes to be repaired. Pure.

    A leaf holds when it is done and all that it waited for hold: one that was asked without the answer of a failed
    leaf is asked again, with it. A branch that is repaired is refined anew: what stood below it goes.
    """
    nodes = {name: node for name, node in nodes.items() if not again.intersection(_above(node, nodes))}
    done = holding(nodes, {name for name, state in states.items() if state == LeafStatus.DONE} - again)
    start = {node.id: _unbound(_as_planned(node, again), done, again) for node in nodes.values()}
    settled = grown_branches(start.values()) | done
    waiting = [node for node in start.values() if node.depends_on and node.bound_by is None]
    return ResumedTree(
        nodes=tuple(start.values()),
        kept=tuple(name for name in start if name in done),
        start=tuple(node for node in start.values() if node.id not in settled and node not in waiting),
        notify=tuple(dict.fromkeys(node.depends_on[-1] for node in waiting if done.issuperset(node.depends_on))),
    )


def _above(node: Node, nodes: Mapping[str, Node]) -> Iterator[str]:
    """The ids of the branches that a node stands under."""
    while node.parent_id is not None and (parent := nodes.get(node.parent_id)) is not None:
        yield parent.id
        node = parent


def _as_planned(node: Node, again: frozenset[str]) -> Node:
    """A leaf that is to be repaired and has room for children is a branch that could not be refined."""
    if node.id in again and node.budget >= MIN_CHILDREN:
        return node.model_copy(update={"kind": NodeKind.BRANCH})
    return node


def _unbound(node: Node, done: set[str], again: frozenset[str]) -> Node:
    """A leaf that runs again, or was bound to the answer of one that does, waits for that anew, as it was planned."""
    return node if done.issuperset(node.depends_on) and node.id not in again else node.unbound


def resume(run: TaskRun, app: Celery) -> bool:
    """Start a retry with what the old job had. False when that is nothing: then it is planned like any other.

    A list is read anew: its shards belong to one state of the corpus. Raises: RamifyError for a job of another tenant.
    """
    job, jobs = run.job, run.jobs
    found = _retried(jobs, job) or _replayed(jobs, job)
    if found is None:
        return False
    jobs.route(job.id, found.route)
    _note_old(jobs, job.id, found)
    tree = found.tree
    if jobs.start_searching(job.id, tree.nodes):
        for name in tree.kept:
            jobs.record_leaf(job.id, found.results[name])
        leaves = [node for node in tree.nodes if node.kind is NodeKind.LEAF]
        if found.id:
            jobs.retries.record_resumed(job.id, found.id, len(tree.kept), len(leaves))
        send_chord(app, _signature(app, job, tree))
    return True


def _retried(jobs: JobStore, job: Job) -> OldJob | None:
    """What a retry goes on with."""
    if job.retry_of is None:
        return None
    old, again = _planned_job(jobs, job)
    return None if old is None else _read_old(jobs, job, old, again)


def _planned_job(jobs: JobStore, job: Job) -> tuple[Job | None, frozenset[Again]]:
    """The newest job of the chain of retries that had been planned, and what those behind it run again of that."""
    new_id, old_id, again = job.id, job.retry_of, frozenset[Again]()
    gone = f"What job {job.retry_of} had has expired: the question was planned anew."
    for back in range(_MAX_CHAIN):
        old = jobs.job(old_id) if old_id else None
        if old is None:
            if not back:
                jobs.annotate(job.id, warnings=[gone])
            break
        again |= {jobs.retries.again(old.id, new_id)}
        if old.request.tenant != job.request.tenant or not old.terminal:
            raise RamifyError(f"job {old.id} cannot be tried again here: it is another tenant's, or has not ended")
        if jobs.leaf_states(old.id):
            return old, again
        if JobReader(jobs.client).status(old.id).leaves_total:
            jobs.annotate(job.id, warnings=[gone])
            break
        new_id, old_id = old.id, old.retry_of
    return None, again


def resumed(
    route: Route | None,
    nodes: Mapping[str, Node],
    states: Mapping[str, str],
    degraded: Mapping[str, Iterable[str]],
    *,
    repairs: bool,
) -> ResumedTree | None:
    """What a retry starts with; None when the question is planned anew. `degraded`: reasons by item. Pure.

    A list is read anew. So is a plan that was made without something, where it is to be repaired or no leaf holds.
    A leaf that runs again anyway is refined again, too, where it was made without something.
    """
    if route is None or route.planner is PlannerName.ENUMERATION or not nodes:
        return None
    again = degraded if repairs else (name for name in degraded if _is_lost_leaf(nodes.get(name), states))
    tree = resumed_tree(nodes, states, frozenset(again))
    return None if TaskName.PLAN_JOB in degraded and (repairs or not tree.kept) else tree


def without_stale(
    nodes: Mapping[str, Node], states: Mapping[str, str], stale: Collection[str]
) -> tuple[dict[str, Node], dict[str, str]]:
    """A tree and the states of its leaves as if the `stale` ones had not ended. Pure.

    What the second round had added is not of it: it closed the gaps of what was found then.
    """
    kept = {name: node for name, node in nodes.items() if node.gap is None}
    return kept, {name: state for name, state in states.items() if name in kept and name not in stale}


def _is_lost_leaf(node: Node | None, states: Mapping[str, str]) -> bool:
    return node is not None and node.kind is NodeKind.LEAF and states.get(node.id) != LeafStatus.DONE


@dataclass(frozen=True)
class OldJob:
    """What a retry or a replay goes on with. `degraded`: reasons by item; `id`: empty for that of a file.

    `late`: what was said up to the summary holds, too. `refined`: leaves whose reasons are those of their refining.
    `warnings`: those of a file; of a job its events tell them.
    """

    id: str
    route: Route
    tree: ResumedTree
    results: Mapping[str, LeafResult]
    degraded: Mapping[str, tuple[str, ...]]
    late: bool = False
    refined: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()

    def holds(self, item: str) -> bool:
        """Whether what was said of a piece of the old work is true of the new one."""
        return self.tree.holds(item) or (self.late and item in {TaskName.MERGE_TREE, TaskName.RERANK_ROOT})


def _read_old(jobs: JobStore, job: Job, old: Job, again: Collection[Again]) -> OldJob | None:
    try:
        route, nodes, results = jobs.routed(old.id), jobs.nodes(old.id), jobs.results(old.id)
        degraded = JobReader(jobs.client).status(old.id).degraded_at
        if lost := sorted(jobs.leaf_states(old.id).keys() - nodes):
            raise DamagedError(f"its node {lost[0]} is lost")  # noqa: TRY301 - the same end as what was raised before
    except DamagedError as error:
        warning = f"What job {old.id} had cannot be read ({error}): the question was planned anew."
        jobs.annotate(job.id, warnings=[warning])
        return None
    states = {name: result.status.value for name, result in results.items()}
    if Again.STALE in again:
        nodes, states = without_stale(nodes, states, _stale_leaves(jobs, old.id, results))
    tree = resumed(route, nodes, states, degraded, repairs=Again.DEGRADED in again)
    return None if tree is None or route is None else OldJob(old.id, route, tree, results, degraded)


def _stale_leaves(jobs: JobStore, job_id: str, results: Mapping[str, LeafResult]) -> frozenset[str]:
    """The leaves that changed documents touch; those of which nothing was kept (`jobs.keep`) are run again, too."""
    marks = StaleAnswers(jobs.client, jobs.settings, jobs.clock).marks([job_id]).get(job_id, ())
    lost = {name for name, leaf in results.items() if leaf.candidates and not leaf.hits}
    return frozenset(lost.union(*(mark.leaves for mark in marks)))


def replayed_tree(nodes: Mapping[str, Node], start: ReplayStage) -> ResumedTree:
    """The tree of a replay: with all leaves recorded, or as it was planned, without what a second round added. Pure."""
    if not start.keeps_leaves:
        return resumed_tree({name: node for name, node in nodes.items() if node.gap is None}, {})
    grown = grown_branches(nodes.values())
    return ResumedTree(tuple(nodes.values()), tuple(name for name in nodes if name not in grown), (), ())


def _replayed(jobs: JobStore, job: Job) -> OldJob | None:
    """What a replay takes over; None where it plans anew. Raises: RamifyError for what is gone since it was asked for.

    A list is read anew.
    """
    replay = job.request.replay
    if replay is None or replay.start is ReplayStage.PLAN:
        return None
    route, nodes = replay.route, {node.id: node for node in replay.nodes}
    results, degraded = dict[str, LeafResult](), dict(replay.planning.degraded)
    if replay.of:
        old = jobs.job(replay.of)
        if old is None or old.request.tenant != job.request.tenant:
            raise RamifyError(f"job {replay.of} is gone: ask the question again")
        route, nodes = jobs.routed(old.id), jobs.nodes(old.id)
        degraded = JobReader(jobs.client).status(old.id).degraded_at
        if replay.start.keeps_leaves:
            results = jobs.results(old.id)
        else:
            degraded = _while_planned(degraded, jobs.events(old.id, _EVENTS), nodes)
    if route is None or route.planner is PlannerName.ENUMERATION or not nodes:
        return None
    tree = replayed_tree(nodes, replay.start)
    if replay.start.keeps_leaves and (lost := [name for name in tree.kept if name not in results]):
        raise RamifyError(f"leaf {lost[0]} of job {replay.of} is gone: replay it --from search")
    late, refined = (
        replay.start is ReplayStage.SUMMARY,
        frozenset() if replay.start.keeps_leaves else frozenset(degraded),
    )
    return OldJob(replay.of, route, tree, results, degraded, late, refined, replay.planning.warnings)


def planning_notes(jobs: JobStore, job_id: str, route: Route) -> PlanningNotes:
    """What was said while the tree of a job was planned and refined. Raises: DamagedError."""
    nodes = jobs.nodes(job_id)
    degraded = JobReader(jobs.client).status(job_id).degraded_at
    tree = replayed_tree(nodes, ReplayStage.SEARCH)
    return PlanningNotes(
        warnings=tuple(_old_warnings(jobs, OldJob(job_id, route, tree, {}, degraded))),
        degraded=_while_planned(degraded, jobs.events(job_id, _EVENTS), nodes),
    )


def _while_planned(
    degraded: Mapping[str, tuple[str, ...]], events: Sequence[Mapping[str, str]], nodes: Mapping[str, Node]
) -> dict[str, tuple[str, ...]]:
    """The reasons that planning and refining left: a leaf that is searched again has none of its own yet."""
    refined = {(event.get("item"), event.get("reason")) for event, own in _with_refining(events, "degraded") if own}
    planned = {TaskName.PLAN_JOB.value, *grown_branches(nodes.values())}
    kept = {
        item: tuple(reason for reason in reasons if item in planned or (item, reason) in refined)
        for item, reasons in degraded.items()
    }
    return {item: reasons for item, reasons in kept.items() if reasons}


def _note_old(jobs: JobStore, job_id: str, old: OldJob) -> None:
    """The warnings of what holds, and why it had been made without something."""
    jobs.annotate(job_id, warnings=_old_warnings(jobs, old) if old.id else old.warnings)
    for item, reasons in old.degraded.items():
        if old.holds(item) or item in old.refined:
            jobs.annotate(job_id, item=item, degraded=reasons)


def _old_warnings(jobs: JobStore, old: OldJob) -> list[str]:
    """Warnings of the planning and the searches that hold; those of the merge no longer do, unless its list does."""
    last = State.SUMMARISING if old.late else State.MERGING
    events = list(takewhile(lambda event: event.get("state") != last, jobs.events(old.id, _EVENTS)))
    return [
        event.get("text", "")
        for event, refining in _with_refining(events, "warning")
        if not (item := event.get("item")) or refining or old.holds(item)
    ]


def _with_refining(events: Sequence[Mapping[str, str]], kind: str) -> Iterator[tuple[Mapping[str, str], bool]]:
    """The events of a kind; True for what was said while a branch was refined that is now a leaf of the same id."""
    made = {json.loads(event["node"])["id"]: at for at, event in enumerate(events) if event.get("type") == "node"}
    for at, event in enumerate(events):
        if event.get("type") == kind:
            yield event, at < made.get(event.get("item", ""), 0)


def _signature(app: Celery, job: Job, tree: ResumedTree) -> Signature:
    """The chord over what is to be run; its body alone when every leaf holds."""
    settled = (TaskMessage(job_id=job.id, node_id=node_id) for node_id in tree.notify)
    members = [
        *(node_signature(app, job.id, job.rank, node) for node in tree.start),
        *(task_signature(app, TaskName.RERANK_LEAF, message, job.rank) for message in settled),
    ]
    after = merge_signature(app, job.id, job.rank)
    return chord(members, after, app=app) if members else after
