"""A job that is done, with a leaf that did not answer: what a store that was away for a moment leaves."""

from __future__ import annotations

import redis

from shared.jobs import hit_blobs
from shared.jobs.keys import JobKeys
from shared.models import LeafResult, LeafStatus


def fail_leaf(client: redis.Redis, job_id: str, node_id: str) -> None:
    """Write into the answer of a job that is done that one of its leaves had failed."""
    keys = JobKeys(job_id)
    answer = hit_blobs.unpack_answer(client.get(keys.answer))
    failed = LeafResult(node_id=node_id, status=LeafStatus.FAILED, error="the store was away")
    leaves = tuple(failed if leaf.node_id == node_id else leaf for leaf in answer.leaves)
    spoilt = answer.model_copy(update={"leaves": leaves, "partial": True})
    client.set(keys.answer, hit_blobs.pack_answer(spoilt), keepttl=True)
    client.hset(keys.leaves, node_id, "failed")
    done = str(len(leaves) - 1)
    client.hset(keys.job, mapping={"partial": "1", "leaves_done": done, "leaves_failed": "1"})
