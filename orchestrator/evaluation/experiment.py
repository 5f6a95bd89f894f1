"""Asks every question of every arm, in turns, and gathers what was found. Knows no runner and no figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from orchestrator.evaluation.dataset import LabelledQuestion
from orchestrator.evaluation.measures import DEPTH
from orchestrator.evaluation.runner import Asked, Found, Runner
from shared.errors import RamifyError
from shared.models import Plan

#: An arm whose first answers are all errors is not asked on: it is misconfigured, not unlucky.
_FIRST = 3


def run_arms(
    runner: Runner,
    questions: Sequence[LabelledQuestion],
    strategies: Sequence[str],
    plans: Mapping[str, Plan],
    done: Callable[[], None],
) -> dict[str, list[Found]]:
    """Strategy -> its outcomes in the order of the questions. `done` is called after each.

    Raises: RamifyError when the first three questions of an arm fail, or as the runner does.
    """
    found: dict[str, dict[str, Found]] = {name: {} for name in strategies}
    tried = min(_FIRST, len(questions))
    for outcome in runner.answers(_in_turns(questions, strategies, plans)):
        arm = found[outcome.strategy]
        arm[outcome.question_id] = outcome
        if len(arm) == tried and all(one.error for one in arm.values()):
            raise RamifyError(f"strategy {outcome.strategy} fails on its first questions: {outcome.error}")
        done()
    return {name: [_of(arm, name, question.id) for question in questions] for name, arm in found.items()}


def _of(arm: Mapping[str, Found], strategy: str, question_id: str) -> Found:
    return arm.get(question_id) or Found(question_id=question_id, strategy=strategy, error="there was no answer")


def _in_turns(
    questions: Sequence[LabelledQuestion], strategies: Sequence[str], plans: Mapping[str, Plan]
) -> Iterator[Asked]:
    """Each question to all arms, a different arm first each time: no arm always pays for cold caches or a busy hour."""
    for number, question in enumerate(questions):
        first = number % len(strategies)
        for strategy in (*strategies[first:], *strategies[:first]):
            yield Asked(
                question_id=question.id,
                text=question.text,
                strategy=strategy,
                subqueries=plans.get(question.id, ()),
                limit=DEPTH,
            )
