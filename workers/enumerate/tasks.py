"""The tasks of a list: a shard is read on the search pool, its missing columns by the LLM on the rerank pool.

`values` says what exists under a filter, outside of any job.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import ValidationError

from shared.contract import TaskMessage, TaskName, read_request
from shared.errors import RamifyError
from shared.models.enumeration import Values, ValuesReply, ValuesRequest
from shared.providers.time_shares import seconds_for
from shared.store import ChunkStore
from shared.tasks.signatures import add_to_chord, task_signature
from shared.tasks.task_run import TaskRun, remote
from workers.app import app, llm_of, registry
from workers.enumerate.scan import ValueCache, counted, defined, titled
from workers.enumerate.shard import fill_columns, read_shard, record_shard
from workers.leaf_outcome import leaf_failed
from workers.search.resources import search_resources


@cache
def _known() -> ValueCache:
    return ValueCache(registry.settings.enumeration.max_values)


def _values(store: ChunkStore, request: ValuesRequest) -> Values:
    if request.symbol:
        return defined(store, request.filters, request.symbol)
    if request.titles:
        return titled(store, request.filters, request.titles)
    return counted(store, request.scan) if request.scan else _known().of(store, request.filters)


@registry(TaskName.SEARCH_SHARD, on_error=leaf_failed)
def search_shard(run: TaskRun) -> None:
    """Read a shard and record its leaf; where an LLM is to read columns of its rows, another task does both.

    That one is claimed in the job store before it joins the chord, as the children of a branch are.
    """
    job, node = run.job, run.node()
    timeout = run.leaf_seconds("searched")
    read, columns_missing = read_shard(run, node, search_resources(), timeout)
    if not columns_missing:
        record_shard(run, node, read)
    elif run.put_candidates(read):
        add_to_chord(
            run.task,
            task_signature(app, TaskName.RERANK_COLUMNS, TaskMessage(job_id=job.id, node_id=node.id), job.rank),
        )


@registry(TaskName.RERANK_COLUMNS, on_error=leaf_failed)
def rerank_columns(run: TaskRun) -> None:
    """Fill the columns that no line of a document names, then record the shard's leaf, however late it is."""
    job, node, read = run.job, run.node(), run.candidates()
    if read is None:  # it is searched again
        return
    model, timeout_s = llm_of(run, "columns"), seconds_for("columns", job.remaining(job.leaf_reserve))
    warnings = fill_columns(run, node, model, timeout_s) if model else ()
    record_shard(run, node, read, warnings)


@remote(app, TaskName.SEARCH_VALUES, ignore_result=False)
def search_values(raw: dict[str, Any]) -> str:
    """Values or a count, as a ValuesReply in JSON, which holds the error instead of raising it."""
    try:
        request = read_request(ValuesRequest, raw)
        store = search_resources().store(request.tenant)
        return ValuesReply(values=_values(store, request)).model_dump_json()
    except (RamifyError, ValidationError) as error:
        return ValuesReply(error=str(error)).model_dump_json()
