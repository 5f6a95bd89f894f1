"""Which chunks of changed documents a leaf would keep now: scored against its query, as its search and rerank would."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from qdrant_client import models

from shared.errors import RamifyError
from shared.models import Hit
from shared.providers.http_deadline import until
from shared.settings import stages as s
from shared.settings.strategies import Strategy, split
from shared.store.schema import of_chunks, of_documents, sliced
from workers.search.engine import run
from workers.search.leaf import run_rerank_stages, run_search_stages
from workers.search.resources import SearchResources
from workers.search.stages.fusion import boosted
from workers.search.state import SearchArm, SearchState, Tools
from workers.shown_hits import shown_hits
from workers.staleness.basis import LeafBasis

#: A leaf's floor moves a little with every write, for the words of a corpus are weighed by how rare they are in it.
_DRIFT = 0.95
#: Changed documents up to which the store is asked for their chunks alone; of more, the leaf is searched at once.
_FEW = 200
#: Leaves whose requests go to the store in one call.
_AT_ONCE = 64
_LEAF_S = 10.0
_ARMS = {"lexical", "dense", "trigram"}
_REACHES_ON = {"hops", "edges", "neighbours", "hierarchy"}


@dataclass(frozen=True)
class NewChunks:
    """What may have come into the store: these chunks of `documents`, and any chunk of those that are `whole`."""

    documents: frozenset[str]
    whole: frozenset[str]
    chunks: frozenset[str]

    @classmethod
    def of(cls, fresh: Mapping[str, Sequence[str]]) -> NewChunks:
        """By document; none of its chunks: all of them."""
        whole = frozenset(doc_id for doc_id, ids in fresh.items() if not ids)
        return cls(frozenset(fresh), whole, frozenset(one for ids in fresh.values() for one in ids))

    def holds(self, hit: Hit) -> bool:
        """Whether a hit may be new."""
        return hit.chunk_id in self.chunks or hit.doc_id in self.whole

    def condition(self) -> models.Filter | None:
        """The filter of these chunks; None where they are so many that it would cost more than it saves."""
        if len(self.documents) > _FEW:
            return None
        named = [of_chunks(sorted(self.chunks))] if self.chunks else []
        return models.Filter(should=[*named, *([of_documents(sorted(self.whole))] if self.whole else [])])


class EnteringChunks:
    """Scores what is new against leaves. Nothing of it is kept, and no rerank model is asked."""

    def __init__(self, resources: SearchResources, tools: Tools, new: NewChunks, ends_at: float) -> None:
        """`ends_at`: by time.monotonic(), what is not looked at by then is left."""
        self._resources, self._tools, self._new, self._ends_at = resources, tools, new, ends_at
        self._only = new.condition()
        self._reranker = resources.reranker() if not resources.settings.rerank.traits.asks_model else None
        #: Leaves that there was no time for.
        self.left = list[LeafBasis]()

    def of(
        self, leaves: Sequence[LeafBasis], searched: Collection[int] = ()
    ) -> Iterator[tuple[LeafBasis, dict[str, int]]]:
        """The leaves that would keep a chunk which they did not, with the documents of these chunks and their ranks.

        Where a model reranks, which is not asked here: those whose candidates such a chunk would be among, as rank 1.
        `searched`: by `id`, leaves that are searched again even where no new chunk is near their query, if their
        strategy reaches passages over others.
        """
        for some in sliced(leaves, _AT_ONCE):
            for leaf, near in zip(some, self._near(some), strict=True):
                if not near and not (id(leaf) in searched and self._reranker is not None and self._reaches_on(leaf)):
                    continue
                if time.monotonic() >= self._ends_at:
                    self.left.append(leaf)
                    continue
                if found := self._kept(leaf) if self._reranker is not None else dict.fromkeys(near, 1):
                    yield leaf, found

    def _near(self, leaves: Sequence[LeafBasis]) -> list[frozenset[str]]:
        """Of each leaf the documents that have a chunk which one of its arms would rank among its candidates."""
        if self._only is None or time.monotonic() >= self._ends_at:
            return [self._new.documents] * len(leaves)
        arms = [list(self._arms(leaf)) for leaf in leaves]
        requests = [self._narrowed(arm.request) for own in arms for arm in own]
        found = iter(self._tools.need_store()[0].query(requests) if requests else ())
        return [
            frozenset(hit.doc_id for arm in own for hit in boosted(next(found), arm) if _is_near(leaf, arm, hit))
            for leaf, own in zip(leaves, arms, strict=True)
        ]

    def _reaches_on(self, leaf: LeafBasis) -> bool:
        """Whether its strategy finds passages over the names, links or places of others."""
        return any(stage.stage in _REACHES_ON for stage in self._tools.settings.stages_of(leaf.query.strategy))

    def _arms(self, leaf: LeafBasis) -> Iterator[SearchArm]:
        """Those of its strategy, for each of its wordings; keywords where that has none before its first search."""
        stages = _arm_stages(split(self._tools.settings.stages_of(leaf.query.strategy))[0])
        for text in leaf.query.variants or (leaf.query.text,):
            query = replace(leaf.query.query(), text=text, variants=())
            try:
                state = run(stages, SearchState(query), self._tools)
            except RamifyError:  # an only arm whose model does not answer
                state = run((s.LexicalStage(),), SearchState(query), self._tools)
            yield from state.arms

    def _narrowed(self, request: models.QueryRequest) -> models.QueryRequest:
        given = [request.filter] if request.filter is not None else []
        return request.model_copy(
            update={"filter": models.Filter(must=[*given, *([self._only] if self._only else [])]), "with_vector": False}
        )

    def _kept(self, leaf: LeafBasis) -> dict[str, int]:
        """Documents of the chunks that the leaf would keep now, and has not, with the best place of each."""
        found = dict[str, int]()
        for rank, hit in enumerate(found_now(leaf, self._resources, self._tools), 1):
            if self._new.holds(hit) and hit.chunk_id not in leaf.chunks:
                found.setdefault(hit.doc_id, rank)
        return found


def _is_near(leaf: LeafBasis, arm: SearchArm, hit: Hit) -> bool:
    floor = leaf.floor.get(arm.name.partition("#")[0], 0.0)
    return hit.chunk_id not in leaf.chunks and hit.score >= _DRIFT * floor


def found_now(leaf: LeafBasis, resources: SearchResources, tools: Tools) -> tuple[Hit, ...]:
    """What the leaf would keep now, by the search and the rerank of its strategy. Raises: what these raise."""
    with until(time.monotonic() + _LEAF_S):
        found = run_search_stages(leaf.query, resources, None, _LEAF_S)
        after = run_rerank_stages(leaf.query, found, replace(tools, reranker=resources.reranker(), timeout_s=_LEAF_S))
    return shown_hits(after.hits, leaf.most, leaf.per_kind)


def _arm_stages(stages: Strategy) -> Strategy:
    """The arms of a strategy, without what asks an LLM for other wordings."""
    found = tuple(stage for stage in stages if stage.stage in _ARMS)
    return found or (s.LexicalStage(),)
