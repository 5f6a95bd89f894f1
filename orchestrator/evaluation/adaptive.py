"""The arm `adaptive` where no stack decides: each question with the strategy of its row in the routing table (E2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from orchestrator.evaluation.runner import Asked, Found, Runner
from orchestrator.planning.route import routed_way
from shared.models.base import Model
from shared.models.route import PlannerName
from shared.routing import route_by_rules
from shared.settings import Settings
from shared.settings.strategies import ADAPTIVE

NOT_RETRIEVED = "read as a question that needs no retrieval, so nothing was searched."
DIRECT_ONLY = (
    f"{ADAPTIVE}: without the stack only the strategy is taken from the routing table, by its rules; planners "
    "(decomposition, binding, enumeration) and the LLM's reading run on the stack."
)


class Choice(Model):
    """The strategy of the row that applies; `retrieve` False: the row searches nothing."""

    strategy: str
    retrieve: bool = True


def choose(question: str, settings: Settings) -> Choice:
    """What the rules and the table say of a question. Pure; asks no LLM."""
    way = routed_way(route_by_rules(question, settings.routing.unsure_below), settings)
    return Choice(strategy=way.strategy, retrieve=way.planner is not PlannerName.NONE)


class Adaptive:
    """A Runner before another one: chooses for the questions of the arm `adaptive`, hands on the others as they are."""

    def __init__(self, runner: Runner, settings: Settings) -> None:
        self._runner, self._settings = runner, settings

    @property
    def mode(self) -> str:
        """The other runner's."""
        return self._runner.mode

    @property
    def warnings(self) -> tuple[str, ...]:
        """The other runner's, and that only a part of the table is followed."""
        return (*self._runner.warnings, DIRECT_ONLY)

    def answers(self, asked: Iterable[Asked]) -> Iterator[Found]:
        """As the Runner says; questions that their row does not search are found nothing for."""
        skipped: list[Found] = []
        for found in self._runner.answers(self._chosen(asked, skipped)):
            yield from _drained(skipped)
            yield found
        yield from _drained(skipped)

    def _chosen(self, asked: Iterable[Asked], skipped: list[Found]) -> Iterator[Asked]:
        for one in asked:
            choice = choose(one.text, self._settings) if one.strategy == ADAPTIVE else None
            if choice is not None and not choice.retrieve:
                skipped.append(Found(question_id=one.question_id, strategy=ADAPTIVE, warnings=(NOT_RETRIEVED,)))
            else:
                yield one.model_copy(update={"runs": choice.strategy}) if choice else one


def _drained(found: list[Found]) -> Iterator[Found]:
    while found:
        yield found.pop(0)
