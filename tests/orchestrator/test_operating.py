"""What operators are told of pools, whatever names their workers have."""

from __future__ import annotations

from contextlib import closing

import redis

from orchestrator.operating import Operator
from shared.connections.heartbeat import Heartbeat, set_node_name
from shared.jobs import JobStore
from shared.settings import Settings
from shared.tasks.app import make_app


def test_a_worker_that_serves_several_pools_stands_in_each(client: redis.Redis, settings: Settings) -> None:
    set_node_name("celery@machine")
    Heartbeat(client, settings, ("search", "index", "merge"))._beat()
    set_node_name("")
    with closing(make_app(settings)) as app:
        pools = {one.pool: len(one.workers) for one in Operator(app, JobStore(client, settings)).pools()}
    assert pools == {"plan": 0, "search": 1, "rerank": 0, "merge": 1, "ops": 0}
