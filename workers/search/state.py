"""What travels from stage to stage (the query, the arms, the candidates), and the tools that stages may use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from math import inf
from typing import Any, NamedTuple, Self

from qdrant_client import models

from shared.cache import Cache
from shared.models import Cost, Filters, Hit
from shared.models.hits import Effect, OpenedDirectory, StageTrace, as_half_floats
from shared.providers.encoders import Bm25Encoder, DenseEncoder, Embedded
from shared.providers.encoders.sparse import TrigramEncoder
from shared.providers.http_deadline import time_left
from shared.providers.llm.client import LLM
from shared.providers.rerankers.base import Reranker, score_parts
from shared.providers.time_shares import seconds_for
from shared.settings import Settings
from shared.store import DENSE, ChunkStore

#: `parts` of a hit: the number of the wording that found it, from 0.
VARIANT = "variant"


@dataclass(frozen=True, slots=True)
class Query:
    """One question to search. `wanted` is the number of results wanted; `rewrites` never hold the question itself.

    `variants` are wordings that are searched in its place, each as a question of its own (`workers.search.variants`).
    `near_symbol` is where edges are followed from, `depth` for how many hops (None: as the strategy says);
    `read_symbol` stands in for it where the question's words name one, and is ignored where nothing defines it.
    `shown` is the number of results in the answer, 0 where that is not known.
    `facet` is the storage facet that answers it, empty where any does.
    """

    text: str
    filters: Filters
    wanted: int
    tenant: str = "default"
    rewrites: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    near_symbol: str | None = None
    read_symbol: str | None = None
    shown: int = 0
    depth: int | None = None
    facet: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The question first, then its rewrites."""
        return (self.text, *self.rewrites)


class SearchArm(NamedTuple):
    """One ranked list to be asked of the store; `hits` where it has been asked already.

    `text` is what is asked, `title` and `truth` what its terms count for in a title and in compiled truth.
    """

    name: str
    request: models.QueryRequest
    weight: float
    hits: list[Hit] | None = None
    text: str = ""
    title: float = 0.0
    truth: float = 0.0


class PlainEffect(NamedTuple):
    """An effect on its way through the stages: most candidates are never explained, and a model costs more.

    `reranked`: the hit whose score, with what that was made of, belongs to the detail.
    """

    stage: str
    effect: float
    detail: Mapping[str, float | str]
    reranked: Hit | None = None

    def checked(self) -> Effect:
        """The same for a hit."""
        told = {**self.detail, **(score_parts(self.reranked) if self.reranked else {})}
        detail = {name: value if isinstance(value, str) else float(value) for name, value in told.items()}
        return Effect(stage=self.stage, effect=self.effect, detail=detail)


class Candidate(NamedTuple):
    """A stored chunk and how its score came to be: the effects sum to the score."""

    hit: Hit
    score: float
    effects: tuple[Effect | PlainEffect, ...] = ()

    def plus(self, stage: str, effect: float, **detail: float | str) -> Candidate:
        """The same chunk with one more effect on its score."""
        return Candidate(self.hit, self.score + effect, (*self.effects, PlainEffect(stage, effect, detail)))

    def times(self, stage: str, factor: float, **detail: float | str) -> Candidate:
        """The same chunk with its score multiplied."""
        return self.plus(stage, self.score * (factor - 1), factor=factor, **detail)


@dataclass(frozen=True)
class SearchState:
    """A search under way. Stages return a new one.

    `vector` is the question's dense vector, empty without one; `strong_signal`: BM25 alone is sure of its answer;
    `language_unknown`: it is unknown whether the embedding model reads the question's language. `skipped`, `trail`,
    `stopped` and `note` belong to the running stage and go into its trace.
    """

    query: Query
    arms: tuple[SearchArm, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    vector: tuple[float, ...] = ()
    strong_signal: bool = False
    language_unknown: bool = False
    reranked_by: str | None = None
    verdict: str | None = None
    skipped: str | None = None
    trail: tuple[OpenedDirectory, ...] = ()
    stopped: str | None = None
    note: str | None = None
    warnings: tuple[str, ...] = ()
    cost: Cost = field(default_factory=Cost)
    trace: tuple[StageTrace, ...] = ()

    def but(self, **changes: Any) -> Self:
        """A copy with some fields changed: as `replace`, for a fifth of its time."""
        made = object.__new__(type(self))
        vars(made).update(vars(self), **changes)
        return made

    def skip(self, reason: str, *, warn: bool = False) -> Self:
        """The same state, saying why the stage did nothing."""
        return self.but(skipped=reason, warnings=(*self.warnings, reason) if warn else self.warnings)


def by_score(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """A named symbol's definition and calls first, then best first; ties by chunk id."""
    return tuple(sorted(candidates, key=_place))


def _place(candidate: Candidate) -> tuple[float, float, str]:
    hit = candidate.hit
    return inf if hit.via is None else hit.precedence, -candidate.score, hit.chunk_id


def as_hits(candidates: Sequence[Candidate], *, explain: bool) -> tuple[Hit, ...]:
    """What leaves the engine: hits with their scores; with all effects if they are to be explained."""
    hits = []
    for hit, score, effects in candidates:
        vector = as_half_floats(hit.vector) if hit.vector else ()
        told = tuple(one.checked() if isinstance(one, PlainEffect) else one for one in effects) if explain else ()
        same = score == hit.score and not (vector or told or hit.explain)
        hits.append(hit if same else hit.but(score=score, explain=told, vector=vector))
    return tuple(hits)


def as_candidates(hits: Sequence[Hit]) -> tuple[Candidate, ...]:
    """Hits from another pool with their effects; one that was not explained has its score as its one effect."""
    return tuple(Candidate(hit, hit.score, hit.explain or (PlainEffect("search", hit.score, {}),)) for hit in hits)


@dataclass(frozen=True)
class Tools:
    """The search pool has a store and encoders, the rerank pool a reranker. `timeout_s`: for all stages together.

    The store is that of the question's tenant. `index_version` is the state of its collection; 0: not known.
    """

    settings: Settings
    store: ChunkStore | None = None
    sparse: Bm25Encoder | None = None
    dense: DenseEncoder | None = None
    embed: Callable[[list[str], str], Embedded] | None = None
    trigrams: TrigramEncoder | None = None
    llm: LLM | None = None
    cache: Cache | None = None
    reranker: Reranker | None = None
    timeout_s: float = 30.0
    today: date | None = None
    index_version: int = 0

    @property
    def left_s(self) -> float:
        """Seconds that are left now: of the block `until` around the caller, and `timeout_s` at most."""
        return max(0.0, min(self.timeout_s, time_left()))

    @property
    def cache_wait_s(self) -> float:
        """Seconds to wait for another worker that computes the same, before it is computed here."""
        return min(self.settings.cache.wait_s, seconds_for("another's call", self.left_s))

    def request(self, flt: models.Filter, limit: int) -> models.QueryRequest:
        """A request for hits with their payload, and their dense vector where there is an encoder for it."""
        vectors = [DENSE] if self.dense is not None else False
        return models.QueryRequest(filter=flt, limit=limit, with_payload=True, with_vector=vectors)

    def need_store(self) -> tuple[ChunkStore, Bm25Encoder]:
        """The store and its sparse encoder. Raises: RuntimeError on a pool that has none (a strategy wrongly split)."""
        if self.store is None or self.sparse is None:
            raise RuntimeError("this pool has no store")
        return self.store, self.sparse
