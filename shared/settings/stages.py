"""The stages that a search strategy is made of, and their options. What they do stands in `workers.search.stages`.

A strategy is a list of such tables in the settings, run from top to bottom; a mistake in one is refused at start.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from shared.settings.sections import SettingsSection

Weight = Annotated[float, Field(ge=0, le=100)]
Share = Annotated[float, Field(ge=0, le=1)]
HitLimit = Annotated[int, Field(ge=1, le=1000)]


class StageOptions(SettingsSection):
    """What is fixed for a stage. `needs_store`: it must stand before the rerank, whose pool has no store.

    `store_calls`: how many calls of the store `ramify plan` expects of it at most.
    """

    needs_store: ClassVar[bool] = False
    store_calls: ClassVar[int] = 0


class ExpansionStage(StageOptions):
    """Rewrites by the LLM; skipped with a reason without an LLM, for short questions, on a strong signal."""

    needs_store: ClassVar[bool] = True
    stage: Literal["expansion"] = "expansion"
    rewrites: int = Field(default=2, ge=1, le=5)


class StrongSignalStage(StageOptions):
    """Looks at BM25 alone: when it is sure, later `expansion` is skipped. Scores are s/(1+s)."""

    needs_store: ClassVar[bool] = True
    store_calls: ClassVar[int] = 1
    stage: Literal["strong_signal"] = "strong_signal"
    top: Share = 0.85
    gap: Share = 0.15


class LexicalStage(StageOptions):
    """The BM25 arm, for the question and every rewrite. `limit` 0: twice the candidates wanted.

    `title`, `truth`: a hit's score is raised by so much of itself where title or compiled truth have all asked terms.
    """

    stage: Literal["lexical"] = "lexical"
    weight: Weight = 1.0
    rewrite_weight: Weight = 0.5
    limit: int = Field(default=0, ge=0, le=1000)
    title: Share = 0.1
    truth: Share = 0.08


class DenseStage(StageOptions):
    """The dense arm. `languages`: leave it out for a question in a language that the model does not read."""

    stage: Literal["dense"] = "dense"
    weight: Weight = 1.0
    rewrite_weight: Weight = 0.5
    limit: int = Field(default=0, ge=0, le=1000)
    languages: Literal["auto", "ignore"] = "auto"


class TrigramStage(StageOptions):
    """The typo-tolerant keyword arm: trigrams of titles, headings and words."""

    stage: Literal["trigram"] = "trigram"
    weight: Weight = 0.5
    limit: int = Field(default=0, ge=0, le=1000)


class FusionStage(StageOptions):
    """Makes one list of the arms. rrf: sum of weight/(k+rank), ranks from 1; linear: weighted max-scaled."""

    store_calls: ClassVar[int] = 1
    stage: Literal["fusion"] = "fusion"
    method: Literal["rrf", "linear"] = "rrf"
    k: int = Field(default=60, ge=1, le=1000)
    first_bonus: Share = 0.0
    next_bonus: Share = 0.0


class NeighboursStage(StageOptions):
    """Layered search: the best hits seed a search by their stored vectors; found ones are scored by the query."""

    needs_store: ClassVar[bool] = True
    stage: Literal["neighbours"] = "neighbours"
    depth: int = Field(default=0, ge=0, le=4, description="0: multi_query.search_depth")
    branch: int = Field(default=0, ge=0, le=20, description="0: multi_query.branch_limit")
    limit: HitLimit = 10
    share: Share = Field(default=0.4, description="of the candidates wanted: places kept for the nearest neighbours")


class EdgesStage(StageOptions):
    """Two-pass search: adds what the best hits, or the symbol asked for, lead to and what leads to them.

    `depth` in hops; a key that means more than `ambiguous` definitions, or several pages, is not followed.
    """

    needs_store: ClassVar[bool] = True
    store_calls: ClassVar[int] = 12
    stage: Literal["edges"] = "edges"
    depth: int = Field(default=1, ge=1, le=2)
    anchors: int = Field(default=5, ge=1, le=20)
    neighbours: int = Field(default=50, ge=1, le=50, description="of one hop")
    page_chunks: int = Field(default=2, ge=1, le=10, description="that a linked page gives to an anchor")
    ambiguous: int = Field(default=3, ge=1, le=50)
    relevance: Share = 0.5


class TruthStage(StageOptions):
    """Every page found keeps its compiled truth right behind its best chunk, at `share` of its score.

    `detail`: low has no timeline before the truth, high the timeline before it, auto as the question's intent says.
    """

    store_calls: ClassVar[int] = 2
    stage: Literal["truth"] = "truth"
    share: Share = Field(default=0.999, gt=0)
    detail: Literal["auto", "low", "default", "high"] = "auto"


class HopsStage(StageOptions):
    """Multi-hop search: names in the `parents` best passages, each searched together with the question.

    `when`: asked leaves out what routing is sure asks for one thing, questions takes such in English. `weight`: of a
    chain, where passages to open are chosen; `share`: what a chain of 1 is worth of the best score found.
    """

    needs_store: ClassVar[bool] = True
    stage: Literal["hops"] = "hops"
    when: Literal["always", "questions", "asked"] = "always"
    hops: int = Field(default=1, ge=1, le=3)
    parents: int = Field(default=3, ge=1, le=20)
    names: int = Field(default=8, ge=1, le=100, description="names searched of each passage")
    limit: int = Field(default=10, ge=1, le=100, description="passages found by each name")
    pages: int = Field(default=50, ge=0, le=500, description="chunks of named or linked pages, fetched in a hop")
    weight: Weight = 0.8
    share: Weight = 1.0


class ChainStage(StageOptions):
    """Behind a rerank: gives each hit what it owes to the chain that leads to it."""

    stage: Literal["chain"] = "chain"
    weight: Weight = 0.6


class CosineStage(StageOptions):
    """Mixes the scaled score with the cosine to the question."""

    stage: Literal["cosine"] = "cosine"
    weight: Share = 0.3


class SourcesStage(StageOptions):
    """Multiplies by the factor of the longest fitting path prefix in `search.source_boosts`."""

    stage: Literal["sources"] = "sources"


class BacklinksStage(StageOptions):
    """Multiplies by 1 + weight * ln(1 + n) where n other documents link to the document."""

    stage: Literal["backlinks"] = "backlinks"
    weight: Share = 0.05


class RecencyStage(StageOptions):
    """Multiplies by 1 + weight * 0.5^(age/half_life); documents without a date stay as they are."""

    stage: Literal["recency"] = "recency"
    weight: Share = 0.2
    half_life_days: float = Field(default=180.0, gt=0)


class FacetStage(StageOptions):
    """Lifts memories of the facet that the leaf asks for: times 1 + weight * (1 - score), so 1 is never passed."""

    stage: Literal["facet"] = "facet"
    weight: Share = 0.1


class ExcludeStage(StageOptions):
    """Drops paths under `search.excludes`, unless the question's own filter names them."""

    stage: Literal["exclude"] = "exclude"


class DedupStage(StageOptions):
    """Folds near-duplicates within a document by vector cosine, by shingles where there is no vector."""

    stage: Literal["dedup"] = "dedup"
    threshold: Share = 0.85


class CapsStage(StageOptions):
    """Bounds the chunks of one document, and the share of one kind. `per_doc` 0: min(10, 5 x hops).

    `best_doc`: those of the best candidate's document, where that is more.
    """

    stage: Literal["caps"] = "caps"
    per_doc: int = Field(default=3, ge=0, le=100)
    best_doc: int = Field(default=0, ge=0, le=100)
    per_kind: Share = 1.0


class MmrStage(StageOptions):
    """Maximal marginal relevance over vectors, or shingles: `relevance` 1 keeps the order, 0 only spreads."""

    stage: Literal["mmr"] = "mmr"
    relevance: Share = 0.7
    limit: HitLimit = 20


class LimitStage(StageOptions):
    """Keeps the best `limit`; 0: as many as are wanted."""

    stage: Literal["limit"] = "limit"
    limit: int = Field(default=0, ge=0, le=1000)


class EnrichStage(StageOptions):
    """Gives each hit a snippet: the part of its text that speaks of the question."""

    stage: Literal["enrich"] = "enrich"
    chars: int = Field(default=200, ge=20, le=2000)


class RerankStage(StageOptions):
    """The configured reranker over the best `limit`, on the rerank pool. What stands behind it runs there too."""

    stage: Literal["rerank"] = "rerank"
    limit: HitLimit = 50


class LinkedStage(StageOptions):
    """After the rerank: the n-th best neighbour of a hit keeps at least share^n of that hit's score."""

    stage: Literal["linked"] = "linked"
    share: Share = 0.8


class BlendStage(StageOptions):
    """Mixes rank before and score after the rerank by position: ranks 1-3, 4-10, 11 and on."""

    stage: Literal["blend"] = "blend"
    first: Share = 0.75
    middle: Share = 0.60
    rest: Share = 0.40


class HierarchyStage(StageOptions):
    """Searches from directory to directory, instead of arms and fusion: score = a * own + (1 - a) * parent."""

    store_calls: ClassVar[int] = 60
    stage: Literal["hierarchy"] = "hierarchy"
    alpha: Share = Field(default=0.5, description="share of a score that is the question's own; the rest: the parent's")
    starts: int = Field(default=3, ge=1, le=20, description="directories that the global search starts from")
    beam: int = Field(default=4, ge=1, le=32, description="directories opened in one round, with one call of the store")
    directories: int = Field(default=5, ge=1, le=100, description="subdirectories taken from an opened directory")
    documents: int = Field(default=10, ge=1, le=100, description="chunks taken from an opened directory")
    threshold: Share = Field(default=0.1, description="what scores no higher is neither entered nor returned")
    top_k: int = Field(default=10, ge=1, le=100, description="the best chunks that are watched ...")
    patience: int = Field(default=3, ge=1, le=20, description="... and the rounds for which they stay the same")
    rounds: int = Field(default=16, ge=1, le=200)
    rerank: Literal["lexical", "none"] = "lexical"


Stage = Annotated[
    ExpansionStage | StrongSignalStage | LexicalStage | DenseStage | TrigramStage | FusionStage
    | NeighboursStage | HopsStage | ChainStage | CosineStage | SourcesStage | BacklinksStage | RecencyStage
    | FacetStage | ExcludeStage | DedupStage | CapsStage | MmrStage | LimitStage | EnrichStage | RerankStage
    | BlendStage | HierarchyStage | EdgesStage | TruthStage | LinkedStage,
    Field(discriminator="stage"),
]  # fmt: skip
