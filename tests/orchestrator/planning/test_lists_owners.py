"""Words that no reader knows, put into questions that are read whole: none is passed over without being named."""

from __future__ import annotations

import re
from itertools import product

import pytest

from orchestrator.planning.lists.closely import read_closely
from orchestrator.planning.lists.planner import listed_or_told
from shared.models import Filters
from tests.orchestrator.planning.test_lists_grammar import TODAY, under

#: Beside values, verbs and names of fields: each `{}` is a place where a word may stand.
PLACES = (
    "bugs {} seen {} on Switch {}", "{} open bugs {} on Switch", "which bugs {} are {} open {}?",
    "how many bugs {} are {} fixed {}?", "which {} bugs {} does Ines Vale {} handle?", "who {} handles {} open bugs?",
    "which platform {} has {} the most {} bugs?", "bugs that are {} open or {} fixed {}",
    "{}手机端{}的{}缺陷有哪些", "孙浩{}处理{}的{}缺陷", "{}处理中{}的缺陷{}有多少", "平台{}不是手机端{}的缺陷",
    "哪个平台{}的缺陷{}最多", "由谁{}处理{}手机端{}的缺陷",
    "{} open bugs {} by platform", "break the {} open bugs {} down by platform",
)  # fmt: skip
#: How often, how nearly, when, by whom else: what no filter can say, and words that mean nothing.
UNKNOWN = {
    True: ("twice", "almost", "repeatedly", "formerly", "at least two times", "weekly", "jointly", "purple", "blorked"),
    False: ("至少两次", "差点", "反复", "一度", "每周", "联合", "据说", "蓝鲸", "抖动", "不久前"),
}


@pytest.mark.parametrize("place", PLACES)
def test_given_a_word_that_no_reader_knows_when_a_list_is_made_then_the_word_is_named(place: str) -> None:
    silent = []
    for number, word in product(range(place.count("{}")), UNKNOWN[place.isascii()]):
        words = iter([word if each == number else "" for each in range(place.count("{}"))])
        question = " ".join(re.sub(r"\{\}", lambda _, words=words: next(words), place).split())  # type: ignore[misc]
        reading, known = read_closely(question, Filters(), under, TODAY)
        scan = listed_or_told(question, reading, known).scan
        if scan and not any(part in " ".join(scan.unread) for part in re.findall(r"[a-z]+|[一-鿿]{2}", word)):
            silent.append((question, scan.understood, scan.unread))
    assert silent == []


@pytest.mark.parametrize("question", ["bugs that went from open to fixed", "从处理中到已关闭的缺陷"])
def test_given_two_values_of_a_field_that_nothing_joins_when_read_then_that_is_no_silent_choice(question: str) -> None:
    reading, known = read_closely(question, Filters(), under, TODAY)
    scan = listed_or_told(question, reading, known).scan
    assert scan is None or scan.unread
