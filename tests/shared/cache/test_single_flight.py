"""Single flight within one process: one thread computes, and nobody waits for one that hangs."""

from __future__ import annotations

from shared.cache import SingleFlight
from shared.models import Cost

VALUE = Cost(llm_calls=1)


def test_the_first_opens_the_others_follow_until_it_lands() -> None:
    flights = SingleFlight()
    flight, opened = flights.join("a", 60)
    assert opened
    assert flights.join("a", 60) == (flight, False)
    assert flights.join("b", 60)[1]
    assert not flight.wait(0)
    flights.finish("a", flight, VALUE)
    assert flight.wait(0)
    assert flight.value == VALUE
    assert flights.join("a", 60)[1]


def test_a_flight_that_hangs_is_given_up_and_its_late_landing_harms_nobody() -> None:
    flights = SingleFlight()
    hung, _ = flights.join("a", 60)
    fresh, opened = flights.join("a", -1)
    assert opened
    flights.finish("a", hung, VALUE)
    assert flights.join("a", 60) == (fresh, False)
    assert not fresh.wait(0)
