"""Lists by the fields of documents: names and values that exist become filters, exactly, and doubts are told."""

from __future__ import annotations

import time
from datetime import date

import pytest

from orchestrator.planning.lists.reading import Reading, read_question
from shared.models import Filters
from shared.models.enumeration import FieldFilter, Values

VALUES = Values(
    kinds={"incident": 30, "decision": 10, "project": 8, "note": 20},
    tags={"redis": 3, "sev3": 2},
    folders=("ops/", "manuals/"),
    documents=80,
    fields={
        "owner": {"Ada": 20, "Bo": 10, "Eve Chen": 5, "Ann Lee": 2, "Ann Ray": 2, "张三": 4, "张三丰": 3},
        "负责人": {"张三": 9, "李四": 5},
        "assignee": {"Bo": 3},
        "author": {"Carol Jones": 4, "Ada": 3, "王芳": 4},
        "status": {"open": 9, "closed": 12, "accepted": 5, "In Progress": 3, "draft": 3, "done": 4},
        "状态": {"已解决": 5, "提议中": 4},
        "severity": {"sev1": 4, "sev2": 8, "sev3": 9},
        "级别": {"P0": 3, "P1": 5},
        "优先级": {"高": 3},
        "team": {"payments": 4, "platform": 6},
        "服务": {"支付": 3},
        "department": {"IT": 5, "HR": 3},
        "root cause": {"DNS": 3, "disk full": 2},
        "auditor": {"Ada": 3, "Bo": 2},
        "授课人": {"何川": 3, "李四": 2},
        "purchased": {"2023-05-02": 1, "14 Mar 2024": 1, "2025/07/01": 1},
        "expire": {"2026-12-31": 2, "June 30, 2027": 1},
        "automatic renewal": {"yes": 3, "no": 4},
        "考核方式": {"笔试": 8, "实操": 4},
        "供应商": {"瑞和贸易": 3, "康泽": 2},
        "记录人": {"周洁": 3, "李四": 2},
        "处理结果": {"已完成": 4, "未通过": 2},
        "房间": {"B201": 4},
    },
)


def read(question: str, values: Values = VALUES) -> Reading:
    return read_question(question, Filters(), values, date(2026, 11, 20))


@pytest.mark.parametrize(
    ("question", "understood"),
    [
        ("which decisions have status accepted", "kind = decision, status = accepted"),
        ("incidents with status: open", "kind = incident, status = open"),
        ("incidents with Severity=SEV1", "kind = incident, severity = sev1"),
        ("incidents with a severity of sev1", "kind = incident, severity = sev1"),
        ("incidents with severity sev1 or sev2", "kind = incident, severity = sev1 or sev2"),
        ("open incidents", "kind = incident, status = open"),
        ("done projects", "kind = project, status = done"),
        ("projects that are neither done nor closed", "kind = project, not status = done or closed"),
        ("projects that are not done", "kind = project, not status = done"),
        ("incidents that are still open", "kind = incident, status = open"),
        ("incidents that are not closed", "kind = incident, not status = closed"),
        ("in-progress projects", "kind = project, status = In Progress"),
        ("incidents owned by Ada", "kind = incident, owner = Ada"),
        ("incidents not owned by Ada", "kind = incident, not owner = Ada"),
        ("incidents whose owner is not Ada", "kind = incident, not owner = Ada"),
        ("how many incidents does Ada own", "kind = incident, owner = Ada"),
        ("sev1 incidents owned by Ada or Bo", "kind = incident, owner = Ada or Bo, severity = sev1"),
        ("incidents assigned to Bo", "kind = incident, assignee = Bo"),
        ("unassigned incidents", "kind = incident, no assignee"),
        ("incidents without an owner", "kind = incident, no owner or 负责人"),
        ("Which incidents have no owner?", "kind = incident, no owner or 负责人"),
        ("incidents with an owner", "kind = incident, any owner or 负责人"),
        ("incidents of the payments team", "kind = incident, team = payments"),
        ("incidents caused by DNS", "kind = incident, root cause = DNS"),
        ("notes about open source", 'kind = note, containing or tagged "open source"'),
        ("张三负责的事故", "kind = incident, owner or 负责人 = 张三"),
        ("李四负责的事故", "kind = incident, 负责人 = 李四"),
        ("张三丰负责的事故", "kind = incident, owner = 张三丰"),
        ("負責人是李四的事故", "kind = incident, 负责人 = 李四"),
        ("负责人不是李四的事故", "kind = incident, not 负责人 = 李四"),
        ("没有负责人的事故", "kind = incident, no 负责人 or owner"),
        ("状态为已解决的事故", "kind = incident, 状态 = 已解决"),
        ("哪些决策还在提议中？", "kind = decision, 状态 = 提议中"),
        ("已解决的事故", "kind = incident, 状态 = 已解决"),
        ("李四负责的、已解决的事故", "kind = incident, 负责人 = 李四, 状态 = 已解决"),
        ("级别是Ｐ0的事故", "kind = incident, 级别 = P0"),
        ("高优先级的项目", "kind = project, 优先级 = 高"),
        ("优先级是高的项目", "kind = project, 优先级 = 高"),
        ("王芳没写的笔记", "kind = note, not author = 王芳"),
        ("所有高优先级的项目", "kind = project, 优先级 = 高"),
        ("incidents owned by neither Ada nor Bo", "kind = incident, not owner = Ada or Bo"),
        ("incidents that have no severity set", "kind = incident, no severity"),
        ("decisions not yet accepted", "kind = decision, not status = accepted"),
        ("all non-closed incidents", "kind = incident, not status = closed"),
        ("非提议中的决策", "kind = decision, not 状态 = 提议中"),
        ("Ada 负责的事故有哪些？", "kind = incident, owner = Ada"),
        ("王芳写的笔记", "kind = note, author = 王芳"),
        ("支付服务的事故", "kind = incident, 服务 = 支付"),
        ("owner 是 Bo 的 incident 有哪些", "kind = incident, owner = Bo"),
        ("Which incidents does Ada audit?", "kind = incident, auditor = Ada"),
        ("incidents audited by Ada or Bo", "kind = incident, auditor = Ada or Bo"),
        ("何川上哪些项目？", "kind = project, 授课人 = 何川"),
        ("除了何川讲授的以外的项目", "kind = project, not 授课人 = 何川"),
        ("周洁记录的项目", "kind = project, 记录人 = 周洁"),
        ("没有考核的项目", "kind = project, no 考核方式"),
    ],
)
def test_given_a_field_that_exists_when_asked_for_then_it_is_a_filter_and_nothing_is_in_doubt(
    question: str, understood: str
) -> None:
    reading = read(question)
    assert reading.scan is not None, reading.warnings
    assert (reading.scan.understood, reading.scan.unread, reading.warnings) == (understood, (), ())


@pytest.mark.parametrize(
    ("question", "understood"),
    [
        ("projects bought in 2023 or 2024", "kind = project, purchased = 2023-05-02 or 14 Mar 2024"),
        ("projects that run out in 2027", "kind = project, expire = June 30, 2027"),
        ("projects that expire within the next two months", "kind = project, expire = 2026-12-31"),
        ("projects whose purchase was before 2024", "kind = project, purchased = 2023-05-02"),
        ("expired projects", "kind = project, expire = expired"),
        ("projects that have not expired", "kind = project, not expire = expired"),
        ("projects that are renewed automatically", "kind = project, automatic renewal = yes"),
        ("incidents with severity sev2 or worse", "kind = incident, severity = sev1 or sev2"),
        ("incidents below sev1", "kind = incident, severity = sev2 or sev3"),
        ("级别不低于P1的事故", "kind = incident, 级别 = P0 or P1"),
        ("级别低于P0的事故", "kind = incident, 级别 = P1"),
        ("IT projects", "kind = project, department = IT"),
        ("projects of HR", "kind = project, department = HR"),
        ("projects not renewed automatically", "kind = project, not automatic renewal = yes"),
        ("除了瑞和贸易以外的项目", "kind = project, not 供应商 = 瑞和贸易"),
    ],
)
def test_given_other_words_for_a_field_when_asked_for_then_it_is_a_filter_and_that_is_told(
    question: str, understood: str
) -> None:
    reading = read(question)
    assert reading.scan is not None
    assert (reading.scan.understood, reading.scan.unread, len(reading.warnings)) == (understood, (), 1)


@pytest.mark.parametrize(
    ("question", "understood", "told"),
    [
        ("incidents owned by Eve", "owner = Eve Chen", "Fields of documents were read so: “eve: owner = Eve Chen”."),
        ("incidents owned by Ann", "owner = Ann Lee or Ann Ray", "“ann: owner = Ann Lee or Ann Ray”"),
        ("Ada's notes", "owner or auditor or author = Ada", "“ada: owner or auditor or author = Ada”"),
        (
            "How many incidents has Bo got?",
            "owner or assignee or auditor = Bo",
            "“bo: owner or assignee or auditor = Bo”",
        ),
        ("notes from Ada", "owner or auditor or author = Ada", "“ada: owner or auditor or author = Ada”"),
        ("没有完成的项目", "kind = project, not 处理结果 = 已完成", "“完成: 处理结果 = 已完成”"),
        ("在B201上的项目", "kind = project, 房间 = B201", "“b201: 房间 = B201”"),
        ("notes by Carol", "author = Carol Jones", "“carol: author = Carol Jones”"),
        ("sev3 incidents", "tag = sev3", "“sev3: tag = sev3”"),
        ("incidents owned by Aad", "owner or 负责人 = aad", "No document has owner = aad; there is Ada."),
        ("负责人是李五的事故", "负责人 or owner = 李五", "没有文档的负责人 = 李五；有的是Ada, Bo, Eve Chen。"),
        ("incidents handled by Ada", "owner = Ada", "“ada: owner = Ada”"),
        ("incidents owned by Ada and Bo", "owner = Ada or Bo", "“ada, bo: owner = Ada or Bo”"),
        ("payments incidents", "team = payments", "“payments: team = payments”"),
        ("runbooks owned by the payments team", "team = payments", "“runbooks owned”"),
        ("draft manuals", "path = manuals/, status = draft", ""),
    ],
)
def test_given_a_value_that_may_mean_another_when_asked_for_then_it_is_told_how_it_was_read(
    question: str, understood: str, told: str
) -> None:
    reading = read(question)
    assert reading.scan is not None
    assert reading.scan.understood.removeprefix("kind = incident, ").removeprefix("kind = note, ") == understood
    assert told in " ".join(reading.warnings)


@pytest.mark.parametrize(
    ("question", "unread"),
    [
        ("incidents with status accepted or higher", "status accepted or higher"),
        ("incidents reviewed by Ada", "reviewed by Ada"),
        ("status of the incidents", "status"),
        ("incidents praised by Ada", "praised by Ada"),
        ("US incidents", "US"),
        ("审核人是张三的事故", "审核人是张三"),
    ],
)
def test_given_a_bound_or_a_field_that_nobody_has_when_asked_for_then_it_is_named_as_unread(
    question: str, unread: str
) -> None:
    reading = read(question)
    assert reading.scan is not None
    assert reading.scan.fields == ()
    assert unread in " ".join(reading.scan.unread)
    assert unread in reading.warnings[0]


def test_given_who_instead_of_a_value_when_read_then_it_is_no_list() -> None:
    assert read("青松的负责人是谁？").scan is None


def test_given_more_values_than_are_known_when_another_is_asked_for_then_it_is_a_filter_without_a_doubt() -> None:
    reading = read("incidents owned by Zoe", VALUES.model_copy(update={"truncated": ("fields",)}))
    assert reading.scan is not None
    assert reading.scan.fields == (FieldFilter(names=("owner", "负责人"), values=("zoe",)),)
    assert reading.warnings == ()


def test_given_documents_of_an_older_release_when_a_field_is_asked_for_then_they_are_counted_in_a_warning() -> None:
    old = VALUES.model_copy(update={"fields_unknown": 1200})
    assert read("没有负责人的事故", old).warnings == (
        "有1,200篇文档是在读取字段之前导入的，按没有字段处理：请重新导入。",
    )
    assert read("all incidents", old).warnings == ()


@pytest.mark.parametrize("text", ["owner is " * 110, "张三负责" * 250, "open " * 200, "没有负责人" * 200, "a=b " * 250])
def test_given_a_hostile_question_when_read_then_it_takes_no_time(text: str) -> None:
    many = {f"f{number}": {f"value {number} {each}": 2 for each in range(50)} for number in range(100)}
    begun = time.process_time()
    read(text, VALUES.model_copy(update={"fields": {**VALUES.fields, **many}}))
    assert time.process_time() - begun < 2.0


def test_a_value_that_begins_with_another_name_of_its_field_is_not_counted_by() -> None:
    keepers = Values(kinds={"note": 60}, documents=60, fields={"owner": {"keeper 0": 20, "keeper 1": 20}})
    reading = read("How many notes are owned by keeper 1?", keepers)
    assert (reading.scan.understood, reading.scan.unread) == ("kind = note, owner = keeper 1", ())
