"""What running a plan would call, as ranges: from everything cached or nothing found, to the most that can be.

Pure: reads the tree, the request and the settings. Tries that fail on the network and are made again are not in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pydantic import Field

from shared.language.text import WIDEST
from shared.models import Facet, JobRequest, Node, NodeKind
from shared.models.base import Model
from shared.models.route import PlannerName, Route
from shared.providers.llm.prompts import (
    MAX_MEMORY_CHARS,
    decompose_again_prompt,
    decompose_prompt,
    expand_prompt,
    missing_prompt,
    read_answer_prompt,
    summarise_prompt,
)
from shared.providers.llm.replies import MAX_ANSWER_TOKENS, MAX_MISSING_TOKENS, MAX_QUERY_CHARS, MAX_ROUTE_TOKENS
from shared.providers.llm.room import TAG
from shared.providers.metering import MOST_TOKENS_PER_CHAR, NANO, Kind, price, token_range
from shared.providers.rerankers.chat import DOCUMENTS_PER_CALL
from shared.settings import Settings
from shared.settings import stages as s
from shared.settings.strategies import AGAIN, Strategy, asked_strategy, split

Range = tuple[int, int]
#: Assumed: characters of the values that are written into a subquestion, and of a chunk's title and heading; the least
#: share of its size that a window adds to what is read (sentences end before it does).
_WRITTEN_CHARS, _LEAD_CHARS, _LEAST_WINDOW = 1000, 1000, 0.3
#: Tokens that the prompts' room counts for one character at most: a quote, written as an entity.
_WIDEST_WRITTEN = 2


class EstimateRow(Model):
    """One stage and one kind of call. Ranges are (fewest, most); `cost` is None where a price is not known."""

    stage: str
    what: str
    calls: Range = (0, 0)
    tokens_in: Range = (0, 0)
    tokens_out: Range = (0, 0)
    cost: tuple[float, float] | None = Field(default=(0.0, 0.0))


class Estimate(Model):
    """All rows. Their sums: `llm_calls`, `tokens` of LLM and embedding, `cost` (None: a price is not known)."""

    rows: tuple[EstimateRow, ...] = ()
    llm_calls: Range = (0, 0)
    tokens: Range = (0, 0)
    cost: tuple[float, float] | None = (0.0, 0.0)
    currency: str = ""
    no_price: tuple[str, ...] = ()


def estimate(request: JobRequest, route: Route, nodes: Sequence[Node], settings: Settings) -> Estimate:
    """What a job of this tree would call. Planning counts as for a question that comes without its plan."""
    leaves = [node for node in nodes if node.kind is NodeKind.LEAF]
    rows = [row for row in _Rows(request, route, leaves, settings) if row.calls[1]]
    costs = [row.cost for row in rows if row.cost is not None]
    lacking = sorted({row.what.partition(" ")[2] for row in rows if row.cost is None})
    return Estimate(
        rows=tuple(rows),
        llm_calls=_sum([row.calls for row in rows if row.what.startswith("llm")]),
        tokens=_sum([taken for row in rows for taken in (row.tokens_in, row.tokens_out)]),
        cost=None if lacking else (sum(low for low, _ in costs), sum(high for _, high in costs)),
        currency=settings.prices.currency,
        no_price=tuple(lacking),
    )


class _Rows:
    """The rows, stage by stage."""

    def __init__(self, request: JobRequest, route: Route, leaves: Sequence[Node], settings: Settings) -> None:
        self._request, self._route, self._leaves, self._settings = request, route, leaves, settings
        self._out = settings.llm_max_tokens

    def __iter__(self) -> Iterator[EstimateRow]:
        if self._settings.has_llm:
            yield self._planning()
        for node in (*self._leaves, *self._again()):
            yield from self._leaf(node)
        if self._settings.has_llm and self._settings.binding.read:
            for node in self._leaves:
                yield from (self._reading() for _ in node.depends_on)
        if self._settings.has_llm and self._settings.gaps.ask and self._again():
            yield self._missing()
        if len(self._leaves) > 1:
            pool = self._request.top_n or self._settings.multi_query.max_total_results
            yield from self._rerank("root rerank", self._request.question, [pool])
        asked = self._request.summary
        wanted = self._settings.enable_summary if asked is None else asked
        if wanted and self._settings.has_llm and self._route.planner is not PlannerName.NONE:
            high = token_range(summarise_prompt(self._request.question, (), self._leaves))[1]
            high += math.ceil(
                MOST_TOKENS_PER_CHAR * self._settings.llm_prompt_tokens * self._settings.llm_sources_share
            )
            yield self._llm("summary", (0, 1), (0, high), self._out)

    def _planning(self) -> EstimateRow:
        """One ask for the route where the rules are unsure; two for the question and for each branch."""
        question, limits = self._request.question, self._settings.decomposition
        asks = 0 if self._route.planner in {PlannerName.NONE, PlannerName.ORIGINAL, PlannerName.REQUEST} else 1
        branches = asks * (limits.max_total_leaves // 2 if limits.max_level > 1 else 0)
        asked_first = self._route.by == "llm" or (self._settings.routing.llm and self._route.unsure)
        uncached = self._route.planner is PlannerName.DECOMPOSE and not self._settings.cache.enabled
        surely = 1 if asks and uncached else 0
        low, _ = token_range(decompose_prompt(question, limits.max_children))
        asked = (question, WIDEST * MAX_QUERY_CHARS)
        high = max(token_range(decompose_again_prompt(text, "x" * 300, limits.max_children))[1] for text in asked)
        calls = (surely, 2 * (asks + branches) + asked_first)
        most_out = 2 * (asks + branches) * self._out + asked_first * MAX_ROUTE_TOKENS
        return self._llm("planning", calls, (surely * low, calls[1] * high), most_out)

    def _again(self) -> list[Node]:
        """The leaves that may be added for gaps; for a lookup only where the settings say so."""
        gaps, kept = self._settings.gaps, {PlannerName.NONE, PlannerName.ENUMERATION}
        if self._route.planner in kept or not gaps.allow(self._request):
            return []
        if self._route.planner is PlannerName.ORIGINAL and not gaps.lookups_below:
            return []
        query = f"{WIDEST * _WRITTEN_CHARS} {self._request.question}"
        return [Node(id="0.0", level=1, facet=Facet.GAP, query=query, strategy=AGAIN)] * gaps.max_leaves

    def _missing(self) -> EstimateRow:
        gaps, chars = self._settings.gaps, min(MAX_MEMORY_CHARS, self._settings.chunking.max_chars) + _LEAD_CHARS
        high = token_range(missing_prompt(self._request.question, (), gaps.max_leaves))[1]
        high += math.ceil(MOST_TOKENS_PER_CHAR * chars * gaps.first)
        return self._llm("gaps", (0, 1), (0, high), MAX_MISSING_TOKENS)

    def _leaf(self, node: Node) -> Iterator[EstimateRow]:
        settings = self._settings
        name = asked_strategy(self._request) or node.strategy or settings.search.strategy
        first, rest = split(settings.stages_of(name))
        wordings = settings.binding.names if node.depends_on else 1
        query = node.query + (WIDEST * _WRITTEN_CHARS if node.depends_on else "")
        rewrites = 0
        if expansion := next((stage for stage in first if isinstance(stage, s.ExpansionStage)), None):
            rewrites = expansion.rewrites if settings.has_llm else 0
            if rewrites:
                high = token_range(expand_prompt(query, rewrites))[1]
                yield self._llm("search", (0, wordings), (0, wordings * high), wordings * self._out)
        if settings.embedding.traits.server and any(isinstance(stage, s.DenseStage) for stage in first):
            yield self._embedding(query, wordings, rewrites)
        yield EstimateRow(stage="search", what="store", calls=(0, self._store_calls(first, wordings)))
        for stage in rest:
            if isinstance(stage, s.RerankStage):
                each = max(10, settings.multi_query.candidates_per_query // wordings)
                yield from self._rerank("rerank", query, [min(stage.limit, each) for _ in range(wordings)])

    def _embedding(self, query: str, wordings: int, rewrites: int) -> EstimateRow:
        settings = self._settings
        prefix = token_range(settings.embedding.query_prefix)[1]
        each = token_range(query)[1] + prefix + rewrites * (math.ceil(MOST_TOKENS_PER_CHAR * MAX_QUERY_CHARS) + prefix)
        size = settings.embedding.batch_size
        calls = math.ceil(wordings / size) + (wordings * math.ceil((1 + rewrites) / size) if rewrites else 0)
        twice = 2 if rewrites else 1
        return self._row("search", "embedding", settings.embedding.model, (0, calls), (0, twice * wordings * each))

    def _store_calls(self, stages: Strategy, wordings: int) -> int:
        calls = 0
        for stage in stages:
            if isinstance(stage, s.NeighboursStage):
                calls += stage.depth or self._settings.multi_query.search_depth
            elif isinstance(stage, s.HopsStage):
                calls += stage.hops
            else:
                calls += stage.store_calls if isinstance(stage, s.StageOptions) else 0
        return wordings * calls

    def _rerank(self, stage: str, query: str, documents: Sequence[int]) -> Iterator[EstimateRow]:
        """`documents` of each rerank; a long one is several texts."""
        options, width = self._settings.rerank, self._settings.chunking.max_chars + _LEAD_CHARS
        windows = 1 if width <= options.window_chars else 1 + math.ceil(width / (_LEAST_WINDOW * options.window_chars))
        if options.traits.server:
            calls = sum(math.ceil(each * windows / options.max_documents) for each in documents)
            yield self._row(stage, "rerank", options.model, (0, calls), (0, 0))
        elif options.traits.llm and self._settings.has_llm:
            room = max(0, self._settings.llm_prompt_tokens - 500 - token_range(query)[1])
            fit = room // (_WIDEST_WRITTEN * options.window_chars + TAG)
            most = min(options.max_documents, DOCUMENTS_PER_CALL, max(1, fit))
            calls = sum(math.ceil(each * windows / most) for each in documents)
            text = math.ceil(MOST_TOKENS_PER_CHAR * options.window_chars) + 20
            tokens = calls * (500 + token_range(query)[1]) + sum(documents) * windows * text
            yield self._llm(stage, (0, calls), (0, tokens), calls * self._out, options.model)

    def _reading(self) -> EstimateRow:
        chars = min(MAX_MEMORY_CHARS, self._settings.chunking.max_chars) + _LEAD_CHARS
        prompt = read_answer_prompt(WIDEST * (_WRITTEN_CHARS + MAX_QUERY_CHARS), ())
        high = token_range(prompt)[1] + math.ceil(MOST_TOKENS_PER_CHAR * chars * self._settings.binding.passages)
        return self._llm("binding", (0, 1), (0, high), MAX_ANSWER_TOKENS)

    def _llm(self, stage: str, calls: Range, tokens_in: Range, most_out: int, model: str = "") -> EstimateRow:
        return self._row(stage, "llm", model or self._settings.llm_model, calls, tokens_in, (0, most_out))

    def _row(  # noqa: PLR0913, PLR0917 - the fields of a row
        self, stage: str, kind: Kind, model: str, calls: Range, tokens_in: Range, tokens_out: Range = (0, 0)
    ) -> EstimateRow:
        ends = [price(self._settings.prices, kind, model, (calls[i], tokens_in[i], tokens_out[i])) for i in (0, 1)]
        known = [nano / NANO for nano in ends if nano is not None]
        cost = (known[0], known[1]) if len(known) == 2 else None
        what = f"{kind} {model}"
        return EstimateRow(stage=stage, what=what, calls=calls, tokens_in=tokens_in, tokens_out=tokens_out, cost=cost)


def by_stage(rows: Sequence[EstimateRow]) -> list[EstimateRow]:
    """One row for each stage and kind of call, in order: what a reader wants to see."""
    merged: dict[tuple[str, str], EstimateRow] = {}
    for row in rows:
        key = (row.stage, row.what)
        merged[key] = _added(merged[key], row) if key in merged else row
    return list(merged.values())


def _added(one: EstimateRow, other: EstimateRow) -> EstimateRow:
    sums = {name: _sum([getattr(one, name), getattr(other, name)]) for name in ("calls", "tokens_in", "tokens_out")}
    cost = (one.cost[0] + other.cost[0], one.cost[1] + other.cost[1]) if one.cost and other.cost else None
    return one.model_copy(update={**sums, "cost": cost})


def _sum(ranges: Sequence[Range]) -> Range:
    return sum(low for low, _ in ranges), sum(high for _, high in ranges)
