"""The rules take a question apart only into parts that can be searched alone: each says what it is about."""

from __future__ import annotations

import pytest

from orchestrator.planning.planner import decompose_by_rules


def parts(question: str) -> list[str]:
    return [sub.query for sub in decompose_by_rules(question, 6).subqueries]


@pytest.mark.parametrize(
    "question",
    [
        "How many people work on Beacon?",
        "How long does a backup of the orders database take?",
        "When was the relay replaced?",
        "Is the relay encrypted at rest?",
        "谁负责结算服务？",
        "一共有多少个分区？",
    ],
)
def test_given_a_question_for_one_fact_then_it_is_not_split_into_facets(question: str) -> None:
    assert parts(question) == []


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (
            "Our p99 doubled after the new recommender. What could be the reasons and what should I check first?",
            "Our p99 doubled after the new recommender",
        ),
        ("我们的服务在晚高峰延迟升高，可能是什么原因，应该先查什么？", "我们的服务在晚高峰延迟升高"),
    ],
)
def test_given_a_statement_before_the_questions_then_each_part_carries_it(question: str, said: str) -> None:
    found = parts(question)
    assert len(found) == 2
    assert all(said in part for part in found)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (
            "PostgreSQL 为什么会表膨胀，怎么处理？",
            ["PostgreSQL 为什么会表膨胀？", "关于“PostgreSQL 为什么会表膨胀”：PostgreSQL 怎么处理？"],
        ),
        (
            "为什么上周的发布失败了，谁负责修复？",
            ["为什么上周的发布失败了？", "关于“为什么上周的发布失败了”：谁负责修复？"],
        ),
        (
            "What happened in the March outage, why did it take so long to detect, and what did we change afterwards?",
            [
                "What happened in the March outage?",
                "Why did the March outage take so long to detect?",
                "Regarding “Why did the March outage take so long to detect”: What did we change afterwards?",
            ],
        ),
        (
            "Who leads the Atlas team and what are they working on this quarter?",
            ["Who leads the Atlas team?", "What are the Atlas team working on this quarter?"],
        ),
        (
            "How do we rotate the signing keys and who has to approve it?",
            [
                "How do we rotate the signing keys?",
                "Regarding “How do we rotate the signing keys”: Who has to approve it?",
            ],
        ),
    ],
)
def test_given_parts_that_lean_on_others_then_they_say_what_they_are_about(question: str, expected: list[str]) -> None:
    assert parts(question) == expected


@pytest.mark.parametrize(
    ("question", "last"),
    [
        (
            "Redis evicts keys although memory is free. What causes that and how can I see which keys are evicted?",
            "Regarding “Redis evicts keys although memory is free”: How can I see which keys are evicted?",
        ),
        (
            "How does Celery retry a task, and how does that differ from redelivery?",
            "Regarding “How does Celery retry a task”: How does that differ from redelivery?",
        ),
        ("Kafka 消费延迟为什么会升高，怎么排查和解决？", "关于“Kafka 消费延迟为什么会升高”：怎么排查和解决？"),
        ("MySQL 主从延迟怎么监控，超过阈值怎么报警？", "关于“MySQL 主从延迟怎么监控”：超过阈值怎么报警？"),
        ("昨晚的备份失败了。为什么会失败，怎么手动恢复？", "关于“昨晚的备份失败了”：怎么手动恢复？"),
        ("业委会主任是谁？前任为什么不能连任？", "关于“业委会主任是谁”：前任为什么不能连任？"),
        ("What is HNSW? How does ef_construct affect recall?", "How does ef_construct affect recall?"),
    ],
)
def test_given_a_last_part_then_it_carries_what_it_points_at_or_leans_on(question: str, last: str) -> None:
    assert parts(question)[-1] == last


def test_given_things_compared_on_several_aspects_then_these_are_no_things() -> None:
    found = parts("Compare Postgres and MySQL on replication, backups and extensions")
    assert found
    assert all("replication, backups and extensions" in part for part in found)
    assert len(found) == 3


def test_given_what_things_are_compared_by_then_every_part_has_it() -> None:
    found = parts("Compare Kafka and RabbitMQ: latency, durability and operating cost")
    assert len(found) >= 3
    assert all("latency, durability and operating cost" in part for part in found)
    assert not any(part.startswith(("What is known about the latency of durability",)) for part in found)


def test_given_which_one_of_two_things_then_the_part_names_both() -> None:
    names = ("acks_late", "task_reject_on_worker_lost")
    question = f"What is the difference between {names[0]} and {names[1]}, and which one prevents losing tasks?"
    assert parts(question) == [
        f"What is the difference between {names[0]} and {names[1]}?",
        f"Which of {names[0]} and {names[1]} prevents losing tasks?",
    ]


@pytest.mark.parametrize(
    "question", ["We moved last week. Why, and how can we fix it?", "可能是什么原因，应该怎么处理？"]
)
def test_given_parts_that_nothing_can_be_said_of_then_the_question_is_not_split(question: str) -> None:
    assert parts(question) == []


@pytest.mark.parametrize(
    ("question", "kept"),
    [
        ("Compare Redis Streams and RabbitMQ for our order pipeline.", "for our order pipeline"),
        ("比较 Redis Streams 和 RabbitMQ 在我们订单流水线里的优缺点。", "在我们订单流水线里"),
    ],
)
def test_given_a_comparison_then_each_part_keeps_the_scope_in_the_words_of_the_question(
    question: str, kept: str
) -> None:
    found = parts(question)
    assert len(found) == 4
    assert all(kept in part for part in found)


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("When should I use Kafka and when RabbitMQ?", "What are the strengths and weaknesses of Kafka?"),
        ("什么时候用向量检索，什么时候用关键词检索？", "向量检索有哪些优缺点？"),
    ],
)
def test_given_when_to_use_which_then_it_is_a_comparison(question: str, first: str) -> None:
    assert parts(question)[0] == first
    assert len(parts(question)) == 4


@pytest.mark.parametrize(
    "question",
    [
        "When should I use Celery chords and when chains?",
        "When should I use a Redis stream and when a list?",
        "什么时候用 Redis Stream，什么时候用 List？",
        "What is the alcohol content of Kestrel Pale Ale and of Harbour Stout, and which one has more IBU?",
        "特级和一级鲜叶2025年的收购价分别是多少，截止日期是哪天？",
        "2024年版和2025年版停车方案的月租和临时停车收费有什么不同？",
        "Why was batch 213 dumped and batch 212 stuck?",
        "如果入库藏品有虫害怎么处理？",
    ],
)
def test_given_a_part_that_would_lose_what_it_is_about_then_the_question_is_not_split(question: str) -> None:
    assert parts(question) == []
