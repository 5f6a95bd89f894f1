"""A corpus and the answers that are kept of it, in one process: jobs on a real Redis, searched in an embedded store."""

from __future__ import annotations

from pathlib import Path

import redis

from shared.jobs import JobStore, new_id
from shared.jobs.stale import StaleAnswers
from shared.models import (
    Answer,
    DocumentStatus,
    Facet,
    JobRequest,
    LeafResult,
    Node,
    RawDocument,
)
from shared.models.stale import StaleCheck, StaleMark
from shared.providers.rerankers import reranker
from shared.settings import Settings
from shared.store import TenantStores
from tests.fakes.stores import StoreInPlace
from tests.fakes.walked_jobs import WalkedJob, route
from workers.index.pipeline import Indexer
from workers.merge.aggregators import SIMPLE
from workers.merge.answer import aggregated, findings
from workers.merge.manifest import manifest_of
from workers.question_search import QuestionSearch, leaf_search
from workers.search.resources import SearchResources
from workers.search.state import Tools
from workers.staleness.check import StalenessCheck


class KeptAnswers:
    """Documents by name, and questions with one leaf each, or one for each of `more`."""

    folder = "docs/"

    def __init__(self, client: redis.Redis, settings: Settings) -> None:
        self.jobs = JobStore(client, settings)
        self.settings, self.stale = settings, StaleAnswers(client, settings, self.jobs.clock)
        self.resources = SearchResources(settings)
        folder = settings.data_dir / "store" / settings.store.collection
        self.resources._stores = TenantStores(StoreInPlace(folder))
        self.check = StalenessCheck(self.resources, self.jobs)
        self._indexers: dict[str, Indexer] = {}

    def close(self) -> None:
        self.resources.close()

    def put(self, tenant: str = "default", check: bool = True, **texts: str) -> StaleCheck:
        """Add or change documents, as an ingest does; "" removes one."""
        indexer = self._indexers.setdefault(tenant, Indexer(self.resources.store(tenant), None, self.settings))
        raw = [
            RawDocument(
                source="/docs", path=f"{self.folder}{name}.md", identity=f"/docs/{name}.md", suffix=".md",
                tenant=tenant, content=text.encode(), whole=True,
            )
            for name, text in texts.items()
            if text
        ]  # fmt: skip
        outcomes, _ = indexer.index(raw)
        outcomes += indexer.remove("/docs", "default", [f"/docs/{name}.md" for name, text in texts.items() if not text])
        indexer.finish()
        changed = [one for one in outcomes if one.status is not DocumentStatus.UNCHANGED]
        return self.check.run(tenant, changed) if check else StaleCheck()

    def look_closely(self, tenant: str = "default") -> StaleCheck:
        """Hold the answers closely against what has changed, as the ops pool has it done; the last such check."""
        found = StaleCheck()
        while self.stale.rechecks(tenant):
            found = self.check.run_rechecks(tenant)
        return found

    def begin(self, question: str, *more: str, tenant: str = "default") -> WalkedJob:
        """A job that has searched its leaves and is not done yet."""
        job_id, request = new_id(), JobRequest(question=question, tenant=tenant)
        self.jobs.enqueue([(job_id, request)])
        self.jobs.admit()
        walked = WalkedJob(self.jobs, job_id)
        walked.planning()
        self.jobs.route(job_id, route())
        facets = [Facet.ORIGINAL, *(Facet.CORE for _ in more)]
        nodes = [
            Node(id=f"0.{at}", parent_id="0", level=1, facet=facet, query=query)
            for at, (facet, query) in enumerate(zip(facets, (question, *more), strict=True))
        ]
        self.jobs.start_searching(job_id, nodes)
        for node in nodes:
            self.jobs.record_leaf(job_id, self.leaf(request, node))
        return walked

    def leaf(self, request: JobRequest, node: Node) -> LeafResult:
        search = self.search(request)
        search.leaf(node)
        return search.leaves[node.id]

    def search(self, request: JobRequest) -> QuestionSearch:
        tools = Tools(settings=self.settings, reranker=reranker(self.settings))
        return QuestionSearch(leaf_search(self.resources, tools), tools, request)

    def end(self, walked: WalkedJob) -> str:
        job, nodes, leaves = walked.job, self.jobs.nodes(walked.id), self.jobs.results(walked.id)
        search = self.search(job.request)
        search.nodes |= nodes
        search.leaves |= leaves
        pool = search.pool(0)
        self.jobs.start_merging(walked.id, "worker")
        self.jobs.start_summarising(walked.id, pool)
        question, routed = job.request.question, self.jobs.routed(walked.id)
        found = findings(question, pool, nodes, tuple(leaves.values()), routed, self.settings)
        _, made = aggregated(found, job.aggregator or SIMPLE, self.settings, self.jobs.clock.now())
        answer = Answer(
            job_id=walked.id, question=question, state="done", coverage="all", leaves=tuple(leaves.values()),
            results=pool.hits, tree=tuple(nodes.values()), summary=made.summary,
        )  # fmt: skip
        assert self.jobs.finish(job, answer, manifest=manifest_of(job, answer, self.settings))
        return walked.id

    def ask(self, question: str, *more: str, tenant: str = "default") -> str:
        return self.end(self.begin(question, *more, tenant=tenant))

    def run(self, job_id: str) -> None:
        """Run a job that was submitted, as workers would: it is searched as it is, without a plan."""
        self.jobs.admit()
        walked = WalkedJob(self.jobs, job_id)
        assert walked.planning()
        self.jobs.route(job_id, route())
        request = walked.job.request
        node = Node(id="0.0", parent_id="0", level=1, facet=Facet.ORIGINAL, query=request.question)
        self.jobs.start_searching(job_id, [node])
        self.jobs.record_leaf(job_id, self.leaf(request, node))
        self.end(walked)

    def marks(self, job_id: str) -> tuple[StaleMark, ...]:
        return self.stale.marks([job_id]).get(job_id, ())

    def stale_by(self, job_id: str) -> dict[str, str]:
        """Document -> what became of it."""
        return {Path(mark.path).stem: mark.by.value for mark in self.marks(job_id)}
