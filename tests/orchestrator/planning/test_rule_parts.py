"""Every part that the rules make of a question says what it is about: a table of whole plans, read by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.planning.planner import decompose_by_rules

TABLE = Path(__file__).parents[2] / "data" / "rules_parts.jsonl"
CASES = [json.loads(line) for line in TABLE.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("case", CASES, ids=[case["question"][:40] for case in CASES])
def test_given_a_question_when_split_then_its_parts_are_those_of_the_table(case: dict[str, object]) -> None:
    assert [sub.query for sub in decompose_by_rules(str(case["question"]), 6).subqueries] == case["parts"]
