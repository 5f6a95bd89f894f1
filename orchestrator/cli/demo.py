"""`make demo`: everything once, in a folder of its own: start, ingest, five questions, one answer, stop.

Uses the defaults only: no settings file, no `RAMIFY_` variable and no stack of the user's is touched.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live

from orchestrator.cli import streams
from orchestrator.cli.corpus import follow_ingest
from orchestrator.cli.render.answer import draw_answer
from orchestrator.cli.render.ingests import draw_ingest
from orchestrator.cli.render.tree import compact, draw
from orchestrator.client import Ramify
from orchestrator.growth import Growth, replay
from orchestrator.intake import read_questions
from orchestrator.local import background
from orchestrator.local.state import StackState, read_private
from shared.errors import RamifyError
from shared.models import JobRequest
from shared.settings import CONFIG_ENV, Settings, load_settings

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
_DEADLINE_S = 60.0
#: Seconds that one read of a job's events takes; five of them are one frame.
_READ_S = 0.02
#: Lines of the screen that stay free below the trees.
_MARGIN_LINES = 2
#: The question whose whole answer is printed, from 0.
_SHOWN = 1
_NEXT = (
    ".venv/bin/ramify up -d                   start it for yourself",
    ".venv/bin/ramify ingest examples/notes   or your own folder",
    '.venv/bin/ramify ask "..."               ask something else',
    ".venv/bin/ramify down                    stop it",
)


def main() -> int:
    """Run the demo; 0 only when all questions were answered."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = streams.console()
    began = time.monotonic()
    try:
        questions = _questions()
        with _settings() as settings, _stack(settings, console) as state:
            _ingest(settings, console)
            done = _ask(settings, questions, console)
            _farewell(console, state, time.monotonic() - began)
            return streams.DONE if done == len(questions) else streams.FAILED
    except KeyboardInterrupt:
        streams.note("interrupted: everything is stopped")
        return streams.INTERRUPTED
    except RamifyError as error:
        streams.fail(str(error))
        return error.exit_code


def _questions() -> list[JobRequest]:
    """Raises: RamifyError when the examples are not there or one of them cannot be taken."""
    file = EXAMPLES / "questions.jsonl"
    if not file.is_file() or not (EXAMPLES / "notes").is_dir():
        raise RamifyError(f"the demo needs the project's examples, which are not in {EXAMPLES}: run it from a clone")
    with file.open("rb") as lines:
        found = list(read_questions(lines, {"deadline_s": _DEADLINE_S}))
    if refused := next((line.rejected for line in found if line.rejected), None):
        raise RamifyError(f"{file}, line {refused.line}: {refused.reason}")
    return [line.request for line in found if line.request]


@contextmanager
def _settings() -> Iterator[Settings]:
    """Defaults, in a folder that is gone afterwards."""
    for name in [name for name in os.environ if name.startswith("RAMIFY_")]:
        del os.environ[name]
    with tempfile.TemporaryDirectory(prefix="ramify-demo-", ignore_cleanup_errors=True) as folder:
        empty = Path(folder) / "ramify.toml"
        empty.touch()
        os.environ[CONFIG_ENV] = str(empty)  # also keeps a ./ramify.toml out of the child processes
        yield load_settings(data_dir=Path(folder) / "data", server={"enabled": False})  # nobody would ask it


@contextmanager
def _stack(settings: Settings, console: Console) -> Iterator[StackState]:
    """The embedded stack; it stops with us, however we end."""
    console.print("Starting Redis, five worker pools and Flower ...")
    began = time.monotonic()
    try:
        state = background.start(settings, bound=True)
        console.print(f"Ready in {time.monotonic() - began:.1f} s; Flower: {state.flower_url}")
        console.print(f"Its login: {read_private(Path(state.flower_login_file))}\n", markup=False)
        yield state
    finally:
        background.down(settings)


def _ingest(settings: Settings, console: Console) -> None:
    began = time.monotonic()
    console.print("Ingesting examples/notes: Markdown, text and JSON Lines, English and Chinese ...")
    with Ramify(settings) as client:
        counts, _, _ = follow_ingest(client.ingest([EXAMPLES / "notes"]), as_json=False)
    console.print(draw_ingest(counts).append(f" in {time.monotonic() - began:.1f} s\n"))


def _ask(settings: Settings, questions: list[JobRequest], console: Console) -> int:
    """Enqueue one batch, show its trees growing, print one answer; returns how many were answered."""
    console.print(f"Asking {len(questions)} questions as one batch ...\n")
    with Ramify(settings) as client:
        taken = client.submit_many(questions)
        for growth in _watch(client, taken.job_ids, questions, console):
            console.print(draw(growth))
            console.print()
        shown = taken.job_ids[_SHOWN]
        if client.status(shown).state == "done":
            console.rule("one answer in full", style="dim")
            console.print(draw_answer(client.result(shown)))
            console.rule(style="dim")
        batch = client.batch_status(taken.batch_id)
    console.print(f"\nBatch {batch.batch_id}: {batch.done + batch.degraded} of {batch.enqueued} questions answered.")
    return batch.done + batch.degraded


def _watch(client: Ramify, job_ids: Sequence[str], questions: Sequence[JobRequest], console: Console) -> list[Growth]:
    """Follow all jobs until they have ended, or the deadline is over; on a terminal their trees are seen growing."""
    growths = [Growth(question=request.question) for request in questions]
    end = time.monotonic() + _DEADLINE_S
    with Live(console=console, transient=True, auto_refresh=False) as live:
        while time.monotonic() < end and not all(growth.ended_ms for growth in growths):
            for place, job_id in enumerate(job_ids):
                if not growths[place].ended_ms:
                    growths[place] = replay(questions[place].question, client.stream(job_id, _READ_S))
            if console.is_terminal:
                live.update(_frame(growths, console), refresh=True)
    return growths


def _frame(growths: Sequence[Growth], console: Console) -> RenderableType:
    """All trees, or two lines for each where the screen is too low for them."""
    now = time.time() * 1000
    trees = Group(*(draw(growth, now) for growth in growths))
    if len(console.render_lines(trees, pad=False)) <= console.height - _MARGIN_LINES:
        return trees
    return Group(*(compact(growth, now) for growth in growths))


def _farewell(console: Console, state: StackState, seconds: float) -> None:
    console.print(f"The demo took {seconds:.0f} s and now stops everything that it started.")
    console.print(f"Flower, the pool monitor, was at {state.flower_url}; `ramify up` prints where yours is.\n")
    console.print("What next:")
    for command in _NEXT:
        console.print(f"  {command}")


if __name__ == "__main__":
    sys.exit(main())
