"""The aggregators that answers can be made by: our own, and those of plugins."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from shared.plugins import AGGREGATORS, plugins, run_of, why
from workers.merge.aggregators import BUILT_IN, Aggregator


@cache
def all_known() -> Mapping[str, Aggregator]:
    """By name; our own go before those of plugins. One that cannot be loaded is left out, and told as such."""
    found: dict[str, Aggregator] = {}
    for name, (entry, plugin) in list(plugins().loaded[AGGREGATORS].items()):
        try:
            found[name] = Aggregator(run_of(plugin), plugin.options)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - any fault of a plugin is its own
            plugins().refuse(entry, why(error))
    return {**found, **BUILT_IN}
