"""The merge pool's tasks: the chord's body (tree merge; after the root rerank, the summary), and early answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.contract import TaskMessage, TaskName, read_request
from shared.errors import RamifyError
from shared.jobs import State
from shared.jobs.reader import readable
from shared.jobs.tables import Tables
from shared.jobs.tenant_scope import no_such_job
from shared.models import Answer, LeafResult, LeafStatus, MergedPool, Node
from shared.models.answer import EarlyReply, EarlyRequest
from shared.models.degraded import Degradation
from shared.models.route import PlannerName
from shared.providers.fallbacks import note_reason
from shared.providers.time_shares import seconds_for
from shared.tasks.signatures import AnyTask, add_to_chord, node_signature, skip_next, skip_rest
from shared.tasks.task_run import TaskRun, fail_job, reason_of, remote
from workers.app import app, llm_of, registry, verifier_of
from workers.enumerate.merge_rows import list_warnings, merge_rows
from workers.leaf_outcome import record_searched
from workers.merge import tree
from workers.merge.aggregators import Aggregated
from workers.merge.answer import (
    WRITE_S,
    all_leaves,
    build_answer,
    kept,
    merged,
    no_retrieval,
    run_aggregator,
)
from workers.merge.early import early_answer
from workers.merge.gaps import GapQuery, SearchedTree, round_of
from workers.merge.gaps_said import said_gaps
from workers.merge.manifest import manifest_of
from workers.merge.recorded import recorded_answer, recorded_pool


@registry(TaskName.MERGE_TREE, on_error=fail_job)
def merge_tree(run: TaskRun) -> None:
    """Merge what the leaves recorded. Runs once, when the store says that every node is settled, or by force.

    Results of the question's own leaf alone are ranked against the question already: the root rerank is left out. So it
    is where no time is left for it: its pool may not answer at all.
    """
    job, jobs = run.job, run.jobs
    if run.message.force:
        record_searched(run)
    nodes, results, before = jobs.nodes(job.id), jobs.results(job.id), recorded_answer(run)
    pool = merged(job.request, run.settings, nodes, results, before.folds if before else None)
    if before is None and _search_again(run, nodes, results, pool):
        return
    if not jobs.start_merging(job.id, run.claimant, force=run.message.force):
        return
    tables = Tables(jobs.client, registry.settings)
    if table := merge_rows(tables, job.id, nodes, run.settings.enumeration):
        if table.partial:
            note_reason(Degradation.OUT_OF_TIME)
        run.annotate(warnings=list_warnings(table, run.job.request.question))
    as_recorded = recorded_pool(run, pool, before)
    ranked, pool = bool(as_recorded) or tree.only_original_leaf(pool), as_recorded or pool
    if late := not ranked and not seconds_for("root rerank", job.remaining(WRITE_S)):
        note_reason(Degradation.OUT_OF_TIME)
        run.annotate(warnings=["The merged results were not reranked: the job's time was up."])
    if ranked or late:
        skip_next(run.task, TaskName.RERANK_ROOT)
        run.start_summarising(pool)
    else:
        run.put_pool(pool)


def _search_again(run: TaskRun, nodes: Mapping[str, Node], results: Mapping[str, LeafResult], pool: MergedPool) -> bool:
    """Add leaves for what the search left open, once a job. True when they were: the last of them starts a merge anew.

    They are claimed in the job store before they are sent, as the children of a branch are: what is lost in between,
    the reaper sends.
    """
    job, settings = run.job, run.settings
    late = run.message.force or job.remaining(job.leaf_reserve) < settings.gaps.min_seconds
    if job.state is not State.SEARCHING or job.open or late or not settings.gaps.allow(job.request):
        return False
    tree = SearchedTree(job.request.question, nodes, results, pool.hits, settings.gaps)
    said = tuple[GapQuery, ...]()
    if settings.gaps.ask and (llm := llm_of(run, "missing")):
        said, cost, warnings = said_gaps(tree, llm, job.remaining(job.leaf_reserve))
        run.annotate(cost, warnings)
    added = round_of(tree, settings.decomposition.max_total_leaves - len(results), said)
    if not added or not run.jobs.search_again(job.id, added):
        return False
    skip_rest(run.task)
    for node in added:
        add_to_chord(run.task, node_signature(app, job.id, job.rank, node))
    return True


@registry(TaskName.MERGE_SUMMARISE, on_error=fail_job)
def merge_summarise(run: TaskRun) -> None:
    """Write the answer and end the job: failed when no leaf answered, else done, partial where leaves are missing."""
    job, jobs = run.job, run.jobs
    if not run.claimed:
        return
    nodes = jobs.nodes(job.id)
    leaves = all_leaves(nodes, jobs.leaf_states(job.id), jobs.results(job.id))
    if not leaves and (route := jobs.routed(job.id)) and route.planner is PlannerName.NONE:
        made = Aggregated(summary=no_retrieval(job.request.question))
        _finish(run, build_answer(run, MergedPool(), made, [], nodes))
        return
    failed = [leaf for leaf in leaves if leaf.status is not LeafStatus.DONE]
    if len(failed) == len(leaves):
        jobs.stop(job, State.FAILED, _unanswered(run, failed))
        return
    pool = jobs.pool(job.id) or _merged_anew(run)
    run.annotate(warnings=_warnings(run, failed))
    listed = any(node.shard is not None for node in nodes.values())
    table = Tables(jobs.client, registry.settings).table(job.id) if listed else None
    writer = llm_of(run, "summary") if _wants_llm(run) else None
    verifier = verifier_of(writer) if writer is not None else None
    name, made = run_aggregator(run, pool, leaves, nodes, llm=writer, table=table, verifier=verifier)
    run.annotate(made.cost, made.warnings)
    answer = build_answer(run, pool, made, leaves, nodes)
    _finish(run, answer.model_copy(update={"aggregator": name}))


def _finish(run: TaskRun, answer: Answer) -> None:
    """End the job with its answer and the manifest of all of it, whatever is kept."""
    run.finish(kept(answer, registry.settings.jobs.keep), manifest_of(run.job, answer, run.settings))


def _unanswered(run: TaskRun, failed: list[LeafResult]) -> str:
    """Why no leaf has answered. Where only time was missing, that is a reason, noted before the job ends."""
    reason = failed[0].error if failed else "the job has no leaves"
    late = not run.job.remaining(run.job.leaf_reserve)
    if failed and late and all(leaf.out_of_time for leaf in failed):
        note_reason(Degradation.OUT_OF_TIME)
        run.annotate()
        limit = f"the deadline, {run.job.deadline_s:g} s after the job's turn came"
        reason = f"{reason}; only time was missing until {limit}: `ramify retry ID --deadline SECONDS` gives more"
    return f"none of the {len(failed)} leaves answered; the first said: {reason}"


def _merged_anew(run: TaskRun) -> MergedPool:
    """The pool was lost after it had been reranked: what the leaves have recorded is still there."""
    note_reason(Degradation.RERANK_UNAVAILABLE)
    run.annotate(warnings=["The merged results were lost and are merged anew, in the order of the leaves' own scores."])
    job, jobs = run.job, run.jobs
    return merged(job.request, run.settings, jobs.nodes(job.id), jobs.results(job.id))


def _wants_llm(run: TaskRun) -> bool:
    asked = run.job.request.summary
    return asked if asked is not None else run.settings.enable_summary


def _warnings(run: TaskRun, failed: list[LeafResult]) -> list[str]:
    warnings = [f"Leaf {leaf.node_id} did not answer: {leaf.error}" for leaf in failed]
    if _wants_llm(run) and not registry.settings.has_llm:
        note_reason(Degradation.NOT_CONFIGURED)
        warnings.append("A summary by LLM was asked for, but no LLM is configured: the summary is extractive.")
    return warnings


@remote(app, TaskName.MERGE_EARLY, ignore_result=False, bind=True)
def merge_early(task: AnyTask, raw: dict[str, Any]) -> str:
    """What a job has so far. Returns an EarlyReply as JSON, which holds the error instead of raising it."""
    try:
        request, jobs = read_request(EarlyRequest, raw), registry.jobs
        with readable(request.job_id):
            job = jobs.job(request.job_id)
            if job is None or job.request.tenant != request.tenant:
                raise no_such_job(request.job_id)
            run = TaskRun(task, jobs, job, TaskMessage(job_id=job.id))
            return EarlyReply(answer=early_answer(run)).model_dump_json()
    except (RamifyError, ValueError, TypeError) as error:
        return EarlyReply(error=reason_of(error)).model_dump_json()
