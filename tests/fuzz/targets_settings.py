"""Settings: the file, the environment, `--set`. Only InputError may come out, and no secret in it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orchestrator.cli.invocation import parse_overrides
from orchestrator.cli.render.system import setting_rows
from shared.errors import InputError
from shared.settings import CONFIG_ENV, Settings, load_settings
from tests.fuzz import samples
from tests.fuzz.mutate import Mutator
from tests.fuzz.target import Run, Target, always

SECRET = "sk-fuzz-secret-0123456789"
_FILES = (
    f"""
llm_base_url = "http://127.0.0.1:8000/v1"
llm_model = "qwen3-32b"
llm_api_key = "{SECRET}"
data_dir = ".ramify"
[embedding]
provider = "endpoint"
base_url = "http://127.0.0.1:8001/v1"
model = "bge-m3"
languages = ["en", "zh"]
[rerank]
provider = "endpoint"
base_url = "http://127.0.0.1:8002/v1"
model = "m"
api_key = "{SECRET}"
""",
    """
enable_summary = true
[decomposition]
max_level = 2
max_children = 4
[search]
strategy = "mine"
[[strategies.mine]]
stage = "lexical"
[[strategies.mine]]
stage = "fusion"
k = 60
[[strategies.mine]]
stage = "rerank"
[routing.types.enumeration]
strategy = "mine"
post = [{stage = "dedup", threshold = 0.9}]
[prices]
llm_input = {qwen3-32b = 0.5}
llm_output = {qwen3-32b = 1}
[flower]
basic_auth = "a:b"
[chunking.kinds]
"notes/" = "memory"
""",
)
_TOKENS = (
    *samples.tokens("toml"), *samples.tokens("settings"), *Settings.model_fields,
    *(f"[{name}]\n" for name in Settings.model_fields),
)  # fmt: skip
_ASSIGNMENTS = (
    ["search.strategy=deep", "decomposition.max_children=4"],
    ['routing.types.enumeration={"strategy": "hybrid", "post": []}', "enable_summary=true"],
    ['embedding.languages=["en"]', "redis.url=redis://127.0.0.1:6390/0", "llm_base_url=http://h/v1"],
)
_NAMES = tuple(
    f"RAMIFY_{name.upper()}{f'__{inner.upper()}' if inner else ''}"
    for name, field in Settings.model_fields.items()
    for inner in ("", *getattr(field.annotation, "model_fields", {}))
)


def _loaded(given: Mapping[str, Any] | None = None) -> None:
    try:
        settings = load_settings(**(given or {}))
    except InputError as error:
        if SECRET in str(error) and not _misplaced():
            raise AssertionError("a secret is shown") from error
        raise
    setting_rows(settings)
    for name in settings.strategies:
        settings.stages_of(name)


def _misplaced() -> bool:
    """In a file that was changed, the secret may stand under any name."""
    return CONFIG_ENV in os.environ


@contextmanager
def _quiet() -> Iterator[None]:
    """No settings of a developer's, from the environment or the folder."""
    kept = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("RAMIFY_")}
    folder = Path.cwd()
    with tempfile.TemporaryDirectory() as empty:
        os.chdir(empty)
        try:
            yield
        finally:
            os.chdir(folder)
            os.environ.update(kept)


@contextmanager
def _from_file() -> Iterator[Run]:
    with _quiet():
        path = Path.cwd() / "fuzz.toml"

        def run(content: bytes) -> None:
            path.write_bytes(content)
            os.environ[CONFIG_ENV] = str(path)
            try:
                _loaded()
            finally:
                del os.environ[CONFIG_ENV]

        yield run


@contextmanager
def _from_environment() -> Iterator[Run]:
    def run(variables: Mapping[str, str]) -> None:
        os.environ.update(variables)
        try:
            _loaded()
        finally:
            for name in variables:
                del os.environ[name]

    with _quiet():
        yield run


def _apart(run: Run) -> Callable[[], Any]:
    @contextmanager
    def opened() -> Iterator[Run]:
        with _quiet(), always(run)() as inner:
            yield inner

    return opened


def _variables(mutator: Mutator) -> dict[str, str]:
    """A few variables as a process can have them: no NUL, and bytes that are no UTF-8 as Python reads those."""
    found = {}
    for _ in range(mutator.rng.choice((1, 1, 2, 4))):
        name = mutator.rng.choice(_NAMES)
        if mutator.rng.random() < 0.15:
            name = f"RAMIFY_{mutator.text([name[7:]], 100)}"
        value = mutator.json([{"a": 1}, [1], "x", 3, True, {"stage": "lexical"}])
        if mutator.rng.random() < 0.5:
            value = mutator.text(["true", "3", "0.5", "http://127.0.0.1/v1", "hybrid", "a,b"], 5000)
        if "KEY" in name or "AUTH" in name:
            value += SECRET
        found[_possible(name).replace("=", "")] = _possible(value)
    return found


def _possible(text: str) -> str:
    return os.fsdecode(text.encode("utf-8", "replace")).replace("\0", "")


def _target(name: str, make: Callable[[Mutator], Any], opened: Callable[[], Any], short: int) -> Target:
    return Target(
        name=f"settings_{name}",
        make=make,
        opened=opened,
        allowed=(InputError,),
        tokens=_TOKENS,
        short=short,
        full=100_000,
    )


TARGETS = (
    _target("file", lambda m: m.raw(_FILES), _from_file, 100),
    _target("environment", _variables, _from_environment, 60),
    _target(
        "set",
        lambda m: [m.text([one], 3000) for one in m.rng.choice(_ASSIGNMENTS)],
        _apart(lambda given: _loaded(parse_overrides(given))),
        60,
    ),
)
