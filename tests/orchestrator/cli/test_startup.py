"""`ramify` as a process of its own: what it imports, how it ends when nobody reads on, what it does with surprises."""

import os
import subprocess
import sys

import pytest

from orchestrator.cli import main

ENV = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
_IMPORTED = """
import sys
from orchestrator.cli.main import app
try:
    app([sys.argv[1]])
except SystemExit:
    pass
sys.exit(",".join({"celery", "qdrant_client", "qdrant_edge", "redis"} & set(sys.modules)) or 0)
"""


@pytest.mark.parametrize("command", ["--help", "config"])
def test_given_a_quick_command_when_run_then_celery_and_qdrant_are_not_imported(command):
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTED, command], capture_output=True, timeout=60, check=False, env=ENV
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("arguments", [["config"], ["config", "--json"]])
def test_given_a_reader_that_goes_away_when_printing_then_it_is_quiet(arguments):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator.cli.main", *arguments],
        stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False, env=ENV,
    )  # fmt: skip
    os.close(writing)
    assert done.stderr == b""
    assert done.returncode == 1


def test_given_a_terminal_that_is_not_utf8_when_printing_then_json_is_still_json():
    import json

    program = "from orchestrator.cli import streams; streams.document({'q': '\u7a7f\u900f'})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=60, check=True,
        env={**ENV, "PYTHONIOENCODING": "latin-1"},
    )  # fmt: skip
    assert json.loads(done.stdout) == {"q": "\u7a7f\u900f"}


def test_given_an_error_that_nobody_foresaw_when_run_then_it_is_one_line(monkeypatch, capsys):
    def broken(**_):
        raise ZeroDivisionError("\x1b[31mboom")

    monkeypatch.setattr(main, "app", broken)
    with pytest.raises(SystemExit, match="1"):
        main.run()
    assert (
        capsys.readouterr().err == "error: unforeseen: ZeroDivisionError: [31mboom (`ramify --debug ...` shows where)\n"
    )
