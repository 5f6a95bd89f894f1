"""Plans one job: route, decompose, grow. Keeps no state of jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from functools import partial

from orchestrator.planning.route import route_request
from orchestrator.planning.rule_split import nested, standing_parts
from orchestrator.planning.tree import Grown, children_of, first_level, left_out, needed, original_leaf
from shared.cache import Cache
from shared.cached_llm import cached_llm
from shared.errors import shown
from shared.jobs import Job
from shared.language.base import Subquestion
from shared.language.text import question_key
from shared.models import ROOT_ID, Cost, Decomposition, Facet, Filters, Node, NodeKind, Plan, PlanEntry, SubQuery
from shared.models.plan import references, renumbered
from shared.models.request import TypedQuery
from shared.models.route import PlannerName, Route
from shared.providers.llm.client import LLM, ChatClient
from shared.providers.llm.dialogue import Dialogue
from shared.providers.llm.prompts import decompose_again_prompt, decompose_prompt
from shared.providers.llm.replies import parse_decomposition
from shared.providers.time_shares import seconds_for
from shared.settings import Settings
from shared.settings.sections import DecompositionSettings as Limits
from shared.settings.strategies import asked_strategy

NO_LLM = "No LLM is configured (llm_model, llm_base_url): the question was split by rules."
_BY_RULES = "The question was decomposed by rules instead."
#: Which facets go first when there is no room for all.
_PRIORITY = (Facet.CORE, Facet.HOW, Facet.WHY, Facet.NOTE, Facet.CASE)


class Planner:
    """Turns a question into nodes, level by level, as the planner of its route says."""

    def __init__(self, settings: Settings, cache: Cache | None = None) -> None:
        self._limits = settings.decomposition
        self._settings, self._cache = settings, cache
        self._llm = ChatClient(settings) if settings.has_llm else None

    def by(self, settings: Settings) -> Planner:
        """This one with other settings, over the same connections."""
        if settings is self._settings:
            return self
        other = copy(self)
        vars(other).update(_settings=settings, _limits=settings.decomposition)
        return other

    def close(self) -> None:
        """Close the connections to the LLM."""
        if self._llm is not None:
            self._llm.close()

    def route(self, job: Job) -> tuple[Route, Cost]:
        """How the job is answered: as its request says, else as its question reads. The LLM is asked when unsure."""
        timeout_s = seconds_for("routing", job.remaining(job.leaf_reserve))
        llm = self._llm_of(job, "route") if self._settings.routing.llm else None
        return route_request(job.request, self._settings, llm, timeout_s)

    def first(self, job: Job, route: Route) -> tuple[Grown, Cost]:
        """The original question's leaf and the first level; nothing for a question that needs no retrieval."""
        request, question = job.request, job.request.question
        match route.planner:
            case PlannerName.NONE:
                return Grown(), Cost()
            case PlannerName.REQUEST if request.typed:
                return typed_leaves(request.typed, request.filters), Cost()
            case PlannerName.REQUEST:
                return own_tree(question, request.subqueries, self._limits), Cost()
            case PlannerName.ORIGINAL:
                found, cost = Decomposition(by="rules"), Cost()
            case PlannerName.NESTED:
                found, cost = self._nested(question, job)
            case _:
                found, cost = self._decompose(question, job)
        by_default = asked_strategy(request) or route.strategy == self._settings.search.strategy
        strategy = None if by_default else route.strategy
        grown = _searched_by(strategy, first_level(question, found, self._limits))
        notes = () if self._settings.has_llm or route.planner is PlannerName.ORIGINAL else (NO_LLM,)
        return grown.model_copy(update={"warnings": (*notes, *grown.warnings)}), cost

    def refine(self, job: Job, branch: Node) -> tuple[Grown, Cost]:
        """A branch's children; the branch itself as a leaf where it cannot be refined."""
        found, cost = self._decompose(branch.query, job)
        return _searched_by(branch.strategy, children_of(branch, found, self._limits, job.request.question)), cost

    def _nested(self, question: str, job: Job) -> tuple[Decomposition, Cost]:
        """The steps that the rules see, which are right where they see any; else a decomposition like any other."""
        steps = decompose_by_rules(question, self._limits.max_children)
        if any(step.depends_on for step in steps.subqueries):
            return steps, Cost()
        return self._decompose(question, job)

    def _decompose(self, question: str, job: Job) -> tuple[Decomposition, Cost]:
        """Up to max_children subqueries; what exceeds a budget is left out by the tree, by name."""
        timeout_s = seconds_for("decomposition", job.remaining(job.leaf_reserve))
        return decompose(question, self._limits.max_children, self._llm_of(job, "decomposition"), timeout_s)

    def _llm_of(self, job: Job, kind: str) -> LLM | None:
        return cached_llm(self._llm, self._cache, self._settings, job.request.tenant, kind)


def _searched_by(strategy: str | None, grown: Grown) -> Grown:
    if strategy is None:
        return grown
    nodes = tuple(node.model_copy(update={"strategy": strategy}) for node in grown.nodes)
    return grown.model_copy(update={"nodes": nodes})


def decompose(question: str, most: int, llm: LLM | None, timeout_s: float) -> tuple[Decomposition, Cost]:
    """At most `most` subqueries of `question`, by the LLM, asked twice at most within `timeout_s`, else by the rules.

    `llm` None: by rules, without a warning. Never raises for a fault of the LLM: each fallback leaves a warning, and
    failed asks are counted in the cost as far as they are known.
    """
    if llm is None:
        return decompose_by_rules(question, most), Cost()
    parse = partial(parse_decomposition, most=most)
    dialogue = Dialogue(llm, parse, timeout_s, wanted="decomposition", instead=_BY_RULES)
    again = partial(decompose_again_prompt, question, most=most)
    subqueries = dialogue.reply(decompose_prompt(question, most), again)
    if subqueries is not None:
        return Decomposition(subqueries=subqueries, by="llm", warnings=tuple(dialogue.warnings)), dialogue.cost
    ruled = decompose_by_rules(question, most)
    return ruled.model_copy(update={"warnings": (*dialogue.warnings, *ruled.warnings)}), dialogue.cost


def decompose_by_rules(question: str, most: int) -> Decomposition:
    """At most `most` subqueries for `question`, in order; none for a simple one (the original is always searched).

    A nested question gives its steps, each depending on the ones that it names, if all of them fit. Parts of a compound
    question that do not fit are named in a warning; facets that do not fit are just not chosen. Linear in the length of
    the question.
    """
    if (steps := nested(question)) and len(steps) <= most:
        chain = (SubQuery(dimension=Facet.CORE, query=step, depends_on=references(step)) for step in steps)
        return Decomposition(subqueries=tuple(chain), by="rules")
    different: dict[str, Subquestion] = {}
    for part in standing_parts(question):
        different.setdefault(question_key(part.query), part)
    kept, dropped = _chosen(list(different.values()), most)
    warnings: tuple[str, ...] = ()
    if dropped:
        names = "; ".join(shown(part.query) for part in dropped)
        warnings = (f"The question has more parts than the {most} that fit; left to the search as a whole: {names}.",)
    if len(kept) == 1 and not kept[0].asked:
        kept = []  # the question in other words
    subqueries = tuple(SubQuery(dimension=part.facet, query=part.query, needs_refinement=part.broad) for part in kept)
    return Decomposition(subqueries=subqueries, by="rules", warnings=warnings)


def _chosen(parts: list[Subquestion], most: int) -> tuple[list[Subquestion], list[Subquestion]]:
    asked = [part for part in parts if part.asked]
    beside = sorted((part for part in parts if not part.asked), key=lambda part: _PRIORITY.index(part.facet))
    room = (asked + beside)[: max(0, most)]
    return [part for part in parts if part in room], [part for part in asked if part not in room]


def own_tree(question: str, plan: Plan, limits: Limits) -> Grown:
    """Every entry a node; those that others refine are branches that have grown already.

    Leaves beyond decomposition.max_total_leaves are left out by name. In a plan of one level a subquestion that repeats
    another one, or the question itself, is searched once.
    """
    if not any(entry.under for entry in plan):
        subqueries = (
            SubQuery(dimension=entry.dimension, query=entry.query, depends_on=entry.depends_on) for entry in plan
        )
        wide = limits.model_copy(update={"max_children": limits.max_total_leaves})
        return first_level(question, Decomposition(subqueries=tuple(subqueries), by="request"), wide)
    room = limits.max_total_leaves - 1
    kept, beyond = _kept(plan, room)
    warnings = (left_out("the plan", beyond, room, "decomposition.max_total_leaves"),) if beyond else ()
    return Grown(nodes=(original_leaf(question), *needed(list(_nodes(plan, kept)))), warnings=warnings)


def _kept(plan: Plan, room: int) -> tuple[set[int], list[PlanEntry]]:
    """Places (from 1) that stay, and the leaves that do not; a branch stays while something under it does."""
    branches = {entry.under for entry in plan}
    leaves = [place for place in range(1, len(plan) + 1) if place not in branches]
    kept = set(leaves[:room])
    for place in range(len(plan), 0, -1):  # those under an entry stand behind it
        under = plan[place - 1].under
        if place in kept and under is not None:
            kept.add(under)
    return kept, [plan[place - 1] for place in leaves[room:]]


def _nodes(plan: Plan, kept: set[int]) -> Iterator[Node]:
    ids: dict[int, str] = {}
    numbers: dict[int, int] = {}
    children = Counter[str]()
    branches = {entry.under for entry in plan}
    for place, entry in enumerate(plan, 1):
        if place not in kept:
            continue
        parent = ids[entry.under] if entry.under is not None else ROOT_ID
        children[parent] += 1
        ids[place], numbers[place] = f"{parent}.{children[parent]}", children[parent]
        yield Node(
            id=ids[place],
            parent_id=parent,
            level=parent.count(".") + 1,
            facet=entry.dimension,
            query=renumbered(entry.query, {other: numbers[other] for other in entry.depends_on if other in kept}.get),
            kind=NodeKind.BRANCH if place in branches else NodeKind.LEAF,
            depends_on=tuple(ids[other] for other in entry.depends_on if other in kept),
            by="request",
        )


def typed_leaves(queries: Sequence[TypedQuery], filters: Filters) -> Grown:
    """One leaf a query, the question itself first ("0.0"); none is refined.

    A query for a kind that the request's own filter leaves out is not searched, and named in a warning.
    """
    nodes, out = list[Node](), list[str]()
    for query in queries:
        if filters.kinds and query.kinds and not set(query.kinds) & set(filters.kinds):
            out.append(
                f"The query for the kind {query.kinds[0]} was left out: only {', '.join(filters.kinds)} is asked for."
            )
            continue
        facet = Facet.CORE if nodes else Facet.ORIGINAL
        node_id = f"{ROOT_ID}.{len(nodes)}"
        nodes.append(Node(id=node_id, parent_id=ROOT_ID, level=1, facet=facet, query=query.query, kinds=query.kinds))
    return Grown(nodes=tuple(nodes), warnings=tuple(out))
