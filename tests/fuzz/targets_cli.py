"""The command line: any words behind `ramify`. It ends with a known code and says why, without a traceback."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import typer
from pydantic import BaseModel, ValidationError
from typer.main import get_command

from orchestrator.cli.main import app
from orchestrator.local.checks import Check
from orchestrator.searching import Searching
from orchestrator.sessions import KeptSession, as_session
from shared.errors import NotRunningError
from shared.files.walk import discover
from shared.models.request import ChatMessage
from shared.settings.faults import request_fault
from tests.fakes.ramify_client import FakeRamify, FakeSession
from tests.fuzz import samples
from tests.fuzz.mutate import Mutator
from tests.fuzz.target import Run, Target
from tests.fuzz.targets_settings import _quiet

_CODES = {0, 1, 2, 3, 130}
_RAMIFY = get_command(app)
_COMMANDS: tuple[tuple[str, ...], ...] = (
    (
        "ask",
        "Why is Redis slow?",
        "--mode",
        "bm25_only",
        "-n",
        "7",
        "--after",
        "2025-01-01",
        "--tag",
        "a",
        "--kind",
        "memory",
    ),
    ("ask", "如何优化？", "--json", "--deadline", "9", "--tenant", "t", "--max-cost", "0.5", "--no-decompose"),
    ("ask", "--plan", "plan.toml"),
    (
        "find",
        "缓存穿透",
        "--related",
        "2",
        "--near-symbol",
        "a.b::c()",
        "--depth",
        "2",
        "--target-uri",
        "ramify://default/notes/",
    ),
    ("search", "and the second one?", "--session", "chat.json", "--plan", "--explain"),
    ("search", "-", "--session-id", "s", "--remember"),
    ("session", "add", "s", "text", "--role", "assistant"),
    ("session", "show", "s", "--json"),
    ("batch", "questions.jsonl", "--wait", "--out", "answers.jsonl", "--rejects", "no.jsonl", "--batch-max-calls", "3"),
    ("batch", "-", "--json"),
    ("plan", "What is the difference between a and b?", "--out", "out.toml", "--no-llm", "--top", "5"),
    ("route", "List all notes tagged redis", "--json"),
    ("status", "job00000", "--watch"),
    ("result", "job00000", "--rows"),
    ("jobs", "-n", "5"),
    ("cancel", "batch001"),
    ("ingest", "notes", "--prune", "--namespace", "n"),
    ("eval", "dataset", "--strategy", "hybrid", "-s", "adaptive", "--limit", "3", "--report", "r.html", "--direct"),
    ("config", "--json"),
    ("doctor",),
    ("up", "-d"),
    ("down",),
    ("--set", "search.strategy=deep", "--data-dir", "data", "--config", "ramify.toml", "config"),
    ("--help",),
    ("--version",),
)
_FILES = {
    "plan.toml": samples.forms("plan")[0],
    "chat.json": samples.forms("session")[0],
    "questions.jsonl": '"a?"\n{"question": "b?"}\n{\n',
    "ramify.toml": '[search]\nstrategy = "deep"\n',
}
_SAFE = ("ramify://",)


class _Kept(FakeSession):
    """Refuses what the real one does."""

    def append(self, role: str, text: str) -> None:
        try:
            ChatMessage(role=role, content=text)
        except ValidationError as error:
            raise request_fault(error) from None
        super().append(role, text)

    def summarise(self, summary: str) -> None:
        self.held = as_session({"summary": summary, "messages": list(self.held.messages)})


class _Client(FakeRamify):
    """A client that has run nothing. It checks what it is given as the real one does, up to what is sent."""

    def submit(self, question: Any, **options: Any) -> str:
        job_id = super().submit(question, **options)
        self.requests[job_id].model_dump_json().encode()
        return job_id

    def rows(self, job_id: str) -> None:
        self.status(job_id)

    def find(self, query: str, **options: Any) -> Any:
        return Searching(None, self.settings, _refuse).find(query, options)

    def search(self, question: str, session: Any = None, **options: Any) -> Any:
        return Searching(None, self.settings, _refuse).search(question, session, options)

    def session(self, session_id: str, tenant: str = "default") -> Any:
        KeptSession(None, self.settings, session_id, tenant)
        return self.sessions.setdefault((tenant, session_id), _Kept())

    def ingest(self, paths: list[Path], *, prune: bool = False, namespace: str = "default", **_: Any) -> Iterator[Any]:
        discover([Path(path) for path in paths])
        yield from super().ingest(paths, prune=prune, namespace=namespace)


def _sent(_: object, __: object, ___: object, request: BaseModel, *____: object) -> None:
    request.model_dump_json().encode()
    raise NotRunningError("nothing is started here")


def _refuse(*_: object, **__: object) -> None:
    raise NotRunningError("nothing is started here")


@contextmanager
def _opened() -> Iterator[Run]:
    """In a folder of its own, with a client that runs nothing, and nothing that starts or stops processes."""
    patches = (
        patch("orchestrator.client.Ramify", lambda *_: _Client()),
        patch("orchestrator.searching.call_pool", _sent),
        patch("orchestrator.local.background.start", _refuse),
        patch("orchestrator.local.stack.Stack.run", _refuse),
        patch("orchestrator.local.background.down", _refuse),
        patch("orchestrator.local.doctor.examine", lambda _: [Check(name="a", ok=True, detail="b")]),
        patch("shared.jobs.reachable", _refuse),
    )
    with _quiet():
        for name, text in _FILES.items():
            with open(name, "w", encoding="utf-8") as file:  # noqa: PTH123
                file.write(text)
        for each in patches:
            each.start()
        try:
            yield _run
        finally:
            for each in patches:
                each.stop()


def _run(argv: list[str]) -> None:
    """As the console script does it, but for its very last resort, which would hide what is sought."""
    out, err = _stream(), _stream()
    stdin, kept = io.TextIOWrapper(io.BytesIO("标准输入 a question\n".encode())), os.environ.copy()
    with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "stdin", stdin):
        try:
            _RAMIFY(argv, prog_name="ramify")
            code: Any = 0
        except SystemExit as ended:
            code = ended.code
        except typer.Exit as ended:
            code = ended.exit_code
    for name in set(os.environ) - set(kept):
        del os.environ[name]
    said, told = (stream.buffer.getvalue().decode("utf-8", "replace") for stream in (err, out))
    assert code in _CODES, code
    assert "Traceback" not in said or "--debug" in argv, said
    assert code in (0, 3) or said.strip() or told.strip(), "it failed and did not say why"
    hidden = {c for c in said if (c < " " and c not in "\n\t") or "\x7f" <= c <= "\x9f" or "\u202a" <= c <= "\u202e"}
    assert not hidden, f"control characters reach the terminal: {hidden}"
    if code == 2 and said.startswith("error: "):
        assert said.count("\n") == 1, said


def _stream() -> Any:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace", write_through=True)


def _argv(mutator: Mutator) -> list[str]:
    """A command with some of its words changed, doubled, left out or put elsewhere."""
    words = list(mutator.rng.choice(_COMMANDS))
    for _ in range(mutator.rng.choice((1, 1, 2, 3, 5))):
        place, roll = mutator.rng.randrange(len(words) + 1), mutator.rng.random()
        if roll < 0.4 and place < len(words):
            words[place] = mutator.text([words[place]], 1500)
        elif roll < 0.7:
            words.insert(place, mutator.token())
        elif roll < 0.8 and place < len(words):
            del words[place]
        elif roll < 0.9:
            words.insert(place, mutator.rng.choice(mutator.rng.choice(_COMMANDS)))
        else:
            mutator.rng.shuffle(words)
    return [_possible(word) for word in words]


def _possible(word: str) -> str:
    """As a process can be given it, and never the name of a file elsewhere: some commands write."""
    word = os.fsdecode(word.encode("utf-8", "replace")).replace("\0", "")
    return word if word.startswith(_SAFE) else word.replace("/", "_")


TARGETS = (Target(name="cli", make=_argv, opened=_opened, tokens=samples.tokens("cli"), full=20_000, short=100),)
