"""Chunks as they are found, ranked and merged."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from shared.models.base import Model
from shared.models.cost import Cost


class Chunk(Model):
    """A piece of a document as stored. `doc_id` is stable over ingests; `path` is what a person reads.

    `date` is ISO (YYYY-MM-DD) or None; `ordinal` counts the chunks of a document from 0.
    """

    chunk_id: str
    doc_id: str
    path: str
    title: str
    text: str
    heading: str = ""
    date: str | None = None
    tags: tuple[str, ...] = ()
    kind: str = "resource"
    facet: str | None = Field(default=None, description="storage facet: context, intent, action, result, insight")
    ordinal: int = 0
    namespace: str = "default"


class Hit(Chunk):
    """A chunk with its score; `parts` says how the score came to be (bm25 rank, dense cosine, rerank ...).

    `vector` is the chunk's dense vector, kept where a later step needs it (dedup), else empty.
    """

    score: float
    parts: dict[str, float] = Field(default_factory=dict)
    vector: tuple[float, ...] = Field(default=(), repr=False)


class LeafStatus(StrEnum):
    """Where one leaf stands."""

    PENDING = "pending"
    SEARCHED = "searched"
    DONE = "done"
    FAILED = "failed"


class SearchResult(Model):
    """What the search step found for one query, best first (D8)."""

    hits: tuple[Hit, ...] = ()
    mode: str
    candidates: int = 0
    timings_ms: dict[str, float] = Field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    cost: Cost = Cost()


class LeafResult(Model):
    """The recorded outcome of one leaf: its best hits, or the error that ended it (A5)."""

    node_id: str
    status: LeafStatus
    hits: tuple[Hit, ...] = ()
    candidates: int = 0
    error: str | None = None
    warnings: tuple[str, ...] = ()
    timings_ms: dict[str, float] = Field(default_factory=dict)
    reranker: str | None = None


class Source(Model):
    """Which leaf found a hit, at which rank (from 1) and score."""

    node_id: str
    facet: str
    rank: int
    score: float


class MergedHit(Hit):
    """A hit of the merged tree with all leaves that found it (B7)."""

    sources: tuple[Source, ...] = ()


class MergedPool(Model):
    """The merged tree: hits best first, and how many near-duplicates were folded."""

    hits: tuple[MergedHit, ...] = ()
    per_leaf: dict[str, tuple[str, ...]] = Field(default_factory=dict, description="leaf id -> chunk ids kept")
    folded: int = 0
    reranked_by: str | None = None
    warnings: tuple[str, ...] = ()
