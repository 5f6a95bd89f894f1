"""The answer of what a job's leaves have recorded so far, at any state. It asks no LLM and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shared.errors import RamifyError, shown
from shared.jobs import TERMINAL, JobStore, State
from shared.jobs.states import ENDED_LEAVES
from shared.jobs.tables import Tables
from shared.models import Answer, LeafResult, LeafStatus, MergedPool, Node
from shared.models.enumeration import ListTable
from shared.tasks.task_run import TaskRun
from workers.enumerate.merge_rows import merge_rows
from workers.merge.answer import TIME_UP, all_leaves, build_answer, merged, run_aggregator

_ENDED = {State.CANCELLED: "the job was cancelled", State.EXPIRED: "the job expired", State.FAILED: "the job failed"}
#: How an open node of the tree stands.
_STANDS = {
    "waiting": "it waits for {needs}",
    "pending": "it is not searched yet",
    "searched": "it is searched, but not reranked yet",
    "open": "its subquestions are not planned yet",
}


def early_answer(run: TaskRun) -> Answer:
    """What the real merge would say now, without the root rerank where that has not run.

    Open leaves keep their status; those that an ended job has left open count as failed. Raises: RamifyError while no
    leaf has answered.
    """
    job, jobs = run.job, run.jobs
    nodes, states, results = jobs.nodes(job.id), jobs.leaf_states(job.id), jobs.results(job.id)
    leaves = all_leaves(nodes, states, results, _ENDED.get(job.state, TIME_UP))
    if not job.terminal:
        unended = {node_id for node_id in nodes if states.get(node_id) not in ENDED_LEAVES} - results.keys()
        leaves = [_open(leaf, states) if leaf.node_id in unended else leaf for leaf in leaves]
    if not any(leaf.status is LeafStatus.DONE for leaf in leaves):
        raise RamifyError(f"job {job.id} is {job.state}, and none of its {len(leaves)} leaves has answered")
    pool = _pool(jobs, job.id) or merged(job.request, run.settings, nodes, results)
    table = merge_rows(Tables(jobs.client, jobs.settings), job.id, nodes, jobs.settings.enumeration, keep=False)
    name, made = run_aggregator(run, pool, leaves, nodes, llm=None, table=table)
    answer = build_answer(run, pool, made, leaves, nodes, job.state)
    warnings = (*answer.warnings, *made.warnings, *_warnings(job.state, leaves, nodes, states, table))
    update = {"aggregator": name, "warnings": tuple(dict.fromkeys(warnings))}
    return answer.model_copy(update=update)


def _pool(jobs: JobStore, job_id: str) -> MergedPool | None:
    """The pool of the real merge, if there is one that can be read."""
    try:
        return jobs.pool(job_id)
    except (ValueError, TypeError):
        return None


def _open(leaf: LeafResult, states: Mapping[str, str]) -> LeafResult:
    state = states.get(leaf.node_id)
    status = LeafStatus(state) if state in set(LeafStatus) else LeafStatus.PENDING
    return leaf.model_copy(update={"status": status, "error": None, "out_of_time": False})


def _warnings(
    state: State,
    leaves: list[LeafResult],
    nodes: Mapping[str, Node],
    states: Mapping[str, str],
    table: ListTable | None,
) -> Iterator[str]:
    """What is missing, by name, and what this answer is not."""
    for leaf in leaves:
        node = nodes.get(leaf.node_id)
        name = f"Leaf {leaf.node_id} ({shown(node.query)})" if node else f"Leaf {leaf.node_id}"
        if leaf.status is LeafStatus.FAILED:
            yield f"{name} did not answer: {leaf.error}"
        elif leaf.status is not LeafStatus.DONE and node:
            stands = _STANDS.get(states.get(leaf.node_id, ""), _STANDS["pending"])
            yield f"{name} has not answered yet: {stands.format(needs=', '.join(node.depends_on))}"
    if table is not None and table.partial:
        yield f"The list is not complete: {table.coverage}."
    how = f"after the job ended {state}" if state in TERMINAL else f"while the job is {state}"
    yield f"This answer was made early, {how}: of what is recorded, without the LLM."
