"""`serve` without its extra, and `pools` without a stack."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app


def test_given_no_extra_when_served_then_one_sentence_says_which_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.cli.serve.find_spec", lambda _: None)
    done = CliRunner().invoke(app, ["serve"])
    assert (done.exit_code, done.stderr) == (
        1,
        "error: HTTP is not installed: `pip install 'ramify[server]'` adds what it needs\n",
    )


@pytest.mark.parametrize("command", ["serve", "pools"])
def test_given_no_stack_when_run_then_one_sentence_says_how_to_start_it(command: str) -> None:
    done = CliRunner().invoke(app, [command])
    assert done.exit_code == 1
    assert done.stderr.startswith("error: Ramify is not running here: start it with `ramify up -d`")
