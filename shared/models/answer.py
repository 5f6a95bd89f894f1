"""What a job gives back."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from shared.models.base import Model
from shared.models.cost import Cost, Spending
from shared.models.enumeration import ListTable
from shared.models.gaps import SearchedGap
from shared.models.hits import Folds, LeafResult, MergedHit
from shared.models.plan import Node
from shared.models.request import TenantName
from shared.models.route import Route
from shared.models.stale import StaleMark
from shared.models.support import AnswerSentence, Citation, SupportReport
from shared.models.told import Sentence
from shared.models.verdicts import Contradiction, StaleSource


class Bridge(Model):
    """How one passage led to another: `start` -> (name) -> `end`, both numbers of results.

    `start` None: the passage that brought the name up is not among the results. `how` as in `Via.how`; `title`: the
    one passage names the page of the other.
    """

    start: int | None = Field(default=None, ge=1)
    name: str
    end: int = Field(ge=1)
    how: str = "name"


class ReasoningStep(Model):
    """One step of a reasoned answer.

    `kind`: a fact that later steps may need, an aspect of the question beside others, or a hop from one passage to the
    next. `question` is the subquestion as it was searched, `planned` the same as it was planned, where something was
    written into it. `after` are the steps that it waited for. `found` is what it handed on to the steps behind it,
    `found_by` how: answer (read by the LLM) or names (candidates, likeliest first). `text` are sentences of passages,
    each with its `[n]`, and `spans` their places and quotes; `passages` are these numbers. `gap` says why there is no
    evidence.
    """

    number: int = Field(ge=1)
    kind: Literal["fact", "aspect", "hop"]
    node_id: str
    facet: str
    question: str
    planned: str | None = None
    after: tuple[int, ...] = ()
    found: tuple[str, ...] = ()
    found_by: str | None = None
    text: str = ""
    spans: tuple[AnswerSentence, ...] = ()
    passages: tuple[int, ...] = ()
    bridges: tuple[Bridge, ...] = ()
    gap: str | None = None


class MissingReason(StrEnum):
    """Why something that was asked is not answered."""

    NOTHING_FOUND = "nothing_found"  # nothing that was found speaks of it
    UNNAMED = "unnamed"  # no document names it
    UNSAID = "unsaid"  # passages speak of it, and none says what is asked


class MissingFact(Model):
    """What was asked and not found: a question, a part of one, or an identifier; the text says so in a sentence."""

    asked: str
    reason: MissingReason


class Summary(Model):
    """The written answer. `kind` is extractive, llm or none; `removed` counts citations of no existing source.

    `missing`: what was asked and is not in the text; empty where an LLM wrote it. `contradictions` and `stale` are
    the last lines of the text.
    """

    text: str = ""
    kind: str = "none"
    citations: tuple[Citation, ...] = ()
    removed: int = 0
    support: SupportReport | None = Field(default=None, description="what each sentence rests on, whoever wrote it")
    missing: tuple[MissingFact, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    stale: tuple[StaleSource, ...] = ()


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
    steps: tuple[ReasoningStep, ...] = ()
    table: ListTable | None = None
    gaps: tuple[SearchedGap, ...] = Field(default=(), description="what was searched again, and what stayed open")
    results: tuple[MergedHit, ...] = ()
    tree: tuple[Node, ...] = ()
    leaves: tuple[LeafResult, ...] = ()
    reranked_by: str | None = None
    folds: Folds | None = Field(default=None, description="near-duplicates that were left out by their vectors")
    verdict: str | None = Field(
        default=None, description='"nothing relevant": no leaf reached rerank.min_relevance; "no retrieval needed"'
    )
    verdicts: tuple[str, ...] = Field(default=(), description="codes of `AnswerVerdict`")
    stale: tuple[StaleMark, ...] = Field(
        default=(), description="documents that it is stale by, as it is shown: the stored answer has none"
    )
    route: Route | None = None
    retrieval: bool = True
    warnings: tuple[Sentence, ...] = ()
    degraded: tuple[str, ...] = Field(default=(), description="codes of `Degradation`: what it was made without")
    degraded_at: dict[str, tuple[str, ...]] = Field(default_factory=dict, description="the same by item of the work")
    cost: Cost = Cost()
    budget: Spending | None = None
    timings_ms: dict[str, float] = Field(default_factory=dict)


class EarlyRequest(Model):
    """Whose answer so far is wanted: a job of that tenant."""

    job_id: str
    tenant: TenantName


class EarlyReply(Model):
    """The answer so far, or why there is none."""

    answer: Answer | None = None
    error: str | None = None
