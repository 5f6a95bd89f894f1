"""A `json.py` in the folder that Ramify is called from is data: nothing that Ramify starts imports it."""

from __future__ import annotations

import os
import pkgutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.evaluation import direct
from orchestrator.local import background, redis_binary
from orchestrator.local.child_process import Child, importable, launcher
from orchestrator.local.commands import flower, pools, worker
from shared.errors import PermanentError
from shared.providers.encoders import local
from shared.providers.model_cache import model_cache
from shared.providers.rerankers import fastembed_cross
from shared.settings import load_settings

BAIT = "open(__file__ + '.ran', 'w').close()\nraise ImportError('this must not be imported')\n"
APP = "import lazily_loaded\nfrom celery import Celery\n"
APP += "app = Celery('tiny', broker='memory://', include=['tiny_tasks'])\n"


def baited(folder: Path) -> Path:
    """A folder with a module of every name that Python or an installed package has, and of our own."""
    folder.mkdir()
    names = {module.name for module in pkgutil.iter_modules()} | set(sys.stdlib_module_names)
    for name in names | {"celeryconfig", "sitecustomize", "tiny", "tiny_tasks", "lazily_loaded"}:
        (folder / f"{name}.py").write_text(BAIT)
    return folder


def test_what_up_starts_imports_nothing_from_there(tmp_path: Path) -> None:
    own, foreign = tmp_path / "own", baited(tmp_path / "foreign")
    own.mkdir()
    for name, text in {"tiny": APP, "tiny_tasks": "", "lazily_loaded": ""}.items():
        (own / f"{name}.py").write_text(text)
    settings = load_settings()
    program = worker("search", pools(settings)["search"], settings, {})
    command = tuple("tiny" if word == "workers.app" else word for word in program.argv[: program.argv.index("worker")])
    env = {**os.environ, **importable()}
    env["PYTHONPATH"] += f"{os.pathsep}{own}"

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            (*launcher(signal.SIGKILL), *command, *words),
            cwd=foreign, env=env, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    def ran() -> list[Path]:
        return list(foreign.glob("*.ran"))

    done = run("report")
    assert "transport:memory" in done.stdout, done.stderr
    assert ran() == []
    env["PYTHONSAFEPATH"] = ""  # the attack is one
    run("report")
    assert ran()


def test_every_program_is_a_module_and_gets_the_safe_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path / "data")
    programs = [worker(name, pool, settings, {}) for name, pool in pools(settings).items()]
    for program in (*programs, flower("orchestrator.app", 5555, settings, {}, "a:b")):
        assert program.argv[:2] == (sys.executable, "-m")
        assert program.argv[2] in {"shared.tasks.celery_command", "orchestrator.monitor"}
    seen: list[str] = []

    def started(*_: object, env: dict[str, str], **__: object) -> None:
        seen.append(env["PYTHONSAFEPATH"])
        raise OSError("enough")

    monkeypatch.setattr(subprocess, "Popen", started)
    child = Child(programs[0], tmp_path / "log")
    for start in (lambda: background.start(settings), child.start, lambda: direct._SearchProcess({}, tmp_path / "log")):
        with pytest.raises(OSError, match="enough"):
            start()
    assert seen == ["1"] * 3


def test_a_redis_server_of_the_working_folder_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "redis-server").write_text("#!/bin/sh\ntouch ran\necho Redis server v=99.0.0\n")
    (tmp_path / "redis-server").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for entry in ("", ".", "./"):
        monkeypatch.setenv("PATH", f"{entry}{os.pathsep}{os.environ['PATH']}")
        assert redis_binary.find_binary() != Path("redis-server")
    assert [path.name for path in tmp_path.iterdir()] == ["redis-server"]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert redis_binary.find_binary() == tmp_path / "redis-server"


def test_models_are_not_taken_from_a_folder_that_every_user_can_make(monkeypatch: pytest.MonkeyPatch) -> None:
    fastembed = pytest.importorskip("fastembed")
    monkeypatch.delenv("FASTEMBED_CACHE_PATH", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/home/ann/.cache")
    seen: list[str] = []

    def load(_: str, *, cache_dir: str, **__: object) -> None:
        seen.append(cache_dir)
        raise OSError("enough")

    monkeypatch.setattr(fastembed, "TextEmbedding", load)
    monkeypatch.setattr("fastembed.rerank.cross_encoder.TextCrossEncoder", load)
    for start in (
        lambda: local._load(load_settings().embedding, 1),
        lambda: fastembed_cross.load_cross_encoder("m", ""),
    ):
        with pytest.raises(PermanentError, match="enough"):
            start()
    assert seen == ["/home/ann/.cache/fastembed"] * 2
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", "/models")
    assert model_cache() == "/models"
