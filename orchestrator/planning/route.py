"""How a question is answered: read by the rules, by the LLM where they are unsure, then the row of `routing.types`."""

from __future__ import annotations

from orchestrator.planning.lists.possible import may_be_list
from shared.errors import DeadlineError, PermanentError, RamifyError, ReplyError, TransientError
from shared.language.routing import UNSURE_BELOW, route_by_rules
from shared.language.symbols import asked_callers
from shared.models import Cost, JobRequest
from shared.models.route import Hops, PlannerName, QueryType, Reason, Route, Routed
from shared.providers.fallbacks import fell_back
from shared.providers.llm.client import LLM, LLMReply, spent
from shared.providers.llm.prompts import route_prompt
from shared.providers.llm.replies import MAX_ROUTE_TOKENS, RouteReply, parse_route
from shared.providers.time_shares import LEAST_S
from shared.settings import Settings
from shared.settings.strategies import asked_strategy

_UNSURE_ROW = "unsure"
#: A model's reply counts like one good rule, beside what the rules themselves had for the same type.
_LLM_WEIGHT = 0.7
_SPLITS = frozenset({PlannerName.DECOMPOSE, PlannerName.NESTED})
#: Planners that ignore `strategy`: a request that names one is decomposed instead.
_IGNORES_STRATEGY = frozenset({PlannerName.NONE, PlannerName.ENUMERATION})

#: Decided only when the job is planned: `ramify route` knows no corpus.
_POSSIBLE_LIST = Reason(
    rule="possible_list", says="enumeration", words="a list if the corpus has what it names", weight=0
)
_POSSIBLE_CALLERS = Reason(
    rule="possible_callers", says="simple_rule", words="callers if the corpus defines what it names", weight=0
)
_IS_CALLERS = Reason(
    rule="possible_callers", says="simple_rule", words="the corpus defines what it asks the callers of", weight=0.9
)
_IS_LIST = Reason(rule="possible_list", says="enumeration", words="the corpus has what it names", weight=0.9)


def route_request(request: JobRequest, settings: Settings, llm: LLM | None, timeout_s: float) -> tuple[Route, Cost]:
    """How `request` is answered: as it says itself, else as its question reads; and what asking the LLM has cost."""
    if what := decided_by(request):
        ruled = route_by_rules(request.question, settings.routing.unsure_below)
        return requested_route(request, as_requested(ruled, what), settings), Cost()
    routed, cost = read_question_type(request.question, llm, timeout_s, settings.routing.unsure_below)
    route = table_route(routed, settings)
    listed = routed.type is QueryType.ENUMERATION and not routed.unsure
    if settings.routing.adaptive and not listed and may_be_list(request.question):
        route = route.model_copy(update={"reasons": (*route.reasons, _POSSIBLE_LIST)})
    other = routed.type is not QueryType.SIMPLE_RULE or possible_list(route)
    if settings.routing.adaptive and other and asked_callers(request.question):
        route = route.model_copy(update={"reasons": (*route.reasons, _POSSIBLE_CALLERS)})
    return route, cost


def possible_callers(route: Route) -> bool:
    """True when the question is searched from the symbol that it asks the callers of, where the corpus defines it."""
    return _POSSIBLE_CALLERS in route.reasons


def callers_route(route: Route, settings: Settings) -> Route:
    """The route of a question for the callers of a symbol that the corpus defines."""
    return _by_corpus(route, QueryType.SIMPLE_RULE, _IS_CALLERS, settings)


def possible_list(route: Route) -> bool:
    """True when the question is a list where the corpus has what it names."""
    return _POSSIBLE_LIST in route.reasons


def whole_list(route: Route) -> bool:
    """True when a possible list is one only where nothing of the question is left unread."""
    return route.type is QueryType.COMPLEX_REASONING


def list_route(route: Route, settings: Settings) -> Route:
    """The route of a possible list that is one."""
    return _by_corpus(route, QueryType.ENUMERATION, _IS_LIST, settings)


def _by_corpus(route: Route, kind: QueryType, decided: Reason, settings: Settings) -> Route:
    possible = {_POSSIBLE_LIST, _POSSIBLE_CALLERS}
    reasons = (decided, *(reason for reason in route.reasons if reason not in possible))
    known = {name: value for name, value in dict(route).items() if name in Routed.model_fields}
    read = {"type": kind, "confidence": decided.weight, "unsure": False, "by": "corpus", "hops": None}
    return table_route(Routed(**(known | read | {"reasons": reasons})), settings)


def read_question_type(
    question: str, llm: LLM | None, timeout_s: float, unsure_below: float = UNSURE_BELOW
) -> tuple[Routed, Cost]:
    """How `question` reads, within `timeout_s` seconds, and what asking the LLM has cost. Always gives a reading.

    `llm` None: by rules alone, without a warning. Never raises for a fault of the LLM: the rules' best guess comes
    back with a warning.
    """
    ruled = route_by_rules(question, unsure_below)
    if not ruled.unsure or llm is None:
        return ruled, Cost()
    if timeout_s < LEAST_S:
        return _warned(ruled, DeadlineError("no time was left to ask it")), Cost()
    reply = LLMReply(text="")
    try:
        prompt = route_prompt(question)
        reply = llm.complete(prompt, timeout_s=timeout_s, max_tokens=MAX_ROUTE_TOKENS, check=parse_route)
        return _by_llm(parse_route(reply.text), ruled, unsure_below), reply.cost
    except (TransientError, PermanentError, DeadlineError, ReplyError) as error:
        return _warned(ruled, error), (reply if reply.calls else spent(error)).cost


def _by_llm(reply: RouteReply, ruled: Routed, unsure_below: float) -> Routed:
    says = reply.hops.value if reply.hops else reply.type.value
    agreed = ruled.confidence if ruled.type is reply.type else 0.0
    confidence = round(1 - (1 - _LLM_WEIGHT) * (1 - agreed), 2)
    return Routed(
        type=reply.type, intent=reply.intent, hops=reply.hops, confidence=confidence, unsure=confidence < unsure_below,
        reasons=(Reason(rule="llm", says=says, weight=_LLM_WEIGHT), *ruled.reasons), by="llm",
    )  # fmt: skip


def _warned(ruled: Routed, error: RamifyError) -> Routed:
    fell_back("llm", error)
    reason = str(error).rstrip(".")
    warning = f"The LLM did not say how to answer ({reason}). The rules' best guess was kept."
    return ruled.model_copy(update={"warnings": (warning,)})


def as_requested(ruled: Routed, what: str) -> Routed:
    """The rules' result, overridden by the request: never `none`, never unsure. `what` of the request decided."""
    kind = QueryType.SIMPLE_RULE if ruled.type is QueryType.NONE else ruled.type
    hops = ruled.hops if kind is QueryType.COMPLEX_REASONING else None
    asked = Reason(rule="request", says=kind.value, words=what, weight=1.0)
    return ruled.model_copy(
        update={
            "type": kind, "hops": hops, "confidence": 1.0, "unsure": False, "by": "request",
            "reasons": (asked, *ruled.reasons),
        }
    )  # fmt: skip


def decided_by(request: JobRequest) -> str | None:
    """What of the request decides how it is answered, in a few words; None when its question does."""
    if request.typed:
        return "its typed queries"
    if request.subqueries:
        return "its own plan"
    if strategy := asked_strategy(request):
        return f"strategy {strategy}"
    return None if request.decompose else "no subquestions"


def table_route(routed: Routed, settings: Settings) -> Route:
    """The route that the table gives for a question of this type."""
    name = routed.hops.value if routed.hops else routed.type.value
    if routed.unsure or not settings.routing.adaptive:
        name = _UNSURE_ROW
    row = settings.routing.types.row(name)
    planner = PlannerName(row.planner)
    if planner in _SPLITS and settings.decomposition.max_total_leaves == 1:
        planner = PlannerName.ORIGINAL  # only the question itself fits
    strategy = row.strategy or settings.search.strategy
    return _route(routed, name, planner, strategy if row.post is None else f"{strategy}/{name}", row.aggregator)


def requested_route(request: JobRequest, routed: Routed, settings: Settings) -> Route:
    """The route that the request decides: with its own leaves or its own strategy, and always with a search.

    A request that names only its strategy is planned as the row unsure says. A plan whose entries wait for each other
    is answered by the row multi_hop, one for a question with several aspects by the row aspects.
    """
    chained = any(entry.depends_on for entry in request.subqueries)
    name = _UNSURE_ROW
    if chained:
        name = Hops.MULTI_HOP.value
    elif request.subqueries and routed.hops is Hops.ASPECTS:
        name = Hops.ASPECTS.value
    table = settings.routing.types
    row, planner = table.row(name), PlannerName(table.unsure.planner)
    if planner in _IGNORES_STRATEGY:
        planner = PlannerName.DECOMPOSE
    if not request.decompose or settings.decomposition.max_total_leaves == 1:
        planner = PlannerName.ORIGINAL
    if request.typed or request.subqueries:
        planner = PlannerName.REQUEST
    return _route(routed, name, planner, asked_strategy(request) or settings.search.strategy, row.aggregator)


def _route(routed: Routed, row: str, planner: PlannerName, strategy: str, aggregator: str) -> Route:
    return Route(**dict(routed), row=row, planner=planner, strategy=strategy, aggregator=aggregator)
