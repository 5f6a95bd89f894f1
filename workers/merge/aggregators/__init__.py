"""The aggregators, by name: each makes an answer of what a job has found. They never search.

Where one fails, the plain answer is made instead, with a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from shared.errors import shown
from shared.models.degraded import Degradation
from shared.plugins import AGGREGATORS, plugins, run_of, why
from shared.providers.fallbacks import note_reason
from shared.settings import sections as options
from workers.merge.aggregators.reasoning import reasoning
from workers.merge.aggregators.simple import enumeration, simple
from workers.merge.findings import Aggregated, Aggregator, Findings

__all__ = ["BUILT_IN", "SIMPLE", "Aggregated", "Aggregator", "Findings", "aggregate"]

log = logging.getLogger("ramify.aggregators")
SIMPLE = "simple"
BUILT_IN: Mapping[str, Aggregator] = MappingProxyType(
    {
        SIMPLE: Aggregator(simple, options.SimpleAggregator),
        "reasoning": Aggregator(reasoning, options.ReasoningAggregator),
        "enumeration": Aggregator(enumeration, options.EnumerationAggregator),
    }
)


def aggregate(
    name: str, found: Findings, given: Mapping[str, Any], known: Mapping[str, Aggregator] = BUILT_IN
) -> tuple[str, Aggregated]:
    """The name of the aggregator that made the answer, and the answer.

    `given` are the options of aggregator `name`. The plain one is used, with a warning, for a name that is not `known`
    (a job of another release, a plugin that this worker lacks) and for an aggregator that fails.
    """
    chosen = known.get(name)
    reason = f"aggregator {shown(name)} is not known here ({', '.join(sorted(known))} are)"
    if chosen is not None:
        try:
            return name, chosen.run(found, chosen.options.model_validate(given))
        except Exception as error:
            log.exception("aggregator %s failed", name)
            reason = f"aggregator {name} failed ({type(error).__name__}: {shown(str(error))})"
    note_reason(Degradation.PLUGIN_FAILED)
    plain = simple(found, options.SimpleAggregator())
    return SIMPLE, plain.model_copy(update={"warnings": (*plain.warnings, f"The plain answer was made: {reason}.")})


@cache
def all_known() -> Mapping[str, Aggregator]:
    """By name; our own go before those of plugins. A plugin that cannot be loaded is refused with its reason."""
    found: dict[str, Aggregator] = {}
    for name, (entry, plugin) in list(plugins().loaded[AGGREGATORS].items()):
        try:
            found[name] = Aggregator(run_of(plugin), plugin.options)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - any fault of a plugin is its own
            plugins().refuse(entry, why(error))
    return {**found, **BUILT_IN}
