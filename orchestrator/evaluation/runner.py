"""What an evaluation asks of a runner, and in which order: every question of every arm, in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from pydantic import Field

from orchestrator.evaluation.dataset import LabelledQuestion
from orchestrator.evaluation.statistics import DEPTH
from shared.errors import RamifyError
from shared.models import Cost, Plan
from shared.models.base import Model

#: Called with documents done and their number (None: not known) while an index is built.
IndexProgress = Callable[[int, int | None], None]
#: An arm whose first answers are all errors is not asked on: it is misconfigured, not unlucky.
_MIN_TRIED = 3


class ArmQuestion(Model):
    """One question for one arm; `subqueries` are its plan, `limit` the documents wanted.

    `strategy` is the arm's name; `runs` the strategy of the question's type where the arm is `adaptive`.
    """

    question_id: str
    text: str
    strategy: str
    runs: str | None = None
    subqueries: Plan = ()
    limit: int = Field(default=20, ge=1)


class ArmOutcome(Model):
    """What a question gave: document ids, best first, each once; or `error`, a sentence.

    `ms` is the time of search and merge; `job_ms` the whole job's, waiting included, where there is a job. `relevance`:
    the best calibrated score, 0..1, that the reranker gave to a passage of each document.
    """

    question_id: str
    strategy: str
    documents: tuple[str, ...] = ()
    ms: float = 0.0
    job_ms: float | None = None
    cost: Cost = Cost()
    warnings: tuple[str, ...] = ()
    relevance: dict[str, float] = Field(default_factory=dict)
    error: str | None = None


class Runner(Protocol):
    """Runs questions against one corpus."""

    #: For people and reports: "direct" or "pipeline".
    mode: str
    #: What a reader of the figures must know of how they came to be.
    warnings: tuple[str, ...]

    def answers(self, questions: Iterable[ArmQuestion]) -> Iterator[ArmOutcome]:
        """An outcome for each, in any order. A question that fails is an outcome with `error`.

        Raises: RamifyError when nothing more can be asked.
        """
        ...


def distinct(documents: Iterable[str]) -> tuple[str, ...]:
    """Each document once, at its first place: a document ranks as its best chunk does."""
    return tuple(dict.fromkeys(documents))


def run_arms(
    runner: Runner,
    questions: Sequence[LabelledQuestion],
    strategies: Sequence[str],
    plans: Mapping[str, Plan],
    done: Callable[[], None],
) -> dict[str, list[ArmOutcome]]:
    """Strategy -> its outcomes in the order of the questions. `done` is called after each.

    Raises: RamifyError when the first three questions of an arm fail, or as the runner does.
    """
    found: dict[str, dict[str, ArmOutcome]] = {name: {} for name in strategies}
    tried = min(_MIN_TRIED, len(questions))
    for outcome in runner.answers(_in_turns(questions, strategies, plans)):
        arm = found[outcome.strategy]
        arm[outcome.question_id] = outcome
        if len(arm) == tried and all(one.error for one in arm.values()):
            raise RamifyError(f"strategy {outcome.strategy} fails on its first questions: {outcome.error}")
        done()
    return {
        name: [
            arm.get(question.id) or ArmOutcome(question_id=question.id, strategy=name, error="there was no answer")
            for question in questions
        ]
        for name, arm in found.items()
    }


def _in_turns(
    questions: Sequence[LabelledQuestion], strategies: Sequence[str], plans: Mapping[str, Plan]
) -> Iterator[ArmQuestion]:
    """Each question to all arms, a different arm first each time: no arm always pays for cold caches or a busy hour."""
    for number, question in enumerate(questions):
        first = number % len(strategies)
        for strategy in (*strategies[first:], *strategies[:first]):
            yield ArmQuestion(
                question_id=question.id,
                text=question.text,
                strategy=strategy,
                subqueries=plans.get(question.id, ()),
                limit=DEPTH,
            )
