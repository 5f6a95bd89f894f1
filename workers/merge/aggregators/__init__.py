"""What an answer is made by: one function a file, by name in one registry. They read; they never search.

A fault of one never costs the answer: the plain one is made instead, and a warning says why.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from shared.errors import shown
from shared.settings import aggregators as options
from workers.merge.aggregators.base import Aggregated, Aggregator, Findings
from workers.merge.aggregators.enumeration import enumeration
from workers.merge.aggregators.reasoning import reasoning
from workers.merge.aggregators.simple import simple

__all__ = ["BUILT_IN", "SIMPLE", "Aggregated", "Aggregator", "Findings", "aggregate"]

log = logging.getLogger("ramify.aggregators")
SIMPLE = "simple"
BUILT_IN: Mapping[str, Aggregator] = MappingProxyType(
    {
        SIMPLE: Aggregator(simple, options.Simple),
        "reasoning": Aggregator(reasoning, options.Reasoning),
        "enumeration": Aggregator(enumeration, options.Enumeration),
    }
)


def aggregate(
    name: str, found: Findings, given: Mapping[str, Any], known: Mapping[str, Aggregator] = BUILT_IN
) -> tuple[str, Aggregated]:
    """The name of the aggregator that made the answer, and the answer.

    `given` are the options of aggregator `name`. The plain one stands in, with a warning, for a name that is not
    `known` (a job of another release, a plugin that this worker lacks) and for an aggregator that fails.
    """
    chosen = known.get(name)
    if chosen is None:
        return SIMPLE, _simple(found, f"aggregator {shown(name)} is not known here ({', '.join(sorted(known))} are)")
    try:
        return name, chosen.run(found, chosen.options.model_validate(given))
    except Exception as error:
        log.exception("aggregator %s failed", name)
        return SIMPLE, _simple(found, f"aggregator {name} failed ({type(error).__name__}: {shown(str(error))})")


def _simple(found: Findings, reason: str) -> Aggregated:
    plain = simple(found, options.Simple())
    return plain.model_copy(update={"warnings": (*plain.warnings, f"The plain answer was made: {reason}.")})
