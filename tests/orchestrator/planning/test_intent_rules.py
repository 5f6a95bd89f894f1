"""What the rules make of a question in its conversation."""

import time

import pytest

from orchestrator.planning.intent import intent_by_rules
from shared.models.request import MAX_QUERIES, ContextType, Session

ENGLISH = Session(
    messages=[
        {"role": "user", "content": "How do Redis streams keep consumer groups apart?"},
        {"role": "assistant", "content": "In two ways:\n1. Group offsets\n2. A pending entries list with XCLAIM"},
    ]
)
CHINESE = Session(
    messages=[
        {"role": "user", "content": "Redis 持久化有哪些方式？"},
        {"role": "assistant", "content": "两种：\n1、RDB 快照\n2、AOF 日志"},
    ]
)


def typed(question, session=None):
    found = intent_by_rules(question, session or Session())
    return {query.context_type.value: query.query for query in found.queries if query.context_type}


@pytest.mark.parametrize(
    "message",
    ["hi", "Hello there!", "thanks a lot :)", "OK, thank you very much.", "谢谢！", "好的，明白了", "你好啊", "/clear",
     "continue", "Please stop.", "继续", "再说一遍", "？？", "👍", " \n "],
)  # fmt: skip
def test_given_talk_or_a_bare_command_when_read_then_nothing_needs_to_be_looked_up(message):
    found = intent_by_rules(message, ENGLISH)
    assert found.queries == ()
    assert not found.retrieval
    assert found.reason.endswith("nothing needs to be looked up.")


@pytest.mark.parametrize(
    "message",
    ["hi, how do I tune HNSW?", "Thanks! And what about quorum queues?", "hello world program", "你好，怎么配置缓存？",
     "help desk", "stop words in Chinese", "继续教育政策", "no-code platforms", "C++"],
)  # fmt: skip
def test_given_a_question_that_begins_like_talk_when_read_then_it_is_first_of_the_queries(message):
    found = intent_by_rules(message, Session())
    assert found.queries[0].query == message
    assert found.queries[0].context_type is None
    assert found.queries[0].priority == 1


def test_given_something_to_make_when_read_then_each_type_is_phrased_its_own_way():
    assert typed("Please create an RFC document") == {
        "skill": "Create RFC document",
        "resource": "RFC document template",
        "memory": "user's RFC document preferences",
    }
    assert typed("帮我创建一个 RFC 文档") == {
        "skill": "创建 RFC 文档",
        "resource": "RFC 文档模板",
        "memory": "用户的 RFC 文档偏好",
    }


def test_given_how_something_is_done_when_read_then_a_skill_starts_with_the_verb():
    assert typed("how do I restore the orders database?")["skill"] == "Restore orders database"
    assert typed("如何优化数据库查询性能？")["skill"] == "优化数据库查询性能"
    assert "memory" not in typed("how do I restore the orders database?")


def test_given_a_plain_question_when_read_then_the_resource_is_a_noun_phrase():
    assert typed("What is the retention policy of logs?") == {"resource": "retention policy of logs"}
    assert typed("日志的保留策略是什么？") == {"resource": "日志的保留策略"}


def test_given_a_question_about_the_user_when_read_then_a_memory_is_asked_for():
    assert typed("What did we decide about Redis?")["memory"] == "user's decisions Redis"
    assert typed("我之前记录的 API 密钥是什么")["memory"] == "用户的 API 密钥"


@pytest.mark.parametrize(
    ("question", "session", "wanted"),
    [
        ("and the second one?", ENGLISH, {"XCLAIM", "Redis", "streams"}),
        ("why does it fail?", ENGLISH, {"fail", "Redis", "streams"}),
        ("what about that?", ENGLISH, {"Redis", "consumer"}),
        ("那它呢？", CHINESE, {"Redis", "持久化"}),
        ("第二个呢？", CHINESE, {"AOF", "Redis"}),
        ("怎么恢复它？", CHINESE, {"恢复", "持久化"}),
    ],
)
def test_given_a_follow_up_when_read_then_it_gets_the_topic_of_the_conversation(question, session, wanted):
    found = intent_by_rules(question, session)
    assert found.queries[0].query == question
    assert found.queries[1].query == found.standalone
    assert all(word in found.standalone for word in wanted)
    assert all(any(word in query.query for word in wanted) for query in found.queries[1:])


def test_given_the_question_as_last_message_when_read_then_it_is_not_its_own_topic():
    said = Session(messages=[*ENGLISH.messages, {"role": "user", "content": "and the second one?"}])
    assert (
        intent_by_rules("and the second one?", said).standalone
        == intent_by_rules("and the second one?", ENGLISH).standalone
    )


def test_given_two_follow_ups_when_read_then_the_topic_is_what_both_are_about():
    said = Session(
        messages=[
            {"role": "user", "content": "How does Qdrant store vectors?"},
            {"role": "user", "content": "what about its memory?"},
            {"role": "user", "content": "thanks!"},
        ]
    )
    standalone = intent_by_rules("and on disk?", said).standalone
    assert "Qdrant" in standalone
    assert "memory" in standalone


def test_given_only_a_summary_when_a_follow_up_is_read_then_the_summary_is_the_topic():
    assert "RabbitMQ" in intent_by_rules("how does it work?", Session(summary="RabbitMQ quorum queues")).standalone


@pytest.mark.parametrize(
    "question",
    ["Is it possible to resize a disk volume without downtime?", "What is reciprocal rank fusion?",
     "数据库慢查询怎么优化？", "the director of the film that won an Oscar"],
)  # fmt: skip
def test_given_a_question_that_stands_alone_when_read_then_the_conversation_adds_nothing(question):
    for session in (ENGLISH, CHINESE):
        found = intent_by_rules(question, session)
        assert found.standalone == question
        assert all("XCLAIM" not in query.query and "持久化" not in query.query for query in found.queries)


def test_given_a_question_that_is_its_own_noun_phrase_when_read_then_one_type_stands_once():
    keys = [(q.query, q.context_type) for q in intent_by_rules("Redis streams", ENGLISH).queries]
    assert keys == [("Redis streams", None), ("Redis streams", ContextType.RESOURCE)]


@pytest.mark.parametrize(
    "text", ["a " * 2000, "它" * 4000, "((" * 2000, "and " * 1000, "1. " * 1300, "第一个" * 1300, "é́" * 2000]
)
def test_given_long_nonsense_when_read_then_it_takes_little_time_and_stays_in_bounds(text):
    begun = time.perf_counter()
    found = intent_by_rules(
        text[:4000], Session(summary=text[:8000], messages=[{"role": "user", "content": text[:8000]}])
    )
    assert time.perf_counter() - begun < 1
    assert len(found.queries) <= MAX_QUERIES
    assert all(len(query.query) <= 300 for query in found.queries[1:])
