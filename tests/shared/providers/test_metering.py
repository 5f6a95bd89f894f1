"""What a call takes of a budget, and how it is reserved and settled, on accounts in memory."""

from __future__ import annotations

import pytest

from shared.providers.metering import (
    BudgetError,
    Call,
    Kind,
    Meter,
    PaidUse,
    Refusal,
    metered,
    paid,
    price,
    token_range,
)
from shared.settings.services import Prices

PRICES = Prices(llm_input={"m": 1.0}, llm_output={"m": 2.0}, embedding={"m": 0.5}, rerank={"m": 3.0})


class Ledger:
    """An account that keeps what is reserved and settled by hold, and refuses once it holds `room` reservations."""

    def __init__(self, of: str = "", *, room: int = 9, counts_money: bool = False) -> None:
        self.of, self.counts_money, self._room = of, counts_money, room
        self.held: dict[str, PaidUse] = {}
        self.settled: list[tuple[str, PaidUse]] = []

    def reserve(self, hold: str, use: PaidUse) -> Refusal | None:
        if len(self.held) >= self._room:
            return Refusal("max_calls", float(self._room), 0)
        self.held[hold] = use
        return None

    def settle(self, hold: str, use: PaidUse) -> None:
        self.settled.append((hold, use))
        del self.held[hold]


@pytest.mark.parametrize(
    ("kind", "use", "nano"),
    [
        ("llm", (1, 1000, 500), 2_000_000),
        ("embedding", (1, 1000, 500), 500_000),
        ("rerank", (2, 1000, 500), 6_000_000),
        ("llm", (1, 0, 0), 0),
    ],
)
def test_each_kind_of_call_has_its_price_in_billionths(kind: Kind, use: tuple[int, int, int], nano: int) -> None:
    """Per million tokens read and written for an LLM, per million read for embedding, per thousand calls for rerank."""
    assert price(PRICES, kind, "m", use) == nano
    assert price(PRICES, kind, "unknown", use) is None


@pytest.mark.parametrize(("kind", "calls"), [("llm", 1), ("embedding", 0), ("rerank", 0)])
def test_only_calls_of_an_llm_count_against_max_calls_while_every_kind_counts_tokens_and_money(
    kind: Kind, calls: int
) -> None:
    use = Meter([], PRICES).use(kind, "m", 1000, 500)
    assert use == PaidUse(calls, 1500, price(PRICES, kind, "m", (1, 1000, 500)))


def test_a_model_without_a_price_is_refused_only_where_money_is_limited() -> None:
    assert Meter([Ledger()], PRICES).use("llm", "unknown", 10, 5) == PaidUse(1, 15, 0)
    limited = Meter([Ledger(), Ledger(counts_money=True)], PRICES)
    with pytest.raises(BudgetError, match="the model 'unknown' has no price"):
        limited.use("llm", "unknown", 10, 5)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [("", 0, 0), ("x" * 24, 2, 12), ("x" * 25, 2, 13), ("字" * 7, 2, 11), ("x" * 12 + "字" * 6, 3, 15)],
)
def test_tokens_are_bounded_by_ascii_and_other_characters(text: str, least: int, most: int) -> None:
    assert token_range(text) == (least, most)


def test_what_a_later_account_refuses_is_given_back_by_the_earlier_ones_alone() -> None:
    job, batch, after = Ledger(), Ledger("the batch's ", room=0), Ledger()
    meter = Meter([job, batch, after], PRICES)
    with pytest.raises(BudgetError, match="the batch's budget max_calls = 0 allows none"):
        meter.reserve(PaidUse(1, 10))
    assert [use for _, use in job.settled] == [PaidUse()]
    assert (job.held, batch.settled, after.settled) == ({}, [], [])


def test_each_reservation_has_a_name_of_its_own_under_which_every_account_settles_it() -> None:
    job, batch = Ledger(), Ledger("the batch's ")
    meter = Meter([job, batch], PRICES)
    one, other = meter.reserve(PaidUse(1, 10)), meter.reserve(PaidUse(1, 20))
    assert one != other
    assert job.held == batch.held == {one: PaidUse(1, 10), other: PaidUse(1, 20)}
    meter.settle(one, PaidUse(1, 3))
    assert job.settled == batch.settled == [(one, PaidUse(1, 3))]
    assert list(job.held) == [other]


def test_a_try_that_failed_is_settled_without_tokens_before_the_next_and_the_last_with_what_it_took() -> None:
    job = Ledger()
    with metered(Meter([job], PRICES)), paid("llm", "m", 100, 50) as call:
        call.next_try()
        (first,) = job.held
        assert job.held[first] == PaidUse(1, 150, 200_000)
        call.next_try()
        (second,) = job.held
        call.settle(10, 5)
        call.settle(99, 99)
    assert job.settled == [(first, PaidUse(1, 0, 0)), (second, PaidUse(1, 15, 20_000))]


def test_a_try_that_nobody_settles_counts_as_a_call_without_tokens() -> None:
    job = Ledger()
    with metered(Meter([job], PRICES)), paid("llm", "m", 100, 50) as call:
        call.next_try()
    assert [use for _, use in job.settled] == [PaidUse(1, 0, 0)]


def test_a_call_that_was_never_tried_settles_nothing() -> None:
    job = Ledger()
    with metered(Meter([job], PRICES)), paid("llm", "m", 100, 50):
        pass
    assert (job.held, job.settled) == ({}, [])


def test_without_a_meter_nothing_is_counted_and_nothing_refused() -> None:
    call = Call(None, "llm", "m", (100, 50))
    call.next_try()
    call.settle(10, 5)
