"""The examples run as they stand, each as a process of its own, against a running stack and its server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.client import Ramify
from tests.support.http_server import served

_CLIENTS = Path(__file__).parents[2] / "examples" / "clients"
_QUESTION = "What is a consumer group of a Redis stream?"


@pytest.fixture(scope="module")
def url(ramify: Ramify) -> Iterator[str]:
    with served(ramify.settings) as address:
        yield address


def _run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which(command[0])
    if program is None:
        pytest.skip(f"there is no {command[0]} on this machine")
    return subprocess.run(
        [program, *command[1:], _QUESTION], cwd=_CLIENTS, env={**os.environ, **environment}, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("command", [(sys.executable, "ask.py"), ("node", "ask.mjs")])
def test_given_a_server_when_asked_by_an_example_then_events_and_an_answer_with_sources_come(
    url: str, command: tuple[str, ...]
) -> None:
    ended = _run(*command, RAMIFY_URL=url)
    assert ended.returncode == 0, ended.stderr
    assert "redis-streams.md" in ended.stdout
    assert [line.split()[0] for line in ended.stderr.splitlines()][-1] == "end"
    assert "state searching" in ended.stderr


def test_given_a_server_when_asked_with_curl_then_the_answer_is_json(url: str) -> None:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl on this machine")
    ended = _run("sh", "ask.sh", RAMIFY_URL=url)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["state"] == "done"
    assert "event: end" in ended.stderr


def test_given_a_server_when_chatted_with_by_openais_client_then_the_answer_and_its_sources_stream(url: str) -> None:
    ended = _run(sys.executable, "chat.py", RAMIFY_URL=url)
    assert ended.returncode == 0, ended.stderr
    assert "[1]" in ended.stdout
    assert "redis-streams.md" in ended.stdout


@pytest.mark.parametrize("over", ["stdio", "http"])
def test_given_an_agent_when_it_asks_over_mcp_then_the_answer_comes_and_its_source_is_read(
    ramify: Ramify, url: str, over: str
) -> None:
    where = {"RAMIFY_URL": url} if over == "http" else {"RAMIFY_DATA_DIR": str(ramify.settings.data_dir)}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ended = _run(sys.executable, "mcp_session.py", PATH=path, **where)
    assert ended.returncode == 0, ended.stderr
    assert "tools: " in ended.stderr
    assert "the answer is being written" in ended.stderr
    assert "<answer>" in ended.stdout
    assert "ramify://chunk/" in ended.stdout
    assert ended.stdout.rstrip().splitlines()[-1].strip()


@pytest.mark.parametrize(("name", "table"), [("mcp.json", "mcpServers"), ("vscode_mcp.json", "servers")])
def test_given_a_configuration_of_a_client_when_read_then_it_names_the_command_and_the_path(
    name: str, table: str
) -> None:
    servers = json.loads((_CLIENTS / name).read_text())[table]
    assert [servers["ramify"]["command"], servers["ramify"]["args"][-1]] == ["ramify", "mcp"]
    assert servers["ramify-over-http"]["url"].endswith("/mcp")
