"""What the rules make of a question in its conversation."""

import time

import pytest

from orchestrator.planning.intent import intent_by_rules
from shared.language.routing import route_by_rules
from shared.models.request import MAX_QUERIES, ContextType, Session
from shared.models.route import QueryType

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


def test_given_an_open_question_before_it_when_a_follow_up_is_read_then_its_words_are_no_topic():
    session = Session(messages=[{"role": "user", "content": "Tell me about the lighthouse of Tarnholm"}])
    found = intent_by_rules("Who is its keeper?", session)
    assert "Tell" not in found.standalone
    assert "lighthouse Tarnholm" in found.standalone


LISTED = Session(
    messages=[
        {"role": "user", "content": "What ways are there to persist Redis?"},
        {"role": "assistant", "content": "Three:\n1. RDB snapshots\n2. AOF log\n3. Hybrid persistence"},
        {"role": "user", "content": "thanks!"},
    ]
)
LISTED_ZH = Session(
    messages=[
        {"role": "user", "content": "Redis 持久化有哪些方式？"},
        {"role": "assistant", "content": "三种：\n1、RDB 快照\n2、AOF 日志\n3、混合持久化"},
    ]
)


@pytest.mark.parametrize(
    ("question", "session", "standalone"),
    [
        ("the last one", LISTED, "Hybrid persistence ways persist Redis"),
        ("Tell me more about the third.", LISTED, "Hybrid persistence ways persist Redis"),
        ("and the second?", LISTED, "AOF log ways persist Redis"),
        ("explain #2 please", LISTED, "AOF log ways persist Redis"),
        ("the second to last one", LISTED, "AOF log ways persist Redis"),
        ("compare the first two", LISTED, "compare RDB snapshots and AOF log (ways persist Redis)"),
        ("How does the last differ from the first?", LISTED,
         "How does Hybrid persistence differ from RDB snapshots (ways persist Redis)"),
        ("what about Postgres instead?", LISTED, "What ways are there to persist Postgres?"),
        ("the same for Kafka", LISTED, "What ways are there to persist Kafka?"),
        ("what about quorum queues instead of Redis", LISTED, "What ways are there to persist quorum queues?"),
        ("tell me more", LISTED, "ways persist Redis"),
        ("最后一个", LISTED_ZH, "混合持久化 Redis 持久化 方式"),
        ("第三个详细说说", LISTED_ZH, "混合持久化 Redis 持久化 方式"),
        ("倒数第二个呢？", LISTED_ZH, "AOF 日志 Redis 持久化 方式"),
        ("对比前两个", LISTED_ZH, "对比 RDB 快照 和 AOF 日志（Redis 持久化 方式）"),
        ("后两个有什么区别？", LISTED_ZH, "AOF 日志 和 混合持久化 有什么区别（Redis 持久化 方式）"),
        ("换成 Postgres 呢？", LISTED_ZH, "Postgres 持久化有哪些方式？"),
        ("再详细点", LISTED_ZH, "Redis 持久化 方式"),
        ("the first chapter of the Redis book", LISTED, "the first chapter of the Redis book"),
        ("the last result of the benchmark", LISTED, "the last result of the benchmark"),
        ("最后一个版本是什么时候发布的", LISTED_ZH, "最后一个版本是什么时候发布的"),
    ],
)  # fmt: skip
def test_given_a_follow_up_when_read_then_it_is_resolved_against_what_was_said(question, session, standalone):
    found = intent_by_rules(question, session)
    assert found.standalone == standalone
    assert found.retrieval


@pytest.mark.parametrize(
    ("question", "session", "reason"),
    [
        ("the last one", ENGLISH.model_copy(update={"messages": ENGLISH.messages[:1]}), "no list that 'the last one'"),
        ("tell me more about the third", Session(), "no list that 'the third'"),
        ("the fourth one", LISTED, "no 'the fourth one'; it has 3 items"),
        ("tell me more", Session(), "nothing was said before"),
        ("why?", Session(), "nothing was said before"),
        ("最后一个", CHINESE.model_copy(update={"messages": CHINESE.messages[:1]}), "对话里没有'最后一个'所指的列表"),
        ("第四个", LISTED_ZH, "没有'第四个'，只有 3 项"),
        ("再详细点", Session(), "之前没有说过"),
    ],
)
def test_given_a_follow_up_to_nothing_when_read_then_it_says_so_instead_of_searching(question, session, reason):
    found = intent_by_rules(question, session)
    assert not found.retrieval
    assert reason in found.reason


@pytest.mark.parametrize(
    ("message", "asked"),
    [
        *((text, False) for text in (
            "hi", "Hi!", "hello there", "Hello, how are you?", "good morning", "Good evening everyone", "thanks a lot!",
            "thx", "thank you so much", "many thanks", "thanks for your help", "你好", "您好！",
            "早上好", "早安", "大家好", "谢谢", "非常感谢", "辛苦了", "谢谢，辛苦了", "辛苦啦", "晚上好", "再见",
        )),
        *((text, True) for text in (
            "hello world example in Go", "hi, what is Redis?", "good morning routine notes",
            "thanks section in the README", "谢谢页面在哪里", "你好，Redis 是什么", "早上好问候语怎么写",
        )),
    ],
)  # fmt: skip
def test_given_a_greeting_or_thanks_when_asked_then_neither_search_nor_ask_look_anything_up(message, asked):
    assert intent_by_rules(message, Session()).retrieval is asked
    assert (route_by_rules(message).type is not QueryType.NONE) is asked


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
    begun = time.thread_time()
    found = intent_by_rules(
        text[:4000], Session(summary=text[:8000], messages=[{"role": "user", "content": text[:8000]}])
    )
    assert time.thread_time() - begun < 1
    assert len(found.queries) <= MAX_QUERIES
    assert all(len(query.query) <= 300 for query in found.queries[1:])
