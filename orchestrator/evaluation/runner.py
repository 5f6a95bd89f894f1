"""What an evaluation asks of whatever runs its questions: the stack, or a process of its own. Runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from pydantic import Field

from shared.models import Cost, Plan
from shared.models.base import Model

#: Called with documents done and their number (None: not known) while an index is built.
Building = Callable[[int, int | None], None]


class Asked(Model):
    """One question for one arm; `subqueries` are its plan, `limit` the documents wanted.

    `strategy` is the arm's name; `runs` the strategy that stands for it where the arm is `adaptive`.
    """

    question_id: str
    text: str
    strategy: str
    runs: str | None = None
    subqueries: Plan = ()
    limit: int = Field(default=20, ge=1)


class Found(Model):
    """What came of it: document ids, best first, each once; or `error`, a sentence.

    `ms` is the time of search and merge; `job_ms` the whole job's, waiting included, where there is a job.
    """

    question_id: str
    strategy: str
    documents: tuple[str, ...] = ()
    ms: float = 0.0
    job_ms: float | None = None
    cost: Cost = Cost()
    warnings: tuple[str, ...] = ()
    error: str | None = None


class Runner(Protocol):
    """Runs questions against one corpus."""

    @property
    def mode(self) -> str:
        """For people and reports: "direct" or "pipeline"."""
        ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the figures must know of how they came to be."""
        ...

    def answers(self, asked: Iterable[Asked]) -> Iterator[Found]:
        """An outcome for each, in any order. A question that fails is an outcome with `error`.

        Raises: RamifyError when nothing more can be asked.
        """
        ...


def distinct(documents: Iterable[str]) -> tuple[str, ...]:
    """Each document once, where it first stands: a document ranks as its best chunk does."""
    return tuple(dict.fromkeys(documents))
