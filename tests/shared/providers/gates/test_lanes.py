"""Interactive calls go before batch calls at a rate-limited provider, and batch calls keep a share of it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count

import pytest
import redis

from shared.models import Lane
from shared.providers.gates import GateError
from shared.providers.gates.gate_store import Admission, GateVerdict, limits_of
from shared.providers.lanes import in_lane
from shared.providers.metering import carried
from shared.settings.services import ProviderSettings
from tests.fakes.openai_server import FakeOpenAI
from tests.shared.providers.gates.calls import Make, failure, post
from tests.shared.providers.gates.moved_store import KEY, NAME, MovedStore

INTERVAL = 1500
#: What the machine may add to a wait that is simulated (ms).
LATE = 200


@dataclass
class Caller:
    """One call that waits at the gate as `Gate.admit` does."""

    name: str
    lane: Lane
    gives_up_at: float = 1e9
    turn: bool = False
    ticket: str = ""
    wakes_at: float = 0
    end: GateVerdict | None = None


@dataclass
class Simulation:
    """Callers of one gate, whose time is `now` (ms)."""

    store: MovedStore
    providers: dict[str, object] = field(default_factory=dict)
    now: float = 0
    waiting: list[Caller] = field(default_factory=list)
    went: list[Caller] = field(default_factory=list)

    def __post_init__(self) -> None:
        settings = ProviderSettings.model_validate({"llm": {"requests_per_minute": 40, "burst": 10}, **self.providers})
        self._limits, self._names = limits_of(settings, settings.llm), count()

    def call(self, lane: Lane, left: float = 1e9) -> Caller:
        """Another call, which asks at once."""
        caller = Caller(f"{lane.value}-{next(self._names)}", lane, self.now + left)
        self.waiting.append(caller)
        self._ask(caller)
        return caller

    def run_until(self, done: Callable[[], bool]) -> None:
        """Let those who wait ask again when their time has come, until `done`."""
        while not done():
            nearest = min(self.waiting, key=lambda caller: caller.wakes_at)
            self.advance_to(nearest.wakes_at)
            self._ask(nearest)

    def advance_to(self, at: float) -> None:
        ms = max(0.0, at - self.now)
        self.store.advance(ms)
        for caller in self.waiting:
            if caller.ticket:
                caller.ticket = f"{float(caller.ticket) - ms:.3f}"
        self.now += ms

    def _ask(self, caller: Caller) -> None:
        left = max(0.0, caller.gives_up_at - self.now)
        admission = Admission(caller.name, 1000, left, caller.turn, caller.lane, caller.ticket)
        answer = self.store.acquire(NAME, self._limits, admission)
        caller.wakes_at = self.now + answer.wait
        match answer.verdict:
            case GateVerdict.GO | GateVerdict.FULL as end:
                caller.end = end
                self.waiting.remove(caller)
                if end is GateVerdict.GO:
                    self.went.append(caller)
            case GateVerdict.LINE:
                caller.ticket = answer.ticket
            case GateVerdict.TURN:
                caller.turn = True


@pytest.fixture
def simulation(client: redis.Redis) -> Simulation:
    return Simulation(MovedStore(client))


def batch_of(simulation: Simulation, callers: int) -> list[Caller]:
    return [simulation.call(Lane.BATCH) for _ in range(callers)]


def test_given_a_line_of_batch_calls_then_a_chain_of_interactive_ones_waits_for_one_other_a_call(
    simulation: Simulation,
) -> None:
    """40 requests a minute, and sixty batch calls of which sixteen wait at any time."""
    batch_of(simulation, 60)
    simulation.run_until(lambda: len(simulation.went) == 20)

    for _ in range(6):  # a chain: each call is made when the one before it has gone
        before, mine = len(simulation.went), simulation.call(Lane.INTERACTIVE)
        simulation.run_until(lambda mine=mine: mine.end is not None)
        assert mine.end is GateVerdict.GO
        others = len(simulation.went) - before - 1
        assert others <= 1, f"{mine.name} waited for {others} calls of the batch"
        simulation.advance_to(simulation.now + 700)  # the model answers


def test_given_a_batch_that_has_used_the_burst_then_its_reserve_is_there_for_interactive_calls(
    simulation: Simulation,
) -> None:
    batch_of(simulation, 20)
    assert len(simulation.went) == 8, "a quarter of the burst of ten is kept, rounded down"

    mine = [simulation.call(Lane.INTERACTIVE) for _ in range(3)]

    assert [caller.end for caller in mine] == [GateVerdict.GO, GateVerdict.GO, None]
    assert mine[2].wakes_at - simulation.now <= INTERVAL


def test_given_batch_calls_alone_then_they_get_all_of_the_rate(simulation: Simulation) -> None:
    batch_of(simulation, 60)
    simulation.run_until(lambda: not simulation.waiting)
    assert {caller.end for caller in simulation.went} == {GateVerdict.GO}
    assert abs(simulation.now - 52 * INTERVAL) < LATE, "eight at once, the others one an interval"


def test_given_calls_that_overtake_then_the_line_keeps_its_order_and_loses_no_turn(simulation: Simulation) -> None:
    batch = batch_of(simulation, 30)
    for went in (11, 14, 17, 20):
        simulation.run_until(lambda went=went: len(simulation.went) >= went)
        simulation.call(Lane.INTERACTIVE)
    simulation.run_until(lambda: not simulation.waiting)

    assert [caller for caller in simulation.went if caller.lane is Lane.BATCH] == batch
    assert len(simulation.went) == 34
    assert simulation.now <= (34 - 8) * INTERVAL + LATE


@pytest.mark.parametrize(("share", "least"), [(0.2, 7), (0, 0)])
def test_given_interactive_calls_for_all_of_the_rate_then_the_batch_keeps_its_share(
    client: redis.Redis, share: float, least: int
) -> None:
    simulation = Simulation(MovedStore(client), {"batch_share": share})
    for _ in range(20):
        simulation.call(Lane.INTERACTIVE)
    batch_of(simulation, 20)

    def ended() -> bool:
        while sum(caller.lane is Lane.INTERACTIVE for caller in simulation.waiting) < 5:
            simulation.call(Lane.INTERACTIVE)
        return simulation.now > 60 * INTERVAL

    simulation.run_until(ended)
    went = sum(caller.lane is Lane.BATCH for caller in simulation.went)
    assert least <= went <= share * len(simulation.went) + 1


def test_given_a_call_that_gives_up_in_line_then_its_turn_goes_to_another(simulation: Simulation) -> None:
    batch_of(simulation, 8)
    first = simulation.call(Lane.BATCH, left=INTERVAL + 100)
    batch_of(simulation, 3)
    for _ in range(5):  # they overtake it for longer than it can wait
        simulation.call(Lane.INTERACTIVE)
    simulation.run_until(lambda: first.end is not None)
    assert first.end is GateVerdict.FULL

    last = simulation.call(Lane.BATCH)
    simulation.run_until(lambda: last.end is not None)

    assert len(simulation.went) == 8 + 3 + 5 + 1
    assert simulation.now <= (len(simulation.went) - 10 + 2) * INTERVAL + LATE


def test_given_a_batch_call_that_cannot_wait_so_long_then_it_is_refused_at_once_and_costs_nothing(
    simulation: Simulation,
) -> None:
    batch_of(simulation, 10)
    assert simulation.call(Lane.BATCH, left=2 * INTERVAL).end is GateVerdict.FULL
    waits = [simulation.call(Lane.BATCH, left=4 * INTERVAL).wakes_at for _ in range(2)]
    assert waits == pytest.approx([3 * INTERVAL, 4 * INTERVAL], abs=LATE)


def test_given_a_gate_that_was_deleted_then_those_in_line_go_on(simulation: Simulation, client: redis.Redis) -> None:
    batch_of(simulation, 12)
    client.delete(KEY)
    simulation.run_until(lambda: not simulation.waiting)
    assert len(simulation.went) == 12
    assert simulation.now <= 4 * INTERVAL + LATE


def test_the_lane_of_a_task_reaches_the_gate_also_from_the_threads_of_its_pool(server: FakeOpenAI, make: Make) -> None:
    """A burst of two, one of them kept: a batch call that finds one left must wait, an interactive one goes."""
    worker = make(llm={"requests_per_minute": 1, "burst": 2}, interactive_reserve=0.5)
    with in_lane(Lane.BATCH), ThreadPoolExecutor(1) as threads:
        assert post(worker) == 1
        assert isinstance(threads.submit(carried(lambda: failure(worker, timeout_s=5))).result(), GateError)
    assert post(worker) == 1
    assert len(server.requests()) == 2
