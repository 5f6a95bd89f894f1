"""Starts a retry from the tree and the recorded leaves of the job that it tries again, and runs what is missing.

It may be killed at any point: what it has not recorded is still pending, and the reaper sends that again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from celery import Celery, Signature, chord

from shared.contract import TaskMessage, TaskName
from shared.errors import DamagedError, RamifyError
from shared.jobs import Job, JobReader, JobStore
from shared.jobs.scripts import grown_branches
from shared.models import LeafResult, LeafStatus, Node, NodeKind
from shared.models.route import PlannerName, Route
from shared.tasks.signatures import merge_signature, node_signature, task_signature
from shared.tasks.task_run import TaskRun

#: Retries of retries that are looked through for one that had been planned.
_MAX_CHAIN = 16
_EVENTS = 1000


@dataclass(frozen=True)
class ResumedTree:
    """`nodes`: the tree as it starts; `kept`: recorded leaves; `start`: nodes to be run.

    `notify`: settled leaves whose end must be announced once more, since others wait for nothing else.
    """

    nodes: tuple[Node, ...]
    kept: tuple[LeafResult, ...]
    start: tuple[Node, ...]
    notify: tuple[str, ...]


def resumed_tree(nodes: Mapping[str, Node], results: Mapping[str, LeafResult]) -> ResumedTree:
    """What of a tree holds and what has to run again. Pure.

    A leaf holds when it is done and all that it waited for hold: one that was asked without the answer of a failed
    leaf is asked again, with it.
    """
    done = {node_id for node_id, result in results.items() if result.status is LeafStatus.DONE and node_id in nodes}
    while lost := {node_id for node_id in done if not done.issuperset(nodes[node_id].depends_on)}:
        done -= lost
    start = {node.id: _unbound(node, done) for node in nodes.values()}
    settled = grown_branches(start.values()) | done
    waiting = [node for node in start.values() if node.depends_on and node.bound_by is None]
    return ResumedTree(
        nodes=tuple(start.values()),
        kept=tuple(results[node_id] for node_id in start if node_id in done),
        start=tuple(node for node in start.values() if node.id not in settled and node not in waiting),
        notify=tuple(dict.fromkeys(node.depends_on[-1] for node in waiting if done.issuperset(node.depends_on))),
    )


def _unbound(node: Node, done: set[str]) -> Node:
    """A leaf that was bound to the answer of one that runs again waits for that anew, as it was planned."""
    if node.asked is None or done.issuperset(node.depends_on):
        return node
    planned: dict[str, object] = {"query": node.asked, "asked": None, "bound_by": None, "written": {}, "variants": ()}
    return node.model_copy(update=planned)


def resume(run: TaskRun, app: Celery) -> bool:
    """Start a retry with what the old job had. False when that is nothing: then it is planned like any other.

    A list is read anew: its shards belong to one state of the corpus. Raises: RamifyError for a job of another tenant.
    """
    job, jobs = run.job, run.jobs
    if job.retry_of is None:
        return False
    old = _planned_job(jobs, job)
    if old is None or (found := _read_old(jobs, job, old)) is None:
        return False
    route, tree = found
    jobs.route(job.id, route)
    jobs.annotate(job.id, warnings=_old_warnings(jobs, old.id))
    if jobs.start_searching(job.id, tree.nodes):
        for leaf in tree.kept:
            jobs.record_leaf(job.id, leaf)
        leaves = [node for node in tree.nodes if node.kind is NodeKind.LEAF]
        jobs.retries.record_resumed(job.id, old.id, len(tree.kept), len(leaves))
        _signature(app, job, tree).apply_async(ignore_result=True)
    return True


def _planned_job(jobs: JobStore, job: Job) -> Job | None:
    """The newest job of the chain of retries that had been planned."""
    old_id, gone = job.retry_of, f"What job {job.retry_of} had has expired: the question was planned anew."
    for back in range(_MAX_CHAIN):
        old = jobs.job(old_id) if old_id else None
        if old is None:
            if not back:
                jobs.annotate(job.id, warnings=[gone])
            return None
        if old.request.tenant != job.request.tenant or not old.terminal:
            raise RamifyError(f"job {old.id} cannot be tried again here: it is another tenant's, or has not ended")
        if jobs.leaf_states(old.id):
            return old
        if JobReader(jobs.client).status(old.id).leaves_total:
            jobs.annotate(job.id, warnings=[gone])
            return None
        old_id = old.retry_of
    return None


def _read_old(jobs: JobStore, job: Job, old: Job) -> tuple[Route, ResumedTree] | None:
    try:
        route, nodes, results = jobs.routed(old.id), jobs.nodes(old.id), jobs.results(old.id)
        if lost := sorted(jobs.leaf_states(old.id).keys() - nodes):
            raise DamagedError(f"its node {lost[0]} is lost")  # noqa: TRY301 - the same end as what was raised before
    except DamagedError as error:
        warning = f"What job {old.id} had cannot be read ({error}): the question was planned anew."
        jobs.annotate(job.id, warnings=[warning])
        return None
    if route is None or route.planner is PlannerName.ENUMERATION or not nodes:
        return None
    return route, resumed_tree(nodes, results)


def _old_warnings(jobs: JobStore, old_id: str) -> list[str]:
    """Warnings of the planning and the searches; those of the merge no longer hold."""
    warnings = []
    for event in jobs.events(old_id, _EVENTS):
        if event.get("type") == "warning":
            warnings.append(event.get("text", ""))
        elif event.get("type") == "state" and event.get("state") == "merging":
            break
    return warnings


def _signature(app: Celery, job: Job, tree: ResumedTree) -> Signature:
    """The chord over what is to be run; its body alone when every leaf holds."""
    settled = (TaskMessage(job_id=job.id, node_id=node_id) for node_id in tree.notify)
    members = [
        *(node_signature(app, job.id, job.rank, node) for node in tree.start),
        *(task_signature(app, TaskName.RERANK_LEAF, message, job.rank) for message in settled),
    ]
    after = merge_signature(app, job.id, job.rank)
    return chord(members, after, app=app) if members else after
