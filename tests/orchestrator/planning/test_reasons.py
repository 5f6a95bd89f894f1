"""Every fallback of the planning notes its reason; rules that nobody asked an LLM for are none."""

from __future__ import annotations

from functools import partial

import pytest

from orchestrator.planning.planner import decompose
from orchestrator.planning.route import read_question_type
from shared.errors import ReplyError, TransientError
from shared.models.degraded import Degradation
from shared.providers.metering import BudgetError
from tests.fakes.scripted_llm import ScriptedLLM
from tests.support.noted import reasons_of

UNSURE = "the queue and its order"
GARBLED = ReplyError("no XML")
GOOD = "<decomposition><subquery><dimension>core</dimension><query>why is it slow?</query></subquery></decomposition>"
Llm = partial(ScriptedLLM, tokens_in=1, tokens_out=1)


@pytest.mark.parametrize(
    ("error", "timeout_s", "reason"),
    [
        (TransientError("no answer"), 9.0, Degradation.LLM_UNAVAILABLE),
        (BudgetError("max_calls is used up"), 9.0, Degradation.OVER_BUDGET),
        (GARBLED, 9.0, Degradation.LLM_REPLY_UNUSABLE),
        (GARBLED, 0.1, Degradation.OUT_OF_TIME),
    ],
)
def test_given_an_llm_that_fails_when_planned_then_its_reason_is_noted(
    error: Exception, timeout_s: float, reason: Degradation
) -> None:
    assert reasons_of(lambda: decompose(UNSURE, 5, Llm(error, error), timeout_s)) == {reason}
    assert reasons_of(lambda: read_question_type(UNSURE, Llm(error), timeout_s, 1.0)) == {reason}


def test_given_no_llm_or_a_second_ask_that_helps_when_planned_then_nothing_is_noted() -> None:
    route = "<route><type>simple_rule</type><intent>general</intent></route>"
    assert reasons_of(lambda: decompose(UNSURE, 5, None, 9.0)) == set()
    assert reasons_of(lambda: read_question_type(UNSURE, None, 9.0, 1.0)) == set()
    assert reasons_of(lambda: decompose(UNSURE, 5, Llm(GARBLED, GOOD), 9.0)) == set()
    assert reasons_of(lambda: read_question_type(UNSURE, Llm(route), 9.0, 1.0)) == set()
