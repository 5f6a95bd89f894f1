"""Parts that name nothing of their own are told what they are about.

Questions that nest: taken apart where the form shows it surely, left alone everywhere else.
"""

from __future__ import annotations

import time

import pytest

from orchestrator.planning.planner import decompose_by_rules
from orchestrator.planning.rule_split import nested


@pytest.mark.parametrize(
    ("question", "last"),
    [
        (
            "Why did checkout slow down in the spring of 2026, and what did we change afterwards?",
            "Regarding “Why did checkout slow down in the spring of 2026”: What did we change afterwards?",
        ),
        (
            "How do we restore the orders database from backup and what are the common mistakes?",
            "Regarding “How do we restore the orders database from backup”: What are the common mistakes?",
        ),
        ("2026 年春天下单为什么变慢，后来做了哪些改动？", "关于“2026 年春天下单为什么变慢”：后来做了哪些改动？"),
        ("缓存穿透、击穿和雪崩有什么区别，各怎么处理？", "关于“缓存穿透、击穿和雪崩有什么区别”：各怎么处理？"),
    ],
)
def test_a_part_without_a_thing_of_its_own_gets_the_part_before_as_context(question: str, last: str) -> None:
    sub = decompose_by_rules(question, 5).subqueries[-1]
    assert sub.query == last
    assert not sub.needs_refinement


@pytest.mark.parametrize(
    ("question", "last"),
    [
        ("How do I set up the test database and then run the migrations?", "How do I run the migrations?"),
        ("Why is Redis fast and where is it used?", "Where is Redis used?"),
    ],
)
def test_a_part_that_names_something_stays_as_it_is(question: str, last: str) -> None:
    assert decompose_by_rules(question, 5).subqueries[-1].query == last


NESTED = [
    ("Where was the director of film Shock Treatment (1964 Film) born?",
     ("Who is the director of film Shock Treatment (1964 Film)?", "Where was #1 born?")),
    ("When was the institution that owned The Collegian founded?",
     ("Which institution owned The Collegian?", "When was #1 founded?")),
    ("Who is the spouse of the performer of Changed It?",
     ("Who is the performer of Changed It?", "Who is the spouse of #1?")),
    ("Where was the place of death of Neferneferure's mother?",
     ("Who is the mother of Neferneferure?", "What is the place of death of #1?")),
    ("Who is the author of the novel written by Ann Lee?",
     ("Which novel was written by Ann Lee?", "Who is the author of #1?")),
    ("What is the capital of the country that won the World Cup in 1998?",
     ("Which country won the World Cup in 1998?", "What is the capital of #1?")),
    ("What language does the child of the director of Teesri Manzil speak?",
     ("Who is the director of Teesri Manzil?", "Who is the child of #1?", "What language does #2 speak?")),
    ("《霸王别姬》的导演的出生地是哪里", ("《霸王别姬》的导演是谁？", "#1的出生地是哪里？")),
    ("谁是《青花瓷》的作曲者的妻子？", ("《青花瓷》的作曲者是谁？", "#1的妻子是谁？")),
    ("《三体》的作者毕业于哪所学校？", ("《三体》的作者是谁？", "#1毕业于哪所学校？")),
    ("电影《活着》的原著的作者是谁？", ("电影《活着》的原著是什么？", "#1的作者是谁？")),
    ("《紅樓夢》的作者的父親是誰？", ("《紅樓夢》的作者是誰？", "#1的父親是誰？")),
]  # fmt: skip

FLAT = [
    "Who is the director of Titanic?",
    "Who is Frederick Dickens's father?",
    "Who is Princess Adrienne, Duchess Of Blekinge's mother?",
    "Which film has the director born first, Killer or Adultery?",
    "What is the reason that Redis was slow?",
    "How do we make the head of the queue faster?",
    "Who was honored prior to becoming president of India?",
    "Who led the force that later pushed deep into Polish territory?",
    "Who was the creator of the American political comedy in which she plays Sue?",
    "What does issue #1 of the director of Titanic say?",
    "The director of Titanic was born in Ontario.",
    "华为的创始人是谁？",
    "《活着》的导演是谁",
    "国家的首都在哪里",
    "我们的团队的负责人在哪个城市",
    "公司的CEO和董事长有什么区别",
    "Redis 的作者是谁，他毕业于哪里？",
    "《活着》的导演组有哪些人",
    "如何优化数据库查询性能",
]


@pytest.mark.parametrize(("question", "steps"), NESTED)
def test_given_a_nested_question_when_read_then_each_step_names_the_one_before_it(question, steps):
    assert nested(question) == steps


@pytest.mark.parametrize("question", FLAT)
def test_given_a_question_that_does_not_surely_nest_when_read_then_there_are_no_steps(question):
    assert nested(question) == ()


def test_given_a_nested_question_when_decomposed_then_its_steps_depend_on_each_other():
    found = decompose_by_rules("What language does the child of the director of Teesri Manzil speak?", 5)
    assert [sub.depends_on for sub in found.subqueries] == [(), (1,), (2,)]
    assert not any(sub.needs_refinement for sub in found.subqueries)


def test_given_no_room_for_all_steps_when_decomposed_then_it_is_not_taken_apart():
    found = decompose_by_rules("What language does the child of the director of Teesri Manzil speak?", 2)
    assert not any(sub.depends_on for sub in found.subqueries)


@pytest.mark.parametrize(
    "text",
    [
        "Who is " + "the director of " * 200 + "X?",
        "Who is the wife of " + "A " * 140 + "?",
        "Where was the " + "a " * 140 + "that x?",
        "Who is the a that " + "b " * 130 + "C d?",
        "谁是" + "A的" * 140,
        "《" * 290 + "的导演的妻子是谁",
        "的导演" * 95 + "是谁",
        "Who is " + "A's " * 70 + "wife?",
    ],
)
def test_given_a_hostile_text_when_read_then_it_takes_no_time(text):
    begun = time.thread_time()
    nested(text)
    nested(text[:299])
    assert time.thread_time() - begun < 0.5
