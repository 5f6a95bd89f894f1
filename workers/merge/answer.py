"""Makes the answer of a job by its aggregator, with tree, leaves, costs and times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

from shared.errors import shown
from shared.jobs import JobReader, State
from shared.jobs.scripts import grown_branches
from shared.jobs.states import ENDED_LEAVES
from shared.language import reader_sentence
from shared.language.routing import route_by_rules
from shared.models import (
    ROOT_ID,
    Answer,
    Facet,
    Hit,
    JobRequest,
    LeafResult,
    LeafStatus,
    MergedHit,
    MergedPool,
    Node,
    NodeKind,
    Summary,
)
from shared.models.answer import MissingFact, MissingReason
from shared.models.enumeration import ListTable
from shared.models.gaps import SearchedGap
from shared.models.hits import Folds
from shared.models.plan import node_order
from shared.models.route import Routed
from shared.providers.llm.client import LLM
from shared.providers.verifiers import Verifier
from shared.settings import Settings
from shared.tasks.task_run import TaskRun
from workers.merge import tree
from workers.merge.aggregators import SIMPLE, Aggregated, Findings, aggregate, all_known
from workers.merge.callers import of_symbol
from workers.merge.extract import nothing_found
from workers.merge.gaps import SearchedTree, told_gaps
from workers.merge.identifiers import unnamed, unnamed_subject
from workers.merge.support import with_support
from workers.merge.verdicts import verdicts_of, with_verdicts
from workers.shown_hits import leaf_kind_share

H = TypeVar("H", bound=Hit)
#: Seconds kept back from the root rerank and the LLM so that the answer is written before the deadline.
WRITE_S = 1.0
TIME_UP = "the job's time was up"
_LOST = "its record in the tree is lost"
#: The verdict of an answer for which nothing was searched.
NO_RETRIEVAL = "no retrieval needed"


def merged(
    request: JobRequest,
    settings: Settings,
    nodes: Mapping[str, Node],
    results: Mapping[str, LeafResult],
    known: Folds | None = None,
) -> MergedPool:
    """One list of what the leaves that answered have recorded. `known`: the near-duplicates of a record. Pure."""
    done = [leaf for leaf in results.values() if leaf.status is LeafStatus.DONE]
    shares = [leaf_kind_share(request, nodes[leaf.node_id], settings) for leaf in done if leaf.node_id in nodes]
    cap = request.top_n or settings.multi_query.max_total_results
    return tree.merge_tree(done, nodes, settings.multi_query, cap, min(shares, default=1.0), known)


def run_aggregator(  # noqa: PLR0913 - what an answer is made of
    run: TaskRun,
    pool: MergedPool,
    leaves: Sequence[LeafResult],
    nodes: Mapping[str, Node],
    *,
    llm: LLM | None,
    table: ListTable | None = None,
    verifier: Verifier | None = None,
) -> tuple[str, Aggregated]:
    """The aggregator's name and the answer that it made of a job's findings."""
    job, settings = run.job, run.settings
    question = job.request.question
    found = replace(
        findings(question, pool, nodes, leaves, run.jobs.routed(job.id), settings),
        table=table,
        llm=llm,
        timeout_s=job.remaining(WRITE_S),
        verifier=verifier,
        verifier_limit=settings.verifier.most,
        verifier_s=settings.verifier.timeout_s,
    )
    return aggregated(found, job.aggregator or SIMPLE, settings, run.jobs.clock.now())


def findings(  # noqa: PLR0913, PLR0917 - what an answer is made of
    question: str,
    pool: MergedPool,
    nodes: Mapping[str, Node],
    leaves: Sequence[LeafResult],
    routed: Routed | None,
    settings: Settings,
) -> Findings:
    """What an aggregator gets, without any server. Pure."""
    root = Node(id=ROOT_ID, level=0, facet=Facet.CORE, query=question, kind=NodeKind.BRANCH)
    return Findings(
        question=question,
        pool=pool,
        nodes={root.id: root, **nodes},
        leaves=leaves,
        routed=routed or route_by_rules(question),
        prompt_tokens=settings.llm_prompt_tokens,
        sources_tokens=int(settings.llm_prompt_tokens * settings.llm_sources_share),
        mark_unsupported=settings.summary.unsupported == "mark",
    )


def aggregated(found: Findings, name: str, settings: Settings, now: float) -> tuple[str, Aggregated]:
    """The answer by an aggregator, what its sentences rest on, what is wrong with its sources. `now`: Unix seconds."""
    name, made = _made(found, name, settings)
    held = with_support(made, found.pool.hits)
    today = datetime.fromtimestamp(now, UTC).date().isoformat()
    summary = with_verdicts(held.summary, found.pool.hits, found.question, today)
    return name, held.model_copy(update={"summary": summary})


def _made(found: Findings, name: str, settings: Settings) -> tuple[str, Aggregated]:
    """What the aggregator made; "nothing found" where that is the verdict of all leaves.

    Where the question is about an identifier that nothing names, the answer says so, and not what others say of others.
    """
    question, hits = found.question, found.pool.hits
    if verdict(found.leaves) and of_symbol(question, hits) is None:
        scores = (hit.parts.get("rerank", 0.0) for leaf in found.leaves for hit in leaf.hits)
        summary = nothing_found(question, settings.rerank.min_relevance, max(scores, default=0.0))
        return name, Aggregated(summary=summary)
    if found.table is None and (lost := unnamed_subject(question, hits)):
        return name, Aggregated(summary=_no_document_names(question, lost))
    given = settings.aggregators.model_dump().get(name, {})
    name, made = aggregate(name, found, given, all_known())
    return name, made if found.table is not None else _with_unnamed(made, question, hits)


def _with_unnamed(made: Aggregated, question: str, hits: Sequence[MergedHit]) -> Aggregated:
    """`made` with a warning for identifiers of the question that no hit names."""
    if not hits or not (lost := unnamed(question, hits)):
        return made
    return made.model_copy(update={"warnings": (*made.warnings, _no_document_names(question, lost).text)})


def _no_document_names(question: str, lost: Sequence[str]) -> Summary:
    """Of identifiers of the question that stand in nothing that was found."""
    names = reader_sentence("comma", question).join(lost)
    missing = tuple(MissingFact(asked=one, reason=MissingReason.UNNAMED) for one in lost)
    return Summary(text=reader_sentence("unnamed", question, names), kind="extractive", missing=missing)


def verdict(leaves: Sequence[LeafResult]) -> str | None:
    """What every leaf that answered said: "nothing relevant", or None."""
    verdicts = {leaf.verdict for leaf in leaves if leaf.status is LeafStatus.DONE}
    return verdicts.pop() if len(verdicts) == 1 else None


def all_leaves(
    nodes: Mapping[str, Node],
    states: Mapping[str, str],
    results: Mapping[str, LeafResult],
    then: str = TIME_UP,
) -> list[LeafResult]:
    """Every leaf of the tree in its order; those that recorded nothing until `then` count as failed.

    A leaf is in the tree as long as one of the three knows it. Where its node is lost, nobody can tell what was asked:
    it counts as failed, so that the answer names it as missing.
    """
    grown = grown_branches(nodes.values()) | {node_id for node_id, state in states.items() if state == "grown"}
    return [
        (results.get(node_id) if node_id in nodes else None)
        or LeafResult(
            node_id=node_id,
            status=LeafStatus.FAILED,
            error=_reason(node_id, nodes, states, then),
            out_of_time=then == TIME_UP and node_id in nodes and states.get(node_id) not in ENDED_LEAVES,
        )
        for node_id in sorted({*nodes, *states, *results} - grown, key=node_order)
    ]


def _reason(node_id: str, nodes: Mapping[str, Node], states: Mapping[str, str], then: str) -> str:
    """Why a leaf recorded nothing: one that waited says for what."""
    node = nodes.get(node_id)
    if node is None:
        return _LOST
    if states.get(node.id) in ENDED_LEAVES:
        return "its recorded result is lost"
    if states.get(node.id) != "waiting":
        return f"had not answered when {then}"
    open_ones = [other for other in node.depends_on if states.get(other) not in ENDED_LEAVES]
    if not open_ones:
        return f"waited for {', '.join(node.depends_on)}, whose answers came too late for it to start"
    named = ", ".join(f"{other} ({shown(nodes[other].query)})" if other in nodes else other for other in open_ones)
    return f"was still waiting for {named} when {then}"


def build_answer(  # noqa: PLR0913, PLR0917 - what an answer is made of
    run: TaskRun,
    pool: MergedPool,
    made: Aggregated,
    leaves: list[LeafResult],
    nodes: Mapping[str, Node],
    state: State = State.DONE,
) -> Answer:
    """The answer of a job that is about to be done, or at `state`; without `leaves` nothing had to be looked up.

    Vectors are left out: nobody reads them.
    """
    jobs, job = run.jobs, run.job
    status = JobReader(jobs.client).status(job.id)
    done = sum(leaf.status is LeafStatus.DONE for leaf in leaves)
    own = verdict(leaves) if leaves else NO_RETRIEVAL
    missing = [leaf for leaf in leaves if leaf.status is not LeafStatus.DONE and not _added_later(leaf, nodes)]
    return Answer(
        job_id=job.id,
        question=job.request.question,
        state=state.value,
        partial=bool(missing) or (made.table is not None and made.table.partial),
        coverage=f"{done} of {len(leaves)} leaves answered",
        summary=_searched_first(made.summary, status.warnings, job.request.question),
        steps=made.steps,
        table=made.table,
        results=_without_vectors(pool.hits),
        gaps=_gaps(run, pool, nodes, leaves),
        tree=tuple(nodes.values()),
        leaves=tuple(leaf.model_copy(update={"hits": _without_vectors(leaf.hits)}) for leaf in leaves),
        reranked_by=pool.reranked_by,
        folds=pool.folds,
        verdict=own,
        verdicts=verdicts_of(made.summary, own),
        retrieval=bool(leaves),
        route=status.route,
        warnings=_in_order((*status.warnings, *pool.warnings), leaves),
        degraded=status.degraded,
        degraded_at=status.degraded_at,
        cost=status.cost,
        budget=status.budget,
        timings_ms=_timings(status.timings_ms, jobs.clock.now() - job.created_at)
        if state is State.DONE
        else status.timings_ms,
    )


def _searched_first(summary: Summary | None, warnings: Iterable[str], question: str) -> Summary | None:
    """The summary; where nothing was found for a list that was only searched, that is said before it."""
    lead = reader_sentence("list_searched", question)
    said = next((warning for warning in warnings if warning.startswith(lead)), "")
    if summary is None or not (said and summary.text.startswith(reader_sentence("nothing_found", question))):
        return summary
    return summary.model_copy(update={"text": f"{said} {summary.text}"})


def _in_order(warnings: Iterable[str], leaves: Sequence[LeafResult]) -> tuple[str, ...]:
    """Each once: those of the whole job, then those of leaves in the tree's order. They came as their tasks ended."""
    place = {warning: number for number, leaf in reversed(list(enumerate(leaves, 1))) for warning in leaf.warnings}
    return tuple(sorted(set(warnings), key=lambda warning: (place.get(warning, 0), warning)))


def _added_later(leaf: LeafResult, nodes: Mapping[str, Node]) -> bool:
    """True for a leaf of a second round: without it the answer is what it was before."""
    return leaf.node_id in nodes and nodes[leaf.node_id].gap is not None


def _gaps(
    run: TaskRun, pool: MergedPool, nodes: Mapping[str, Node], leaves: Sequence[LeafResult]
) -> tuple[SearchedGap, ...]:
    request, options = run.job.request, run.settings.gaps
    if not options.allow(request):
        return ()
    results = {leaf.node_id: leaf for leaf in leaves}
    return told_gaps(SearchedTree(request.question, nodes, results, pool.hits, options))


def kept(answer: Answer, keep: str) -> Answer:
    """What `jobs.keep` says is kept of an answer. One that a retry may go on with, partial or degraded, stays whole."""
    if keep in {"full", "candidates"} or answer.partial or answer.degraded:
        return answer
    leaves = tuple(leaf.model_copy(update={"hits": ()}) for leaf in answer.leaves)
    if keep == "answer":
        return answer.model_copy(update={"leaves": leaves})
    results = tuple(hit.but(text="", snippet="") for hit in answer.results)
    return answer.model_copy(update={"leaves": leaves, "results": results})


def _without_vectors(hits: Iterable[H]) -> tuple[H, ...]:
    return tuple(hit.but(vector=()) if hit.vector else hit for hit in hits)


def _timings(stages: dict[str, float], seconds: float) -> dict[str, float]:
    """The job is still summarising: that stage ends now, `seconds` after the job was submitted."""
    total = round(max(0.0, seconds) * 1000, 1)
    before = sum(value for name, value in stages.items() if name != "total")
    return {**stages, "summarising": round(max(0.0, total - before), 1), "total": total}


def no_retrieval(question: str) -> Summary:
    """The text of an answer for which nothing is searched, in the question's language; it cites nothing."""
    return Summary(text=reader_sentence("not_retrieved", question), kind="none")
