"""`ramify eval` on the real engine: in a process of its own, and as jobs of a running stack. Slices of real sets."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.client import Ramify
from orchestrator.evaluation.dataset import load_dataset
from orchestrator.evaluation.pipeline import namespace_of
from tests.fakes.labelled import write_set

SETS = Path(__file__).parents[2] / "../shared/eval"
needs_sets = pytest.mark.skipif(not SETS.is_dir(), reason="the labelled sets are not beside the project")


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def evaluate(*arguments: object, data_dir: Path) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["--data-dir", str(data_dir), "eval", *map(str, arguments), "--json"])
    assert done.exit_code == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def unpacked(name: str, file: str) -> list[str]:
    return gzip.decompress((SETS / name / file).read_bytes()).decode().strip().split("\n")


def cut(name: str, folder: Path, questions: int, distractors: int) -> Path:
    """The first questions of a set, over their relevant documents and the first others."""
    asked = [json.loads(line) for line in unpacked(name, "queries.jsonl.gz")][:questions]
    rows = [line.split("\t") for line in unpacked(name, "qrels.tsv.gz")]
    ids = {question["id"] for question in asked}
    judged = [(q, d, int(grade)) for q, d, grade in rows[1:] if q in ids]
    wanted = {document for _, document, _ in judged}
    corpus = [json.loads(line) for line in unpacked(name, "corpus.jsonl.gz")]
    kept = [d for place, d in enumerate(corpus) if d["id"] in wanted or place < distractors]
    return write_set(folder, documents=kept, questions=asked, qrels=judged, packed=True)


@needs_sets
def test_given_chinese_questions_when_run_directly_then_keyword_search_finds_nearly_all(tmp_path: Path) -> None:
    folder = cut("cmrc2018", tmp_path / "zh", questions=20, distractors=200)
    found = evaluate(folder, "--direct", "--strategy", "bm25_only", data_dir=tmp_path / "data")
    (arm,) = found["arms"]
    assert arm["metrics"]["ndcg@10"] > 0.95
    assert arm["failed"] == 0
    assert arm["latency_ms"]["p50"] > 0


@needs_sets
def test_given_gold_subquestions_when_run_as_the_plan_then_more_evidence_is_found(tmp_path: Path) -> None:
    folder = cut("musique", tmp_path / "hops", questions=15, distractors=400)
    plain = evaluate(folder, "--direct", data_dir=tmp_path / "data")
    planned = evaluate(folder, "--direct", "--plan", "decomposition.filled", data_dir=tmp_path / "data")
    assert planned["method"]["plan"] == "decomposition.filled"
    assert planned["arms"][0]["metrics"]["all@10"] > plain["arms"][0]["metrics"]["all@10"]


def test_given_a_running_stack_when_run_then_jobs_answer_and_the_corpus_stays_for_the_next_run(
    bare: Ramify, tmp_path: Path
) -> None:
    folder = write_set(tmp_path / "mini")
    arguments = (folder, "--strategy", "default", "--strategy", "bm25_only")
    first = evaluate(*arguments, data_dir=bare.settings.data_dir)
    again = evaluate(*arguments, data_dir=bare.settings.data_dir)
    assert first["method"]["mode"] == "pipeline"
    assert first["arms"][0]["metrics"]["mrr@10"] == 1.0
    assert all(arm["job_ms"]["p50"] >= arm["latency_ms"]["p50"] > 0 for arm in first["arms"])
    assert [arm["metrics"] for arm in again["arms"]] == [arm["metrics"] for arm in first["arms"]]
    namespace = namespace_of(load_dataset(folder).corpus)
    assert bare.find("redis streams", filters={"namespace": namespace}).hits[0].path == "corpus.jsonl#d1"


def test_given_a_job_that_is_kept_when_asked_again_then_its_answer_and_both_strategies_stand_side_by_side(
    ramify: Ramify,
) -> None:
    job_id = ramify.submit("What is the visibility timeout of Celery on Redis?")
    ramify.wait(job_id)
    arms = ("--strategy", "adaptive", "--strategy", "keyword")
    found = evaluate("--from-jobs", 1, *arms, data_dir=ramify.settings.data_dir)
    assert [column["strategy"] for column in found["columns"]] == ["kept answer", "adaptive", "keyword"]
    assert all(column["latency_ms"]["p50"] > 0 and not column["failed"] for column in found["columns"])
    same = found["agreements"][0]
    assert (same["a"], same["b"], same["n"], same["overlap"]) == ("kept answer", "adaptive", 1, 1.0)
