"""What a job gives back."""

from __future__ import annotations

from pydantic import Field

from shared.models.base import Model
from shared.models.budget import Spending
from shared.models.cost import Cost
from shared.models.enumeration import Table
from shared.models.hits import LeafResult, MergedHit
from shared.models.plan import Node
from shared.models.reasoning import Step
from shared.models.route import Route


class Citation(Model):
    """`[number]` in the answer's text stands for this chunk."""

    number: int = Field(ge=1)
    chunk_id: str
    path: str
    title: str
    quote: str = ""


class Summary(Model):
    """The written answer. `kind` is extractive, llm or none; `removed` counts citations of no existing source."""

    text: str = ""
    kind: str = "none"
    citations: tuple[Citation, ...] = ()
    removed: int = 0


class Answer(Model):
    """The result of a job: the tree, each leaf's own results, the merged results and the summary.

    `aggregator` names what put it together: simple, reasoning (`steps`), enumeration (`table`) or a plugin.
    `route` says how the question was read and what followed from that; `retrieval` False: nothing had to be looked up.
    """

    job_id: str
    question: str
    state: str
    partial: bool = False
    coverage: str = Field(description='for people: "8 of 8 leaves answered"')
    aggregator: str = "simple"
    summary: Summary = Summary()
    steps: tuple[Step, ...] = ()
    table: Table | None = None
    results: tuple[MergedHit, ...] = ()
    tree: tuple[Node, ...] = ()
    leaves: tuple[LeafResult, ...] = ()
    reranked_by: str | None = None
    verdict: str | None = Field(
        default=None,
        description='"nothing relevant": no leaf reached rerank.min_relevance; "no retrieval needed"',
    )
    route: Route | None = None
    retrieval: bool = True
    warnings: tuple[str, ...] = ()
    cost: Cost = Cost()
    budget: Spending | None = None
    timings_ms: dict[str, float] = Field(default_factory=dict)
