"""The rules on the labelled questions: how many types are right, and the page in docs/routing.md that shows it.

To write the page anew:
PYTHONPATH=. python -c "from tests.shared.language.test_routing_questions import rewrite; rewrite()"
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from shared.language.routing import route_by_rules
from shared.models.route import Routed

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "routing.md"
CASES = [json.loads(line) for line in (ROOT / "tests/data/routes.jsonl").read_text(encoding="utf-8").splitlines()]
TYPES = ("simple_rule", "complex_reasoning", "enumeration", "none")
BEGIN, END = "<!-- figures: tests/shared/language/test_routing_questions.py -->", "<!-- end of figures -->"


def routed(split: str) -> list[tuple[dict, Routed]]:
    return [(case, route_by_rules(case["text"])) for case in CASES if case["split"] == split]


def right(case: dict, found: Routed) -> bool:
    return not found.unsure and found.type == case["type"]


def share(values: Iterable[bool]) -> str:
    seen = list(values)
    return f"{sum(seen)} of {len(seen)} ({100 * sum(seen) / len(seen):.1f} %)"


def matrix(pairs: list[tuple[dict, Routed]]) -> list[str]:
    counts = Counter((case["type"], "unsure" if found.unsure else found.type.value) for case, found in pairs)
    names = (*TYPES, "unsure")
    lines = [f"| is \\ read as | {' | '.join(names)} |", f"| --- {'| ---: ' * len(names)}|"]
    return [*lines, *(f"| {kind} | {' | '.join(str(counts[kind, name]) for name in names)} |" for kind in TYPES)]


def figures() -> str:
    lines = []
    for split in ("test", "tune"):
        pairs = routed(split)
        complex_ones = [(case, found) for case, found in pairs if case["hops"]]
        lines += [
            f"### The {split} half ({len(pairs)} questions)",
            "",
            *matrix(pairs),
            "",
            f"- types right (unsure counts as wrong): {share(right(*pair) for pair in pairs)}",
            *(
                f"  - {lang}: {share(right(*pair) for pair in pairs if pair[0]['lang'] == lang)}"
                for lang in ("en", "zh", "mixed")
            ),
            f"- sure and wrong: {share(not found.unsure and found.type != case['type'] for case, found in pairs)}",
            f"- unsure: {share(found.unsure for _, found in pairs)}",
            f"- hops right, of complex questions: {share(found.hops == case['hops'] for case, found in complex_ones)}",
            f"- intents right: {share(found.intent == case['intent'] for case, found in pairs)}",
            "",
        ]
    return "\n".join(lines)


def rewrite() -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{figures()}\n{END}{after}", encoding="utf-8")


def test_given_the_set_when_counted_then_all_types_and_languages_are_in_both_halves():
    assert len(CASES) == len({case["text"] for case in CASES}) >= 240
    for split in ("tune", "test"):
        own = [case for case in CASES if case["split"] == split]
        assert {(case["lang"], case["type"]) for case in own} == {(a, b) for a in ("en", "zh", "mixed") for b in TYPES}
        assert 0.07 <= sum(case["lang"] == "mixed" for case in own) / len(own) <= 0.15
    assert all((case["hops"] is not None) == (case["type"] == "complex_reasoning") for case in CASES)


@pytest.mark.parametrize("split", ["tune", "test"])
def test_given_the_labelled_questions_when_routed_by_rules_then_nine_in_ten_types_are_right_and_few_are_surely_wrong(
    split,
):
    pairs = routed(split)
    assert sum(right(*pair) for pair in pairs) / len(pairs) >= 0.9
    assert sum(not found.unsure and found.type != case["type"] for case, found in pairs) / len(pairs) <= 0.05
    assert sum(found.intent == case["intent"] for case, found in pairs) / len(pairs) >= 0.85


def test_given_any_labelled_question_when_routed_then_the_reasons_are_named():
    for case in CASES:
        found = route_by_rules(case["text"])
        assert found.reasons or found.unsure
        assert found.by == "rules"


def test_given_the_page_when_read_then_its_figures_are_those_of_the_rules():
    page = PAGE.read_text(encoding="utf-8")
    assert f"{BEGIN}\n\n{figures()}\n{END}" in page
