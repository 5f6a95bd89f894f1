"""Starts the leaves that waited for one that has just ended (G13). The job store decides who starts them, once."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from redis.exceptions import RedisError

from shared.llm.client import LLM
from shared.models import Node
from shared.signatures import add, member
from shared.steps import Step, reason_of
from workers.binding.bind import Bound, Parent, bind, unbound
from workers.search.tools import Tools

log = logging.getLogger("ramify.binding")
_SETTLED = frozenset({"done", "failed"})


def bind_dependents(step: Step, ended: Node, llm: LLM | None, tools: Tools) -> None:
    """Bind and send every leaf of `ended.needed_by` that waits for nothing else any more.

    Harmless to repeat, and for two leaves that end at once: a leaf is claimed in the job store before it is added to
    the chord, as the children of a branch are. What is lost on the way, the reaper sends again. Reading answers takes
    `tools.timeout_s` at most for all of them together.
    """
    deadline = time.monotonic() + tools.timeout_s
    states = step.jobs.leaf_states(step.job.id)
    for node_id in ended.needed_by:
        node = step.jobs.node(step.job.id, node_id) if states.get(node_id) == "waiting" else None
        if node is None or any(states.get(other) not in _SETTLED for other in node.depends_on):
            continue
        left = replace(tools, timeout_s=max(0.0, deadline - time.monotonic()))
        bound = _bound(step, node, llm, left)
        step.jobs.annotate(step.job.id, bound.cost)
        if step.jobs.bind(step.job.id, bound.node):
            step.jobs.annotate(step.job.id, warnings=bound.warnings)
            add(step.task, member(step.task.app, step.job.id, step.job.rank, bound.node))


def _bound(step: Step, node: Node, llm: LLM | None, tools: Tools) -> Bound:
    """Never raises but for a lost Redis: a leaf that cannot be bound is searched without, and the answer says so."""
    try:
        nodes = {other: step.jobs.node(step.job.id, other) for other in node.depends_on}
        results = step.jobs.results(step.job.id, node.depends_on)
        parents = [Parent(parent, results.get(other)) for other, parent in nodes.items() if parent is not None]
        return bind(node, parents, step.job.request.tenant, llm, tools)
    except RedisError:
        raise
    except Exception as error:
        log.exception("leaf %s of job %s could not be bound", node.id, step.job.id)
        return unbound(node, reason_of(error))
