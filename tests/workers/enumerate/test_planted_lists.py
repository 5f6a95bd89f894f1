"""Lists over a corpus with known members: exactly these, or a warning that names what was not understood."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import pytest

from orchestrator.planning.lists.reading import Reading, read_question
from shared.models import Filters
from shared.models.enumeration import ListRow
from shared.models.plan import Shard
from shared.settings import load_settings
from shared.store import ChunkStore
from tests.fakes.listing import TODAY, put, put_code
from tests.fakes.planted import CODE, Planted, members, planted, points
from tests.fakes.stores import open_store
from workers.enumerate.scan import ValueCache, scan_shard

DOCUMENTS = planted()
ALL = Shard(number=1, of=1, start="", stop="")
Fits = Callable[[Planted], bool]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChunkStore]:
    folder: Path = tmp_path_factory.mktemp("planted")
    settings = load_settings(data_dir=folder)
    opened = open_store(settings)
    put(opened, points(DOCUMENTS))
    put_code(opened, settings, CODE)
    yield opened
    opened.close()


def listed(corpus: ChunkStore, question: str) -> tuple[Reading, list[ListRow]]:
    """How the question is read, and all rows of its list."""
    reading = read_question(question, Filters(), ValueCache(100).of(corpus, Filters()), TODAY)
    return reading, list(scan_shard(corpus, reading.scan, ALL).rows) if reading.scan else []


def incident(*, first: str = "2025-01-01", last: str = "2026-12-31", tag: str = "", no_tag: str = "-") -> Fits:
    """Incidents of a span of days, with a tag, without one."""
    return lambda one: (
        one.kind == "incident"
        and date.fromisoformat(first) <= one.day <= date.fromisoformat(last)
        and (not tag or tag in one.tags)
        and no_tag not in one.tags
    )


def kind(name: str, *, tag: str = "", says: str = "") -> Fits:
    """Documents of a kind with a tag whose text has some words."""
    return lambda one: one.kind == name and (not tag or tag in one.tags) and says in one.text


_JAN_MAR = {"2026-01", "2026-03"}
EXACT: list[tuple[str, Fits]] = [
    ("List all incidents between February and April 2026", incident(first="2026-02-01", last="2026-04-30")),
    ("Which incidents happened in March and April 2026?", incident(first="2026-03-01", last="2026-04-30")),
    ("List all incidents from March to May 2026", incident(first="2026-03-01", last="2026-05-31")),
    ("all incidents in the first half of 2026", incident(first="2026-01-01", last="2026-06-30")),
    ("all incidents in H2 2025", incident(first="2025-07-01", last="2025-12-31")),
    ("incidents from Q2 to Q3 2025", incident(first="2025-04-01", last="2025-09-30")),
    ("incidents between the first and third quarter of 2025", incident(first="2025-01-01", last="2025-09-30")),
    ("all incidents in the second quarter of 2025", incident(first="2025-04-01", last="2025-06-30")),
    ("List the incidents of spring 2026", incident(first="2026-03-01", last="2026-05-31")),
    ("incidents of January, February and March 2026", incident(first="2026-01-01", last="2026-03-31")),
    ("incidents from March 3 to April 5, 2026", incident(first="2026-03-03", last="2026-04-05")),
    ("incidents of January and of March 2026", lambda one: incident()(one) and one.day.isoformat()[:7] in _JAN_MAR),
    ("incidents that came in, i.e. March to May 2026", incident(first="2026-03-01", last="2026-05-31")),
    ("incidents in week 11 of 2026", incident(first="2026-03-09", last="2026-03-15")),
    ("incidents of the third week of March 2026", incident(first="2026-03-15", last="2026-03-21")),
    ("列出2026年3月到5月的所有事故", incident(first="2026-03-01", last="2026-05-31")),
    ("2026年3月和4月有哪些事故", incident(first="2026-03-01", last="2026-04-30")),
    ("2026年三月至五月发生了哪些事故", incident(first="2026-03-01", last="2026-05-31")),
    ("incidents in weeks 10 to 12 of 2026", incident(first="2026-03-02", last="2026-03-22")),
    ("incidents in Q1/Q2 2026", incident(first="2026-01-01", last="2026-06-30")),
    ("incidents Jan-Mar 2026", incident(first="2026-01-01", last="2026-03-31")),
    ("incidents between 5 and 20 March 2026", incident(first="2026-03-05", last="2026-03-20")),
    ("incidents from March 5 to 20, 2026", incident(first="2026-03-05", last="2026-03-20")),
    ("incidents in the second half of last year", incident(first="2025-07-01", last="2025-12-31")),
    ("2026年第10周到第12周的事故", incident(first="2026-03-02", last="2026-03-22")),
    ("列出2025年以外的所有事故", incident(first="2026-01-01")),
    ("除了redis标签的事故以外的所有事故", incident(no_tag="redis")),
    (
        "List all redis or celery decisions",
        lambda one: one.kind == "decision" and bool({"redis", "celery"} & {*one.tags}),
    ),
    ("2026年3月到5月之间的事故有几个", incident(first="2026-03-01", last="2026-05-31")),
    ("redis标签以外的事故有哪些", incident(no_tag="redis")),
    ("sev3以外的事故有哪些", incident(no_tag="sev3")),
    (
        "列出提到连接池但没有提到张三的事故",
        lambda one: one.kind == "incident" and "连接池" in one.text and one.owner != "张三",
    ),
    (
        "提到连接池而没有缓存标签的事故有哪些",
        lambda one: one.kind == "incident" and "连接池" in one.text and "缓存" not in one.tags,
    ),
    ("在archive目录下的事故有哪些", lambda one: one.kind == "incident" and one.folder == "ops/archive/"),
    ("不在archive目录下的事故有哪些", lambda one: one.kind == "incident" and one.folder != "ops/archive/"),
    ("2025年发生的事故中哪些带有sev3标签", incident(last="2025-12-31", tag="sev3")),
    ("今年上半年有哪些事故", incident(first="2026-01-01", last="2026-06-30")),
    ("列出2025年第一季度到第二季度的事故", incident(first="2025-01-01", last="2025-06-30")),
    ("2025年第一到第三季度的事故有哪些", incident(first="2025-01-01", last="2025-09-30")),
    ("列出2026年春季的事故", incident(first="2026-03-01", last="2026-05-31")),
    ("列出2026年3月1日到20日的事故", incident(first="2026-03-01", last="2026-03-20")),
    ("List all incidents except those tagged sev3", incident(no_tag="sev3")),
    ("all incidents that are not tagged sev3", incident(no_tag="sev3")),
    ("incidents without the tag redis", incident(no_tag="redis")),
    ("除了带有redis标签的以外的所有事故", incident(no_tag="redis")),
    ("没有缓存标签的事故有哪些", incident(no_tag="缓存")),
    ("List all incidents except those from 2025", incident(first="2026-01-01")),
    ("标签里有redis或者缓存的事故", lambda one: one.kind == "incident" and bool({"redis", "缓存"} & {*one.tags})),
    ("列出除2025年以外的所有事故", incident(first="2026-01-01")),
    ("List all projects tagged redis and compare them", kind("project", tag="redis")),
    ("List all projects tagged redis and summarise each of them", kind("project", tag="redis")),
    ("列出所有带有redis标签的决策", kind("decision", tag="redis")),
    ("所有带有缓存标签和redis标签的决策", lambda one: one.kind == "decision" and {"redis", "缓存"} <= set(one.tags)),
    ("列出所有带有redis标签的决策并比较它们", kind("decision", tag="redis")),
    (
        "列出所有带redis或celery标签但不带sev3标签的事故",
        lambda one: one.kind == "incident" and ("redis" in one.tags or "celery" in one.tags) and "sev3" not in one.tags,
    ),
    ("列出所有既带redis又带缓存标签的决策", lambda one: one.kind == "decision" and {"redis", "缓存"} <= set(one.tags)),
    ("总结所有带缓存标签的项目", kind("project", tag="缓存")),
    ('Which decisions contain "connection pool"?', kind("decision", says="connection pool")),
    ("提到连接池的决策有哪些", kind("decision", says="连接池")),
    ("不是由网络引起的事故有哪些", lambda one: one.kind == "incident" and one.cause != "网络"),
    ("Which incidents were not caused by DNS?", lambda one: one.kind == "incident" and one.cause != "DNS"),
    ("List all incidents owned by Ada", lambda one: one.kind == "incident" and one.owner == "Ada"),
    ("Which projects does Bob own?", lambda one: one.kind == "project" and one.owner == "Bob"),
    ("incidents not owned by Ada", lambda one: one.kind == "incident" and one.owner != "Ada"),
    (
        "incidents owned by Ada or Bob in 2026",
        lambda one: one.kind == "incident" and one.owner in {"Ada", "Bob"} and one.day.year == 2026,
    ),
    ("how many decisions does Ada own", lambda one: one.kind == "decision" and one.owner == "Ada"),
    ("List all documents owned by Ada", lambda one: one.owner == "Ada"),
    ("张三手上的事故", lambda one: one.kind == "incident" and one.owner == "张三"),
    ("张三负责的项目有哪些", lambda one: one.kind == "project" and one.owner == "张三"),
    ("列出负责人是李四的所有事故", lambda one: one.kind == "incident" and one.owner == "李四"),
    ("張三負責的文檔有哪些", lambda one: one.owner == "张三"),
    ("除了张三负责的以外的所有事故", lambda one: one.kind == "incident" and one.owner != "张三"),
    ("网络引起的、张三负责的事故", lambda one: one.kind == "incident" and one.cause == "网络" and one.owner == "张三"),
]


@pytest.mark.parametrize(("question", "fits"), EXACT, ids=[question for question, _ in EXACT])
def test_given_a_question_that_is_read_whole_then_its_members_are_listed_and_nobody_else(
    corpus: ChunkStore, question: str, fits: Fits
) -> None:
    reading, rows = listed(corpus, question)
    expected = members(DOCUMENTS, fits)
    assert expected, "the corpus has members"
    assert reading.scan is not None, reading.warnings
    assert {row.path for row in rows} == expected, reading.scan.understood
    assert (reading.scan.unread, reading.warnings) == ((), ())


UNREAD: list[tuple[str, Fits, str, Fits | None]] = [
    ("List all open incidents", incident(), "open", None),
    ("incidents with status open", incident(), "status open", None),
    ("Which incidents lasted more than two hours?", incident(), "lasted more than two hours", None),
    (
        "incidents on owner Ada that annoyed people",
        lambda one: one.kind == "incident" and one.owner == "Ada",
        "annoyed people",
        None,
    ),
    ("List all decisions, sorted by length", kind("decision"), "sorted by length", None),
    ("哪些事故影响了支付服务", incident(), "支付服务", None),
    ("列出除了没写完的以外的所有决策", kind("decision"), "没写完", None),
    ("归档以外的决策", kind("decision"), "归档", None),
    ("列出状态为open的事故", incident(), "状态为open", None),
    ("列出所有没有结论的决策", kind("decision"), "没有结论", None),
]


@pytest.mark.parametrize(("question", "fits", "unread", "near"), UNREAD, ids=[item[0] for item in UNREAD])
def test_given_words_that_are_no_condition_then_they_are_named_rank_and_exclude_nobody(
    corpus: ChunkStore, question: str, fits: Fits, unread: str, near: Fits | None
) -> None:
    reading, rows = listed(corpus, question)
    assert reading.scan is not None, reading.warnings
    assert {row.path for row in rows} == members(DOCUMENTS, fits), reading.scan.understood
    assert unread in " ".join(reading.scan.unread)
    assert unread in reading.warnings[0]
    if near:
        first = members(DOCUMENTS, lambda one: fits(one) and near(one))
        assert first
        assert {row.path for row in rows[: len(first)]} == first


@pytest.mark.parametrize(
    "question",
    [
        "List all documents reviewed by Ada",
        "functions that open a socket",
        "审核人是张三的文档有哪些",
        "List all dramatiq files",
    ],
)
def test_given_nothing_but_words_that_are_no_condition_then_it_is_not_listed_and_they_are_named(
    corpus: ChunkStore, question: str
) -> None:
    reading, _ = listed(corpus, question)
    assert reading.scan is None
    assert any(word in reading.warnings[0] for word in ("reviewed by Ada", "open", "审核人是张三", "dramatiq"))


@pytest.mark.parametrize(
    ("question", "expected", "said"),
    [
        ("how many files import asyncio", {"code/a.py", "code/b.py"}, ""),
        ("有多少文件导入了asyncio", {"code/a.py", "code/b.py"}, ""),
        ("functions decorated with @dramatiq.actor", {"code/d.py"}, ""),
        ("which files use asyncio.run", {"code/a.py"}, ""),
    ],
)
def test_given_names_of_code_then_the_files_that_hold_them_are_listed_and_what_was_assumed_is_said(
    corpus: ChunkStore, question: str, expected: set[str], said: str
) -> None:
    assert expected < set(CODE)
    reading, rows = listed(corpus, question)
    assert {row.path for row in rows} == expected, reading
    assert said in " ".join(reading.warnings)
