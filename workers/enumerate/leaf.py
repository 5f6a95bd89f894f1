"""The two halves of a shard's leaf (E3): the search pool reads it, the rerank pool structures what was read."""

from __future__ import annotations

import time
from collections.abc import Sequence

from shared.errors import DeadlineError
from shared.job_store.tables import Excerpts, Tables
from shared.llm.client import LLM
from shared.models import LeafResult, LeafStatus, Node, SearchResult
from shared.models.enumeration import ShardReport
from shared.steps import Step
from workers.corpus import Corpus
from workers.enumerate.extract import Extraction
from workers.enumerate.scan import NOTHING, scan_shard

MODE = "enumeration"
#: Seconds between two looks at whether the job has ended.
_LOOK_S = 1.0


def read_shard(step: Step, node: Node, corpus: Corpus, timeout_s: float) -> None:
    """The search pool's half: rows go to the job store by pages. Raises: the store's errors, DeadlineError."""
    tables, settings = Tables(step.jobs.client, step.jobs.settings), step.jobs.settings
    scan = tables.scan(step.job.id)
    if scan is None or node.shard is None:
        raise DeadlineError("what was to be listed is not known any more")
    store, begun = corpus.store(step.job.request.tenant), time.monotonic()
    before = store.info()
    wanted = settings.enumeration.llm_rows if settings.has_llm and scan.columns else 0
    stopped = _Clock(step, begun + timeout_s)
    found = scan_shard(store, scan, node.shard, excerpts=wanted, stopped=stopped) if before else NOTHING
    after = store.info()
    size = settings.enumeration.page_rows
    pages = [found.rows[start : start + size] for start in range(0, len(found.rows), size)]
    for number, page in enumerate(pages):
        tables.put_page(step.job.id, node.id, number, page)
    if found.excerpts:
        tables.put_excerpts(step.job.id, node.id, Excerpts(rows=found.numbered()))
    report = ShardReport(
        scanned=found.scanned,
        matched=len(found.rows),
        pages=len(pages),
        cut=found.cut,
        first_version=before.index_version if before else 0,
        last_version=after.index_version if after else 0,
    )
    tables.put_report(step.job.id, node.id, report)
    spent = round((time.monotonic() - begun) * 1000, 1)
    read = SearchResult(mode=MODE, candidates=report.scanned, timings_ms={"scan": spent})
    step.jobs.put_candidates(step.job.id, node.id, read)


class _Clock:
    """Says when a scan has to stop: its time is up, or nobody waits for it any more."""

    def __init__(self, step: Step, end: float) -> None:
        self._step, self._end, self._next = step, end, time.monotonic() + _LOOK_S

    def __call__(self) -> bool:
        now = time.monotonic()
        if now >= self._end:
            return True
        if now < self._next:
            return False
        self._next = now + _LOOK_S
        job = self._step.jobs.job(self._step.job.id)
        return job is None or job.terminal


def structure_shard(step: Step, node: Node, read: SearchResult, llm: LLM | None, timeout_s: float) -> None:
    """The rerank pool's half: columns that no line names are asked of the LLM, then the leaf is recorded."""
    scan = Tables(step.jobs.client, step.jobs.settings).scan(step.job.id)
    warnings: tuple[str, ...] = ()
    if scan and scan.columns and llm is not None:
        warnings = _extracted(step, node, scan.columns, Extraction(llm, timeout_s, step.jobs.settings))
    result = LeafResult(
        node_id=node.id,
        status=LeafStatus.DONE,
        candidates=read.candidates,
        warnings=warnings,
        timings_ms=read.timings_ms,
    )
    step.jobs.record_leaf(step.job.id, result)


def _extracted(step: Step, node: Node, columns: Sequence[str], extraction: Extraction) -> tuple[str, ...]:
    """Fill the missing columns of the rows that a model may read; a model that fails leaves them empty."""
    tables, job_id = Tables(step.jobs.client, step.jobs.settings), step.job.id
    size = step.jobs.settings.enumeration.page_rows
    report, shown = tables.report(job_id, node.id), tables.excerpts(job_id, node.id).rows
    if report is None or not shown:
        return ()
    pages = {number: list(tables.page(job_id, node.id, number)) for number in {item.number // size for item in shown}}
    given = [(pages[item.number // size][item.number % size], item.text) for item in shown]
    for item, row in zip(shown, extraction.fill(given, columns), strict=True):
        pages[item.number // size][item.number % size] = row
    for number, rows in pages.items():
        tables.put_page(job_id, node.id, number, rows)
    tables.put_report(job_id, node.id, report.model_copy(update={"by": "llm", "dropped": extraction.dropped}))
    tables.drop_excerpts(job_id, node.id)
    step.jobs.annotate(job_id, extraction.cost, extraction.warnings)
    return tuple(extraction.warnings)
