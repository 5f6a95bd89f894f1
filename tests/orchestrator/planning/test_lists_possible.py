"""A question that no rule of the router knows is a list where the corpus has the noun that it is about."""

from __future__ import annotations

import time
from datetime import date

import pytest

from orchestrator.planning.lists.possible import may_be_list, names_list
from orchestrator.planning.lists.reading import read_question
from orchestrator.planning.route import list_route, possible_list, route_request
from shared.models import Filters, JobRequest
from shared.models.enumeration import Values
from shared.settings import load_settings

VALUES = Values(
    kinds={"parcel": 9, "seedling": 4, "货单": 5, "note": 3},
    tags={"fragile": 3, "cold storage": 2, "冷藏": 2, "mount": 1},
    folders=("depot/", "depot/journals/", "货场/"),
    fields={"courier": {"Edda": 4, "Malik Osei": 2}, "status": {"lost": 3, "delivered": 5}, "经手人": {"周岚": 3}},
    documents=30,
)


def is_list(question: str, values: Values = VALUES) -> bool:
    scan = read_question(question, Filters(), values, date(2026, 11, 22)).scan
    return may_be_list(question) and scan is not None and names_list(question, values, scan)


@pytest.mark.parametrize(
    "question",
    [
        "lost parcels?",
        "fragile and lost parcels",
        "parcels whose courier is Edda",
        "How many parcels were lost?",
        "fragile parcels that nobody wants to carry",
        "Which parcels has Edda got tagged fragile",
        "parcels of May 2026",
        "Which journals are from 2025?",
        "What is in the journals folder?",
        "courier 是 Edda 的 parcels",
        "2025年第四季度的货单",
        "2026年有几张货单",
        "经手人为周岚的货单有哪些？",
        "#冷藏 的货单",
        "经手人是周岚、看着眼熟的货单",
        "货场文件夹里有什么",
        "any lost parcels left?",
        "parcels both lost and fragile",
        "a list of lost parcels",
        "2026年比较麻烦的货单",
        "contents of the journals folder",
        "帮我找一下冷藏货单",
        "It is Monday. Which parcels carry the tag fragile?",
        "The boss is asking: parcels of 2026",
        "For the report I need the lost parcels",
        "seedilngs, third quarter of 2025",
        "under depot/journals, those with status lost",
        "is anything still lost for Edda?",
        "货单，2025年第四季度的",
        "2026年的货单里经手人为周岚的",
        "货场文件夹里经手人为周岚的",
        "周岚经手的货单有哪些呀",
        "Edda 的 parcels 给我一下",
        "2026年总共有几张货单",
        "Which couriers have carried glorbed things?",
        "Who are the couriers of wimples?",
        "Is there anything glorbed that was lost?",
        "哪些经手人签过夯叠？",
        "周岚夯叠过哪些？",
    ],
)
def test_given_a_noun_that_the_corpus_has_and_what_is_said_of_it_when_read_then_it_is_a_list(question: str) -> None:
    assert is_list(question)
    assert not is_list(question, Values(documents=30))


@pytest.mark.parametrize(
    "question",
    [
        "How do I wrap a fragile parcel?",
        "Why are fragile parcels late in May 2026?",
        "who is the courier of parcels from 2025",
        "fragile parcel",  # one of them
        "fragile parcel label printer",
        "fragile parcels insurance form",  # the noun is a part of another
        "notes",  # nothing is said of them
        "label printer settings",
        "What is a lost parcel?",
        "differences between lost and delivered parcels",
        "the roof of parcels that are fragile",
        "The depot is cold. How do I wrap lost parcels?",
        "I need help with parcels of 2026",
        "show me how lost parcels are found",
        "Explain: lost parcels",
        "is anything odd about Edda in May 2026",
        "货单，周岚说是可以先放着的吗",
        "冷藏货单的签收人是谁",
        "货单一般多久能签下来？",
        "2026年货单里的违约金比例",
        "冷藏包装货单",
        "怎么处理2026年的货单",
        " ".join(["fragile parcels"] * 20),
        "Which couriers have met Zebulon Pike?",  # a name that no field has
        "Which lost things weigh over 3?",  # a bound that was not read
        "Which couriers have had wimples since the flood?",
        "Which couriers of snarvel vimpish throoped quorbled wimples are there?",
        "囫囵皴裂蘸甩夯叠的经手人有哪些？",
    ],
)
def test_given_another_question_when_read_then_it_is_searched_as_ever(question: str) -> None:
    assert not is_list(question)


@pytest.mark.parametrize("text", ["parcels " * 2000, "货单的" * 2000, "of " * 3000, "((" * 3000, "，" * 5000])
def test_given_a_hostile_question_when_read_then_it_takes_no_time(text: str) -> None:
    begun = time.thread_time()
    is_list(text)
    assert time.thread_time() - begun < 1.0


def test_given_a_possible_list_when_routed_then_the_route_says_what_is_left_to_decide_and_how_it_was_decided() -> None:
    settings = load_settings()
    route, _ = route_request(JobRequest(question="lost parcels?"), settings, None, 5)
    assert (route.type, route.planner, possible_list(route)) == ("simple_rule", "original", True)
    listed = list_route(route, settings)
    assert (listed.type, listed.planner, listed.row, listed.by) == (
        "enumeration",
        "enumeration",
        "enumeration",
        "corpus",
    )
    assert listed.reasons[0].words == "the corpus has what it names"
    assert not possible_list(listed)


@pytest.mark.parametrize(
    ("request_", "mode"),
    [
        (JobRequest(question="How do I wrap a parcel?"), True),
        (JobRequest(question="List all parcels"), True),
        (JobRequest(question="lost parcels?", decompose=False), True),
        (JobRequest(question="lost parcels?"), False),
    ],
)
def test_given_what_can_be_no_list_when_routed_then_the_corpus_is_not_asked(request_: JobRequest, mode: bool) -> None:
    settings = load_settings(routing={"adaptive": mode})
    assert not possible_list(route_request(request_, settings, None, 5)[0])


@pytest.mark.parametrize(("question", "unread"), [("哪些经手人夯在途？", "夯在途"), ("周岚夯的最多的有哪些？", "最多")])
def test_given_a_value_or_an_order_in_what_no_rule_reads_when_read_then_it_is_no_noun_but_unread(
    question: str, unread: str
) -> None:
    values = VALUES.model_copy(update={"fields": {**VALUES.fields, "进度": {"在途": 3}}})
    reading = read_question(question, Filters(), values, date(2026, 11, 22))
    assert not reading.noun
    assert any(unread in each for each in (*reading.unread, *reading.guessed))
