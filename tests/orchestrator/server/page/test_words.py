"""The catalogues of the page: each language has every text, with the same values, and none is asked for that lacks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator.records.causes import Cause
from orchestrator.server.page import words as catalogue_room
from orchestrator.server.page.words import LANGUAGES, Words, asked_language, catalogue
from shared.grounding.checks import CHECKS
from shared.jobs.states import Outcome, State
from shared.models import Facet, Lane, LeafStatus
from shared.models.batch import LineKind
from shared.models.degraded import Degradation
from shared.models.verdicts import AnswerVerdict, StaleReason

ROOM = Path(catalogue_room.__file__).parent


def test_every_language_has_every_text_with_the_same_values() -> None:
    english = catalogue("en")
    for language in LANGUAGES:
        other = catalogue(language)
        assert sorted(other) == sorted(english)
        for key, text in english.items():
            values = set(re.findall(r"\{(\w+)\}", text))
            assert set(re.findall(r"\{(\w+)\}", other[key])) <= values | {"n"}, key
            assert other[key].strip(), key


def test_every_text_that_templates_and_code_name_is_there() -> None:
    sources = [*ROOM.glob("templates/*.html"), *ROOM.glob("*.py")]
    texts = [file.read_text() for file in sources]
    named = {key for text in texts for key in re.findall(r"""\b(?:t|words)\(\s*["']([a-z]+\.\w+)["'][,)]""", text)}
    assert len(named) > 100
    assert named <= set(catalogue("en"))


def test_scripts_say_nothing_that_lacks() -> None:
    said = {key for file in ROOM.glob("static/*.js") for key in re.findall(r'\bsay\("(\w+)"', file.read_text())}
    assert said
    assert said <= set(Words("zh").for_scripts())


@pytest.mark.parametrize(
    ("section", "codes"),
    [
        ("state", [*State, *Outcome, *LineKind]), ("leaf", list(LeafStatus)), ("facet", list(Facet)),
        ("lane", list(Lane)),
        ("cause", list(Cause)),
        ("held", [kind for kind, _ in CHECKS]),
        ("verdict", list(AnswerVerdict)), ("degraded", list(Degradation)), ("stale", list(StaleReason)),
    ],
)  # fmt: skip
def test_every_code_has_a_word(section: str, codes: list[str]) -> None:
    for language in LANGUAGES:
        assert {f"{section}.{code}" for code in map(str, codes)} <= set(catalogue(language))


def test_a_code_of_a_newer_release_is_shown_as_it_is() -> None:
    assert Words("zh").named("verdict", "half_true") == "half true"


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"), ("en-GB", "en"), ("fr, zh-TW;q=0.5, en;q=0.4", "zh"), ("", "en"),
        ("zh;q=0, en;q=0.1", "en"), ("xx;q=zzz,,;;=", "en"), ("de", "en"),
    ],
)  # fmt: skip
def test_the_language_is_the_one_that_is_wanted_most(accepted: str, language: str) -> None:
    assert asked_language(accepted) == language


def test_numbers_choose_between_one_and_many() -> None:
    assert [Words("en")("tree.hits", n=n) for n in (1, 2, 1200)] == ["1 hit", "2 hits", "1,200 hits"]
    assert Words("zh")("tree.hits", n=2) == "2 条命中"
