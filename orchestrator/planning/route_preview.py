"""A question's route before anything is run: needs no stack."""

from __future__ import annotations

from contextlib import nullcontext

from orchestrator.planning.route import route_request
from shared.models import Cost, JobRequest
from shared.models.route import Route
from shared.providers.llm.client import ChatClient
from shared.settings import Settings

#: Seconds in which the LLM may break a tie of the router.
_LLM_TIMEOUT_S = 20.0


class RoutePreview(Route):
    """How a question would be answered, and what finding that out has cost just now."""

    question: str
    cost: Cost = Cost()


def route_preview(request: JobRequest, settings: Settings, *, llm: bool) -> RoutePreview:
    """How `request` would be answered; with `llm` the LLM is asked where the rules are unsure."""
    with ChatClient(settings) if llm and settings.has_llm else nullcontext() as client:
        found, cost = route_request(request, settings, client, min(_LLM_TIMEOUT_S, settings.llm_timeout_s))
    return RoutePreview(**dict(found), question=request.question, cost=cost)
