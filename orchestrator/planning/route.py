"""From how a question is read to the way it is answered: the row of the table that applies. Pure; asks nobody."""

from __future__ import annotations

from shared.models import JobRequest
from shared.models.route import Hops, PlannerName, Route, Routed
from shared.settings import Settings
from shared.settings.strategies import asked_strategy

UNSURE = "unsure"
_SPLITS = frozenset({PlannerName.DECOMPOSE, PlannerName.NESTED})
#: Planners that do not go with a strategy that the request names.
_SEARCHES_ITS_OWN_WAY = frozenset({PlannerName.NONE, PlannerName.ENUMERATION})


def decided(request: JobRequest) -> str | None:
    """What of the request decides how it is answered, in a few words; None when its question does."""
    if request.typed:
        return "its typed queries"
    if request.subqueries:
        return "its own plan"
    if strategy := asked_strategy(request):
        return f"strategy {strategy}"
    return None if request.decompose else "no subquestions"


def row_of(routed: Routed) -> str:
    """The row for a question that is read so."""
    if routed.unsure:
        return UNSURE
    return routed.hops.value if routed.hops else routed.type.value


def routed_way(routed: Routed, settings: Settings) -> Route:
    """The way that the table gives for a question that is read so."""
    name = row_of(routed) if settings.routing.adaptive else UNSURE
    row = settings.routing.types.row(name)
    planner = PlannerName(row.planner)
    if planner in _SPLITS and settings.decomposition.max_total_leaves == 1:
        planner = PlannerName.ORIGINAL  # only the question itself fits
    strategy = row.strategy or settings.search.strategy
    return _route(routed, name, planner, strategy if row.post is None else f"{strategy}/{name}", row.aggregator)


def requested_way(request: JobRequest, routed: Routed, settings: Settings) -> Route:
    """The way that the request decides: its own leaves, its own strategy, something is always searched.

    A request that names only its strategy is planned as the row unsure says. A plan whose entries wait for each other
    is told like a question with several hops, one for a question with several aspects like such a question.
    """
    chained = any(entry.depends_on for entry in request.subqueries)
    name = UNSURE
    if chained:
        name = Hops.MULTI_HOP.value
    elif request.subqueries and routed.hops is Hops.ASPECTS:
        name = Hops.ASPECTS.value
    table = settings.routing.types
    row, planner = table.row(name), PlannerName(table.unsure.planner)
    if planner in _SEARCHES_ITS_OWN_WAY:
        planner = PlannerName.DECOMPOSE
    if not request.decompose or settings.decomposition.max_total_leaves == 1:
        planner = PlannerName.ORIGINAL
    if request.typed or request.subqueries:
        planner = PlannerName.REQUEST
    return _route(routed, name, planner, asked_strategy(request) or settings.search.strategy, row.aggregator)


def _route(routed: Routed, row: str, planner: PlannerName, strategy: str, aggregator: str) -> Route:
    return Route(**dict(routed), row=row, planner=planner, strategy=strategy, aggregator=aggregator)
