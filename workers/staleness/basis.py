"""What kept answers rest on, read from Redis once a process: an answer does not change any more."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from sys import intern
from typing import NamedTuple

from redis import Redis

from shared.byte_cache import ByteCache
from shared.errors import DamagedError
from shared.jobs.codec import text, texts
from shared.jobs.fields import stored
from shared.jobs.hit_blobs import unpack_answer
from shared.jobs.keys import RECENT, JobKeys
from shared.jobs.states import TERMINAL, State
from shared.models import Answer, Hit, JobRequest, LeafResult, LeafStatus, MergedHit, Node
from shared.settings import Settings
from workers.search.leaf import LeafQuery, leaf_query, leaf_result_limit
from workers.shown_hits import leaf_kind_share

#: Bytes that what answers rest on may take in a process, as estimated.
_MEMORY_BYTES = 128 * 1024 * 1024
_BYTES_OF_LEAF, _BYTES_OF_HIT = 1_200, 300
_FIELDS = ("tenant", "state", "searching_at", "request")
_PAGE = 100


class KeptChunk(NamedTuple):
    """Of a chunk that a leaf has kept, its document and the hash of its title."""

    doc_id: str
    title: int


@dataclass(frozen=True)
class LeafBasis:
    """A leaf as it was recorded: its query, the chunks that it has kept, best first, and how many it may keep.

    `floor`: of each arm the score of the last candidate; an arm that found fewer than it might has none.
    `listed`: it reads a slice of the corpus for a list, so that any document may be of it. `whole`: all that it kept
    is known, and not only what the answer shows of it.
    """

    node_id: str
    query: LeafQuery
    chunks: Mapping[str, KeptChunk]
    most: int
    per_kind: float
    floor: Mapping[str, float]
    listed: bool = False
    whole: bool = True


@dataclass(frozen=True)
class AnswerBasis:
    """The leaves of an answer, and from when on they were searched (Unix seconds).

    `paths`: those of the documents that its leaves have kept passages of, by id.
    """

    job_id: str
    tenant: str
    namespace: str
    searched_at: float
    leaves: tuple[LeafBasis, ...]
    paths: Mapping[str, str]


class AnswerBases:
    """What the newest kept answers rest on. Safe for threads; may raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings) -> None:
        self._client, self._settings = client, settings
        self._known: ByteCache[str, tuple[str, AnswerBasis | None]] = ByteCache(_MEMORY_BYTES)

    def newest(self) -> list[str]:
        """Ids of the newest jobs of all tenants."""
        return [text(job_id) for job_id in self._client.zrevrange(RECENT, 0, self._settings.staleness.most_answers - 1)]

    def of(self, tenant: str, ids: Sequence[str], ends_at: float = inf) -> tuple[list[AnswerBasis], list[str]]:
        """What those of these jobs rest on that are a tenant's, and the ids that there was no time to read.

        `ends_at`: by time.monotonic(). A page of answers is read at least.
        """
        found = self._known.find(ids)
        left = [job_id for job_id in ids if job_id not in found]
        while left:
            found |= self._read(left[:_PAGE])
            left = left[_PAGE:]
            if time.monotonic() >= ends_at:
                break
        own = (found[job_id][1] for job_id in ids if job_id in found and found[job_id][0] == tenant)
        return [basis for basis in own if basis is not None], left

    def _read(self, job_ids: Sequence[str]) -> dict[str, tuple[str, AnswerBasis | None]]:
        """Of those that have ended, which are remembered; None stands for what rests on nothing."""
        with self._client.pipeline(transaction=False) as pipe:
            for job_id in job_ids:
                pipe.hmget(JobKeys(job_id).job, list(_FIELDS))
            rows = [texts(row) if isinstance(row, list) else ("",) * 4 for row in pipe.execute(raise_on_error=False)]
            ended = {job_id: row for job_id, row in zip(job_ids, rows, strict=True) if row[1] in TERMINAL}
            done = [job_id for job_id, row in ended.items() if row[1] == State.DONE and row[2]]
            for job_id in done:
                pipe.get(JobKeys(job_id).answer)
            blobs = dict(zip(done, pipe.execute(raise_on_error=False), strict=True))
        found = dict[str, tuple[str, AnswerBasis | None]]()
        for job_id, (tenant, _, searched_at, request) in ended.items():
            basis = self._basis(searched_at, request, blobs.get(job_id))
            found[job_id] = tenant, basis
            self._known.keep(job_id, found[job_id], _size(basis))
        return found

    def _basis(self, searched_at: str, request: str, blob: object) -> AnswerBasis | None:
        """None for what cannot be read, too: it is not said to be fresh, and not marked."""
        if not isinstance(blob, bytes):
            return None
        try:
            asked, answer = stored(JobRequest, request, "its request"), unpack_answer(blob)
            return basis_of(answer, asked, float(searched_at), self._settings)
        except (DamagedError, ValueError, TypeError):
            return None


def basis_of(answer: Answer, request: JobRequest, searched_at: float, settings: Settings) -> AnswerBasis | None:
    """What an answer rests on; None where nothing was looked up. Pure."""
    nodes = {node.id: node for node in answer.tree}
    leaves = tuple(
        _leaf(leaf, nodes[leaf.node_id], answer.results, request, settings)
        for leaf in answer.leaves
        if leaf.node_id in nodes
    )
    if not leaves:
        return None
    kept: list[Hit] = [*answer.results, *(hit for leaf in answer.leaves for hit in leaf.hits)]
    paths = {intern(hit.doc_id): intern(hit.path) for hit in kept}
    return AnswerBasis(answer.job_id, request.tenant, request.filters.namespace, searched_at, leaves, paths)


def _leaf(
    leaf: LeafResult, node: Node, results: Sequence[MergedHit], request: JobRequest, settings: Settings
) -> LeafBasis:
    """Of a leaf whose passages were not kept (`jobs.keep`), those that the answer shows."""
    shown_here = (hit for hit in results if any(source.node_id == leaf.node_id for source in hit.sources))
    hits: Sequence[Hit] = leaf.hits or tuple(shown_here)
    query = leaf_query(request, node, settings)
    shown = request.top_n or settings.multi_query.max_total_results
    done = leaf.status is LeafStatus.DONE
    return LeafBasis(
        node_id=leaf.node_id,
        query=query,
        chunks={hit.chunk_id: KeptChunk(intern(hit.doc_id), hash(hit.title)) for hit in hits},
        most=leaf_result_limit(node, settings.multi_query, shown),
        per_kind=leaf_kind_share(request, node, settings),
        floor=leaf.floor if done else {},
        listed=node.shard is not None,
        whole=bool(leaf.hits) or not leaf.candidates,
    )


def _size(basis: AnswerBasis | None) -> int:
    leaves = basis.leaves if basis else ()
    return 200 + sum(_BYTES_OF_LEAF + _BYTES_OF_HIT * len(leaf.chunks) for leaf in leaves)
