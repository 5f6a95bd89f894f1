"""What kind of answer a question asks for, in both languages."""

from __future__ import annotations

import pytest

from shared.language import languages
from shared.language.answers import AnswerKind, AnswerRule, AnswerTable
from shared.language.base import FolderLanguage

RULES = [
    pytest.param(language.answers, rule, id=f"{language.code}-{rule.kind}")
    for language in languages()
    for rule in language.answers.asks
]


@pytest.mark.parametrize(("table", "rule"), RULES)
def test_given_an_example_of_a_rule_then_it_asks_for_that_kind(table: AnswerTable, rule: AnswerRule) -> None:
    for example in rule.examples:
        assert table.kind(example.lower().strip("?")) is rule.kind, example


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("who owns the relay, and since when", AnswerKind.DATE),
        ("is it slower than the other or not", None),
        ("which film came out first, a or b", AnswerKind.NAME),
        ("tell me about relays", None),
    ],
)
def test_given_a_question_then_its_first_rule_decides(question: str, kind: AnswerKind | None) -> None:
    english = next(language for language in languages() if language.code == "en")
    assert english.answers.kind(question) is kind


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("What do we know about the Yamadur depot?", "the Yamadur depot"),
        ("Tell me more about Okapi.", "Okapi"),
        ("What does the corpus say on fees?", "fees"),
        ("Is there anything about INC-42?", "INC-42"),
        ("What do we know?", ""),
        ("What does the relay say about itself when it stops, and why?", ""),
        ("How much does Okapi cost?", ""),
    ],
)
def test_given_a_question_for_anything_known_then_its_subject_is_read(question: str, subject: str) -> None:
    english = next(language for language in languages() if language.code == "en")
    assert english.answers.open_subject(question) == subject


def test_given_a_relation_then_no_word_of_it_is_lost() -> None:
    for language in languages():
        assert language.answers.relations
        for relation in language.answers.relations:
            assert len(set(relation.asked)) == len(relation.asked)
            assert len(set(relation.said)) == len(relation.said)


def test_given_a_language_without_the_table_then_it_asks_for_nothing_special() -> None:
    class Plain(FolderLanguage):
        code = "en.missing"

    assert Plain.answers.__doc__
    assert AnswerTable().kind("when") is None
    assert AnswerTable().pointing_back.match("it was") is None
