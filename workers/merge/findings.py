"""What an aggregator gets and gives. Values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import BaseModel

from shared.models import Cost, LeafResult, MergedPool, Node, Summary
from shared.models.answer import ReasoningStep
from shared.models.base import Model
from shared.models.enumeration import ListTable
from shared.models.route import Routed
from shared.providers.llm.client import LLM
from shared.providers.verifiers import Verifier


@dataclass(frozen=True, slots=True)
class Findings:
    """All that a job has found. `pool` is in its final order; `[n]` in any text is its n-th hit.

    `nodes` holds the whole tree with the root "0"; `leaves` every leaf, those that failed or never answered too.
    `table` is the complete list of an enumeration. `llm` None: no text by an LLM is wanted or possible.
    `timeout_s` is what is left of the job's time, in seconds. `prompt_tokens`: of a prompt at most, `sources_tokens` of
    the sources in it. `mark_unsupported`: sentences of the LLM that its sources do not say stay, with a mark.
    `verifier` is asked about at most `verifier_limit` of them in `verifier_s` seconds.
    """

    question: str
    pool: MergedPool
    nodes: Mapping[str, Node]
    leaves: Sequence[LeafResult]
    routed: Routed
    table: ListTable | None = None
    llm: LLM | None = None
    timeout_s: float = 0.0
    prompt_tokens: int = 12_000
    sources_tokens: int = 9_600
    mark_unsupported: bool = False
    verifier: Verifier | None = None
    verifier_limit: int = 12
    verifier_s: float = 20.0


class Aggregated(Model):
    """What the answer holds beside the results: text, steps or a table, costs, and what went wrong."""

    summary: Summary
    steps: tuple[ReasoningStep, ...] = ()
    table: ListTable | None = None
    cost: Cost = Cost()
    warnings: tuple[str, ...] = ()


class Aggregator(NamedTuple):
    """`run(findings, options)` makes the answer; `options` is the schema of its options, each with a default.

    It never raises for a fault of the LLM, and does nothing but read what was found.
    """

    run: Callable[[Findings, Any], Aggregated]
    options: type[BaseModel]
