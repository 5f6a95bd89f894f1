"""What holds for every rule and for every text whatever."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared.language.routing import matches, prepared, route_by_rules
from shared.language.tables import RoutingTable, toml
from shared.models.route import QueryType

TYPE_OF = {"aspects": "complex_reasoning", "multi_hop": "complex_reasoning"}
TYPE_RULES = [
    (f"{lang}.{rule.name}", rule)
    for lang in ("en", "zh")
    for rule in RoutingTable.model_validate(toml(lang, "routing")).types
]
INTENT_RULES = [
    (f"{lang}.{rule.name}", rule)
    for lang in ("en", "zh")
    for rule in RoutingTable.model_validate(toml(lang, "routing")).intents
]


@pytest.mark.parametrize(("name", "rule"), TYPE_RULES, ids=[name for name, _ in TYPE_RULES])
def test_given_a_rules_own_examples_when_routed_then_it_fires_and_decides(name, rule):
    for each in rule.examples:
        fired = matches(prepared(each), lambda language: language.routing.type_rules)
        assert name in {fired_name for fired_name, _, _ in fired}
        routed = route_by_rules(each)
        assert (routed.type, routed.unsure) == (TYPE_OF.get(rule.says, rule.says), False)


@pytest.mark.parametrize(("name", "rule"), INTENT_RULES, ids=[name for name, _ in INTENT_RULES])
def test_given_an_intents_own_examples_when_routed_then_it_is_that_intent(name, rule):
    for each in rule.examples:
        routed = route_by_rules(each)
        assert routed.intent is rule.intent
        assert name in {reason.rule for reason in routed.reasons}


@pytest.mark.parametrize(
    ("polite", "plain"),
    [
        ("Hi, thanks! Could you please tell me where the runbook is?", "where the runbook is?"),
        ("ok great, thank you. And where is the invoice template?", "where is the invoice template?"),
        ("您好，请问发票模板放在哪里？谢谢", "发票模板放在哪里？"),
        ("Hello! List all services that still run Python 3.8.", "List all services that still run Python 3.8."),
    ],
)
def test_given_courtesies_before_a_question_when_routed_then_the_question_decides(polite, plain):
    assert route_by_rules(polite).type is route_by_rules(plain).type is not QueryType.NONE


@pytest.mark.parametrize(
    "text", ["", "   ", "???", "👍🎉", "\x00\x01", "\u200b\u202e", "hi", "谢谢", "Thanks a lot!", "，。！"]
)
def test_given_nothing_asked_when_routed_then_nothing_is_retrieved_and_the_reason_says_so(text):
    routed = route_by_rules(text)
    assert (routed.type, routed.unsure) == ("none", False)
    assert routed.reasons


@pytest.mark.parametrize(
    "text",
    [
        "データベースの設定はどこ",
        "데이터베이스 최적화 방법은?",
        "где лежит договор аренды квартиры, который мы подписали, и ещё",
    ],
)
def test_given_another_language_when_routed_then_it_is_at_most_a_lookup(text):
    routed = route_by_rules(text)
    assert routed.type is QueryType.SIMPLE_RULE


def test_given_traditional_characters_when_routed_then_it_reads_like_simplified():
    assert route_by_rules("列出所有還沒簽的合約").type is QueryType.ENUMERATION
    assert route_by_rules("樂觀鎖和悲觀鎖有什麼區別？").hops == "aspects"


def test_given_a_question_behind_a_long_text_when_routed_then_the_question_decides():
    text = (
        "The job failed at night. The log says nothing useful here. " * 60 + "\nList all services that call the ledger."
    )
    assert route_by_rules(text[-4000:]).type is QueryType.ENUMERATION


def test_given_rules_that_contradict_each_other_when_routed_then_it_is_unsure():
    routed = route_by_rules("Summarise all meetings with Acme")
    assert routed.unsure
    assert {reason.says for reason in routed.reasons} >= {"enumeration", "aspects"}


HARD = [
    "the " * 1000,
    "of the director of " * 250,
    "的导演的" * 1000,
    "and " * 1000,
    "which " * 660,
    "哪些" * 2000,
    "'s " * 1300,
    "a" * 4000,
    " " * 3999 + "a",
    "?" * 4000,
    "what? " * 660,
    "hi " * 1300,
    "ok, " * 1000,
    "你好，" * 1300,
    "how many " * 440,
    "所有" * 2000,
    "和" * 4000,
    "the city that " * 280,
    "between a and " * 280,
    "A or B, " * 500,
    "\n" * 4000,
    "（" * 4000,
    "x. Y" * 1000,
    "𝕏" * 4000,
    "ﷺ" * 4000,
    "🏳️‍🌈" * 600,
    "which film " + "a " * 400 + "or",
    "what " + "the x " * 600 + "that",
]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", HARD, ids=range(len(HARD)))
def test_given_a_hostile_text_when_routed_then_it_takes_milliseconds(text):
    text = text[:4000]
    route_by_rules(text)
    started = time.process_time()
    route_by_rules(text)
    assert time.process_time() - started < 0.1


WORDS = [
    *("the", "of", "director", "that", "which", "who", "what", "how", "many", "all", "list", "and", "or", "is", "are"),
    *(
        "vs",
        "first",
        "same",
        "both",
        "city",
        "'s",
        "mother",
        "hi",
        "thanks",
        ",",
        ".",
        "?",
        "!",
        "\n",
        "x",
        "Redis",
        "(",
    ),
    *(
        "的",
        "导演",
        "哪些",
        "所有",
        "列出",
        "和",
        "哪个",
        "更",
        "谁",
        "什么",
        "怎么",
        "为什么",
        "你好",
        "，",
        "？",
        "一共",
        "多少",
        "笔记",
    ),
]


@settings(max_examples=300, deadline=None)
@example("LIST:ALL:VS ㈠")
@given(st.one_of(st.text(max_size=600), st.lists(st.sampled_from(WORDS), max_size=80).map(" ".join)))
def test_given_any_text_when_routed_then_there_is_one_bounded_decision_and_always_the_same(text):
    routed = route_by_rules(text)
    assert routed == route_by_rules(text)
    assert 0 <= routed.confidence <= 1
    assert routed.unsure == (routed.confidence < 0.5)
    assert all(len(reason.words) <= 61 and reason.words.isprintable() for reason in routed.reasons)


@pytest.mark.parametrize(
    "text",
    [
        "Hey team, hope you're all well",
        "bye for now",
        "who are you and what can you do?",
        "谢谢你，太有帮助了",
        "你是谁？你能做什么？",
    ],
)
def test_given_courtesies_alone_then_nothing_is_searched(text):
    assert route_by_rules(text).type is QueryType.NONE


def test_given_a_question_behind_courtesies_then_it_is_searched():
    assert route_by_rules("Hope everyone is well. Where are the signing keys?").type is not QueryType.NONE
