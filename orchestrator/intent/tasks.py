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


@cache
def _analyst() -> Analyst:
    settings: Settings = app.conf.ramify
    return Analyst(ChatClient(settings) if settings.has_llm else None)


@remote(app, TaskName.PLAN_INTENT, ignore_result=False)
def intent(raw: dict[str, Any]) -> str:
    """Returns an IntentReply as JSON; faults are told in it, never raised."""
    try:
        request = IntentRequest.model_validate(raw)
        return IntentReply(intent=_analyst().analyse(request.query, request.session, INTENT_S)).model_dump_json()
    except (RamifyError, ValidationError) as error:
        return IntentReply(error=str(error)).model_dump_json()
