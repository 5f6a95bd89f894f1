"""`eval`: labelled questions through the engine, several strategies side by side, figures with their uncertainty."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` must not wait for Celery and Qdrant

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, outcome, output
from orchestrator.cli.session import Session, session_of

if TYPE_CHECKING:
    from rich.progress import Progress

    from orchestrator.evaluation.dataset import Dataset
    from orchestrator.evaluation.report import Evaluation
    from orchestrator.evaluation.runner import Runner
    from shared.settings import Settings

#: Seconds between two lines where there is no terminal.
_LINE_S = 10.0


def evaluate(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    dataset: Annotated[
        Path, typer.Argument(metavar="DATASET", help="Folder with corpus.jsonl, queries.jsonl, qrels.tsv (or .gz).")
    ],
    *,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy",
            "-s",
            help="Repeatable (default: search.strategy). adaptive: as the routing table says.",
            show_default=False,
        ),
    ] = None,
    queries: Annotated[Path | None, typer.Option(help="Questions from this file.", show_default=False)] = None,
    qrels: Annotated[Path | None, typer.Option(help="Judgements from this file.", show_default=False)] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N questions.", show_default=False)] = None,
    plan: Annotated[
        str | None,
        typer.Option(metavar="FIELD", help="Subquestions stored with each question: decomposition.filled, say."),
    ] = None,
    relevant_from: Annotated[
        int | None,
        typer.Option(min=1, help="Grade that counts as relevant (default: 1; 2 on scales to 3).", show_default=False),
    ] = None,
    direct: Annotated[bool, typer.Option("--direct", help="In a process of its own: no stack, no Redis.")] = False,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Build the corpus's index anew.")] = False,
    report: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write a page with plots there.")] = None,
    json: options.Json = False,
) -> None:
    """Measure strategies on a labelled set: nDCG, recall, MRR, latency, calls, paired differences, by question type."""
    from orchestrator.cli.reading import writable
    from orchestrator.evaluation.dataset import load_dataset
    from orchestrator.evaluation.measures import check_library

    if report is not None:
        writable("--report", report)
    check_library()
    session = session_of(ctx)
    arms = chosen(session.settings(), strategy or [])
    data = load_dataset(dataset, queries=queries, qrels=qrels, limit=limit, relevant=relevant_from)
    found = _run(session, data, arms, _How(plan=plan, direct=direct, rebuild=rebuild))
    _show(found, report, as_json=json)
    if any(arm.failed for arm in found.arms):
        raise typer.Exit(outcome.PARTIAL)


def chosen(settings: Settings, names: list[str]) -> tuple[str, ...]:
    """The arms to compare: strategies and "adaptive". Raises: InputError for an unknown one, or one given twice."""
    from shared.errors import InputError
    from shared.settings.strategies import ADAPTIVE, named

    arms = tuple(names) or (settings.search.strategy,)
    for place, name in enumerate(arms):
        if name != ADAPTIVE:
            named({**settings.strategies, ADAPTIVE: ()}, name)
        if name in arms[:place]:
            raise InputError("--strategy", name, "it is given twice: name each once")
    return arms


@dataclass(frozen=True)
class _How:
    """The options of a run."""

    plan: str | None
    direct: bool
    rebuild: bool


def _run(session: Session, data: Dataset, arms: tuple[str, ...], how: _How) -> Evaluation:
    from orchestrator.evaluation.compare import compare
    from orchestrator.evaluation.plans import plans_of
    from orchestrator.evaluation.query_types import typed
    from orchestrator.evaluation.runner import run_arms

    plans, missing = plans_of(data.questions, how.plan) if how.plan else ({}, ())
    with stage("index") as building, _runner(session, data, arms, building, how) as runner:
        building.end()
        total = len(data.questions) * len(arms)
        with stage("questions", total) as asking:
            outcomes = run_arms(runner, data.questions, arms, plans, asking.step)
        warnings = (*data.warnings, *missing, *runner.warnings)
        types = typed(data.questions, session.settings())
        return compare(data, outcomes, mode=runner.mode, plan=how.plan, types=types, warnings=warnings)


@contextmanager
def _runner(session: Session, data: Dataset, arms: tuple[str, ...], building: Stage, how: _How) -> Iterator[Runner]:
    """The running stack with the corpus in it, or a process of our own."""
    if how.direct:
        from orchestrator.evaluation.direct import Adaptive
        from orchestrator.evaluation.direct import direct as search_process
        from shared.settings.strategies import ADAPTIVE

        settings = session.settings()
        with search_process(data.corpus, settings, building.at, rebuild=how.rebuild) as runner:
            yield Adaptive(runner, settings) if ADAPTIVE in arms else runner
        return
    from orchestrator.evaluation.pipeline import Pipeline, ensure_ingested

    with session.client() as client:
        namespace, warnings = ensure_ingested(client, data.corpus, building.at, rebuild=how.rebuild)
        yield Pipeline(client, namespace, warnings)


def _show(found: Evaluation, report: Path | None, *, as_json: bool) -> None:
    if report is not None:
        from orchestrator.cli.render.eval_page import evaluation_page
        from shared.errors import RamifyError

        try:
            report.write_text(evaluation_page(found), encoding="utf-8")
        except OSError as error:
            raise RamifyError(f"the report cannot be written to {report}: {error.strerror}") from None
    if as_json:
        output.document(found)
    else:
        from orchestrator.cli.render.evaluation import draw_evaluation

        output.show(draw_evaluation(found))
    for warning in found.warnings:
        output.warn(warning)


class Stage:
    """One stage: so many of so many."""

    def __init__(self, name: str, total: int | None, bar: Progress | None) -> None:
        self._name, self._total, self._bar = name, total, bar
        self._done, self._said = 0, time.monotonic()
        self._task = bar.add_task(name, total=total) if bar else None

    def at(self, done: int, total: int | None) -> None:
        """Set how far it is."""
        self._done, self._total = done, total
        if self._bar and self._task is not None:
            self._bar.update(self._task, completed=done, total=total)
        elif time.monotonic() - self._said >= _LINE_S:
            self._said = time.monotonic()
            output.note(f"{self._name}: {100 * done // total} %" if total else f"{self._name}: {done}")

    def step(self) -> None:
        """One more is done."""
        self.at(self._done + 1, self._total)

    def end(self) -> None:
        """It is over: the bar leaves the screen."""
        if self._bar:
            self._bar.stop()


@contextmanager
def stage(name: str, total: int | None = None) -> Iterator[Stage]:
    """A stage that is shown until its end."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = output.progress_console()
    if not console.is_terminal:
        yield Stage(name, total, None)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        yield Stage(name, total, bar)
