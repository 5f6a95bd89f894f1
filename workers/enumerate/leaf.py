"""The two halves of a shard's leaf (E3): the search pool reads it, the rerank pool structures what was read."""

from __future__ import annotations

import time

from shared.errors import DeadlineError, RamifyError
from shared.job_store.tables import Excerpts, Tables
from shared.llm.client import LLM
from shared.models import LeafResult, LeafStatus, Node, SearchResult
from shared.models.enumeration import Scan, ShardReport
from shared.settings import Settings
from shared.steps import Step
from workers.corpus import Corpus
from workers.enumerate.extract import Extraction
from workers.enumerate.scan import scan_shard

MODE = "enumeration"
#: Seconds between two looks at whether the job has ended.
_LOOK_S = 1.0


def read_shard(step: Step, node: Node, corpus: Corpus, timeout_s: float) -> None:
    """The search pool's half: rows go to the job store by pages. Raises: the store's errors, DeadlineError."""
    tables, settings = Tables(step.jobs.client, step.jobs.settings), step.jobs.settings
    scan = tables.scan(step.job.id)
    if scan is None or node.shard is None:
        raise DeadlineError("what was to be listed is not known any more")
    store = corpus.store()
    info = store.info()
    begun = time.monotonic()
    excerpts = settings.enumeration.llm_rows if settings.has_llm and scan.columns else 0
    stopped = _Clock(step, begun + timeout_s)
    found = scan_shard(store, scan, node.shard, excerpts=excerpts, stopped=stopped) if info else None
    after = store.info()
    rows = found.rows if found else []
    size = settings.enumeration.page_rows
    pages = [rows[start : start + size] for start in range(0, len(rows), size)]
    for number, page in enumerate(pages):
        tables.put_page(step.job.id, node.id, number, page)
    if found and found.excerpts:
        tables.put_excerpts(step.job.id, node.id, Excerpts(rows=found.numbered()))
    report = ShardReport(
        scanned=found.scanned if found else 0,
        matched=len(rows),
        pages=len(pages),
        cut=found.cut if found else False,
        first_version=info.index_version if info else 0,
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
    tables, job_id = Tables(step.jobs.client, step.jobs.settings), step.job.id
    scan, report = tables.scan(job_id), tables.report(job_id, node.id)
    warnings: tuple[str, ...] = ()
    if scan and report and llm is not None and scan.columns:
        warnings = _extracted(step, node, scan, report, tables, Extraction(llm, timeout_s, step.jobs.settings))
    result = LeafResult(
        node_id=node.id,
        status=LeafStatus.DONE,
        candidates=read.candidates,
        warnings=warnings,
        timings_ms=read.timings_ms,
        reranker=None,
    )
    step.jobs.record_leaf(job_id, result)


def _extracted(
    step: Step, node: Node, scan: Scan, report: ShardReport, tables: Tables, extraction: Extraction
) -> tuple[str, ...]:
    """Fill the missing columns of the rows that a model may read; a model that fails leaves them empty."""
    job_id, size = step.job.id, _page_rows(step.jobs.settings)
    shown = tables.excerpts(job_id, node.id).rows
    if not shown:
        return ()
    pages = {number: list(tables.page(job_id, node.id, number)) for number in {item.number // size for item in shown}}
    given = [(pages[item.number // size][item.number % size], item.text) for item in shown]
    try:
        filled = extraction.fill(given, scan.columns)
    except RamifyError as error:
        return (f"The columns of {node.query} could not be read by the LLM: {error}",)
    for item, row in zip(shown, filled, strict=True):
        pages[item.number // size][item.number % size] = row
    for number, rows in pages.items():
        tables.put_page(job_id, node.id, number, rows)
    tables.put_report(job_id, node.id, report.model_copy(update={"by": "llm", "dropped": extraction.dropped}))
    tables.drop_excerpts(job_id, node.id)
    step.jobs.annotate(job_id, extraction.cost, extraction.warnings)
    return tuple(extraction.warnings)


def _page_rows(settings: Settings) -> int:
    return settings.enumeration.page_rows
