"""The dialogue with the LLM: one re-ask with the fault named, then the rules; warnings and cost at every turn."""

from __future__ import annotations

import pytest

from orchestrator.planning.planner import decompose
from shared.errors import PermanentError, ReplyError, TransientError
from shared.models import Cost, Facet
from shared.providers.llm.client import LLMReply, usable

QUESTION = "如何优化数据库查询性能"
GOOD = (
    "<decomposition><subquery><dimension>core</dimension><query>慢查询有哪些常见原因？</query>"
    "<needs_refinement>true</needs_refinement></subquery></decomposition>"
)


class ScriptedLLM:
    """Gives the scripted replies or raises the scripted errors, and keeps what it was asked."""

    def __init__(self, *script):
        self.script, self.asked = list(script), []

    def complete(self, prompt, *, timeout_s, max_tokens=None, check=None):
        self.asked.append((prompt, timeout_s))
        step = self.script.pop(0)
        if isinstance(step, Exception):
            raise step
        return usable(LLMReply(text=step, tokens_in=100, tokens_out=20, calls=1), check)


def failed(error, calls):
    error.spent = LLMReply(text="", calls=calls)
    return error


def test_given_no_llm_when_decomposed_then_the_rules_do_it_without_a_warning():
    decomposition, cost = decompose(QUESTION, 5, None, 10)
    assert (decomposition.by, decomposition.warnings, len(decomposition.subqueries)) == ("rules", (), 5)
    assert not cost


def test_given_a_good_reply_when_decomposed_then_it_is_taken():
    llm = ScriptedLLM(GOOD)
    decomposition, cost = decompose(QUESTION, 5, llm, 10)
    assert (decomposition.by, decomposition.warnings) == ("llm", ())
    assert [(s.dimension, s.needs_refinement) for s in decomposition.subqueries] == [(Facet.CORE, True)]
    assert cost == Cost(llm_calls=1, llm_tokens_in=100, llm_tokens_out=20)
    assert QUESTION in llm.asked[0][0]


def test_given_a_bad_reply_when_decomposed_then_the_second_ask_names_the_fault():
    llm = ScriptedLLM("I cannot help.", GOOD)
    decomposition, cost = decompose(QUESTION, 5, llm, 10)
    assert decomposition.by == "llm"
    assert "once more" in decomposition.warnings[0]
    assert cost.llm_calls == 2
    assert cost.llm_tokens_in == 200
    first, again = (prompt for prompt, _ in llm.asked)
    assert again != first
    assert "decomposition" in again[len(first) - 200 :]


def test_given_two_asks_when_decomposed_then_they_share_the_time():
    llm = ScriptedLLM("nothing", GOOD)
    decompose(QUESTION, 5, llm, 10)
    first, second = (timeout for _, timeout in llm.asked)
    assert second <= first <= 10


@pytest.mark.parametrize("script", [("nothing", "nothing"), (ReplyError("no choices"), "nothing")])
def test_given_two_bad_replies_when_decomposed_then_the_rules_do_it_with_a_warning(script):
    decomposition, cost = decompose(QUESTION, 5, ScriptedLLM(*script), 10)
    assert (decomposition.by, len(decomposition.subqueries)) == ("rules", 5)
    assert "second ask" in decomposition.warnings[0]
    assert "by rules" in decomposition.warnings[0]
    assert cost.llm_calls >= 1


@pytest.mark.parametrize("error", [TransientError("the LLM server is busy"), PermanentError("the key was refused")])
@pytest.mark.parametrize("before", [(), ("nothing",)])
def test_given_a_failing_llm_when_decomposed_then_the_rules_do_it_and_the_tries_are_counted(error, before):
    llm = ScriptedLLM(*before, failed(error, calls=3))
    decomposition, cost = decompose(QUESTION, 5, llm, 10)
    assert decomposition.by == "rules"
    assert str(error) in decomposition.warnings[0]
    assert cost.llm_calls == 3 + len(before)
    assert len(llm.asked) == 1 + len(before)


def test_given_no_time_when_decomposed_then_the_llm_is_not_asked():
    llm = ScriptedLLM(GOOD)
    decomposition, cost = decompose(QUESTION, 5, llm, 0)
    assert decomposition.by == "rules"
    assert "no time" in decomposition.warnings[0]
    assert not cost
    assert llm.asked == []


def test_given_more_subqueries_than_allowed_when_decomposed_then_it_asks_again():
    crowd = GOOD.replace("</decomposition>", "") + GOOD.replace("<decomposition>", "").replace("原因", "方法")
    llm = ScriptedLLM(crowd, GOOD)
    decomposition, _ = decompose(QUESTION, 1, llm, 10)
    assert len(llm.asked) == 2
    assert len(decomposition.subqueries) == 1
