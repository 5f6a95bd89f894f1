"""What an answer would cite now: its tree searched, merged and answered again in this process, by no model.

Nothing of it is kept. It says whether a job of a standing question is worth its while.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shared.cited_facts import changed, facts_of
from shared.jobs import JobReader, JobStore
from shared.models import Answer, JobRequest, Node
from shared.models.plan import BOUND_BY_ANSWER
from shared.settings import Settings
from workers.merge.aggregators import SIMPLE
from workers.merge.answer import aggregated, findings
from workers.question_search import QuestionSearch, Search
from workers.search.resources import SearchResources
from workers.search.state import Tools


class AnswerPreviews:
    """One a process."""

    def __init__(self, resources: SearchResources, jobs: JobStore) -> None:
        self._resources, self._jobs = resources, jobs

    def differs(self, job_id: str, search: Search) -> bool | None:
        """Whether its answer would cite other words now. None where nobody can tell: of a list, or where it is gone.

        Of a text that an LLM writes, whether the first passages that it is written from are others. `search`: what a
        leaf finds now. Raises: what that raises.
        """
        job, answer = self._jobs.job(job_id), JobReader(self._jobs.client).answer(job_id)
        if job is None or answer is None or answer.table is not None:
            return None
        settings, request = self._jobs.settings, job.request
        tools = Tools(settings=settings, reranker=self._resources.reranker())
        found = QuestionSearch(search, tools, request)
        found.plan(as_planned(answer.tree))
        room = settings.decomposition.max_total_leaves - len(found.leaves) if settings.gaps.allow(request) else 0
        pool = found.pool(room)
        if _by_llm(request, settings):
            first = settings.standing.ranks
            return {hit.chunk_id for hit in answer.results[:first]} != {hit.chunk_id for hit in pool.hits[:first]}
        routed = self._jobs.routed(job_id)
        aspects = findings(request.question, pool, found.nodes, found.ordered(), routed, settings)
        _, made = aggregated(aspects, job.aggregator or SIMPLE, settings, self._jobs.clock.now())
        now = Answer(job_id=job_id, question=answer.question, state=answer.state, coverage="", summary=made.summary)
        return any(changed(facts_of(answer), facts_of(now)))


def as_planned(tree: Iterable[Node]) -> Iterator[Node]:
    """The nodes of a plan before they were searched: without what was added for gaps, and unbound.

    What an LLM has read off passages stays as it is written.
    """
    return (node if node.bound_by == BOUND_BY_ANSWER else node.unbound for node in tree if node.gap is None)


def _by_llm(request: JobRequest, settings: Settings) -> bool:
    asked = request.summary if request.summary is not None else settings.enable_summary
    return asked and settings.has_llm
