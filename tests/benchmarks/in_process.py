"""Whole questions in one process, by the code of the pools: planned by rules, searched, merged, answered, kept.

What it leaves out are Celery's messages. So a thousand answers take a minute, and can be held against others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import redis

from orchestrator.planning.planner import Planner
from orchestrator.retries.resume import resume
from shared.contract import TaskMessage
from shared.jobs import Job, JobReader, new_id
from shared.models import Answer, JobRequest, MergedPool, Node, NodeKind
from shared.models.route import Route
from shared.models.stale import StaleCheck
from shared.settings import Settings
from shared.tasks.app import make_app
from shared.tasks.task_run import TaskRun
from tests.fakes.kept_answers import KeptAnswers
from tests.fakes.walked_jobs import WalkedJob
from workers.merge.answer import aggregated, findings
from workers.merge.manifest import manifest_of
from workers.question_search import QuestionSearch

TENANT = "default"


class InProcess(KeptAnswers):
    """A corpus, kept answers of it, and the jobs that are submitted meanwhile."""

    folder = ""

    def __init__(self, client: redis.Redis, settings: Settings) -> None:
        super().__init__(client, settings)
        self.app, self._planner = make_app(settings), Planner(settings)

    def close(self) -> None:
        self.app.close()
        super().close()

    def change(self, texts: Mapping[str, str]) -> StaleCheck:
        """Add or change documents by name, and hold the kept answers against that; "" removes one."""
        return self.put(TENANT, **texts)

    def anew(self, question: str) -> Answer:
        """The answer of a full run now, which is not kept."""
        request = JobRequest(question=question)
        at = self.jobs.clock.now()
        job = Job(
            id=new_id(), state=cast("Any", "planning"), request=request, created_at=at, updated_at=at, deadline_s=60.0,
            left_s=60.0,
        )  # fmt: skip
        route, _ = self._planner.route(job)
        search = self.search(request)
        search.plan(self._grown(job, route))
        return self._answer(job, search, self._pool(search, request), route)

    def jobs_answer(self, job_id: str) -> Answer:
        found = JobReader(self.jobs.client).answer(job_id)
        assert found is not None
        return found

    def submit(self, question: str) -> str:
        """Ask, as a client does, and run the job."""
        job_id = new_id()
        self.jobs.enqueue([(job_id, JobRequest(question=question))])
        self.run(job_id)
        return job_id

    def run(self, job_id: str) -> None:
        self.jobs.admit()
        walked = WalkedJob(self.jobs, job_id)
        assert walked.planning()
        job = walked.job
        task = SimpleNamespace(name="plan.job", request=SimpleNamespace(id="worker"))
        if not (
            job.retry_of and resume(TaskRun(cast("Any", task), self.jobs, job, TaskMessage(job_id=job_id)), self.app)
        ):
            planned, _ = self._planner.route(job)
            self.jobs.route(job_id, planned)
            self.jobs.start_searching(job_id, self._grown(job, planned))
        route, kept = self.jobs.routed(job_id), self.jobs.results(job_id)
        assert route is not None
        search = self.search(job.request)
        nodes = self.jobs.nodes(job_id)
        search.leaves |= kept
        search.nodes |= {name: nodes[name] for name in kept}
        search.plan(node for name, node in nodes.items() if name not in kept)
        self._record(job_id, search, kept.keys())
        pool = self._pool(search, job.request)
        if added := [node for name, node in search.nodes.items() if name not in nodes]:
            self.jobs.search_again(job_id, added)
            self._record(job_id, search, nodes.keys())
        assert self.jobs.start_merging(job_id, "worker")
        assert self.jobs.start_summarising(job_id, pool)
        answer = self._answer(job, search, pool, route)
        assert self.jobs.finish(job, answer, manifest=manifest_of(job, answer, self.settings))

    def _record(self, job_id: str, search: QuestionSearch, known: Iterable[str]) -> None:
        for name in [one for one in search.leaves if one not in set(known)]:
            node = search.nodes[name]
            if node.bound_by:
                self.jobs.bind(job_id, node)
            self.jobs.record_leaf(job_id, search.leaves[name])

    def _pool(self, search: QuestionSearch, request: JobRequest) -> MergedPool:
        allowed = self.settings.gaps.allow(request)
        return search.pool(self.settings.decomposition.max_total_leaves - len(search.leaves) if allowed else 0)

    def _grown(self, job: Job, route: Route) -> list[Node]:
        found = list[Node]()
        left = list(self._planner.first(job, route)[0].nodes)
        while left:
            node = left.pop(0)
            if node.kind is NodeKind.BRANCH:
                grown = self._planner.refine(job, node)[0].nodes
                left = [*grown, *left]
            else:
                found.append(node)
        return found

    def _answer(self, job: Job, search: QuestionSearch, pool: MergedPool, route: Route) -> Answer:
        leaves, nodes = search.ordered(), dict(sorted(search.nodes.items()))
        found = findings(job.request.question, pool, nodes, leaves, route, self.settings)
        name, made = aggregated(found, route.aggregator, self.settings, self.jobs.clock.now())
        return Answer(
            job_id=job.id, question=job.request.question, state="done", coverage="all", aggregator=name,
            summary=made.summary, steps=made.steps, results=pool.hits, tree=tuple(nodes.values()), route=route,
            leaves=tuple(leaves),
        )  # fmt: skip
