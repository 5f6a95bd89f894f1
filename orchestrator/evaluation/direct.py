"""Runs questions in a search process of our own, spoken to in JSON lines: no stack, no Redis, no cache."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import Field, ValidationError

from orchestrator.evaluation.dataset import LabelledCorpus
from orchestrator.evaluation.eval_folder import IndexFolder, corpus_copy, eval_dir, index_folder
from orchestrator.evaluation.runner import ArmOutcome, ArmQuestion, IndexProgress, Runner, distinct
from orchestrator.local.child_process import importable, launcher
from orchestrator.local.commands import environment
from orchestrator.planning.route import table_route
from shared.errors import InputError, RamifyError, shown
from shared.language.routing import route_by_rules
from shared.models import Cost
from shared.models.base import Model
from shared.models.route import PlannerName, Route
from shared.settings import Settings
from shared.settings.strategies import ADAPTIVE

LineT = TypeVar("LineT", bound=Model)
#: `workers` is not imported here: it is a program that is started.
COMMAND = (sys.executable, "-m", "workers.direct")
_NAME = "the search process"
#: Seconds without a line while an index is built: optimising a large one is one long step.
_BUILD_SILENCE_S = 1800.0
#: Seconds that the process has to end by itself when its input ends.
_END_S = 10.0
_TAIL_BYTES = 2000
NOT_RETRIEVED = "read as a question that needs no retrieval, so nothing was searched."
DIRECT_ONLY = (
    f"{ADAPTIVE}: without the stack only the strategy is taken from the routing table, by its rules; planners "
    "(decomposition, binding, enumeration) and the LLM's reading run on the stack."
)


class _Progress(Model):
    done: int = 0
    total: int | None = None


class OpenedIndex(Model):
    """The index that is searched: built now, or kept from before."""

    documents: int
    chunks: int
    built: bool = False
    seconds: float = 0.0


class _Opening(Model):
    progress: _Progress | None = None
    opened: OpenedIndex | None = None
    error: str | None = None
    bad_input: bool = False


class _Reply(Model):
    documents: tuple[str, ...] = ()
    ms: float = 0.0
    cost: Cost = Cost()
    warnings: tuple[str, ...] = ()
    relevance: dict[str, float] = Field(default_factory=dict)
    error: str | None = None


class _SearchProcess:
    """The process. Use as a context manager, from the thread that made it: the kernel binds the child to it."""

    def __init__(self, env: Mapping[str, str], log: Path) -> None:
        """The process's stderr is appended to `log`."""
        self._log = log
        with log.open("ab") as stderr:
            self._log_start = stderr.tell()
            self._process = subprocess.Popen(
                (*launcher(signal.SIGKILL), *COMMAND),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={**os.environ, **importable(), **env},
                start_new_session=True,  # Ctrl-C of the terminal is for us alone
            )
        assert self._process.stdin is not None  # noqa: S101 - it was asked for
        assert self._process.stdout is not None  # noqa: S101
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, name=f"{_NAME} output", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the process: its input ends; if that is not enough, SIGTERM, then SIGKILL."""
        if kind is not None:
            self._process.terminate()  # an interrupt does not wait for its work
        with suppress(OSError):
            self._stdin.close()
        for end in (self._process.terminate, self._process.kill):
            try:
                self._process.wait(timeout=_END_S)
                break
            except subprocess.TimeoutExpired:
                end()
        self._process.wait(timeout=_END_S)
        self._reader.join(timeout=_END_S)
        self._stdout.close()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one line. Raises: RamifyError when the process has ended."""
        try:
            self._stdin.write(json.dumps(message).encode() + b"\n")
            self._stdin.flush()
        except OSError:
            raise self._ended() from None

    def receive(self, kind: type[LineT], timeout_s: float) -> LineT:
        """The next line. Raises: RamifyError when none comes in time, the process has ended, or it is no such line."""
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            raise RamifyError(
                f"{_NAME} has been silent for {timeout_s:.0f} s and was stopped; its log is {self._log}"
            ) from None
        if line is None:
            raise self._ended()
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            text = shown(line.decode(errors="replace").strip())
            raise RamifyError(f"{_NAME} answered {text}, which is no JSON object; its log is {self._log}")
        try:
            return kind.model_validate(message)
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(str(part) for part in fault["loc"])
            raise RamifyError(f"{_NAME} answered in a form that is not known here ({where}: {fault['msg']})") from None

    def _read(self) -> None:
        for line in self._stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _ended(self) -> RamifyError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_END_S)
        with self._log.open("rb") as log:
            log.seek(max(self._log_start, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = log.read().decode(errors="replace").split("\n")
        last = next((f": {line.strip()}" for line in reversed(lines) if line.strip()), "")
        return RamifyError(f"{_NAME} ended with code {self._process.poll()}{last} (its log is {self._log})")


class DirectRunner:
    """A Runner. One question at a time; each strategy is asked once before its times count, which loads its models."""

    mode = "direct"
    warnings: tuple[str, ...] = ()

    def __init__(self, process: _SearchProcess, opened: OpenedIndex, timeout_s: float) -> None:
        self._process, self.opened, self._timeout_s = process, opened, timeout_s
        self._warm: set[str] = set()

    def answers(self, questions: Iterable[ArmQuestion]) -> Iterator[ArmOutcome]:
        """As the Runner says. Raises: RamifyError when the process ends, hangs or cannot be understood."""
        for question in questions:
            if (runs := question.runs or question.strategy) not in self._warm:
                self._ask(question)
                self._warm.add(runs)
            yield self._ask(question)

    def _ask(self, question: ArmQuestion) -> ArmOutcome:
        entries = [entry.model_dump(mode="json") for entry in question.subqueries]
        plan = {"subqueries": entries} if entries else {}
        runs = {"of_type": question.runs} if question.runs else {"strategy": question.strategy}
        self._process.send({"question": question.text, "limit": question.limit, **runs, **plan})
        reply = self._process.receive(_Reply, self._timeout_s)
        own = {**dict(reply), "documents": distinct(reply.documents)}
        return ArmOutcome(question_id=question.question_id, strategy=question.strategy, **own)


@contextmanager
def direct(
    corpus: LabelledCorpus, settings: Settings, progress: IndexProgress, *, rebuild: bool = False
) -> Iterator[DirectRunner]:
    """A runner over the corpus's kept index, which is built first where there is none.

    Raises: InputError and RamifyError when it cannot be built or opened.
    """
    kept = eval_dir(settings)
    with (
        index_folder(corpus, settings) as folder,
        _SearchProcess(environment(settings), kept / "direct.log") as process,
    ):
        opened = _open(process, corpus_copy(corpus, kept), folder, progress, rebuild=rebuild)
        yield DirectRunner(process, opened, settings.jobs.deadline_s)


def _open(
    process: _SearchProcess, corpus: Path, folder: IndexFolder, progress: IndexProgress, *, rebuild: bool
) -> OpenedIndex:
    """Have the index opened. It is built again where a build was interrupted."""
    fresh = rebuild or not folder.complete
    if fresh:
        folder.mark_started()
    process.send({"open": {"folder": str(folder.path), "corpus": str(corpus), "rebuild": fresh}})
    while True:
        line = process.receive(_Opening, _BUILD_SILENCE_S)
        if line.error is not None:
            error = RamifyError(f"the corpus cannot be indexed: {line.error}")
            error.exit_code = InputError.exit_code if line.bad_input else error.exit_code
            raise error
        if line.opened is not None:
            folder.mark_complete(line.opened.documents, line.opened.chunks)
            return line.opened
        if line.progress is not None:
            progress(line.progress.done, line.progress.total)


def choose(question: str, settings: Settings) -> Route:
    """What the rules and the routing table say of a question. Pure; asks no LLM."""
    return table_route(route_by_rules(question, settings.routing.unsure_below), settings)


class AdaptiveRunner:
    """A Runner before another one: chooses the strategy for the arm `adaptive`; other questions pass as they are."""

    def __init__(self, runner: Runner, settings: Settings) -> None:
        self._runner, self._settings, self.mode = runner, settings, runner.mode
        #: The other runner's, and that only a part of the table is followed.
        self.warnings = (*runner.warnings, DIRECT_ONLY)

    def answers(self, questions: Iterable[ArmQuestion]) -> Iterator[ArmOutcome]:
        """As the Runner says; questions that their row does not search are found nothing for."""
        for question in questions:
            if question.strategy != ADAPTIVE:
                yield from self._runner.answers([question])
            elif (route := choose(question.text, self._settings)).planner is PlannerName.NONE:
                yield ArmOutcome(question_id=question.question_id, strategy=ADAPTIVE, warnings=(NOT_RETRIEVED,))
            else:
                yield from self._runner.answers([question.model_copy(update={"runs": route.strategy})])
