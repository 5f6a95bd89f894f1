"""Places that all callers share: what one key and one tenant may take of them."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from orchestrator.access.caller import LOCAL, Caller
from orchestrator.access.places import Places
from shared.errors import TooManyRequestsError


def caller(key_id: str, tenant: str) -> Caller:
    return Caller(tenant=tenant, key_id=key_id, remote=True)


def fill(places: Places, stack: ExitStack, who: Caller) -> int:
    """How many this caller gets."""
    taken = 0
    try:
        while True:
            stack.enter_context(places.take(who))
            taken += 1
    except TooManyRequestsError:
        return taken


def test_given_keys_of_two_tenants_when_one_takes_all_it_gets_then_the_other_still_finds_places() -> None:
    places = Places(16, "all taken", 5.0)
    with ExitStack() as stack:
        taken = [fill(places, stack, caller(key, "evil")) for key in ("e1", "e2", "e3")]
        assert taken == [4, 4, 0]
        assert fill(places, stack, caller("a1", "acme")) == 4
    assert places.taken == 0
    with places.take(caller("e1", "evil")):
        assert places.taken == 1


def test_given_no_key_when_taken_then_all_places_are_there_and_few_ones_are_not_parted() -> None:
    with ExitStack() as stack:
        assert fill(Places(16, "all taken", 5.0), stack, LOCAL) == 16
        assert fill(Places(2, "all taken", 5.0), stack, caller("e1", "evil")) == 2


def test_given_a_share_that_is_taken_when_asked_then_the_reason_says_whose() -> None:
    places, evil = Places(12, "all taken", 5.0), caller("e1", "evil")
    with ExitStack() as stack:
        fill(places, stack, evil)
        with pytest.raises(TooManyRequestsError, match="this key has 3") as refused:
            stack.enter_context(places.take(evil))
        assert refused.value.retry_after == 5.0
