"""Ingests from the command line, on a real Redis, with the pools' tasks run by the test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from click.testing import Result
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.documents.ingest import Progress
from shared.settings import Settings
from tests.fakes.index_pool import IndexPool


@pytest.fixture
def pool(client: redis.Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[IndexPool]:
    monkeypatch.setenv("RAMIFY_REDIS__URL", settings.redis.url.get_secret_value())
    monkeypatch.setenv("RAMIFY_DATA_DIR", str(settings.data_dir))
    pool = IndexPool(client, settings)
    yield pool
    pool.close()


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    root.mkdir()
    for number in range(3):
        (root / f"{number}.md").write_text(f"# Page {number}\n\nvacuum {number}\n", encoding="utf-8")
    (root / "bad.md").write_bytes(b"\xff\xff")
    (root / "odd.xyz").write_text("?", encoding="utf-8")
    return root


def ramify(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "160"})


def test_given_a_detached_ingest_when_asked_for_then_each_command_knows_it(pool: IndexPool, notes: Path) -> None:
    done = ramify("ingest", str(notes), "--detach")
    assert done.exit_code == 0, done.stderr
    job_id = done.stdout.strip()
    assert f"ramify status {job_id} --watch" in done.stderr
    for _ in range(3):
        pool.step()
    assert "0 of 4 files read" in ramify("why", job_id).stdout
    assert "0 of 4 read" in ramify("status", job_id).stdout
    second = ramify("ingest", str(notes), "--detach")
    assert (second.exit_code, job_id in second.stderr) == (2, True)
    pool.run_all()
    shown = ramify("result", job_id)
    assert shown.exit_code == 3, "a file could not be read"
    for part in ("4 of 4 read", "3 added, 1 failed; 3 chunks written", "notes/bad.md", "1 .xyz: no reader"):
        assert part in shown.stdout
    as_json = json.loads(ramify("result", job_id, "--json").stdout)
    assert (as_json["counts"]["added"], as_json["failures"][0]["path"]) == (3, "notes/bad.md")
    assert json.loads(ramify("status", job_id, "--json").stdout)["ingest"]["read"] == 4
    listed = ramify("jobs").stdout
    assert "4/4 files" in listed
    assert f"ingest {notes} (1 failed)" in listed
    why = ramify("why", job_id).stdout
    assert "4 of 4 files read, 1 failed" in why
    assert f"ramify result {job_id}" in why
    followed = ramify("status", job_id, "--watch")
    assert "4 of 4 files read" in followed.stderr
    again = ramify("retry", job_id, "--json")
    assert json.loads(again.stdout)["retry_of"] == job_id, again.stderr


def test_given_an_ingest_that_is_cancelled_then_its_result_and_exit_code_say_so(pool: IndexPool, notes: Path) -> None:
    job_id = json.loads(ramify("ingest", str(notes), "--detach", "--json").stdout)["job_id"]
    pool.step()
    assert ramify("cancel", job_id).stdout.strip() == "cancelled"
    shown = ramify("result", job_id)
    assert (shown.exit_code, "cancelled" in shown.stdout) == (1, True)


def test_given_ctrl_c_when_an_ingest_is_followed_then_the_job_goes_on_and_it_is_said_how(
    pool: IndexPool, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(steps: Iterator[Progress], **_: object) -> None:
        next(iter(steps))
        raise KeyboardInterrupt

    monkeypatch.setattr("orchestrator.cli.corpus.follow_ingest", interrupted)
    done = ramify("ingest", str(notes))
    assert done.exit_code == 130
    (job_id,) = [job["job_id"] for job in json.loads(ramify("jobs", "--json").stdout)["jobs"]]
    assert f"job {job_id} goes on" in done.stderr
    assert f"`ramify cancel {job_id}` ends it" in done.stderr
    pool.run_all()
    assert len(pool.paths()) == 3


@pytest.mark.parametrize("wrong", [("--watch", "--detach"), ("--watch", "more")])
def test_given_a_watch_of_more_than_one_folder_or_detached_then_it_is_refused(
    pool: IndexPool, notes: Path, wrong: tuple[str, ...]
) -> None:
    done = ramify("ingest", str(notes), *wrong)
    assert done.exit_code == 2
    assert "name one folder, without --detach" in done.stderr
