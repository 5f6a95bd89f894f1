"""Starts the leaves that waited for one that has just ended. The job store decides who starts them, once."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from redis.exceptions import RedisError

from shared.job_store.states import SETTLED_LEAVES
from shared.llm.client import LLM
from shared.models import Node
from shared.signatures import add, member
from shared.steps import TaskRun, reason_of
from workers.binding.bind import Bound, Parent, bind, unbound
from workers.search.state import Tools

log = logging.getLogger("ramify.binding")


def bind_dependents(run: TaskRun, ended: Node, llm: LLM | None, tools: Tools) -> None:
    """Bind and send every leaf of `ended.needed_by` that waits for nothing else any more.

    Harmless to repeat, and for two leaves that end at once: a leaf is claimed in the job store before it is added to
    the chord, as the children of a branch are. What is lost on the way, the reaper sends again. Reading answers takes
    `tools.timeout_s` at most for all of them together.
    """
    deadline = time.monotonic() + tools.timeout_s
    states = run.jobs.leaf_states(run.job.id)
    for node_id in ended.needed_by:
        node = run.jobs.node(run.job.id, node_id) if states.get(node_id) == "waiting" else None
        if node is None or any(states.get(other) not in SETTLED_LEAVES for other in node.depends_on):
            continue
        left = replace(tools, timeout_s=max(0.0, deadline - time.monotonic()))
        bound = _bound(run, node, llm, left)
        run.jobs.annotate(run.job.id, bound.cost)
        if run.jobs.bind(run.job.id, bound.node):
            run.jobs.annotate(run.job.id, warnings=bound.warnings)
            add(run.task, member(run.task.app, run.job.id, run.job.rank, bound.node))


def _bound(run: TaskRun, node: Node, llm: LLM | None, tools: Tools) -> Bound:
    """Never raises but for a lost Redis: a leaf that cannot be bound is searched without, and the answer says so."""
    try:
        nodes = {other: run.jobs.node(run.job.id, other) for other in node.depends_on}
        results = run.jobs.results(run.job.id, node.depends_on)
        parents = [Parent(parent, results.get(other)) for other, parent in nodes.items() if parent is not None]
        return bind(node, parents, run.job.request.tenant, llm, tools)
    except RedisError:
        raise
    except Exception as error:
        log.exception("leaf %s of job %s could not be bound", node.id, run.job.id)
        return unbound(node, reason_of(error))
