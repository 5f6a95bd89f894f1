"""Which chunks of changed documents a leaf would keep now: scored against its query, as its search and rerank would."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from qdrant_client import models

from shared.errors import RamifyError
from shared.models import Hit
from shared.providers.http_deadline import until
from shared.settings import stages as s
from shared.settings.strategies import Strategy, split
from shared.store.schema import of_documents, sliced
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


class EnteringChunks:
    """Scores the chunks of `doc_ids` against leaves. Nothing of it is kept, and no rerank model is asked."""

    def __init__(self, resources: SearchResources, tools: Tools, doc_ids: frozenset[str], ends_at: float) -> None:
        """`ends_at`: by time.monotonic(), what is not looked at by then is left."""
        self._resources, self._tools, self._docs, self._ends_at = resources, tools, doc_ids, ends_at
        self._only = of_documents(sorted(doc_ids))
        self._reranker = resources.reranker() if not resources.settings.rerank.traits.asks_model else None
        #: Leaves that there was no time for.
        self.left = 0

    def of(self, leaves: Sequence[LeafBasis]) -> Iterator[tuple[LeafBasis, frozenset[str]]]:
        """The leaves that would keep a chunk which they did not, with the documents of these chunks.

        Where a model reranks, which is not asked here: those whose candidates such a chunk would be among.
        """
        for some in sliced(leaves, _AT_ONCE):
            for leaf, near in zip(some, self._near(some), strict=True):
                if not near:
                    continue
                if time.monotonic() >= self._ends_at:
                    self.left += 1
                    continue
                if found := self._kept(leaf) if self._reranker is not None else near:
                    yield leaf, found

    def _near(self, leaves: Sequence[LeafBasis]) -> list[frozenset[str]]:
        """Of each leaf the documents that have a chunk which one of its arms would rank among its candidates."""
        if len(self._docs) > _FEW or time.monotonic() >= self._ends_at:
            return [self._docs] * len(leaves)
        arms = [list(self._arms(leaf)) for leaf in leaves]
        requests = [self._narrowed(arm.request) for own in arms for arm in own]
        found = iter(self._tools.need_store()[0].query(requests) if requests else ())
        return [
            frozenset(hit.doc_id for arm in own for hit in boosted(next(found), arm) if _is_near(leaf, arm, hit))
            for leaf, own in zip(leaves, arms, strict=True)
        ]

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
        return request.model_copy(update={"filter": models.Filter(must=[*given, self._only]), "with_vector": False})

    def _kept(self, leaf: LeafBasis) -> frozenset[str]:
        """Documents of the chunks that the leaf would keep now, and has not."""
        return frozenset(
            hit.doc_id
            for hit in found_now(leaf, self._resources, self._tools)
            if hit.doc_id in self._docs and hit.chunk_id not in leaf.chunks
        )


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
