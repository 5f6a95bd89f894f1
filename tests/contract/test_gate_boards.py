"""One set of rules on both boards of the gates: in Redis, by Lua scripts, and in a process of its own."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
import redis

from shared.gates.board import REMEMBERED_MS, Answer, Ask, Board, Outcome, Report, Terms, Verdict
from shared.gates.local_board import LocalBoard
from shared.gates.shared_board import SharedBoard, key_of

NAME = "llm:127.0.0.1:8000"
KEY = "ramify:gate:{llm:127.0.0.1:8000}"
#: Times are moved, not waited for; a second more or less is the machine's.
#: A wait is told in whole milliseconds, rounded up.
ROUNDED = 1
TERMS = Terms(0, 10, failures=3, first_open=10_000, longest_open=30_000, first_pause=6_000, longest_pause=20_000)
LATE = 1000
TIMES = ("tat", "pause_until", "failed_at", "opened_at", "open_until", "probe_until")


class MovedLocal(LocalBoard):
    """A local board whose time can be moved."""

    def __init__(self) -> None:
        super().__init__(lambda: time.time() * 1000 + self.shift)
        self.shift = 0.0

    def advance(self, ms: float) -> None:
        self.shift += ms


class MovedShared(SharedBoard):
    """A shared board whose time is moved by moving the times in Redis."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__(client)
        self.client, self.shift = client, 0.0

    def advance(self, ms: float) -> None:
        self.shift += ms
        if 0 <= self.client.pttl(KEY) < ms:
            self.client.delete(KEY)
        for name in TIMES:
            if (value := self.client.hget(KEY, name)) is not None:
                self.client.hset(KEY, name, f"{float(value) - ms:.3f}")
        if self.client.pttl(KEY) > 0:
            self.client.pexpire(KEY, int(self.client.pttl(KEY) - ms))

    def now(self) -> float:
        """What its time is, in ms."""
        seconds, micros = self.client.time()
        return seconds * 1000 + micros / 1000 + self.shift


Moved = MovedLocal | MovedShared


@pytest.fixture(params=["local", "shared"])
def board(request: pytest.FixtureRequest) -> Moved:
    return MovedLocal() if request.param == "local" else MovedShared(request.getfixturevalue("client"))


def enter(board: Board, caller: str = "a", *, terms: Terms = TERMS, left: float = 0, turn: bool = False) -> Answer:
    return board.enter(NAME, terms, Ask(caller, lease=10_000, left=left, turn=turn))


def fail(board: Board, times: int = 1, caller: str = "a", why: str = "answered 500") -> list[str]:
    return [board.leave(NAME, TERMS, Report(Outcome.FAILED, caller, why=why)) for _ in range(times)]


def end(board: Board, outcome: Outcome, caller: str = "a", pause: float = 0) -> str:
    return board.leave(NAME, TERMS, Report(outcome, caller, pause))


def test_given_nothing_known_then_calls_go_and_success_need_not_be_told(board: Moved) -> None:
    assert enter(board) == Answer(Verdict.GO)


def test_given_failures_in_a_row_then_it_opens_and_says_what_failed_last(board: Moved) -> None:
    before = time.time() * 1000
    assert fail(board, 3, why="fiel um 错误") == ["", "", "opened"]

    answer = enter(board)

    assert (answer.verdict, answer.span, answer.failures, answer.why) == (Verdict.OPEN, 10_000, 3, "fiel um 错误")
    assert 10_000 - LATE < answer.wait <= 10_000 + ROUNDED
    assert before + 9_900 < answer.until < before + 10_000 + LATE


def test_given_a_success_between_failures_then_it_does_not_open(board: Moved) -> None:
    assert fail(board, 2) == ["", ""]
    assert enter(board).watched
    assert end(board, Outcome.ANSWERED) == ""
    assert fail(board, 2) == ["", ""]
    assert enter(board).verdict is Verdict.GO


def test_given_an_opening_that_is_over_then_one_probe_goes_and_its_success_closes(board: Moved) -> None:
    fail(board, 3)
    board.advance(10_001)

    answers = [enter(board, caller) for caller in "abc"]

    assert [(answer.verdict, answer.probe) for answer in answers] == [
        (Verdict.GO, True), (Verdict.PROBING, False), (Verdict.PROBING, False),
    ]  # fmt: skip
    assert answers[1].why == "answered 500"
    assert end(board, Outcome.ANSWERED, "a") == "closed"
    assert enter(board, "b") == Answer(Verdict.GO)


def test_given_a_probe_that_fails_then_it_opens_for_twice_as_long_up_to_the_most(board: Moved) -> None:
    fail(board, 3)
    spans = []
    for _ in range(3):
        board.advance(enter(board).wait + 1)
        assert enter(board, "p").probe
        assert fail(board, caller="p") == ["opened"]
        spans.append(enter(board).span)
    assert spans == [20_000, 30_000, 30_000]


def test_given_a_probe_that_dies_then_its_lease_ends_by_itself(board: Moved) -> None:
    fail(board, 3)
    board.advance(10_001)
    assert enter(board, "dies").probe
    assert enter(board, "next").verdict is Verdict.PROBING
    board.advance(10_001)
    assert enter(board, "next").probe


def test_given_a_probe_that_learnt_nothing_then_the_next_one_probes_at_once(board: Moved) -> None:
    fail(board, 3)
    board.advance(10_001)
    assert enter(board, "short").probe
    assert end(board, Outcome.UNSURE, "other") == ""
    assert enter(board, "next").verdict is Verdict.PROBING
    end(board, Outcome.UNSURE, "short")
    assert enter(board, "next").probe


def test_given_calls_under_way_when_it_opened_then_their_failures_do_not_prolong_it(board: Moved) -> None:
    assert fail(board, 10).count("opened") == 1
    assert enter(board).span == 10_000


def test_given_no_breaker_then_it_never_opens(board: Moved) -> None:
    never = TERMS._replace(failures=0)
    for _ in range(20):
        assert board.leave(NAME, never, Report(Outcome.FAILED, "a", why="x")) == ""
    assert enter(board, terms=never).verdict is Verdict.GO
    fail(board, 3)
    assert enter(board, terms=never).verdict is Verdict.GO, "switched off while it was open"


def test_given_a_pause_that_was_asked_for_then_nobody_goes_before_and_it_has_a_cap(board: Moved) -> None:
    end(board, Outcome.BUSY, pause=8_000)
    answer = enter(board, "other")
    assert answer.verdict is Verdict.PAUSED
    assert 8_000 - LATE < answer.wait <= 8_001
    end(board, Outcome.BUSY, pause=1e12)
    assert 20_000 - LATE < enter(board).wait <= 20_001
    end(board, Outcome.BUSY, pause=1)
    assert 20_000 - LATE < enter(board).wait <= 20_001, "a shorter one does not end a longer one"


def test_given_a_429_without_a_time_then_pauses_grow_once_for_each_and_success_forgets_them(board: Moved) -> None:
    waits = []
    for _ in range(3):
        for _ in range(4):  # four calls were under way
            end(board, Outcome.BUSY)
        waits.append(enter(board).wait)
        board.advance(enter(board).wait + 1)
    for wait, pause in zip(waits, (6_000, 12_000, 20_000), strict=True):
        assert pause - LATE < wait <= pause + 1
    assert enter(board).watched
    end(board, Outcome.ANSWERED)
    end(board, Outcome.BUSY)
    assert enter(board).wait <= 6_001


def test_given_a_429_then_the_breaker_closes_for_it_lives(board: Moved) -> None:
    fail(board, 3)
    assert end(board, Outcome.BUSY) == "closed"
    assert enter(board).verdict is Verdict.PAUSED


def test_given_a_503_with_a_time_then_it_counts_and_pauses(board: Moved) -> None:
    board.leave(NAME, TERMS, Report(Outcome.FAILED, "a", 8_000, "answered 503"))
    assert enter(board).verdict is Verdict.PAUSED
    assert fail(board, 2)[-1] == "opened"


def test_given_a_rate_limit_then_the_burst_goes_and_the_next_are_spaced(board: Moved) -> None:
    limited = TERMS._replace(interval=5_000, burst=3)
    answers = [enter(board, terms=limited, left=100_000) for _ in range(6)]

    assert [answer.verdict for answer in answers] == [Verdict.GO] * 3 + [Verdict.TURN] * 3
    for answer, due in zip(answers[3:], (5_000, 10_000, 15_000), strict=True):
        assert due - LATE < answer.wait <= due
    assert enter(board, terms=limited, turn=True).verdict is Verdict.GO, "who has its turn pays once"


def test_given_a_turn_beyond_the_time_left_then_it_is_refused_and_costs_nothing(board: Moved) -> None:
    limited = TERMS._replace(interval=10_000, burst=1)
    assert enter(board, terms=limited).verdict is Verdict.GO
    waits = [enter(board, terms=limited, left=10) for _ in range(5)]
    assert {answer.verdict for answer in waits} == {Verdict.FULL}
    assert all(10_000 - LATE < answer.wait <= 10_000 + ROUNDED for answer in waits)


def test_given_an_open_breaker_then_no_turn_is_taken(board: Moved) -> None:
    limited = TERMS._replace(interval=10_000, burst=1)
    fail(board, 3)
    for _ in range(5):
        assert enter(board, terms=limited, left=100_000).verdict is Verdict.OPEN
    end(board, Outcome.ANSWERED)
    assert enter(board, terms=limited).verdict is Verdict.GO


def test_given_two_providers_then_they_do_not_mix(board: Moved) -> None:
    fail(board, 3)
    assert board.enter("rerank:127.0.0.1:8000", TERMS, Ask("a", 100, 0)).verdict is Verdict.GO


def test_the_key_has_a_hash_tag_and_every_state_of_it_a_ttl(client: redis.Redis) -> None:
    board = SharedBoard(client)
    assert key_of(NAME) == KEY
    assert f"`{key_of('KIND:HOST')}`" in (Path(__file__).parents[2] / "docs" / "redis.md").read_text(encoding="utf-8")
    enter(board)
    assert not client.exists(KEY), "nothing to remember, nothing written"
    for change in (
        lambda: enter(board, terms=TERMS._replace(interval=50), left=1000),
        lambda: fail(board, 3),
        lambda: end(board, Outcome.BUSY),
        lambda: end(board, Outcome.ANSWERED),
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
    board = SharedBoard(client)
    client.hset(KEY, mapping=nonsense)
    answer = enter(board, terms=TERMS._replace(interval=10), left=1e9)
    assert answer.wait <= 3_600_100
    fail(board, 3)
    end(board, Outcome.BUSY)
    end(board, Outcome.ANSWERED)
    assert enter(board).wait <= 30_001


def test_given_another_type_under_the_key_then_it_is_cleared_away(client: redis.Redis) -> None:
    client.set(KEY, "x")
    assert enter(SharedBoard(client)) == Answer(Verdict.GO)
    client.rpush(KEY, "x")
    assert fail(SharedBoard(client), 3)[-1] == "opened"


@pytest.mark.parametrize("seed", range(12))
def test_given_any_history_then_both_boards_say_the_same(client: redis.Redis, seed: int) -> None:
    """Steps of 7 s never come near a sum of the durations."""
    dice = random.Random(seed)
    terms = Terms(
        20_250, 3, failures=3, first_open=50_500, longest_open=300_500, first_pause=10_500, longest_pause=90_500
    )
    shared = MovedShared(client)
    local = LocalBoard(shared.now)
    seen = set()
    for step in range(250):
        token = dice.choice("abcd")
        if dice.random() < 0.3:
            shared.advance(7000 * dice.randrange(1, 20))
        if dice.random() < 0.5:
            ask = Ask(token, lease=30_500, left=dice.choice([0, 10_250, 1e6]), turn=dice.random() < 0.3)
            ours, theirs = (board.enter(NAME, terms, ask) for board in (local, shared))
            assert ours._replace(wait=0, until=0) == theirs._replace(wait=0, until=0), (seed, step)
            assert abs(ours.wait - theirs.wait) < 1000
            seen.add(ours.verdict)
        else:
            outcome = dice.choice([Outcome.FAILED] * 6 + [Outcome.ANSWERED] * 4 + list(Outcome))
            report = Report(outcome, token, dice.choice([0, 0, 0, 33_500]), "answered 500")
            news = [board.leave(NAME, terms, report) for board in (local, shared)]
            assert news[0] == news[1], (seed, step)
    assert len(seen) >= 4
