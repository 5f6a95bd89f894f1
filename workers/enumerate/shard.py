"""Reads a shard of a list into the job store, and fills the columns of its rows with the LLM."""

from __future__ import annotations

import time
from collections.abc import Callable

from shared.errors import DeadlineError
from shared.jobs.tables import Excerpts, Tables
from shared.models import LeafResult, LeafStatus, Node, SearchResult
from shared.models.enumeration import ShardReport
from shared.models.hits import StageTrace
from shared.providers.llm.client import LLM
from shared.tasks.task_run import TaskRun
from workers.enumerate.columns import Extraction
from workers.enumerate.scan import Scanned, scan_shard
from workers.search.resources import SearchResources

MODE = "enumeration"
#: Seconds between two checks whether the job has ended.
_JOB_CHECK_S = 1.0


def read_shard(run: TaskRun, node: Node, resources: SearchResources, timeout_s: float) -> tuple[SearchResult, bool]:
    """Put the shard's rows into the job store by pages. Returns its counts, and whether columns are left for the LLM.

    Raises: the store's errors, DeadlineError.
    """
    tables, settings = Tables(run.jobs.client, run.jobs.settings), run.jobs.settings
    scan = tables.scan(run.job.id)
    if scan is None or node.shard is None:
        raise DeadlineError("what was to be listed is not known any more")
    store, begun = resources.store(run.job.request.tenant), time.monotonic()
    before = store.info()
    wanted = settings.enumeration.llm_rows if settings.has_llm and scan.columns else 0
    stopped = _stop_check(run, begun + timeout_s)
    found = scan_shard(store, scan, node.shard, excerpts=wanted, stopped=stopped) if before else Scanned()
    after = store.info()
    size = settings.enumeration.page_rows
    pages = [found.rows[start : start + size] for start in range(0, len(found.rows), size)]
    for number, page in enumerate(pages):
        tables.put_page(run.job.id, node.id, number, page)
    if found.excerpts:
        tables.put_excerpts(run.job.id, node.id, Excerpts(rows=tuple(found.excerpts)))
    first, last = (info.index_version if info else 0 for info in (before, after))
    report = ShardReport(
        scanned=found.scanned, matched=len(found.rows), unparsed=found.unparsed, unlabelled=found.unlabelled,
        pages=len(pages), cut=found.cut,
        first_version=first, last_version=last,
    )  # fmt: skip
    tables.put_report(run.job.id, node.id, report)
    trace = StageTrace(stage=MODE, ms=round((time.monotonic() - begun) * 1000, 1), hits=report.matched)
    result = SearchResult(mode=MODE, candidates=report.scanned, stages=(trace,), index_version=report.last_version)
    return result, bool(found.excerpts)


def _stop_check(run: TaskRun, end: float) -> Callable[[], bool]:
    """A check that is true once a scan has to stop: its time is up, or its job has ended."""
    next_check = time.monotonic() + _JOB_CHECK_S

    def stopped() -> bool:
        nonlocal next_check
        now = time.monotonic()
        if end > now < next_check:
            return False
        next_check = now + _JOB_CHECK_S
        return now >= end or (job := run.jobs.job(run.job.id)) is None or job.terminal

    return stopped


def record_shard(run: TaskRun, node: Node, read: SearchResult, warnings: tuple[str, ...] = ()) -> None:
    """Record the shard's leaf; its rows are in the job store already."""
    result = LeafResult(
        node_id=node.id, status=LeafStatus.DONE, candidates=read.candidates, warnings=warnings,
        stages=read.stages, mode=read.mode, index_version=read.index_version,
    )  # fmt: skip
    run.record_leaf(result)


def fill_columns(run: TaskRun, node: Node, llm: LLM, timeout_s: float) -> tuple[str, ...]:
    """Fill the missing columns of the rows with excerpts. An LLM that fails leaves them empty, with a warning."""
    tables, job_id = Tables(run.jobs.client, run.jobs.settings), run.job.id
    extraction, scan = Extraction(llm, timeout_s, run.jobs.settings), tables.scan(job_id)
    size = run.jobs.settings.enumeration.page_rows
    report, shown = tables.report(job_id, node.id), tables.excerpts(job_id, node.id).rows
    if scan is None or report is None or not shown:
        return ()
    pages = {number: list(tables.page(job_id, node.id, number)) for number in {item.number // size for item in shown}}
    given = [(pages[item.number // size][item.number % size], item.text) for item in shown]
    for item, row in zip(shown, extraction.fill(given, scan.columns), strict=True):
        pages[item.number // size][item.number % size] = row
    for number, rows in pages.items():
        tables.put_page(job_id, node.id, number, rows)
    tables.put_report(job_id, node.id, report.model_copy(update={"by": "llm", "dropped": extraction.dropped}))
    tables.drop_excerpts(job_id, node.id)
    run.annotate(extraction.cost, extraction.warnings)
    return tuple(extraction.warnings)
