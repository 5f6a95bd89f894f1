"""Runs questions in a search process of our own: no stack, no Redis, no cache. Speaks its JSON lines, no more."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pydantic import ConfigDict, ValidationError

from orchestrator.evaluation.conversation import Conversation
from orchestrator.evaluation.dataset import LabelledCorpus
from orchestrator.evaluation.eval_folder import IndexFolder, corpus_copy, eval_dir, index_folder
from orchestrator.evaluation.runner import ArmOutcome, Asked, Building, Runner, distinct
from orchestrator.local.commands import environment
from orchestrator.planning.route import routed_way
from shared.errors import InputError, RamifyError
from shared.language.routing import route_by_rules
from shared.models import Cost
from shared.models.base import Model
from shared.models.route import PlannerName
from shared.settings import Settings
from shared.settings.strategies import ADAPTIVE

#: `workers` is not imported here: it is a program that is started.
COMMAND = (sys.executable, "-m", "workers.direct")
_NAME = "the search process"
#: Seconds without a word while an index is built: a large one is tidied in one long step.
_BUILD_SILENCE_S = 1800.0
NOT_RETRIEVED = "read as a question that needs no retrieval, so nothing was searched."
DIRECT_ONLY = (
    f"{ADAPTIVE}: without the stack only the strategy is taken from the routing table, by its rules; planners "
    "(decomposition, binding, enumeration) and the LLM's reading run on the stack."
)


class _Line(Model):
    """What a line may be; fields that we do not know are for later releases."""

    model_config = ConfigDict(frozen=True, extra="ignore")


LineT = TypeVar("LineT", bound=_Line)


class _Progress(_Line):
    done: int = 0
    total: int | None = None


class OpenedIndex(_Line):
    """The index that is searched: built now, or kept from before."""

    documents: int
    chunks: int
    built: bool = False
    seconds: float = 0.0


class _Opening(_Line):
    progress: _Progress | None = None
    opened: OpenedIndex | None = None
    error: str | None = None
    bad_input: bool = False


class _Reply(_Line):
    documents: tuple[str, ...] = ()
    ms: float = 0.0
    cost: Cost = Cost()
    warnings: tuple[str, ...] = ()
    error: str | None = None


class DirectRunner:
    """A Runner. One question at a time; each strategy is asked once before its times count, which loads its models."""

    mode = "direct"
    warnings: tuple[str, ...] = ()

    def __init__(self, child: Conversation, opened: OpenedIndex, patience_s: float) -> None:
        self._child, self.opened, self._patience_s = child, opened, patience_s
        self._warm: set[str] = set()

    def answers(self, asked: Iterable[Asked]) -> Iterator[ArmOutcome]:
        """As the Runner says. Raises: RamifyError when the process ends, hangs or cannot be understood."""
        for question in asked:
            if (runs := question.runs or question.strategy) not in self._warm:
                self._ask(question)
                self._warm.add(runs)
            yield self._ask(question)

    def _ask(self, asked: Asked) -> ArmOutcome:
        entries = [entry.model_dump(mode="json") for entry in asked.subqueries]
        plan = {"subqueries": entries} if entries else {}
        runs = asked.runs or asked.strategy
        self._child.say({"question": asked.text, "strategy": runs, "limit": asked.limit, **plan})
        reply = _understood(_Reply, self._child.hear(self._patience_s))
        return ArmOutcome(
            question_id=asked.question_id,
            strategy=asked.strategy,
            documents=distinct(reply.documents),
            ms=reply.ms,
            cost=reply.cost,
            warnings=reply.warnings,
            error=reply.error,
        )


@contextmanager
def direct(
    corpus: LabelledCorpus, settings: Settings, building: Building, *, rebuild: bool = False
) -> Iterator[DirectRunner]:
    """A runner over the corpus's kept index, which is built first where there is none.

    Raises: InputError and RamifyError when it cannot be built or opened.
    """
    kept = eval_dir(settings)
    log = kept / "direct.log"
    with (
        index_folder(corpus, settings) as folder,
        Conversation(_NAME, COMMAND, environment(settings), log) as child,
    ):
        opened = _open(child, corpus_copy(corpus, kept), folder, building, rebuild=rebuild)
        yield DirectRunner(child, opened, settings.jobs.deadline_s)


def _open(child: Conversation, corpus: Path, folder: IndexFolder, building: Building, *, rebuild: bool) -> OpenedIndex:
    """Have the index opened. What an interrupted build left is built anew."""
    fresh = rebuild or not folder.whole
    if fresh:
        folder.started()
    child.say({"open": {"folder": str(folder.path), "corpus": str(corpus), "rebuild": fresh}})
    while True:
        said = _understood(_Opening, child.hear(_BUILD_SILENCE_S))
        if said.error is not None:
            error = RamifyError(f"the corpus cannot be indexed: {said.error}")
            error.exit_code = InputError.exit_code if said.bad_input else error.exit_code
            raise error
        if said.opened is not None:
            folder.finished(said.opened.documents, said.opened.chunks)
            return said.opened
        if said.progress is not None:
            building(said.progress.done, said.progress.total)


def _understood(kind: type[LineT], message: dict[str, object]) -> LineT:
    try:
        return kind.model_validate(message)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise RamifyError(f"{_NAME} answered in a form that is not known here ({where}: {fault['msg']})") from None


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

    def answers(self, asked: Iterable[Asked]) -> Iterator[ArmOutcome]:
        """As the Runner says; questions that their row does not search are found nothing for."""
        skipped: list[ArmOutcome] = []
        for found in self._runner.answers(self._chosen(asked, skipped)):
            yield from _drained(skipped)
            yield found
        yield from _drained(skipped)

    def _chosen(self, asked: Iterable[Asked], skipped: list[ArmOutcome]) -> Iterator[Asked]:
        for one in asked:
            choice = choose(one.text, self._settings) if one.strategy == ADAPTIVE else None
            if choice is not None and not choice.retrieve:
                skipped.append(ArmOutcome(question_id=one.question_id, strategy=ADAPTIVE, warnings=(NOT_RETRIEVED,)))
            else:
                yield one.model_copy(update={"runs": choice.strategy}) if choice else one


def _drained(found: list[ArmOutcome]) -> Iterator[ArmOutcome]:
    while found:
        yield found.pop(0)
