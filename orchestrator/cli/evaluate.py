"""`eval`: labelled questions, or those of kept jobs, through several strategies side by side."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` must not wait for Celery and Qdrant

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import Invocation, invocation_of
from shared.errors import InputError

if TYPE_CHECKING:
    from rich.progress import Progress

    from orchestrator.evaluation.dataset import Dataset
    from orchestrator.evaluation.from_jobs import JobsEvaluation
    from orchestrator.evaluation.report import Evaluation
    from orchestrator.evaluation.runner import Runner
    from shared.settings import Settings

#: Seconds between two lines where there is no terminal.
_LINE_S = 10.0


def evaluate(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    dataset: Annotated[
        Path | None,
        typer.Argument(metavar="[DATASET]", help="Folder with corpus.jsonl, queries.jsonl, qrels.tsv (or .gz)."),
    ] = None,
    *,
    from_jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Instead of DATASET: the questions of the last N kept jobs.", show_default=False
        ),
    ] = None,
    tenant: Annotated[
        str | None, typer.Option(help="Only jobs of this tenant. (default: all)", show_default=False)
    ] = None,
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
    """Measure strategies on a labelled set: nDCG, recall, MRR, latency, calls, paired differences, by question type.

    With --from-jobs the questions of kept jobs are asked again instead: how far the answers agree, times and cost.
    """
    from orchestrator.cli.streams import writable

    if report is not None:
        writable("--report", report)
    invocation = invocation_of(ctx)
    arms = chosen(invocation.settings(), strategy or [])
    given = {
        "--queries": queries,
        "--qrels": qrels,
        "--limit": limit,
        "--plan": plan,
        "--relevant-from": relevant_from,
        "--direct": direct,
        "--rebuild": rebuild,
    }
    if from_jobs is not None:
        _only(("--from-jobs", from_jobs), {"DATASET": dataset, **given})
        failed = _kept(invocation, from_jobs, tenant, arms, report, as_json=json)
    else:
        folder = _named(dataset)
        _only(("DATASET", folder), {"--tenant": tenant})
        sources = _Sources(folder, queries, qrels, limit, relevant_from)
        failed = _labelled(invocation, sources, arms, _How(plan, direct, rebuild), report, as_json=json)
    if failed:
        raise typer.Exit(streams.PARTIAL)


def _only(source: tuple[str, object], others: Mapping[str, object]) -> None:
    """Raises: InputError when an option was given that goes with the other source of questions."""
    if other := next((name for name, value in others.items() if value), None):
        name, value = source
        raise InputError(name, str(value), f"it does not go with {other}: leave out one of them")


def _named(dataset: Path | None) -> Path:
    if dataset is None:
        raise InputError("DATASET", None, "name a folder with labelled questions, or give --from-jobs N")
    return dataset


def chosen(settings: Settings, names: list[str]) -> tuple[str, ...]:
    """The arms to compare: strategies and "adaptive". Raises: InputError for an unknown one, or one given twice."""
    from shared.settings.strategies import ADAPTIVE, named

    arms = tuple(names) or (settings.search.strategy,)
    for place, name in enumerate(arms):
        if name != ADAPTIVE:
            named({**settings.strategies, ADAPTIVE: ()}, name)
        if name in arms[:place]:
            raise InputError("--strategy", name, "it is given twice: name each once")
    return arms


@dataclass(frozen=True)
class _Sources:
    """Where labelled questions are from: the options of `load_dataset`."""

    folder: Path
    queries: Path | None
    qrels: Path | None
    limit: int | None
    relevant: int | None


@dataclass(frozen=True)
class _How:
    """The options of a run."""

    plan: str | None
    direct: bool
    rebuild: bool


def _labelled(  # noqa: PLR0913 - what the command line says
    invocation: Invocation, sources: _Sources, arms: tuple[str, ...], how: _How, report: Path | None, *, as_json: bool
) -> bool:
    """Measure on a labelled set and show it. True when a question failed."""
    from orchestrator.evaluation.dataset import load_dataset
    from orchestrator.evaluation.statistics import check_library

    check_library()
    data = load_dataset(
        sources.folder,
        queries=sources.queries,
        qrels=sources.qrels,
        limit=sources.limit,
        relevant=sources.relevant,
    )
    found = _run(invocation, data, arms, how)
    if report is not None:
        from orchestrator.cli.render.eval_page import evaluation_page

        _write(report, evaluation_page(found))
    _show(found, as_json=as_json)
    return any(arm.failed for arm in found.arms)


def _kept(  # noqa: PLR0913 - what the command line says
    invocation: Invocation, most: int, tenant: str | None, arms: tuple[str, ...], report: Path | None, *, as_json: bool
) -> bool:
    """Ask the questions of kept jobs again and show how far the answers agree. True when a question failed."""
    from orchestrator.evaluation.from_jobs import compare_jobs, kept_jobs
    from orchestrator.evaluation.pipeline import Pipeline
    from orchestrator.evaluation.runner import run_arms
    from shared.jobs import JobStore, connect, reachable

    with invocation.client() as client:
        with reachable(client.settings):
            kept = kept_jobs(JobStore(connect(client.settings), client.settings), most, tenant)
        runner = Pipeline(client, requests=kept.requests)
        with stage("questions", len(kept.questions) * len(arms)) as asking:
            outcomes = run_arms(runner, kept.questions, arms, {}, asking.step)
    found = compare_jobs(kept, outcomes, runner.warnings)
    if report is not None:
        from orchestrator.cli.render.eval_page import jobs_page

        _write(report, jobs_page(found))
    _show(found, as_json=as_json)
    return any(column.failed for column in found.columns)


def _run(invocation: Invocation, data: Dataset, arms: tuple[str, ...], how: _How) -> Evaluation:
    from orchestrator.evaluation.compare import compare
    from orchestrator.evaluation.labels import plans_of, question_types
    from orchestrator.evaluation.runner import run_arms

    plans, missing = plans_of(data.questions, how.plan) if how.plan else ({}, ())
    with stage("index") as building, _runner(invocation, data, arms, building, how) as runner:
        building.end()
        total = len(data.questions) * len(arms)
        with stage("questions", total) as asking:
            outcomes = run_arms(runner, data.questions, arms, plans, asking.step)
        warnings = (*data.warnings, *missing, *runner.warnings)
        types = question_types(data.questions, invocation.settings())
        return compare(data, outcomes, mode=runner.mode, plan=how.plan, types=types, warnings=warnings)


@contextmanager
def _runner(
    invocation: Invocation, data: Dataset, arms: tuple[str, ...], building: Stage, how: _How
) -> Iterator[Runner]:
    """The running stack with the corpus in it, or a process of our own."""
    if how.direct:
        from orchestrator.evaluation.direct import AdaptiveRunner
        from orchestrator.evaluation.direct import direct as search_process
        from shared.settings.strategies import ADAPTIVE

        settings = invocation.settings()
        with search_process(data.corpus, settings, building.at, rebuild=how.rebuild) as runner:
            yield AdaptiveRunner(runner, settings) if ADAPTIVE in arms else runner
        return
    from orchestrator.evaluation.pipeline import Pipeline, ensure_ingested

    with invocation.client() as client:
        namespace, warnings = ensure_ingested(client, data.corpus, building.at, rebuild=how.rebuild)
        yield Pipeline(client, namespace, warnings)


def _write(report: Path, page: str) -> None:
    from shared.errors import RamifyError

    try:
        report.write_text(page, encoding="utf-8")
    except OSError as error:
        raise RamifyError(f"the report cannot be written to {report}: {error.strerror}") from None


def _show(found: Evaluation | JobsEvaluation, *, as_json: bool) -> None:
    if as_json:
        streams.document(found)
    else:
        from orchestrator.cli.render.evaluation import draw_evaluation, draw_jobs
        from orchestrator.evaluation.report import Evaluation

        streams.show(draw_evaluation(found) if isinstance(found, Evaluation) else draw_jobs(found))
    for warning in found.warnings:
        streams.warn(warning)


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
            streams.note(f"{self._name}: {100 * done // total} %" if total else f"{self._name}: {done}")

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

    console = streams.progress_console()
    if not console.is_terminal:
        yield Stage(name, total, None)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        yield Stage(name, total, bar)
