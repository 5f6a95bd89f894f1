"""The plan pool's task for `ramify search`: what a question in a conversation asks to be looked up."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import ValidationError

from orchestrator.app import app
from orchestrator.intent.analysis import Analyst
from shared.contract import TaskName
from shared.errors import RamifyError
from shared.llm.client import ChatClient
from shared.models.find import IntentReply, IntentRequest
from shared.settings import Settings
from shared.steps import remote

#: Seconds for both asks of the LLM together; the rules answer after that.
INTENT_S = 20.0
NO_CALLS = "The queries were made by rules, not by the LLM: budget max_calls = 0 allows none."


@cache
def _analyst(*, llm: bool) -> Analyst:
    settings: Settings = app.conf.ramify
    return Analyst(ChatClient(settings) if llm and settings.has_llm else None)


@remote(app, TaskName.PLAN_INTENT, ignore_result=False)
def intent(raw: dict[str, Any]) -> str:
    """Returns an IntentReply as JSON; faults are told in it, never raised."""
    try:
        request = IntentRequest.model_validate(raw)
        found = _analyst(llm=request.llm).analyse(request.query, request.session, INTENT_S)
        if not request.llm and app.conf.ramify.has_llm and found.retrieval:
            found = found.model_copy(update={"warnings": (*found.warnings, NO_CALLS)})
        return IntentReply(intent=found).model_dump_json()
    except (RamifyError, ValidationError) as error:
        return IntentReply(error=str(error)).model_dump_json()
