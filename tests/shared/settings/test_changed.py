"""Settings of one job: what a replay may change of them, and what the pools hold."""

from __future__ import annotations

import pytest

from shared.errors import InputError, SettingsError
from shared.settings import load_settings
from shared.settings.changed import changed, checked_changes


def test_values_are_checked_and_tables_keep_what_was_not_given() -> None:
    changes = checked_changes(
        {
            "multi_query": {"top_n_per_leaf": "9"},
            "routing": {"types": {"aspects": {"strategy": "deep"}}},
            "strategies": {"mine": [{"stage": "lexical"}, {"stage": "fusion"}, {"stage": "limit"}]},
            "enable_summary": "true",
        }
    )
    own = load_settings(multi_query={"min_per_leaf": 1})
    found = changed(own, changes)
    assert (found.multi_query.top_n_per_leaf, found.multi_query.min_per_leaf) == (9, 1)
    assert found.routing.types.aspects.strategy == "deep"
    assert found.routing.types.simple_rule == own.routing.types.simple_rule
    assert [stage.stage for stage in found.strategies["mine"]] == ["lexical", "fusion", "limit"]
    assert found.strategies["deep"] == own.strategies["deep"]
    assert found.enable_summary
    assert changed(own, changes) is found, "every task of a job asks for them"
    assert changed(own, {}) is own


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"redis": {"url": "redis://elsewhere"}}, "redis"),
        ({"llm_model": "other"}, "llm_model"),
        ({"rerank": {"provider": "none"}}, "rerank"),
        ({"search": {"trigrams": False}}, "search.trigrams"),
    ],
)
def test_what_the_pools_hold_is_refused_by_name(given: dict[str, object], named: str) -> None:
    with pytest.raises(InputError, match=f"{named}.*the pools hold it"):
        checked_changes(given)


def test_a_value_that_cannot_be_is_refused_as_in_the_file() -> None:
    with pytest.raises(SettingsError, match=r"multi_query\.top_n_per_leaf"):
        checked_changes({"multi_query": {"top_n_per_leaf": 0}})
    with pytest.raises(SettingsError, match="strategy"):
        checked_changes({"search": {"strategy": "no such"}})
