"""The template and its copies, as real processes: a copy is what was ordered; whatever fails, nobody waits for it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from orchestrator.local import copies
from orchestrator.local.child_process import Program
from orchestrator.local.copies import Template
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(not copies.can_copy(), reason="copies need Linux")

APP = "from celery import Celery\napp = Celery('tiny', broker='memory://', set_as_current=False)\n"
THREADED = (
    f"{APP}import threading\nthreading.Thread(target=threading.Event().wait, name='idler', daemon=True).start()\n"
)
BROKEN = "raise SystemExit('this app is broken')\n"
CELERY = (sys.executable, "-m", "celery")
VERSION = Program("version", (*CELERY, "--version"), copied=True)
WORKER = Program(
    "worker", (*CELERY, "-A", "tiny", "worker", "-P", "solo", "-n", "tiny@here", "-l", "INFO"), copied=True
)


@pytest.fixture
def template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Template]]:
    """Starts templates that have loaded these apps, or have ended of it."""
    for name, text in {"tiny": APP, "threaded": THREADED, "broken": BROKEN}.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    started: list[Template] = []

    def start(*apps: str) -> Template:
        one = Template(apps, [WORKER], tmp_path / "template.log")
        started.append(one)
        one.start()
        until(lambda: not one.loading(), 20)
        return one

    yield start
    for one in started:
        one.give_up()
        one.wait(10)


def test_a_copy_runs_what_was_ordered_and_writes_to_its_own_log(template, tmp_path: Path) -> None:
    copy = template("tiny").copy(VERSION, tmp_path / "version.log")
    assert copy is not None
    assert copy.wait(20) == 0
    assert (tmp_path / "version.log").read_text().startswith("5.")
    assert (tmp_path / "template.log").read_text() == ""


def test_a_copy_is_a_child_of_ours_in_a_session_of_its_own_under_its_own_name(template, tmp_path: Path) -> None:
    one = template("tiny")
    assert psutil.Process(one.pid).cmdline()[1:4] == ["-m", "orchestrator.local.template", "tiny"]
    copy = one.copy(WORKER, tmp_path / "worker.log")
    assert copy is not None
    try:
        process = psutil.Process(copy.pid)
        assert process.ppid() == os.getpid()
        assert os.getsid(copy.pid) == copy.pid
        assert tuple(word for word in process.cmdline() if word) == WORKER.argv
        until(lambda: "tiny@here ready" in (tmp_path / "worker.log").read_text(), 20)
        one.give_up()
        assert one.wait(10)
        assert copy.poll() is None, "it needs its template no more"
        process.terminate()
        assert copy.wait(20) == 0, "a worker's warm stop"
    finally:
        psutil.pid_exists(copy.pid) and copy.poll() is None and os.kill(copy.pid, signal.SIGKILL)


def test_how_a_copy_was_killed_is_seen(template, tmp_path: Path) -> None:
    copy = template("tiny").copy(WORKER, tmp_path / "worker.log")
    assert copy is not None
    os.kill(copy.pid, signal.SIGKILL)
    assert copy.wait(10) == -signal.SIGKILL == copy.poll()


def test_what_is_not_made_for_it_is_not_copied(template, tmp_path: Path) -> None:
    one = template("tiny")
    assert one.copy(Program("redis", ("true",)), tmp_path / "log") is None
    other = Program("flower", WORKER.argv, {"SECRET": "s3cret"}, copied=True)
    assert one.copy(other, tmp_path / "log") is None, "it would not see its environment"


def test_an_app_that_cannot_be_loaded_is_told_and_the_others_are_copied(template, tmp_path: Path) -> None:
    copy = template("broken", "tiny").copy(VERSION, tmp_path / "version.log")
    assert copy is not None
    assert copy.wait(20) == 0
    assert "this app is broken" in (tmp_path / "template.log").read_text()


def test_code_that_starts_threads_is_not_copied_and_the_log_names_them(template, tmp_path: Path) -> None:
    one = template("threaded")
    assert one.exit_code() == 1
    assert one.copy(WORKER, tmp_path / "log") is None
    assert "idler" in (tmp_path / "template.log").read_text()


def test_a_template_that_was_killed_is_no_obstacle_and_comes_back(template, tmp_path: Path) -> None:
    one = template("tiny")
    os.kill(one.pid, signal.SIGKILL)
    assert one.wait(10)
    assert one.copy(VERSION, tmp_path / "log") is None
    assert not one.loading()
    one.start()
    until(one.ready, 20)
    copy = one.copy(VERSION, tmp_path / "log")
    assert copy is not None
    assert copy.wait(20) == 0


def test_a_template_that_does_not_answer_is_given_up(template, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "_COPY_S", 0.3)
    one = template("tiny")
    os.kill(one.pid, signal.SIGSTOP)
    assert one.copy(VERSION, tmp_path / "version.log") is None
    assert one.wait(10)
    assert one.exit_code() == -signal.SIGKILL
