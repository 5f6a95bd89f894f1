"""A second strategy tried unseen on a running stack: answers stay as they are, `ramify ab` tells what it would do."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.client import Ramify
from tests.acceptance.conftest import NOTES, ingested, launched

QUESTIONS = ("What is the visibility timeout of Celery on Redis?", "redis streams", "缓存什么时候失效？")


@pytest.fixture(scope="module")
def shadowed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ramify]:
    shadow = {"strategy": "keyword", "share": 1.0, "per_minute": 100}
    for client in launched(tmp_path_factory.mktemp("shadowed"), shadow=shadow):
        yield ingested(client, NOTES)


def ab(client: Ramify, *arguments: object) -> Any:
    done = CliRunner().invoke(app, ["--data-dir", str(client.settings.data_dir), "ab", *map(str, arguments), "--json"])
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def asked(client: Ramify, question: str) -> list[tuple[str, float]]:
    job_id = client.submit(question)
    client.wait(job_id)
    return [(hit.chunk_id, hit.score) for hit in client.result(job_id).results]


def compared(client: Ramify, count: int) -> Any:
    """The report once so many runs are compared."""
    end = time.monotonic() + 60
    while (found := ab(client))["counts"].get("compared", 0) < count and time.monotonic() < end:
        time.sleep(0.5)
    assert found["counts"].get("compared", 0) == count, found["counts"]
    return found


def test_given_a_shadow_when_questions_are_asked_then_answers_stay_and_the_report_fills(
    shadowed: Ramify, tmp_path: Path
) -> None:
    first = [asked(shadowed, question) for question in QUESTIONS]
    found = compared(shadowed, len(QUESTIONS))
    assert [asked(shadowed, question) for question in QUESTIONS] == first
    (trial,) = found["trials"]
    whole = trial["rows"][0]
    assert (trial["live"], trial["shadow"], whole["type"], whole["n"]) == ("adaptive", "keyword", "all", 3)
    assert 0 < whole["overlap"]["mean"] <= 1
    assert whole["shadow"]["ms"]["p50"] > 0
    assert whole["quality"] is None
    assert len(shadowed.jobs(100)) == 2 * len(QUESTIONS), "only what was asked for is on the list"
    labels = tmp_path / "labels.jsonl"
    best = shadowed.find(QUESTIONS[1]).hits[0].path
    labels.write_text(json.dumps({"question": QUESTIONS[1].upper(), "relevant": [best]}), encoding="utf-8")
    compared(shadowed, 2 * len(QUESTIONS))
    judged = ab(shadowed, "--labels", labels)["trials"][0]["rows"][0]["quality"]
    assert (judged["n"], judged["live"] > 0) == (1, True)


def test_given_a_reset_when_asked_then_nothing_is_left_of_the_runs(shadowed: Ramify) -> None:
    before = ab(shadowed)["counts"].get("compared", 0)
    asked(shadowed, QUESTIONS[0])
    compared(shadowed, before + 1)
    assert ab(shadowed, "--reset") == {"forgotten": before + 1}
    found = ab(shadowed)
    assert (found["trials"], found["counts"], found["strategy"]) == ([], {}, "keyword")


def test_given_a_reset_with_labels_when_asked_then_it_is_refused(shadowed: Ramify, tmp_path: Path) -> None:
    arguments = ["--data-dir", str(shadowed.settings.data_dir), "ab", "--reset", "--labels", str(tmp_path / "x")]
    done = CliRunner().invoke(app, arguments)
    assert (done.exit_code, "leave out one of them" in done.stderr) == (2, True)
