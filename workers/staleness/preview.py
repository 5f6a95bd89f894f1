"""What an answer would be now: its tree searched, merged and answered again in this process, by no model.

Nothing of it is kept. It says whether a job of a standing question is worth its while, and whether a refresh of the
leaves that documents touch gives what a full run would.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import NamedTuple

from shared.cited_facts import changed, facts_of
from shared.jobs import Job, JobReader, JobStore
from shared.models import Answer, JobRequest, LeafResult, LeafStatus, MergedHit, Node, Summary
from shared.models.degraded import Degradation
from shared.models.manifest import Record
from shared.models.plan import BOUND_BY_ANSWER, holding
from shared.settings import Settings
from workers.merge.aggregators import SIMPLE
from workers.merge.answer import aggregated, findings
from workers.merge.manifest import made_alike
from workers.question_search import QuestionSearch, Search
from workers.search.resources import SearchResources
from workers.search.state import Tools


class AnswerPreview(NamedTuple):
    """What an answer would be: its results, and its text, which is None where a model writes it."""

    results: tuple[MergedHit, ...]
    summary: Summary | None


class AnswerPreviews:
    """One a process."""

    def __init__(self, resources: SearchResources, jobs: JobStore) -> None:
        self._resources, self._jobs = resources, jobs
        self._reader = JobReader(jobs.client)

    def differs(self, job_id: str, search: Search) -> bool | None:
        """Whether its answer would cite other words now. None where nobody can tell: of a list, or where it is gone.

        Of a text that a model writes, whether the first passages that it is written from are others. `search`: what a
        leaf finds now. Raises: what that raises.
        """
        if (kept := self._kept(job_id)) is None:
            return None
        answer, now = kept[1], self._preview(*kept, search, {})
        if now.summary is None:
            first = self._jobs.settings.standing.ranks
            return {hit.chunk_id for hit in answer.results[:first]} != {hit.chunk_id for hit in now.results[:first]}
        made = Answer(job_id=job_id, question=answer.question, state=answer.state, coverage="", summary=now.summary)
        return any(changed(facts_of(answer), facts_of(made)))

    def comparable(self, job_id: str) -> bool:
        """Whether it was made as it would be now, and with nothing missing: what differs then is the corpus's doing."""
        manifest = self._reader.manifest(job_id)
        return manifest is not None and _is_whole(manifest.record) and made_alike(manifest.record, self._jobs.settings)

    def displaced(self, job_id: str, search: Search, touched: Collection[str]) -> tuple[int, MergedHit] | None:
        """The first result that a full run has at another rank than a refresh of the `touched` leaves, with its rank.

        Words are weighed by how rare they are in the corpus, so every change moves the scores of all leaves a little:
        results of two leaves may change places, or other sentences be picked, although each leaf keeps what it had.
        None: the refresh gives what a full run does; without touched leaves, the answer is as it stands.
        """
        if (kept := self._kept(job_id)) is None:
            return None
        answer, full = kept[1], self._preview(*kept, search, {})
        mixed = (
            self._preview(*kept, search, _held(answer, touched))
            if touched
            else AnswerPreview(answer.results, answer.summary)
        )
        for rank, (one, other) in enumerate(zip_longest(full.results, mixed.results), 1):
            if one is None or other is None or one.chunk_id != other.chunk_id:
                return rank, one or other
        same = full.summary is None or mixed.summary is None or _told(full.summary) == _told(mixed.summary)
        return None if same or not full.results else (1, full.results[0])

    def _kept(self, job_id: str) -> tuple[Job, Answer] | None:
        """The answer and its job. None for a list, too: that is read anew."""
        job, answer = self._jobs.job(job_id), self._reader.answer(job_id)
        return None if job is None or answer is None or answer.table is not None else (job, answer)

    def _preview(self, job: Job, answer: Answer, search: Search, held: Mapping[str, LeafResult]) -> AnswerPreview:
        """`held`: leaves that are not searched."""
        settings, request = self._jobs.settings, job.request
        tools = Tools(settings=settings, reranker=self._resources.reranker())
        found = QuestionSearch(search, tools, request)
        found.leaves |= held
        found.nodes |= {node.id: node for node in answer.tree if node.id in held}
        found.plan(node for node in as_planned(answer.tree) if node.id not in held)
        room = settings.decomposition.max_total_leaves - len(found.leaves) if settings.gaps.allow(request) else 0
        pool = found.pool(room)
        if _by_model(request, settings):
            return AnswerPreview(pool.hits, None)
        routed = self._jobs.routed(job.id)
        aspects = findings(request.question, pool, found.nodes, found.ordered(), routed, settings)
        _, made = aggregated(aspects, job.aggregator or SIMPLE, settings, self._jobs.clock.now())
        return AnswerPreview(pool.hits, made.summary)


def as_planned(tree: Iterable[Node]) -> Iterator[Node]:
    """The nodes of a plan before they were searched: without what was added for gaps, and unbound.

    What an LLM has read off passages stays as it is written.
    """
    return (node if node.bound_by == BOUND_BY_ANSWER else node.unbound for node in tree if node.gap is None)


def _held(answer: Answer, touched: Collection[str]) -> dict[str, LeafResult]:
    """The leaves that a refresh of the touched ones takes over."""
    nodes = {node.id: node for node in answer.tree if node.gap is None}
    kept = {leaf.node_id: leaf for leaf in answer.leaves if leaf.hits or not leaf.candidates}
    return {name: kept[name] for name in holding(nodes, kept.keys() - set(touched))}


def _is_whole(record: Record) -> bool:
    """Whether nothing was missing when an answer was made."""
    missing = {code for codes in record.degraded.values() for code in codes} - {Degradation.NOT_CONFIGURED.value}
    return not missing and all(leaf.status == LeafStatus.DONE for leaf in record.leaves)


def _told(summary: Summary) -> tuple[object, ...]:
    return summary.text, [(one.chunk_id, one.quote) for one in summary.citations]


def _by_model(request: JobRequest, settings: Settings) -> bool:
    asked = request.summary if request.summary is not None else settings.enable_summary
    return asked and settings.has_llm
