"""What `judge` keeps, what it refuses and by which check, and that hostile text costs it little."""

from __future__ import annotations

import random
import time
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.grounding import Verdict, judge
from shared.grounding.judging import MAX_CLAIM_TOKENS, PART_CHARS

_TABLE = tomllib.loads((Path(__file__).parents[2] / "data" / "claims.toml").read_text(encoding="utf-8"))["passage"]
_KEPT = [(claim, row["text"]) for row in _TABLE for claim in row["supported"]]
_REFUSED = [
    (kind, claim, row["text"]) for row in _TABLE for kind, claims in row.get("refused", {}).items() for claim in claims
]


@pytest.mark.parametrize(("claim", "passage"), _KEPT)
def test_given_a_claim_that_the_passage_makes_when_judged_then_it_is_supported(claim: str, passage: str) -> None:
    found = judge(claim, [passage])
    assert found.verdict is Verdict.SUPPORTED, found


@pytest.mark.parametrize(("kind", "claim", "passage"), _REFUSED)
def test_given_a_claim_that_says_another_thing_when_judged_then_the_check_of_that_name_objects(
    kind: str, claim: str, passage: str
) -> None:
    found = judge(claim, [passage])
    assert (found.verdict, found.kind) == (Verdict.UNSUPPORTED, kind), found


def test_given_several_passages_when_judged_then_the_one_that_says_it_is_named() -> None:
    texts = [row["text"] for row in _TABLE]
    found = judge("更换之后，误报减少了40%。", texts)
    assert (found.verdict, found.kind, found.passage) == (Verdict.SUPPORTED, "quote", 2)


@pytest.mark.parametrize("marks", [" [1].", ".[1][2]", " [1, 2].", "[12]."])
def test_given_numbers_of_sources_when_judged_then_they_are_no_part_of_the_claim(marks: str) -> None:
    passage = "Edda Voss built the pump in 1931."
    assert judge(f"Edda Voss built the pump in 1931{marks}", [passage]).kind == "quote"
    assert judge(f"Edda Voss built the pump in 1932{marks}", [passage]).kind == "number"
    assert judge("Edda Voss built pumps[7] in 1931.", [passage.replace("the pump", "pumps[8]")]).kind == "number"


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("Voss built the western pump.", "Nobody believes that Dr. Voss built the western pump."),
        ("西闸的水泵由韩建国修建。", "没有证据表明西闸的水泵由韩建国修建。"),
    ],
)
def test_given_a_part_of_a_sentence_when_judged_then_what_stands_before_it_is_read(claim: str, passage: str) -> None:
    assert judge(claim, [f"It rained. {claim}"]).kind == "quote"
    assert judge(claim, [passage]).verdict is Verdict.UNSUPPORTED


def test_given_no_passage_when_judged_then_only_what_states_nothing_stands() -> None:
    assert judge("The relay stores events.", []).verdict is Verdict.UNSUPPORTED
    assert judge("And so it is.", []).kind == "no claim"


def test_given_a_long_passage_when_judged_then_a_sentence_across_its_parts_is_found() -> None:
    claim = "The spare pump of the western lock was sealed by Ines Duarte on 4 May 2022."
    for before in (PART_CHARS - 30, 2 * PART_CHARS, 5 * PART_CHARS + 77):
        passage = "Nothing of note happened there. " * (before // 32) + claim + " It rained." * 900
        assert judge(claim, [passage]).kind == "quote"
        assert judge(claim.replace("2022", "2021"), [passage]).kind == "number"


def test_given_a_claim_that_is_no_sentence_when_judged_then_it_is_said_that_it_was_not_read() -> None:
    found = judge("word " * (MAX_CLAIM_TOKENS + 1), ["word " * 400])
    assert (found.verdict, found.kind) == (Verdict.UNSUPPORTED, "too long")


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60), st.text(max_size=200))
def test_given_any_texts_when_judged_then_there_is_a_verdict_and_a_reason(claim: str, passage: str) -> None:
    found = judge(claim, [passage])
    assert found.verdict is Verdict.SUPPORTED or found.reason


@pytest.mark.parametrize("marks", ["a b", "不没有的", "1 2", "Aa Bb", "not x"])
def test_given_hostile_repeats_when_judged_then_ten_times_the_passage_takes_about_ten_times_as_long(marks: str) -> None:
    draw = random.Random(7)
    letters = marks.split() if " " in marks else list(marks)
    claim = " ".join(draw.choice(letters) for _ in range(120))
    took = []
    for length in (800, 8_000):
        passage = " ".join(draw.choice(letters) for _ in range(length))
        started = time.process_time()
        judge(claim, [passage])
        took.append(time.process_time() - started)
    assert took[1] < 30 * took[0] + 0.5
