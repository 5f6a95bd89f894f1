"""A plan of the caller's own with branches, on a real Redis: they have grown already, only leaves are waited for."""

from __future__ import annotations

import redis

from orchestrator.planning.planner import own_tree
from shared.jobs import JobReader, JobStore, new_id
from shared.models import JobRequest, Lane, LeafResult, LeafStatus
from shared.settings import Settings
from shared.tasks.app import make_app
from shared.tasks.signatures import job_chord


def test_given_a_nested_plan_when_its_leaves_are_recorded_then_the_body_may_run(
    client: redis.Redis, settings: Settings
) -> None:
    entries = [{"query": "a"}, {"query": "a1", "under": 1}, {"query": "a2 of #2", "under": 1}]
    request = JobRequest.model_validate({"question": "q", "subqueries": entries})
    store, job_id = JobStore(client, settings), new_id()
    store.enqueue([(job_id, request)])
    store.start_planning(job_id, "t")
    nodes = own_tree("q", request.subqueries, settings.decomposition).nodes
    assert store.start_searching(job_id, nodes)
    assert store.leaf_states(job_id) == {"0.0": "pending", "0.1": "grown", "0.1.1": "pending", "0.1.2": "waiting"}
    assert JobReader(client).status(job_id).leaves_total == 3
    sent = [member.args[0]["node_id"] for chain in job_chord(make_app(settings), job_id, Lane.BATCH, nodes).tasks
            for member in chain.tasks[:1]]  # fmt: skip
    assert sent == ["0.0", "0.1.1"]
    store.record_leaf(job_id, LeafResult(node_id="0.0", status=LeafStatus.DONE))
    store.record_leaf(job_id, LeafResult(node_id="0.1.1", status=LeafStatus.DONE))
    assert not store.start_merging(job_id, "m"), "0.1.2 is open"
    store.bind(job_id, nodes[-1])
    assert store.record_leaf(job_id, LeafResult(node_id="0.1.2", status=LeafStatus.DONE)) == 0
    assert store.start_merging(job_id, "m")
