"""The merge pool's tasks: the chord's body. Tree merge (B7), then, after the root rerank, the summary (B8)."""

from __future__ import annotations

from functools import cache

from shared.contract import TaskName
from shared.job_store import State
from shared.llm.client import ChatClient
from shared.models import ROOT_ID, Facet, LeafResult, LeafStatus, MergedPool, Node, NodeKind
from shared.steps import Step, fail_job
from workers.merge.answer import build_answer
from workers.merge.summarise import summarise
from workers.merge.tree import merge_tree
from workers.steps import steps

#: Kept back from the LLM so that the answer is written before the deadline.
_WRITE_S = 1.0


@cache
def _llm() -> ChatClient | None:
    return ChatClient(steps.settings) if steps.settings.has_llm else None


@steps(TaskName.MERGE_TREE, on_error=fail_job)
def merge(step: Step) -> None:
    """Merge what the leaves recorded. Runs once, when the store says that every node is settled."""
    job, jobs = step.job, step.jobs
    if not jobs.start_merging(job.id, step.claimant, force=step.message.force):
        return
    limits = steps.settings.multi_query
    cap = job.request.top_n or limits.max_total_results
    results = jobs.results(job.id)
    done = [leaf for leaf in results.values() if leaf.status is LeafStatus.DONE]
    pool = merge_tree(done, jobs.nodes(job.id), limits, cap)
    jobs.put_pool(job.id, pool)


@steps(TaskName.MERGE_SUMMARISE, on_error=fail_job)
def write(step: Step) -> None:
    """Write the answer and end the job: failed when no leaf answered, else done, partial where leaves are missing."""
    job, jobs = step.job, step.jobs
    if job.state is not State.SUMMARISING or not jobs.claim_summary(job.id, step.claimant):
        return
    nodes, leaves = jobs.nodes(job.id), _leaves(step)
    failed = [leaf for leaf in leaves if leaf.status is not LeafStatus.DONE]
    if len(failed) == len(leaves):
        reason = failed[0].error if failed else "the job has no leaves"
        jobs.stop(job, State.FAILED, f"none of the {len(leaves)} leaves answered; the first said: {reason}")
        return
    pool = jobs.pool(job.id) or MergedPool()
    jobs.annotate(job.id, warnings=_warnings(step, failed))
    wants = job.request.summary if job.request.summary is not None else steps.settings.enable_summary
    root = Node(id=ROOT_ID, level=0, facet=Facet.CORE, query=job.request.question, kind=NodeKind.BRANCH)
    text, cost, warnings = summarise(
        job.request.question,
        pool,
        {root.id: root, **nodes},
        llm=_llm() if wants else None,
        timeout_s=job.remaining(_WRITE_S),
    )
    jobs.annotate(job.id, cost, warnings)
    jobs.finish(job, build_answer(jobs, job, pool, text, leaves))


def _leaves(step: Step) -> list[LeafResult]:
    """Every leaf of the tree in its order; those that recorded nothing (a forced merge) count as failed."""
    results = step.jobs.results(step.job.id)
    states = step.jobs.leaf_states(step.job.id)
    return [
        results.get(node_id)
        or LeafResult(node_id=node_id, status=LeafStatus.FAILED, error="had not answered when the job's time was up")
        for node_id in step.jobs.nodes(step.job.id)
        if states.get(node_id) != "grown"
    ]


def _warnings(step: Step, failed: list[LeafResult]) -> list[str]:
    wants = step.job.request.summary if step.job.request.summary is not None else steps.settings.enable_summary
    said = [f"Leaf {leaf.node_id} did not answer: {leaf.error}" for leaf in failed]
    if wants and not steps.settings.has_llm:
        said.append("A summary by LLM was asked for, but no LLM is configured: the summary is extractive.")
    return said
