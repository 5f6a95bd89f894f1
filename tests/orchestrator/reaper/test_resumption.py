"""How many pieces of work go to a server again in one run of the reaper, as its gate stands."""

from __future__ import annotations

from orchestrator.reaper.resumption import Resumption
from orchestrator.reaper.views import Missing
from shared.contract import TaskName
from shared.providers.gates.state import GateState

WAITED = [Missing(f"0.{number}", TaskName.SEARCH_LEAF, waited_for="llm") for number in range(100)]


def gate(**fields: object) -> GateState:
    return GateState.model_validate({"provider": "llm", "host": "h", **fields})


def sent(resumption: Resumption, *gates: GateState) -> int:
    resumption.begin(gates)
    return len(list(resumption.in_turn(WAITED)))


def test_given_a_server_that_is_back_when_work_goes_to_it_again_then_few_first_and_more_in_each_run() -> None:
    resumption = Resumption()
    assert sent(resumption, gate(state="open", until=9.0)) == 0
    assert sent(resumption, gate(state="half-open")) == 1, "the probe"
    assert sent(resumption, gate(state="half-open", probing=True)) == 0, "it is under way"
    assert [sent(resumption, gate()) for _ in range(6)] == [4, 8, 16, 32, 64, 64]
    assert sent(resumption, gate(failures=1)) == 4, "it fails again"


def test_given_a_pause_or_a_rate_limit_when_work_goes_to_a_server_again_then_no_more_than_may_go() -> None:
    assert sent(Resumption(), gate(requests_per_minute=40, tokens=2)) == 2
    assert sent(Resumption(), gate(requests_per_minute=40, tokens=0)) == 1, "the limit may be used up all night"
    resumption = Resumption()
    assert sent(resumption, gate(paused_until=9.0), gate(provider="rerank")) == 0
    assert resumption.shut == {"llm"}


def test_given_work_that_was_lost_or_goes_on_without_its_server_when_that_is_shut_then_it_is_sent() -> None:
    resumption = Resumption()
    resumption.begin([gate(state="open", until=9.0)])
    others = [Missing("0.1", TaskName.SEARCH_LEAF), Missing("0.2", TaskName.SEARCH_LEAF, waited_for="rerank")]
    assert list(resumption.in_turn([*WAITED, *others])) == others
