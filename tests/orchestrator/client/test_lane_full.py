"""A lane that is full refuses in one sentence, and a batch says how far it came."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import redis
from click.testing import Result
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.client import Ramify
from orchestrator.intake import BatchFullError
from shared.errors import LaneFullError
from shared.jobs import JobStore
from shared.settings import Settings, load_settings

LANES = {"max_waiting_interactive": 4, "max_waiting_batch": 10, "tenant_share": 1.0, "under_way": 2}


@pytest.fixture
def small(settings: Settings, client: redis.Redis) -> Settings:
    return load_settings(redis={"url": settings.redis.url}, data_dir=settings.data_dir, lanes=LANES)


@pytest.fixture
def shell(small: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same settings for the command line."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAMIFY_REDIS__URL", small.redis.url.get_secret_value())
    for name, value in LANES.items():
        monkeypatch.setenv(f"RAMIFY_LANES__{name.upper()}", str(value))


def ramify(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def write(count: int, *more: str) -> str:
    lines = [*(f"why, {n}?" for n in range(count)), *more]
    Path("questions.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return "questions.jsonl"


@pytest.mark.usefixtures("shell")
def test_ask_is_refused_in_one_sentence(small: Settings) -> None:
    with Ramify(small) as client:
        taken = [client.submit(f"why, {n}?") for n in range(5)]  # one is under way, four wait
        done = ramify("ask", "once more?", "--detach")
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr.count("\n") == 1
        assert "4 jobs wait in the interactive lane, all that lanes.max_waiting_interactive allows" in done.stderr
        client.cancel(taken[-1])
        assert ramify("ask", "once more?", "--detach").exit_code == 0


@pytest.mark.usefixtures("shell")
@pytest.mark.parametrize("wait", [(), ("--wait",)])
def test_a_batch_that_is_refused_midway_says_how_far_it_came(small: Settings, wait: tuple[str, ...]) -> None:
    """given room for 10 of 14 questions, one line that cannot be taken and a blank one before the last that could"""
    lines = [*(f"why, {n}?" for n in range(5)), '{"question": ""}', "", *(f"how, {n}?" for n in range(9))]
    Path("questions.jsonl").write_text("\n".join(lines), encoding="utf-8")
    done = ramify("batch", "questions.jsonl", "--json", *wait)
    assert done.exit_code == 1
    found = json.loads(done.stdout.splitlines()[-1] if wait else done.stdout)
    assert (found["enqueued"], found["rejected"], found["refused_from_line"]) == (10, 5, 13)
    assert "4 lines from line 13 on found no room" in found["error"]
    assert f"`ramify batch --resume {found['batch_id']}` goes on behind line 16" in found["error"]
    assert f"batch {found['batch_id']}" in done.stderr
    assert "lanes.max_waiting_batch allows" in done.stderr
    with Ramify(small) as client:
        status = client.batch_status(found["batch_id"])
        assert (status.lines, status.enqueued, status.rejected, status.blank) == (16, 10, 5, 1)
        assert status.outcomes() == {"open": 10}
        refused = [line for line in client.batch_lines(found["batch_id"]) if line.line >= 13]
        assert all("lanes.max_waiting_batch allows" in (line.reason or "") for line in refused)


@pytest.mark.usefixtures("shell")
def test_lines_of_other_tenants_behind_the_refused_one_are_told(
    small: Settings, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAMIFY_LANES__TENANT_SHARE", "0.5")
    other = '{"question": "why?", "tenant": "acme"}'
    done = ramify("batch", write(7, other, other), "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["enqueued"], found["refused_from_line"]) == (1, 7, 6)
    assert "2 lines from line 6 on found no room" in found["error"]
    assert "its share of lanes.max_waiting_batch" in found["error"]
    assert JobStore(client, small).admission.under_way() != {}


def test_a_program_learns_what_was_taken(small: Settings) -> None:
    with Ramify(small) as client:
        with pytest.raises(BatchFullError) as caught:
            client.submit_many([f"why, {n}?" for n in range(13)])
        assert isinstance(caught.value, LaneFullError)
        assert caught.value.lines == (11, 12, 13)
        assert client.batch_status(caught.value.batch_id).enqueued == 10


def test_an_idempotency_key_that_was_refused_is_taken_later(small: Settings) -> None:
    with Ramify(small) as client:
        first = [client.submit(f"why, {n}?") for n in range(5)]
        with pytest.raises(LaneFullError):
            client.submit("why?", idempotency_key="k")
        client.cancel(first[-1])
        job_id = client.submit("why?", idempotency_key="k")
        assert client.status(job_id).state == "queued"
        assert client.submit("why?", idempotency_key="k") == job_id
