"""The rules of the gates, as the Lua scripts hold them in Redis."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import redis

from shared.providers.gates.gate_store import (
    REMEMBERED_MS,
    Admission,
    CallOutcome,
    CallReport,
    GateAnswer,
    GateStore,
    GateVerdict,
    Limits,
    key_of,
)
from tests.shared.providers.gates.moved_store import KEY, NAME, MovedStore

#: A wait is told in whole milliseconds, rounded up.
ROUNDED = 1
LIMITS = Limits(0, 10, failures=3, first_open=10_000, longest_open=30_000, first_pause=6_000, longest_pause=20_000)
#: Times are moved, not waited for; a second more or less is the machine's.
LATE = 1000


@pytest.fixture
def store(client: redis.Redis) -> MovedStore:
    return MovedStore(client)


def enter(
    store: GateStore, caller: str = "a", *, limits: Limits = LIMITS, left: float = 0, turn: bool = False
) -> GateAnswer:
    return store.acquire(NAME, limits, Admission(caller, lease=10_000, left=left, turn=turn))


def fail(store: GateStore, times: int = 1, caller: str = "a", why: str = "answered 500") -> list[str]:
    return [store.release(NAME, LIMITS, CallReport(CallOutcome.FAILED, caller, why=why)) for _ in range(times)]


def end(store: GateStore, outcome: CallOutcome, caller: str = "a", pause: float = 0) -> str:
    return store.release(NAME, LIMITS, CallReport(outcome, caller, pause))


def test_given_nothing_known_then_calls_go_and_success_need_not_be_told(store: MovedStore) -> None:
    assert enter(store) == GateAnswer(GateVerdict.GO)


def test_given_failures_in_a_row_then_it_opens_and_says_what_failed_last(store: MovedStore) -> None:
    before = time.time() * 1000
    assert fail(store, 3, why="fiel um 错误") == ["", "", "opened"]

    answer = enter(store)

    assert (answer.verdict, answer.span, answer.failures, answer.why) == (GateVerdict.OPEN, 10_000, 3, "fiel um 错误")
    assert 10_000 - LATE < answer.wait <= 10_000 + ROUNDED
    assert before + 9_900 < answer.until < before + 10_000 + LATE


def test_given_a_success_between_failures_then_it_does_not_open(store: MovedStore) -> None:
    assert fail(store, 2) == ["", ""]
    assert enter(store).watched
    assert end(store, CallOutcome.ANSWERED) == ""
    assert fail(store, 2) == ["", ""]
    assert enter(store).verdict is GateVerdict.GO


def test_given_an_opening_that_is_over_then_one_probe_goes_and_its_success_closes(store: MovedStore) -> None:
    fail(store, 3)
    store.advance(10_001)

    answers = [enter(store, caller) for caller in "abc"]

    assert [(answer.verdict, answer.probe) for answer in answers] == [
        (GateVerdict.GO, True), (GateVerdict.PROBING, False), (GateVerdict.PROBING, False),
    ]  # fmt: skip
    assert answers[1].why == "answered 500"
    assert end(store, CallOutcome.ANSWERED, "a") == "closed"
    assert enter(store, "b") == GateAnswer(GateVerdict.GO)


def test_given_a_probe_that_fails_then_it_opens_for_twice_as_long_up_to_the_most(store: MovedStore) -> None:
    fail(store, 3)
    spans = []
    for _ in range(3):
        store.advance(enter(store).wait + 1)
        assert enter(store, "p").probe
        assert fail(store, caller="p") == ["opened"]
        spans.append(enter(store).span)
    assert spans == [20_000, 30_000, 30_000]


def test_given_a_probe_that_dies_then_its_lease_ends_by_itself(store: MovedStore) -> None:
    fail(store, 3)
    store.advance(10_001)
    assert enter(store, "dies").probe
    assert enter(store, "next").verdict is GateVerdict.PROBING
    store.advance(10_001)
    assert enter(store, "next").probe


def test_given_a_probe_that_learnt_nothing_then_the_next_one_probes_at_once(store: MovedStore) -> None:
    fail(store, 3)
    store.advance(10_001)
    assert enter(store, "short").probe
    assert end(store, CallOutcome.UNSURE, "other") == ""
    assert enter(store, "next").verdict is GateVerdict.PROBING
    end(store, CallOutcome.UNSURE, "short")
    assert enter(store, "next").probe


def test_given_calls_under_way_when_it_opened_then_their_failures_do_not_prolong_it(store: MovedStore) -> None:
    assert fail(store, 10).count("opened") == 1
    assert enter(store).span == 10_000


def test_given_no_breaker_then_it_never_opens(store: MovedStore) -> None:
    never = LIMITS._replace(failures=0)
    for _ in range(20):
        assert store.release(NAME, never, CallReport(CallOutcome.FAILED, "a", why="x")) == ""
    assert enter(store, limits=never).verdict is GateVerdict.GO
    fail(store, 3)
    assert enter(store, limits=never).verdict is GateVerdict.GO, "switched off while it was open"


def test_given_a_pause_that_was_asked_for_then_nobody_goes_before_and_it_has_a_cap(store: MovedStore) -> None:
    end(store, CallOutcome.BUSY, pause=8_000)
    answer = enter(store, "other")
    assert answer.verdict is GateVerdict.PAUSED
    assert 8_000 - LATE < answer.wait <= 8_001
    end(store, CallOutcome.BUSY, pause=1e12)
    assert 20_000 - LATE < enter(store).wait <= 20_001
    end(store, CallOutcome.BUSY, pause=1)
    assert 20_000 - LATE < enter(store).wait <= 20_001, "a shorter one does not end a longer one"


def test_given_a_429_without_a_time_then_pauses_grow_once_for_each_and_success_forgets_them(store: MovedStore) -> None:
    waits = []
    for _ in range(3):
        for _ in range(4):  # four calls were under way
            end(store, CallOutcome.BUSY)
        waits.append(enter(store).wait)
        store.advance(enter(store).wait + 1)
    for wait, pause in zip(waits, (6_000, 12_000, 20_000), strict=True):
        assert pause - LATE < wait <= pause + 1
    assert enter(store).watched
    end(store, CallOutcome.ANSWERED)
    end(store, CallOutcome.BUSY)
    assert enter(store).wait <= 6_001


def test_given_a_429_then_the_breaker_closes_for_it_lives(store: MovedStore) -> None:
    fail(store, 3)
    assert end(store, CallOutcome.BUSY) == "closed"
    assert enter(store).verdict is GateVerdict.PAUSED


def test_given_a_503_with_a_time_then_it_counts_and_pauses(store: MovedStore) -> None:
    store.release(NAME, LIMITS, CallReport(CallOutcome.FAILED, "a", 8_000, "answered 503"))
    assert enter(store).verdict is GateVerdict.PAUSED
    assert fail(store, 2)[-1] == "opened"


def test_given_a_rate_limit_then_the_burst_goes_and_the_next_are_spaced(store: MovedStore) -> None:
    limited = LIMITS._replace(interval=5_000, burst=3)
    answers = [enter(store, limits=limited, left=100_000) for _ in range(6)]

    assert [answer.verdict for answer in answers] == [GateVerdict.GO] * 3 + [GateVerdict.TURN] * 3
    for answer, due in zip(answers[3:], (5_000, 10_000, 15_000), strict=True):
        assert due - LATE < answer.wait <= due
    assert enter(store, limits=limited, turn=True).verdict is GateVerdict.GO, "who has its turn pays once"


def test_given_a_turn_beyond_the_time_left_then_it_is_refused_and_costs_nothing(store: MovedStore) -> None:
    limited = LIMITS._replace(interval=10_000, burst=1)
    assert enter(store, limits=limited).verdict is GateVerdict.GO
    waits = [enter(store, limits=limited, left=10) for _ in range(5)]
    assert {answer.verdict for answer in waits} == {GateVerdict.FULL}
    assert all(10_000 - LATE < answer.wait <= 10_000 + ROUNDED for answer in waits)


def test_given_an_open_breaker_then_no_turn_is_taken(store: MovedStore) -> None:
    limited = LIMITS._replace(interval=10_000, burst=1)
    fail(store, 3)
    for _ in range(5):
        assert enter(store, limits=limited, left=100_000).verdict is GateVerdict.OPEN
    end(store, CallOutcome.ANSWERED)
    assert enter(store, limits=limited).verdict is GateVerdict.GO


def test_given_two_providers_then_they_do_not_mix(store: MovedStore) -> None:
    fail(store, 3)
    assert store.acquire("rerank:127.0.0.1:8000", LIMITS, Admission("a", 100, 0)).verdict is GateVerdict.GO


def test_the_key_has_a_hash_tag_and_every_state_of_it_a_ttl(client: redis.Redis) -> None:
    store = GateStore(client)
    assert key_of(NAME) == KEY
    assert f"`{key_of('KIND:HOST')}`" in (Path(__file__).parents[4] / "docs" / "redis.md").read_text(encoding="utf-8")
    enter(store)
    assert not client.exists(KEY), "nothing to remember, nothing written"
    for change in (
        lambda: enter(store, limits=LIMITS._replace(interval=50), left=1000),
        lambda: fail(store, 3),
        lambda: end(store, CallOutcome.BUSY),
        lambda: end(store, CallOutcome.ANSWERED),
    ):
        change()
        assert not client.exists(KEY) or REMEMBERED_MS - LATE < client.pttl(KEY) <= REMEMBERED_MS + 30_001


@pytest.mark.parametrize(
    "nonsense",
    [
        {"open_until": "1e300", "probe_until": "inf", "probe": "x"},
        {"pause_until": "9" * 40, "tat": "nan", "fails": "many", "strikes": "\x00"},
        {"tat": "-5", "trips": "", "why": b"\xff\xfe", "open_until": "abc"},
    ],
)
def test_given_nonsense_in_redis_then_calls_are_held_back_no_longer_than_by_the_rules(
    client: redis.Redis, nonsense: dict[str, str]
) -> None:
    store = GateStore(client)
    client.hset(KEY, mapping=nonsense)
    answer = enter(store, limits=LIMITS._replace(interval=10), left=1e9)
    assert answer.wait <= 3_600_100
    fail(store, 3)
    end(store, CallOutcome.BUSY)
    end(store, CallOutcome.ANSWERED)
    assert enter(store).wait <= 30_001


def test_given_another_type_under_the_key_then_it_is_cleared_away(client: redis.Redis) -> None:
    client.set(KEY, "x")
    assert enter(GateStore(client)) == GateAnswer(GateVerdict.GO)
    client.rpush(KEY, "x")
    assert fail(GateStore(client), 3)[-1] == "opened"
