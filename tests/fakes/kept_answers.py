"""A corpus and the answers that are kept of it, in one process: jobs on a real Redis, searched in an embedded store."""

from __future__ import annotations

from pathlib import Path

import redis

from shared.jobs import JobStore, new_id
from shared.jobs.stale import StaleAnswers
from shared.models import (
    Answer,
    Citation,
    DocumentStatus,
    Facet,
    JobRequest,
    LeafResult,
    LeafStatus,
    MergedHit,
    MergedPool,
    Node,
    RawDocument,
    Summary,
)
from shared.models.stale import StaleCheck, StaleMark
from shared.providers.rerankers import reranker
from shared.settings import Settings
from shared.store import TenantStores
from tests.fakes.stores import StoreInPlace
from tests.fakes.walked_jobs import WalkedJob, route
from workers.index import Indexer
from workers.leaf_outcome import floor_of
from workers.search.leaf import leaf_query, leaf_result_limit, run_rerank_stages, run_search_stages
from workers.search.resources import SearchResources
from workers.search.state import Tools
from workers.shown_hits import shown_hits
from workers.staleness.check import StalenessCheck


class KeptAnswers:
    """Documents by name, and questions with one leaf each, or one for each of `more`."""

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
                source="/docs", path=f"docs/{name}.md", identity=f"/docs/{name}.md", suffix=".md", tenant=tenant,
                content=text.encode(), whole=True,
            )
            for name, text in texts.items()
            if text
        ]  # fmt: skip
        outcomes, _ = indexer.index(raw)
        outcomes += indexer.remove("/docs", "default", [f"/docs/{name}.md" for name, text in texts.items() if not text])
        indexer.finish()
        changed = [one for one in outcomes if one.status is not DocumentStatus.UNCHANGED]
        return self.check.run(tenant, changed) if check else StaleCheck()

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
        query, limits = leaf_query(request, node, self.settings), self.settings.multi_query
        tools = Tools(settings=self.settings, reranker=reranker(self.settings))
        found = run_rerank_stages(query, run_search_stages(query, self.resources, None, 10.0), tools)
        return LeafResult(
            node_id=node.id, status=LeafStatus.DONE, candidates=found.candidates, reranker=found.reranked_by,
            hits=shown_hits(found.hits, leaf_result_limit(node, limits, limits.max_total_results)),
            floor=floor_of(found, limits.candidates_per_query),
        )  # fmt: skip

    def end(self, walked: WalkedJob) -> str:
        leaves, job = tuple(self.jobs.results(walked.id).values()), walked.job
        self.jobs.start_merging(walked.id, "worker")
        self.jobs.start_summarising(walked.id, MergedPool())
        cited = [hit for leaf in leaves for hit in leaf.hits[:2]]
        citations = tuple(
            Citation(number=n, chunk_id=hit.chunk_id, doc_id=hit.doc_id, path=hit.path, title=hit.title, quote=hit.text)
            for n, hit in enumerate(cited, 1)
        )
        results = tuple(
            MergedHit(**{**dict(hit), "vector": ()}) for hit in {hit.chunk_id: hit for hit in cited}.values()
        )
        answer = Answer(
            job_id=walked.id, question=job.request.question, state="done", coverage="all", leaves=leaves,
            results=results, tree=tuple(self.jobs.nodes(walked.id).values()),
            summary=Summary(text="cited", citations=citations),
        )  # fmt: skip
        assert self.jobs.finish(job, answer)
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
