"""The leaf budget: never more leaves than allowed, and the split is a matter of position alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.planning.tree import first_budget, split


@pytest.mark.parametrize(
    ("budget", "wants", "shares"),
    [
        (11, [False] * 5, [1, 1, 1, 1, 1]),
        (11, [True, False, True, False, False], [4, 1, 4, 1, 1]),
        (10, [True, False, True, False, True], [3, 1, 3, 1, 2]),
        (3, [True, True, True, True], [1, 1, 1, 0]),
        (0, [True, False], [0, 0]),
        (5, [], []),
        (4, [True], [4]),
    ],
)
def test_given_wishes_when_split_then_each_gets_one_and_the_rest_goes_to_those_that_refine(budget, wants, shares):
    assert split(budget, wants) == shares


@given(st.integers(-3, 64), st.lists(st.booleans(), max_size=12))
def test_given_any_wishes_when_split_then_the_budget_holds_and_the_first_come_first(budget, wants):
    shares = split(budget, wants)
    assert len(shares) == len(wants)
    assert sum(shares) <= max(0, budget)
    assert sorted((share > 0 for share in shares), reverse=True) == [share > 0 for share in shares]
    refined = [share for share, want in zip(shares, wants, strict=True) if want]
    assert refined == sorted(refined, reverse=True)
    assert not refined or max(refined) - min(refined) <= 1 or min(refined) == 0


def test_given_a_cap_when_the_root_is_budgeted_then_the_original_question_has_its_leaf():
    assert first_budget(12) == 11
    assert first_budget(1) == 0
