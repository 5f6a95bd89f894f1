"""`eval`: labelled questions, or those of kept jobs, through several strategies side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict, Unpack

import typer

from orchestrator.cli import options, output_files, streams
from orchestrator.cli.invocation import Invocation, invocation_of
from shared.errors import InputError

if TYPE_CHECKING:
    from orchestrator.evaluation.dataset import Dataset
    from orchestrator.evaluation.from_jobs import JobsEvaluation
    from orchestrator.evaluation.report import Evaluation
    from orchestrator.evaluation.runner import IndexProgress, Runner
    from shared.settings import Settings

#: Seconds between two lines where there is no terminal.
_LINE_S = 10.0


class LabelledOptions(TypedDict):
    """What goes with DATASET alone."""

    queries: Annotated[Path | None, typer.Option(help="Questions from this file.")]
    qrels: Annotated[Path | None, typer.Option(help="Judgements from this file.")]
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N questions.")]
    plan: Annotated[
        str | None,
        typer.Option(metavar="FIELD", help="Subquestions stored with each question: decomposition.filled, say."),
    ]
    relevant_from: Annotated[
        int | None, typer.Option(min=1, help="Grade that counts as relevant (default: 1; 2 on scales to 3).")
    ]
    direct: Annotated[bool | None, typer.Option("--direct", help="In a process of its own: no stack, no Redis.")]
    rebuild: Annotated[bool | None, typer.Option("--rebuild", help="Build the corpus's index anew.")]


@options.shared
def evaluate(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    dataset: Annotated[
        Path | None,
        typer.Argument(metavar="[DATASET]", help="Folder with corpus.jsonl, queries.jsonl, qrels.tsv (or .gz)."),
    ] = None,
    *,
    from_jobs: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Instead of DATASET: the questions of the last N kept jobs.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Only jobs of this tenant. (default: all)")] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option("-s", "--strategy", help="Repeatable (default: search.strategy). adaptive: by the routing table."),
    ] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write a page with plots there.")] = None,
    json: options.Json = False,
    **given: Unpack[LabelledOptions],
) -> None:
    """Measure strategies on a labelled set: nDCG, recall, MRR, latency, calls, paired differences, by question type.

    With --from-jobs the questions of kept jobs are asked again instead: how far the answers agree, times and cost.
    """
    if report is not None:
        streams.writable("--report", report)
    invocation = invocation_of(ctx)
    arms = chosen(invocation.settings(), strategy or [])
    if from_jobs is not None:
        _refuse_beside("--from-jobs", from_jobs, {"DATASET": dataset, **given})
        again = _ask_again(invocation, from_jobs, tenant, arms)
        _finish(again, report, as_json=json, failed=any(column.failed for column in again.columns))
    elif dataset is None:
        raise InputError("DATASET", None, "name a folder with labelled questions, or give --from-jobs N")
    else:
        _refuse_beside("DATASET", dataset, {"tenant": tenant})
        measured = _measure(invocation, dataset, arms, given)
        _finish(measured, report, as_json=json, failed=any(arm.failed for arm in measured.arms))


def _finish(found: Evaluation | JobsEvaluation, report: Path | None, *, as_json: bool, failed: bool) -> None:
    if report is not None:
        _write(report, found)
    _show(found, as_json=as_json)
    if failed:
        raise typer.Exit(streams.PARTIAL)


def _refuse_beside(name: str, value: object, others: Mapping[str, object]) -> None:
    """Raises: InputError when an option was given that goes with the other source of questions."""
    if other := next((other for other, given in others.items() if given), None):
        option = other if other.isupper() else f"--{other.replace('_', '-')}"
        raise InputError(name, str(value), f"it does not go with {option}: leave out one of them")


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


def _ask_again(invocation: Invocation, limit: int, tenant: str | None, arms: tuple[str, ...]) -> JobsEvaluation:
    """Ask the questions of kept jobs again, and compare the answers."""
    from orchestrator.evaluation.from_jobs import compare_jobs, kept_jobs
    from orchestrator.evaluation.pipeline import Pipeline
    from orchestrator.evaluation.runner import run_arms
    from shared.jobs import JobStore, connect, reachable

    with invocation.client() as client:
        with reachable(client.settings):
            kept = kept_jobs(JobStore(connect(client.settings), client.settings), limit, tenant)
        runner = Pipeline(client, requests=kept.requests)
        with _counting("questions", len(kept.questions) * len(arms)) as step:
            outcomes = run_arms(runner, kept.questions, arms, {}, step)
    return compare_jobs(kept, outcomes, runner.warnings)


def _measure(invocation: Invocation, folder: Path, arms: tuple[str, ...], given: LabelledOptions) -> Evaluation:
    """Measure the arms on a labelled set."""
    from orchestrator.evaluation.compare import compare
    from orchestrator.evaluation.dataset import load_dataset
    from orchestrator.evaluation.labels import plans_of, question_types
    from orchestrator.evaluation.runner import run_arms
    from orchestrator.evaluation.statistics import check_library

    check_library()
    limit, relevant = given["limit"], given["relevant_from"]
    data = load_dataset(folder, queries=given["queries"], qrels=given["qrels"], limit=limit, relevant=relevant)
    plan, rebuild, open_runner = given["plan"], bool(given["rebuild"]), _direct if given["direct"] else _pipeline
    plans, missing = plans_of(data.questions, plan) if plan else ({}, ())
    with ExitStack() as stack:
        with _stage("index") as building:
            runner = stack.enter_context(open_runner(invocation, data, arms, building, rebuild=rebuild))
        with _counting("questions", len(data.questions) * len(arms)) as step:
            outcomes = run_arms(runner, data.questions, arms, plans, step)
        warnings = (*data.warnings, *missing, *runner.warnings)
        types = question_types(data.questions, invocation.settings())
        return compare(data, outcomes, mode=runner.mode, plan=plan, types=types, warnings=warnings)


@contextmanager
def _direct(
    invocation: Invocation, data: Dataset, arms: tuple[str, ...], building: IndexProgress, *, rebuild: bool
) -> Iterator[Runner]:
    """A search process of our own."""
    from orchestrator.evaluation.direct import AdaptiveRunner, direct
    from shared.settings.strategies import ADAPTIVE

    settings = invocation.settings()
    with direct(data.corpus, settings, building, rebuild=rebuild) as runner:
        yield AdaptiveRunner(runner, settings) if ADAPTIVE in arms else runner


@contextmanager
def _pipeline(
    invocation: Invocation, data: Dataset, _: tuple[str, ...], building: IndexProgress, *, rebuild: bool
) -> Iterator[Runner]:
    """The running stack with the corpus in it."""
    from orchestrator.evaluation.pipeline import Pipeline, ensure_ingested

    with invocation.client() as client:
        namespace, warnings = ensure_ingested(client, data.corpus, building, rebuild=rebuild)
        yield Pipeline(client, namespace, warnings)


@contextmanager
def _stage(name: str, total: int | None = None) -> Iterator[IndexProgress]:
    """A bar on a terminal, a line every 10 s elsewhere; yields the function that sets how far it is."""
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

    terminal, noted = streams.console(stderr=True).is_terminal, time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with streams.progress(name, *columns, total=total) as update:

        def at(done: int, total: int | None) -> None:
            nonlocal noted
            update(completed=done, total=total)
            if not terminal and time.monotonic() - noted >= _LINE_S:
                noted = time.monotonic()
                streams.note(f"{name}: {100 * done // total} %" if total else f"{name}: {done}")

        yield at


@contextmanager
def _counting(name: str, total: int) -> Iterator[Callable[[], None]]:
    """A stage of `total` equal steps; yields the function that counts one."""
    steps = count(1)
    with _stage(name, total) as at:
        yield lambda: at(next(steps), total)


def _write(report: Path, found: Evaluation | JobsEvaluation) -> None:
    from orchestrator.cli.render.eval_page import evaluation_page, jobs_page
    from orchestrator.evaluation.report import Evaluation

    page = evaluation_page(found) if isinstance(found, Evaluation) else jobs_page(found)
    output_files.replace("--report", report, page)


def _show(found: Evaluation | JobsEvaluation, *, as_json: bool) -> None:
    if as_json:
        streams.document(found)
    else:
        from orchestrator.cli.render.evaluation import draw_evaluation, draw_jobs
        from orchestrator.evaluation.report import Evaluation

        streams.show(draw_evaluation(found) if isinstance(found, Evaluation) else draw_jobs(found))
    for warning in found.warnings:
        streams.warn(warning)
