"""The complete list as text: counts, coverage, rows with their sources, and nothing that breaks out of a cell."""

from __future__ import annotations

import pytest

from shared.language import Language, languages
from shared.models.enumeration import ListGroup, ListRow, ListTable
from shared.settings.sections import EnumerationAggregator
from tests.fakes.findings import Scripted, found, hit
from workers.merge.aggregators import BUILT_IN, aggregate
from workers.merge.aggregators.simple import as_markdown

ENGLISH, CHINESE = languages()


def row(number: int, **fields: object) -> ListRow:
    values = {"doc_id": f"d{number}", "title": f"T{number}", "path": f"n{number}.md", "uri": f"u{number}"}
    return ListRow(**(values | fields))


def table(*rows: ListRow, **fields: object) -> ListTable:
    values = {"understood": "tag = redis", "scanned": 412, "planned": 412, "matched": len(rows), "rows": rows}
    return ListTable(**(values | fields))


def test_given_a_list_then_count_understood_coverage_and_a_row_each_with_its_source() -> None:
    text = as_markdown(table(row(1, date="2026-01-02", sentence="Redis is fast."), row(2)), 20, ENGLISH)
    assert text.split("\n") == [
        "2 documents in the list: tag = redis. Looked through 412 of 412 documents.",
        "",
        "| # | title | source | date | says |",
        "| --- | --- | --- | --- | --- |",
        "| 1 | T1 | n1.md | 2026-01-02 | Redis is fast. |",
        "| 2 | T2 | n2.md |  |  |",
    ]


def test_given_a_chinese_question_then_the_list_is_told_in_chinese() -> None:
    text = as_markdown(table(row(1), matched=30, copies=2, partial=True, changed=True), 20, CHINESE)
    assert text.startswith("共 30 篇文档：tag = redis。已逐篇查看 412 / 412 篇文档。其中 2 篇与前面的某一篇内容相同。")
    assert "列表不完整。查看期间语料有改动。" in text
    assert "| # | 标题 | 来源 | 日期 | 内容 |" in text
    assert text.endswith("……另有 29 篇。")


@pytest.mark.parametrize(
    ("language", "said"),
    [
        (ENGLISH, "This list is not certain. Not understood, so no condition of it: owned by Ada, open."),
        (CHINESE, "这份清单并不确定。未能理解、因此没有作为条件的词：owned by Ada、open。"),
    ],
)
def test_given_words_that_were_not_understood_then_the_answer_names_them(language: Language, said: str) -> None:
    assert as_markdown(table(row(1), unread=("owned by Ada", "open")), 20, language).startswith(said)


@pytest.mark.parametrize(
    ("language", "said"),
    [
        (ENGLISH, "team has 2 different values:\n- Search: 2\n- Mobile: 1\n- without team: 1\n\n| # |"),
        (CHINESE, "team共有 2 种：\n- Search：2 篇\n- Mobile：1 篇\n- 没有team：1 篇\n\n| # |"),
    ],
)
def test_given_a_list_that_is_counted_by_a_field_then_each_value_has_its_number(language: Language, said: str) -> None:
    groups = tuple(ListGroup(value=value, documents=n) for value, n in (("Search", 2), ("Mobile", 1), ("", 1)))
    assert said in as_markdown(table(row(1), grouped_by="team", grouped=2, groups=groups), 20, language)


def test_given_columns_then_these_are_told_instead_of_a_sentence() -> None:
    text = as_markdown(table(row(1, fields={"owner": "Ada"}), columns=("owner", "port")), 20, ENGLISH)
    assert "| # | title | source | date | owner | port |" in text
    assert "| 1 | T1 | n1.md |  | Ada |  |" in text


def test_given_pipes_breaks_and_links_in_documents_then_every_row_stays_one_row() -> None:
    evil = "a | b\n| 99 | [x](http://evil) \\| \x1b[31m"
    lines = as_markdown(table(row(1, title=evil, sentence=evil)), 20, ENGLISH).split("\n")
    assert len(lines) == 5
    assert "http://evil" not in lines[-1]
    assert "\x1b" not in lines[-1]
    cells = lines[-1].replace("\\\\", "").replace("\\|", "").count("|")
    assert cells == 6


@pytest.mark.parametrize(("matched", "said"), [(0, "0 documents in the list"), (1, "1 document in the list")])
def test_given_none_or_one_then_it_is_counted_as_people_do(matched: int, said: str) -> None:
    assert said in as_markdown(table(*[row(1)][:matched]), 20, ENGLISH)


def test_given_a_table_then_it_is_the_answer_and_no_model_is_asked() -> None:
    llm = Scripted("x [1].")
    findings = found("List all notes tagged redis", [], [], table=table(*map(row, range(1, 41))), llm=llm, timeout_s=9)
    name, made = aggregate("enumeration", findings, {"rows": 5})
    assert name == "enumeration"
    assert made.table == findings.table
    assert made.summary.text.count("\n| ") == 5 + 2
    assert "… and 35 more." in made.summary.text
    assert llm.prompts == []


def test_given_no_table_then_the_plain_answer_says_so() -> None:
    findings = found("List all notes on redis", [], [hit(1, "All notes on redis list its streams and its locks.")])
    made = BUILT_IN["enumeration"].run(findings, EnumerationAggregator())
    assert made.summary.citations
    assert made.warnings == ("There is no complete list for this question, so the answer is made of what was found.",)
