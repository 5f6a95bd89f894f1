"""How long the rules take for a question, and how real question sets are read by them.

Run: python -m pytest -m benchmark -s tests/benchmarks/bench_route.py
The sets are read where they lie beside the project; nothing of them is kept here.
"""

from __future__ import annotations

import gzip
import json
import time
from collections import Counter
from pathlib import Path

import pytest

from shared.language.routing import route_by_rules

ROOT = Path(__file__).parents[2]
EVAL = ROOT / "../shared" / "eval"
QUESTIONS = ROOT / "tests" / "data" / "routes.jsonl"
ROUNDS, MICROSECONDS = 7, 100.0
HOPPING = {"musique": 0.75, "2wiki": 0.95, "hotpotqa": 0.4}  # share that must be read as multi_hop, by form alone
PLAIN = ("scifact", "cmrc2018", "t2ranking_mini")

pytestmark = pytest.mark.benchmark


def questions(name: str) -> list[str]:
    with gzip.open(EVAL / name / "queries.jsonl.gz", "rt", encoding="utf-8") as stream:
        return [json.loads(line)["text"] for line in stream]


def read_as(texts: list[str]) -> dict[str, float]:
    """Share of each reading; a complex question counts under its hops, an unsure one as unsure."""
    found = [route_by_rules(text) for text in texts]
    counts = Counter("unsure" if one.unsure else (one.hops or one.type).value for one in found)
    return {name: counts[name] / len(found) for name in sorted(counts)}


def microseconds(texts: list[str]) -> float:
    """CPU time for one question, the best of several rounds: the machine is shared."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        for text in texts:
            route_by_rules(text)
        best = min(best, time.process_time() - started)
    return best / len(texts) * 1e6


def test_a_question_takes_less_than_a_hundred_microseconds() -> None:
    texts = [json.loads(line)["text"] for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    spent = microseconds(texts)
    longest = microseconds(["What is the capital of the country that " + "x " * 2000] * 20)
    print(f"\n{len(texts)} questions: {spent:.0f} microseconds each; 4,000 characters: {longest:.0f}")
    assert spent < MICROSECONDS


@pytest.mark.skipif(not EVAL.is_dir(), reason="the evaluation sets are not beside the project")
def test_real_sets_are_read_as_their_form_says() -> None:
    for name in (*HOPPING, *PLAIN):
        texts = questions(name)
        shares = read_as(texts)
        print(f"\n{name}: {', '.join(f'{key} {value:.1%}' for key, value in shares.items())}")
        assert shares.get("none", 0) == 0
        if name in HOPPING:
            assert shares["multi_hop"] >= HOPPING[name]
        else:
            assert shares.get("enumeration", 0) == 0
            assert shares["simple_rule"] + shares.get("unsure", 0) >= 0.9
