"""A quick search without a job, a search in a conversation, and what both give back."""

from __future__ import annotations

from pydantic import Field

from shared.models import request
from shared.models.base import Model
from shared.models.hits import SearchResult, Via

#: Related contexts of one hit.
MAX_RELATED = 5
#: Hits that are given related contexts; later ones have none.
MAX_ANCHORS = 50


class FindQuery(Model):
    """One query; `top_n` is the number of results, `related` how many related contexts each is given.

    `near_symbol` and `depth` as in Question.
    """

    query: str = Field(min_length=1, max_length=request.MAX_QUESTION_CHARS)
    mode: request.SearchMode | None = None
    strategy: request.Name | None = None
    explain: bool = False
    near_symbol: request.Symbol | None = None
    depth: request.EdgeDepth | None = None
    filters: request.Filters = request.Filters()
    top_n: int = Field(default=10, ge=1, le=200)
    related: int = Field(default=0, ge=0, le=MAX_RELATED)


class FindRequest(FindQuery):
    """A query of a tenant."""

    tenant: request.Name = "default"


class Related(Model):
    """A context beside a hit; `how` reads "the hit <how> it": links to, linked from, mentions, calls, beside ..."""

    uri: str
    title: str
    how: str


class Context(Model):
    """What stands around a hit: the abstract (L0) of its directory if it has one, and up to five related contexts."""

    abstract: str = ""
    related: tuple[Related, ...] = ()


class FindReply(Model):
    """The result, or the sentence that says why there is none; `bad_input` when another question would have one.

    `contexts` is by chunk id, for the hits that have one.
    """

    result: SearchResult | None = None
    contexts: dict[str, Context] = Field(default_factory=dict)
    error: str | None = None
    bad_input: bool = False


class Anchor(Model):
    """A hit whose surroundings are wanted: what the search pool must know of it."""

    chunk_id: str
    doc_id: str
    path: str
    defines: tuple[str, ...] = ()
    refs: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()


class RelatedRequest(Model):
    """Hits of a job whose contexts are wanted, for the job's tenant and under its filters."""

    tenant: request.Name
    filters: request.Filters = request.Filters()
    anchors: tuple[Anchor, ...] = Field(default=(), max_length=MAX_ANCHORS)
    related: int = Field(default=MAX_RELATED, ge=0, le=MAX_RELATED)


class RelatedReply(Model):
    """Contexts by chunk id, or the sentence that says why there are none."""

    contexts: dict[str, Context] = Field(default_factory=dict)
    error: str | None = None


class IntentRequest(Model):
    """A question in its conversation, for the plan pool. `llm` False: its budget allows no call."""

    query: str = Field(min_length=1, max_length=request.MAX_QUESTION_CHARS)
    session: request.Session = request.Session()
    llm: bool = True


class IntentReply(Model):
    """The intent, or the sentence that says why there is none."""

    intent: request.SessionIntent | None = None
    error: str | None = None


class MatchedContext(Model):
    """One result. `leaf` is False for a directory; `abstract` its directory's L0, or the snippet without one.

    `via` says how it was reached from another one; None: the question itself found it.
    """

    uri: str
    chunk_id: str
    kind: str
    leaf: bool = True
    title: str
    heading: str = ""
    path: str
    date: str | None = None
    abstract: str = ""
    snippet: str = ""
    score: float
    related: tuple[Related, ...] = ()
    via: Via | None = None


class Ranked(Model):
    """What one query of a plan found: an address and its score for that query."""

    uri: str
    title: str
    score: float


class QueryResult(Model):
    """What one query of the plan found by itself, best first; `error` when it was not answered."""

    query: str
    context_type: request.ContextType | None = None
    hits: tuple[Ranked, ...] = ()
    error: str | None = None


class FindResult(SearchResult):
    """Hits by kind; `hits` holds the same ones in one list, with their texts. Plan and results when asked for."""

    memories: tuple[MatchedContext, ...] = ()
    resources: tuple[MatchedContext, ...] = ()
    skills: tuple[MatchedContext, ...] = ()
    others: tuple[MatchedContext, ...] = ()
    total: int = 0
    query_plan: tuple[request.TypedQuery, ...] | None = None
    query_results: tuple[QueryResult, ...] | None = None


class SessionResult(FindResult):
    """A search in a conversation. `retrieval` False: nothing needs to be looked up, `reason` says why.

    `standalone` is the question with what it refers to in the conversation; `planned_by` is llm or rules.
    """

    question: str
    retrieval: bool
    reason: str = ""
    standalone: str = ""
    planned_by: str = "rules"
    job_id: str | None = None
    partial: bool = False
    degraded: tuple[str, ...] = Field(default=(), description="codes of `Degradation`: what it was made without")
    coverage: str = ""
