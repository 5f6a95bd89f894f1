"""Which chunks of changed documents a leaf would keep now: scored against its query, as its search and rerank would."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import NamedTuple

from qdrant_client import models

from shared.errors import InputError, RamifyError, TransientError
from shared.models import Hit, SearchResult
from shared.providers.fallbacks import Fallbacks, noting
from shared.settings import stages as s
from shared.settings.strategies import Strategy, split
from shared.store.schema import of_chunks, of_documents, sliced
from workers.question_search import Search, leaf_search
from workers.search.engine import run
from workers.search.leaf import LeafQuery
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
#: Searches whose results are kept during a check: standing questions are looked at as a whole next.
_REMEMBERED = 256
_ARMS = {"lexical", "dense", "trigram"}


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


class Moved(NamedTuple):
    """A document by whose passages a leaf is touched: their best place there, and whether one of them is new.

    One that is not new is found otherwise than it was: over a name in a new one, or since words weigh otherwise now.
    """

    rank: int
    is_new: bool


class OwnLeaf(NamedTuple):
    """A leaf of an answer."""

    job_id: str
    leaf: LeafBasis


class EnteringChunks:
    """Scores what is new against leaves. Nothing of it is kept, and no rerank model is asked."""

    def __init__(self, resources: SearchResources, tools: Tools, new: NewChunks, ends_at: float) -> None:
        """`ends_at`: by time.monotonic(), what is not looked at by then is left."""
        self._tools, self._new, self._ends_at = tools, new, ends_at
        self._only = new.condition()
        asks_model = resources.settings.rerank.traits.asks_model
        self._reranker = None if asks_model else resources.reranker()
        #: What a leaf would find now; None where a model would have to be asked.
        self.search: Search | None = None
        if self._reranker is not None:
            search = leaf_search(resources, replace(tools, reranker=self._reranker, timeout_s=_LEAF_S))
            self.search = lru_cache(_REMEMBERED)(partial(_with_all_models, search))
        #: Answers that there was no time for.
        self.left = set[str]()

    @property
    def in_time(self) -> bool:
        """Whether there is time to look at more."""
        return time.monotonic() < self._ends_at

    def of(self, leaves: Sequence[OwnLeaf], *, always: bool) -> Iterator[tuple[OwnLeaf, dict[str, Moved]]]:
        """The leaves that would keep other passages than they did, with the documents of these.

        `always`: each is searched again, also where no new chunk is near its query.
        Where a model reranks, which is not asked here: those whose candidates a new chunk would be among, as rank 1.
        """
        search = self.search
        for some in sliced(leaves, _AT_ONCE):
            known = [self._new.documents] * len(some) if always and search else self._near([one.leaf for one in some])
            for one, near in zip(some, known, strict=True):
                if not near and not (always and search):
                    continue
                if not self.in_time:
                    self.left.add(one.job_id)
                elif search is None:
                    yield one, dict.fromkeys(near, Moved(1, is_new=True))
                elif found := self._moved(one, search):
                    yield one, found

    def _moved(self, one: OwnLeaf, search: Search) -> dict[str, Moved]:
        try:
            hits = search(one.leaf.query).hits
        except InputError:  # its strategy is not in the settings any more
            return {}
        except RamifyError:
            self.left.add(one.job_id)
            return {}
        return moved_in(one.leaf, hits, self._new)

    def _near(self, leaves: Sequence[LeafBasis]) -> list[frozenset[str]]:
        """Of each leaf the documents that have a chunk which one of its arms would rank among its candidates."""
        if not self._new.documents or self._only is None or not self.in_time:
            return [self._new.documents] * len(leaves)
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
        return request.model_copy(
            update={"filter": models.Filter(must=[*given, *([self._only] if self._only else [])]), "with_vector": False}
        )


def _with_all_models(search: Search, query: LeafQuery) -> SearchResult:
    """Raises: TransientError where a model did not answer: what is found without it says nothing of the corpus."""
    with noting(fallbacks := Fallbacks()):
        found = search(query)
    if fallbacks.count:
        raise TransientError("a model did not answer")
    return found


def moved_in(leaf: LeafBasis, found: Sequence[Hit], new: NewChunks) -> dict[str, Moved]:
    """Documents of the passages that a leaf would keep now and has not; else of the first that stands elsewhere. Pure.

    Where only what the answer shows of a leaf is known, new passages alone count.
    """
    hits, moved = shown_hits(found, leaf.most, leaf.per_kind), dict[str, Moved]()
    for rank, hit in enumerate(hits, 1):
        is_new = new.holds(hit)
        if hit.chunk_id not in leaf.chunks and (is_new or leaf.whole):
            before = moved.get(hit.doc_id, Moved(rank, is_new))
            moved[hit.doc_id] = Moved(before.rank, before.is_new or is_new)
    if leaf.whole:
        stayed = {hit.chunk_id: Moved(rank, is_new=False) for rank, hit in enumerate(hits, 1)}
        was = [chunk_id for chunk_id in leaf.chunks if chunk_id in stayed]
        now = [chunk_id for chunk_id in stayed if chunk_id in leaf.chunks]
        first = next((one for one, other in zip(now, was, strict=True) if one != other), None)
        if first is not None:
            moved.setdefault(leaf.chunks[first].doc_id, stayed[first])
        elif not moved and (lost := next((one for one in leaf.chunks if one not in stayed), None)) is not None:
            moved[leaf.chunks[lost].doc_id] = Moved(list(leaf.chunks).index(lost) + 1, is_new=False)
    return moved


def _is_near(leaf: LeafBasis, arm: SearchArm, hit: Hit) -> bool:
    floor = leaf.floor.get(arm.name.partition("#")[0], 0.0)
    return hit.chunk_id not in leaf.chunks and hit.score >= _DRIFT * floor


def _arm_stages(stages: Strategy) -> Strategy:
    """The arms of a strategy, without what asks an LLM for other wordings."""
    found = tuple(stage for stage in stages if stage.stage in _ARMS)
    return found or (s.LexicalStage(),)
