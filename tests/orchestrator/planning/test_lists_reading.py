"""Which documents a question wants all of: values that exist become filters, the rest are words, and that is told."""

from __future__ import annotations

import time
from datetime import date
from itertools import pairwise

import pytest

from orchestrator.planning.lists.planner import list_nodes, shards
from orchestrator.planning.lists.reading import Reading, read_question
from shared.models import Facet, Filters
from shared.models.enumeration import Values

VALUES = Values(
    kinds={"decision": 3, "resource": 10, "memory": 4, "incident": 3, "skill": 2},
    tags={"redis": 3, "缓存": 2, "machine-learning": 2, "Redis Streams": 1, "celery": 2, "消息队列": 3, "search": 1},
    folders=("notes/", "notes/en/", "notes/en/queues/", "notes/skills/", "skills/", "notes/zh/缓存/"),
)


def read(question: str, filters: Filters | None = None, values: Values = VALUES) -> Reading:
    return read_question(question, filters or Filters(), values, date(2026, 11, 20))


@pytest.mark.parametrize(
    ("question", "understood"),
    [
        ("List all notes tagged redis", "tag = redis"),
        ("notes tagged redis or celery", "tag = redis or celery"),
        ("List all notes tagged redis and celery", "tag = redis, tag = celery"),
        ("all notes tagged machine learning since 2025", "dated 2025-01-01 or later, tag = machine-learning"),
        ("all notes without the tag redis", "not tag = redis"),
        ("everything with the tag Redis Streams", "tag = Redis Streams"),
        ("all redis notes", "tag = redis"),
        ("show me all #celery notes", "tag = celery"),
        ("带有缓存标签的笔记有哪些", "tag = 缓存"),
        ("列出所有带 #缓存 标签的笔记", "tag = 缓存"),
        ("列出标签是缓存或消息队列的所有笔记", "tag = 缓存 or 消息队列"),
        ("不带缓存标签的笔记", "not tag = 缓存"),
        ("列出所有未标记缓存的笔记", "not tag = 缓存"),
        ("列出所有缺少缓存标签的笔记", "not tag = 缓存"),
        ("列出所有既没有缓存标签也没有消息队列标签的笔记", "not tag = 缓存 or 消息队列"),
        ("all notes with neither the tag redis nor the tag celery", "not tag = redis or celery"),
        ("all notes missing the tag redis", "not tag = redis"),
        (
            "notes about missing redis packages",
            'containing or tagged "missing", containing or tagged "redis", containing or tagged "packages"',
        ),
        ("all notes that are neither a decision nor an incident", "not kind = decision or incident"),
        ("all notes tagged redis minus the incidents", "tag = redis, not kind = incident"),
        ("all notes tagged redis, apart from decisions", "tag = redis, not kind = decision"),
        ("all non-decision notes", "not kind = decision"),
        ("列出非事故的笔记", "not kind = incident"),
        ("列出所有关于非结构化数据的笔记", 'containing or tagged "非结构化数据"'),
        ("列出所有从未提到缓存的笔记", 'without "缓存"'),
        ("List all notes in queues", "path = notes/en/queues/"),
        ("List all notes not in queues", "not path = notes/en/queues/"),
        ("List all notes outside the queues folder", "not path = notes/en/queues/"),
        ("缓存目录里所有的决策", "kind = decision, path = notes/zh/缓存/"),
        ("列出所有帶緩存標籤的筆記", "tag = 缓存"),
        ("all decisions from 2025", "kind = decision, dated 2025-01-01 to 2025-12-31"),
        ("which incidents happened in March 2026", "kind = incident, dated 2026-03-01 to 2026-03-31"),
        ("列出所有决策", "kind = decision"),
        ("2026年3月发生了哪些事故", "kind = incident, dated 2026-03-01 to 2026-03-31"),
        ("skills/ 下有哪些", "path = notes/skills/ or skills/"),
        ("Which notes are in the queues folder?", "path = notes/en/queues/"),
        ("缓存目录下有哪些文件", "path = notes/zh/缓存/"),
        ("列出所有关于缓存的笔记", 'containing or tagged "缓存"'),
        ("notes about machine learning", 'containing or tagged "machine learning"'),
        ("队列相关的笔记有哪些", 'containing or tagged "队列"'),
        ("提到消息队列和缓存穿透的文档有哪些", 'containing "消息队列", containing "缓存穿透"'),
        ("列出所有没有提到 Redis 的笔记", 'without "redis"'),
        ("Show all pages that do not mention redis", 'without "redis"'),
        ('which documents contain "connection pool" but not redis', 'containing "connection pool", without "redis"'),
        ("List all memories about Redis or Postgres", 'kind = memory, containing or tagged "redis" or "postgres"'),
        ("CI/CD notes", 'containing "ci/cd"'),
        ("List all documents", "all documents"),
        ("列出所有笔记", "all documents"),
    ],
)
def test_given_a_question_when_read_then_what_exists_is_a_filter_and_the_rest_are_words(
    question: str, understood: str
) -> None:
    scan = read(question).scan
    assert scan is not None
    assert scan.understood == understood


@pytest.mark.parametrize(
    ("question", "counting"),
    [("How many decisions mention celery?", True), ("有多少篇笔记提到缓存", True), ("List all decisions", False)],
)
def test_given_how_many_when_read_then_the_number_is_asked_for(question: str, counting: bool) -> None:
    scan = read(question).scan
    assert scan is not None
    assert scan.counting is counting


@pytest.mark.parametrize(
    ("question", "columns"),
    [
        ("all incidents with their severity and owner", ("severity", "owner")),
        ("列出所有事故及其负责人和日期", ("负责人",)),
        ("all incidents", ()),
    ],
)
def test_given_columns_when_read_then_those_that_no_row_has_anyway_are_asked_for(
    question: str, columns: tuple[str, ...]
) -> None:
    scan = read(question).scan
    assert scan is not None
    assert scan.columns == columns


def test_given_a_tag_that_nobody_has_when_read_then_it_is_asked_for_and_near_ones_are_named() -> None:
    reading = read("notes tagged celry")
    assert reading.scan is not None
    assert reading.scan.understood == "tag = celry"
    assert reading.warnings == ("No document has the tag 'celry'; there is celery.",)


@pytest.mark.parametrize(
    "question",
    [
        "list the",
        "有哪些",
        "notes from May 2025 to March 2025",
        "notes from 2023 tagged redis since 2025",
        "notes without",
        " ".join(f"word{number}" for number in range(40)),
    ],
)
def test_given_nothing_that_can_be_listed_when_read_then_no_scan_but_a_reason(question: str) -> None:
    reading = read(question)
    assert reading.scan is None
    assert reading.warnings


def test_given_filters_of_the_caller_when_read_then_they_hold_and_are_told() -> None:
    scan = read("List all notes", Filters(tags=("x",), namespace="mine")).scan
    assert scan is not None
    assert scan.understood == "tag = x"
    assert (scan.filters.tags, scan.found.namespace) == (("x",), "mine")


@pytest.mark.parametrize(
    "text",
    [
        "列" * 4000,
        "a " * 2000,
        "'\"" * 2000,
        "not " * 1000,
        "tagged " * 500,
        "#a" * 1900,
        "march and " * 100,
        "2026年3月到" * 100,
        "1-" * 500,
        "@" * 1000,
        "q1/" * 300,
        "不带a标签" * 150,
    ],
)
def test_given_a_hostile_question_when_read_then_it_takes_no_time(text: str) -> None:
    begun = time.process_time()
    read(text)
    assert time.process_time() - begun < 1.0


@pytest.mark.parametrize(("documents", "count"), [(0, 1), (1, 1), (2000, 1), (2001, 2), (50_000, 25), (10_000_000, 64)])
def test_given_a_number_of_documents_when_shared_out_then_shards_join_without_gap_or_overlap(
    documents: int, count: int
) -> None:
    parts = shards(documents, 2000, 64)
    assert len(parts) == count
    assert (parts[0].start, parts[-1].stop) == ("", "")
    assert all(one.stop == other.start for one, other in pairwise(parts))
    assert [part.start for part in parts] == sorted(part.start for part in parts)
    tree = list_nodes("q", "all documents", parts)
    assert [node.facet for node in tree[:2]] == [Facet.ORIGINAL, Facet.CORE]
    assert len({node.id for node in tree}) == count + 1


@pytest.mark.parametrize(
    ("question", "understood"),
    [
        ("List all untagged notes", "no tags"),
        ("Which notes have no tag?", "no tags"),
        ("all notes without any tags about redis", 'no tags, containing or tagged "redis"'),
        ("没有标签的笔记有哪些", "no tags"),
        ("decisions without a date", "kind = decision, no date"),
        ("没有日期的决策", "kind = decision, no date"),
        ("notes in 2023 and 2025", "dated 2023-01-01 to 2023-12-31 or dated 2025-01-01 to 2025-12-31"),
        (
            "2026年3月和6月的事故",
            "kind = incident, dated 2026-03-01 to 2026-03-31 or dated 2026-06-01 to 2026-06-30",
        ),
        (
            "all notes of 2026 except March and June 2026",
            "dated 2026-01-01 to 2026-12-31, not dated 2026-03-01 to 2026-03-31, not dated 2026-06-01 to 2026-06-30",
        ),
        (
            "incidents except those tagged redis or from 2025",
            "kind = incident, not tag = redis, not dated 2025-01-01 to 2025-12-31",
        ),
        (
            "除了带redis标签的和2025年的以外的事故",
            "kind = incident, not tag = redis, not dated 2025-01-01 to 2025-12-31",
        ),
        ("notes tagged either redis or celery", "tag = redis or celery"),
        ("notes tagged both redis and celery", "tag = redis, tag = celery"),
        ("notes tagged neither redis nor celery", "not tag = redis or celery"),
        ("redis-tagged incidents", "kind = incident, tag = redis"),
        (
            "Hi, could you please give me every incident that carries the tag redis, thanks!",
            "kind = incident, tag = redis",
        ),
        ("没有打redis标签的笔记", "not tag = redis"),
        ("带redis标签的事故有几起", "kind = incident, tag = redis"),
        ("notes on celery", 'containing or tagged "celery"'),
        ("notes about bloom filters", 'containing or tagged "bloom filters"'),
        ("the latest 5 incidents", "kind = incident, the 5 newest"),
        ("the five newest incidents tagged redis", "kind = incident, tag = redis, the 5 newest"),
        ("three oldest decisions", "kind = decision, the 3 oldest"),
        ("最近的5篇笔记", "the 5 newest"),
        ("最早的两个决策", "kind = decision, the 2 oldest"),
        ("all incidents, newest first", "kind = incident, newest first"),
        (
            "2026年的事故，除了notes/zh/缓存下的，还有哪些",
            "kind = incident, dated 2026-01-01 to 2026-12-31, not path = notes/zh/缓存/",
        ),
        ("缓存目录里的决策", "kind = decision, path = notes/zh/缓存/"),
        ("incidents from March 2026 to now", "kind = incident, dated 2026-03-01 to 2026-11-20"),
        ("recent incidents", "kind = incident, newest first"),
    ],
)
def test_given_the_ways_to_say_it_when_read_then_nothing_is_dropped_and_nothing_is_unread(question, understood):
    found = read(question)

    assert found.scan is not None
    assert (found.scan.understood, found.warnings) == (understood, ())


def test_given_a_misspelt_kind_when_read_then_the_kind_is_meant_and_that_is_said():
    found = read("Show me all decsions tagged redis")

    assert found.scan is not None
    assert found.scan.understood == "kind = decision, tag = redis"
    assert found.warnings == ("Read as a misspelt kind: “decsions”, “decision”.",)


@pytest.mark.parametrize(
    ("question", "unread"),
    [
        ("incidents not caused by redis", "not caused by redis"),
        ("incidents tagged celery that are badly written", "badly written"),
        ("redis引起的事故", "redis引起"),
        ("带redis标签而且写得很差的笔记", "写得很差"),
        ("incidents longer than two pages", "longer than two"),
        ("kafka incidents", "kafka"),
        ("从2025年11月到2026年2月签的事故列个清单", "签"),
        ("带redis标签、讲得有意思的事故", "讲得有意思"),
        ("标签是redis而且可以省钱的决策", "省钱"),
    ],
)
def test_given_a_value_that_is_only_related_when_read_then_it_is_no_condition_and_is_named(question, unread):
    found = read(question)

    assert found.scan is not None
    assert unread in " ".join(found.scan.unread)
    assert not found.scan.without_tags
    assert not found.scan.conditions


@pytest.mark.parametrize(
    ("question", "understood", "unread"),
    [
        ("skills目录里共有多少门课程？", "path = notes/skills/ or skills/", ("课程",)),
        ("想知道还在2026年的事故都有几张", "kind = incident, dated 2026-01-01 to 2026-12-31", ()),
        ("条款不清楚的缓存事故", "kind = incident, tag = 缓存", ("条款不清楚",)),
        ("incidents on the queues, led by Ada", 'kind = incident, containing or tagged "queues"', ("led by Ada",)),
        ("decisions that people like", "kind = decision", ("people like",)),
        ("all notes in queues or en", "path = notes/en/queues/ or notes/en/", ()),
        ("all notes in the queues and incidents", "kind = incident, path = notes/en/queues/", ()),
        ("which queues are from 2025", "path = notes/en/queues/, dated 2025-01-01 to 2025-12-31", ()),
    ],
)
def test_given_words_of_asking_and_of_counting_when_read_then_they_are_no_conditions(question, understood, unread):
    found = read(question)
    assert found.scan is not None
    assert (found.scan.understood, found.scan.unread) == (understood, unread)


def test_given_a_word_of_code_beside_a_kind_when_read_then_documents_are_meant_where_nothing_is_said_of_code():
    found = read("incidents about failing tests", values=VALUES.model_copy(update={"code": 3}))
    assert found.scan is not None
    assert (found.scan.understood, found.scan.code) == ('kind = incident, containing or tagged "failing tests"', None)


@pytest.mark.parametrize(
    ("question", "paths"),
    [
        ("open pest reports from May 2026", ("garden/pest-reports/",)),
        ("the latest 5 pest reports", ("garden/pest-reports/",)),
        ("2026年3月到5月的会议纪要", ("出版/会议纪要/",)),
        ("哪些会议纪要提到纸价", ("出版/会议纪要/",)),
        ("notes about pest reports", ()),
        ("documents that mention 会议纪要", ()),
        ("incidents in pest report rooms", ()),
    ],
)
def test_given_a_folder_that_stands_for_its_documents_when_read_then_the_list_is_of_it(
    question: str, paths: tuple[str, ...]
) -> None:
    values = Values(kinds={"incident": 3, "resource": 9}, folders=("garden/", "garden/pest-reports/", "出版/会议纪要/"))
    reading = read(question, values=values)
    assert (reading.scan.found.paths if reading.scan else ()) == paths
