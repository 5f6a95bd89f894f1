"""What a caller hands in: batches, requests, plan files, conversations. Only InputError may come out."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from pydantic_core import to_json

from orchestrator.intake import as_request, bounded_lines, read_questions
from orchestrator.planning.plan_file import plan_fields, read_plan, written
from orchestrator.sessions import read_session
from shared.errors import InputError
from shared.models import JobRequest
from tests.fuzz import samples
from tests.fuzz.guard import MOST_SENTENCE
from tests.fuzz.mutate import Mutator, as_json
from tests.fuzz.target import Run, Target, always


def _batch(content: bytes) -> None:
    """Every line is a request or a rejection, and none is lost."""
    lines = list(bounded_lines(BytesIO(content)))
    taken = list(read_questions(lines))
    assert [line.line for line in taken] == list(range(1, len(lines) + 1))
    for line, raw in zip(taken, lines, strict=True):
        assert [line.request is None, line.rejected is None].count(False) == bool(raw.strip())
        if line.rejected:
            assert "\n" not in line.rejected.reason
            assert len(line.rejected.reason) <= MOST_SENTENCE
        if line.request:
            _kept(line.request)
        to_json(line)


def _kept(request: JobRequest) -> None:
    """A request that was taken can be stored, and read again as it was."""
    assert JobRequest.model_validate_json(request.model_dump_json()) == request


def _plan(path: Path) -> None:
    plan = read_plan(path)
    plan.entries()
    for as_toml in (True, False):
        written(plan, as_toml=as_toml)
    if plan.question:
        _kept(as_request({"question": plan.question, **plan_fields(plan)}))


def _session(path: Path) -> None:
    session = read_session(path)
    session.model_dump_json()


def _file(name: str, run: Callable[[Path], None]) -> Callable[[], object]:
    """The input is written to a file of this name."""

    @contextmanager
    def opened() -> Iterator[Run]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name

            def of_file(content: bytes) -> None:
                path.write_bytes(content)
                run(path)

            yield of_file

    return opened


def _lines(mutator: Mutator) -> bytes:
    lines = [as_json(request, ascii_only=False) for request in samples.REQUESTS] + list(samples.questions()[:6])
    if mutator.rng.random() < 0.6:
        lines[mutator.rng.randrange(len(lines))] = mutator.json(samples.REQUESTS)
        return "\n".join(lines).encode("utf-8", "surrogatepass")
    return mutator.raw(["\n".join(lines)])


def _conversation(mutator: Mutator) -> bytes:
    """Half of them changed as a tree, which leaves them JSON."""
    if mutator.rng.random() < 0.5:
        return mutator.raw(samples.forms("session"))
    return mutator.json([json.loads(samples.forms("session")[0])]).encode("utf-8", "surrogatepass")


TARGETS = (
    Target(name="batch", make=_lines, opened=always(_batch), tokens=samples.tokens("json")),
    Target(
        name="request",
        make=lambda mutator: mutator.value(samples.REQUESTS),
        opened=always(lambda value: _kept(as_request(value))),
        allowed=(InputError,),
        tokens=(*JobRequest.model_fields, "plan", "notes/", "2026-01-01", "a.b"),
    ),
    Target(
        name="plan_file",
        make=lambda mutator: mutator.raw(samples.forms("plan")),
        opened=_file("plan.toml", _plan),
        allowed=(InputError,),
        tokens=samples.tokens("toml"),
    ),
    Target(
        name="session_file",
        make=_conversation,
        opened=_file("session.json", _session),
        allowed=(InputError,),
        tokens=samples.tokens("json"),
    ),
)
