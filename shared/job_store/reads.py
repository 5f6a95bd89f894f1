"""What the steps of a job read of it. Changes nothing; reading for people is in `reader`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redis import Redis

from shared.clock import Clock
from shared.job_store import codec
from shared.job_store.codec import text
from shared.job_store.job import FIELDS, Job, read_job
from shared.job_store.keys import JobKeys
from shared.models import LeafResult, LeafStatus, MergedPool, Node, SearchResult
from shared.models.route import Route


class JobReads:
    """All methods may raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, clock: Clock) -> None:
        self.client = client
        self.clock = clock

    def job(self, job_id: str) -> Job | None:
        """The header of a job, or None when it is unknown."""
        values = self.client.hmget(JobKeys(job_id).job, list(FIELDS))
        fields = zip(FIELDS, values, strict=True)
        found = {name: text(value) if value is not None else None for name, value in fields}
        return read_job(job_id, found, self.clock.now())

    def node(self, job_id: str, node_id: str) -> Node | None:
        """One node of the tree."""
        raw = self.client.hget(JobKeys(job_id).nodes, node_id)
        return Node.model_validate_json(raw) if raw else None

    def nodes(self, job_id: str) -> dict[str, Node]:
        """The tree as far as it is known, in order of ids."""
        found = [Node.model_validate_json(raw) for raw in self.client.hvals(JobKeys(job_id).nodes)]
        return {node.id: node for node in sorted(found, key=lambda node: [int(part) for part in node.id.split(".")])}

    def leaf_states(self, job_id: str) -> dict[str, str]:
        """Node id -> waiting, pending, searched, done, failed; branches: open, grown."""
        return {text(k): text(v) for k, v in self.client.hgetall(JobKeys(job_id).leaves).items()}

    def all_settled(self, job_id: str) -> bool:
        """True while a job is searching and none of its nodes is open any more: its body may run."""
        state, left = self.client.hmget(JobKeys(job_id).job, ["state", "open"])
        return state == b"searching" and left is not None and int(left) <= 0

    def routed(self, job_id: str) -> Route | None:
        """How the job's question is read, once it is."""
        raw = self.client.hget(JobKeys(job_id).job, "route")
        return Route.model_validate_json(raw) if raw else None

    def candidates(self, job_id: str, node_id: str) -> SearchResult | None:
        """What the search step left for the rerank step."""
        raw = self.client.hget(JobKeys(job_id).candidates, node_id)
        return codec.unpack(raw, SearchResult) if raw else None

    def results(self, job_id: str, node_ids: Sequence[str] | None = None) -> dict[str, LeafResult]:
        """The recorded leaves: all, or those of `node_ids`. One that cannot be read has failed, and says so."""
        key = JobKeys(job_id).results
        if node_ids is None:
            found: list[tuple[str, object]] = [(text(key), blob) for key, blob in self.client.hgetall(key).items()]
        else:
            found = list(zip(node_ids, self.client.hmget(key, list(node_ids)) if node_ids else [], strict=True))
        return {node_id: _recorded(node_id, blob) for node_id, blob in found if blob is not None}

    def events(self, job_id: str, limit: int) -> list[dict[str, str]]:
        """The first `limit` events of a job, oldest first, without waiting for more."""
        entries: Any = self.client.xrange(JobKeys(job_id).events, count=limit)
        return [{text(name): text(value) for name, value in fields.items()} for _, fields in entries]

    def pool(self, job_id: str) -> MergedPool | None:
        """The merged pool, once there is one."""
        raw = self.client.get(JobKeys(job_id).pool)
        return codec.unpack(raw, MergedPool) if isinstance(raw, bytes) else None


def _recorded(node_id: str, blob: object) -> LeafResult:
    try:
        return codec.unpack(blob, LeafResult).model_copy(update={"node_id": node_id})
    except (ValueError, TypeError) as error:
        reason = f"its recorded result cannot be read ({type(error).__name__}): somebody else has written to it"
        return LeafResult(node_id=node_id, status=LeafStatus.FAILED, error=reason)
