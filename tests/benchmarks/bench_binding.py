"""Dependent plans on musique: its own sub-questions with `#1` in them, bound by names and by a reader of 3 passages.

Run: pytest -m benchmark -s tests/benchmarks/bench_binding.py
RAMIFY_TEST_BENCH_DATA names a data folder whose index is kept between runs; without it the corpus is embedded anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from orchestrator.evaluation.compare import compare
from orchestrator.evaluation.dataset import Dataset, load_dataset
from orchestrator.evaluation.direct import direct
from orchestrator.evaluation.labels import plans_of
from orchestrator.evaluation.runner import run_arms
from shared.language.text import question_key
from shared.settings import Settings, load_settings
from tests.fakes.openai_server import FakeOpenAI

SHARED = Path(__file__).parents[2] / "../shared"
MODEL = "all-MiniLM-L6-v2-int8"
_ASKED = re.compile(r"<user_query>\n(.*?)\n</user_query>", re.DOTALL)
_PASSAGES = re.compile(r"<passages>\n(.*)\n</passages>", re.DOTALL)

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(
        not (SHARED / "eval" / "musique").is_dir(), reason="the evaluation sets are not beside the project"
    ),
]


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return load_dataset(SHARED / "eval" / "musique")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kept = os.environ.get("RAMIFY_TEST_BENCH_DATA")
    return Path(kept) if kept else tmp_path_factory.mktemp("bench")


def reader(dataset: Dataset) -> Callable[[Mapping[str, Any]], str]:
    """Answers a sub-question with the data set's answer if that stands in the passages it is shown, and only then.

    It knows a sub-question by its exact words, right answers of earlier steps included.
    """
    steps = [step for question in dataset.questions for step in question.labels["decomposition"]]
    answers = {question_key(step["filled"]): step["answer"] for step in steps}

    def read(body: Mapping[str, Any]) -> str:
        prompt = body["messages"][-1]["content"]
        asked, shown = _ASKED.findall(prompt)[-1], _PASSAGES.findall(prompt)[-1]
        answer = answers.get(question_key(unescape(asked)))
        if answer is None or answer.casefold() not in unescape(shown).casefold():
            return "<unknown/>"
        return f"<answer>{answer.replace('&', '&amp;')}</answer>"

    return read


def settings(folder: Path, **more: Any) -> Settings:
    path = (SHARED / "models" / MODEL).resolve()
    embedding = {"provider": "fastembed", "model": MODEL, "path": str(path), "batch_size": 1, "threads": 1}
    return load_settings(data_dir=folder, embedding=embedding, **more)


def measured(dataset: Dataset, field: str, chosen: Settings) -> dict[str, float]:
    plans, _ = plans_of(dataset.questions, field)
    with direct(dataset.corpus, chosen, lambda _done, _total: None) as runner:
        outcomes = run_arms(runner, dataset.questions, ("default",), plans, lambda: None)
    arm = compare(dataset, outcomes, mode="direct", plan=field).arms[0]
    print(f"\n{field}: {arm.metrics} {arm.latency_ms} {arm.calls}")
    assert arm.failed == 0
    return arm.metrics


def test_given_no_llm_when_names_are_bound_then_all_evidence_is_in_the_top_ten_in_57_of_100(
    dataset: Dataset, folder: Path
) -> None:
    assert measured(dataset, "decomposition.question", settings(folder))["all@10"] >= 0.57


def test_given_a_reader_of_three_passages_when_answers_are_bound_then_it_is_73_of_100(
    dataset: Dataset, folder: Path
) -> None:
    with FakeOpenAI() as fake:
        fake.handle("chat", reader(dataset))
        found = measured(dataset, "decomposition.question", settings(folder, llm_base_url=fake.url, llm_model="reader"))
        assert fake.prompts()
        assert all(prompt.count("<passage id=") <= 3 for prompt in fake.prompts())
    assert found["all@10"] >= 0.73


def test_given_an_independent_plan_when_merged_then_binding_took_nothing_from_it(
    dataset: Dataset, folder: Path
) -> None:
    found = measured(dataset, "decomposition.filled", settings(folder))
    assert found["all@10"] >= 0.81
    assert found["recall@5"] >= 0.85
