"""Which lines of a document are its fields, in every format, and which are prose."""

from __future__ import annotations

import pytest

from shared.language.document_fields import LOOKED_FOR, entries
from shared.models import RawDocument
from workers.index.documents import Document
from workers.index.readers import read_documents


def fields(text: str, suffix: str = ".md") -> list[tuple[str, str]]:
    """The fields of a file as people read them."""
    raw = RawDocument(source="/r", path=f"r/a{suffix}", identity=f"/r/a{suffix}", suffix=suffix, content=text.encode())
    (document,) = read_documents(raw, 10_000_000)
    assert isinstance(document, Document), document
    assert document.fields[0] == LOOKED_FOR
    return [(name, value) for name, value in entries(document.fields)]


OWNED = [("Owner", "Ada"), ("Status", "open")]


@pytest.mark.parametrize(
    "head",
    [
        "Owner: Ada\nStatus: open",
        "**Owner**: Ada\n\n**Status:** open",
        "- Owner: Ada\n- Status: open",
        "> Owner：Ada\n> Status：open",
        "Owner: Ada | Status: open",
        "Owner: Ada · Status: open.",
        "| Owner | Ada |\n| --- | --- |\n| Status | open |\n| Cost | - |",
        "| Field | Value |\n| --- | --- |\n| **Owner** | [Ada](people/ada.md) |\n| Status | `open` |",
        "| Owner | Status | Cost |\n|---|---|---|\n| Ada | open | - |",
        "| Field | Value | Note |\n|---|---|---|\n| Owner | Ada | since May |\n| Status | open | |",
        "| Owner | Ada | Status | open |\n|---|---|---|---|",
        "## Owner\n\nAda\n\n## Status\n\nopen",
        "Owner\n-----\nAda\n\nStatus\n------\n\nopen.",
        "Owner\n: Ada\n\nStatus\n: open",
        "Owner:\n\n- Ada\n\nStatus:\n  open",
        "- Owner — Ada\n- Status — open",
        "Owner - Ada\nStatus -> open",
        "**Owner** Ada\n\n**Status** open",
        "Owner = Ada\nStatus = open",
        "Owner    Ada\nStatus   open",
        "Owner: Ada; Status: open",
        "Owner: Ada, Status: open",
        "Owner: Ada / Status: open",
        "Owner: Ada      Status: open",
        "<!-- Owner: Ada -->\n<!--\nStatus: open\n-->",
        "👤 Owner: Ada\n✅ **Status:** 🟢 ~~closed~~ open",
    ],
)
def test_given_fields_at_the_head_in_any_markup_when_read_then_they_are_known_without_it(head: str) -> None:
    assert [pair for pair in fields(f"# Outage\n\n{head}\n\nWe fixed it.\n") if pair[0] in {"Owner", "Status"}] == OWNED


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".md", "---\nOwner: [Ada]\nStatus: open\ntags: [x]\ndate: 2026-01-02\n---\nText.\n"),
        (".md", '+++\nOwner = ["Ada"]\nStatus = "open"\ndate = 2026-01-02\n+++\nText.\n'),
        (".txt", "Outage\nOwner: Ada\nStatus: open\n\nText.\n"),
        (".md", "---\nmeta:\n  Owner:\n    name: Ada\n  Status: open\n---\nText.\n"),
        (".md", "Text first.\n\nMore of it.\nOwner: Ada\nand more.\n\n## Status\n\nopen\n\nText.\n"),
        (".txt", "Outage\n\nOwner\tAda\nStatus\topen\n\nText.\n"),
        (".rst", "Outage\n======\n\n:Owner: Ada\n:Status: open\n\nText.\n"),
        (".rst", "Outage\n~~~~~~\n\n:Owner:\n   Ada\n\nStatus\n~~~~~~\n\nopen\n\nText.\n"),
        (".rst", "======  ====\nOwner   Ada\nStatus  open\n======  ====\n\nText.\n"),
        (".rst", "=====  ======\nOwner  Status\n=====  ======\nAda    open\n=====  ======\n\nText.\n"),
        (".rst", "+-------+------+\n| Owner | Ada  |\n+-------+------+\n| Status| open |\n+-------+------+\n"),
        (".jsonl", '{"id": 1, "title": "t", "text": "Text.", "Owner": "Ada", "Status": "open", "tags": ["x"]}'),
    ],
)
def test_given_another_format_when_read_then_its_fields_are_the_same(suffix: str, text: str) -> None:
    assert fields(text, suffix) == OWNED


def test_given_toml_front_matter_when_read_then_title_date_and_tags_are_its_own() -> None:
    raw = b'+++\ntitle = "T"\ndate = 2026-01-02\ntags = ["x"]\n+++\nText.\n'
    (document,) = read_documents(RawDocument(source="/r", path="r/a.md", identity="a", suffix=".md", content=raw), 1000)
    assert isinstance(document, Document)
    assert (document.title, document.date, document.tags, document.text) == ("T", "2026-01-02", ("x",), "Text.\n")


@pytest.mark.parametrize(
    "text",
    [
        "There are two reasons for this: load and luck.\n",
        "We met at 10:30 and left.\n",
        "See https://example.org: it is good.\n",
        "```yaml\nowner: Ada\n```\n",
        "# Title: a subtitle\n\nText.\n",
        "Text.\n\nNote: we tried this twice, and it never worked. Do not try it again.\n",
        "| A | B | C |\n|---|---|---|\n| 1 | 2 | 3 |\n| 4 | 5 | 6 |\n",
        "# 词频\n\n- 词频饱和：出现十次不等于十倍好。k1 管饱和得多快，b 管长度归一的强弱。\n",
        "# API\n\n| Key | Says |\n|---|---|\n| `a.b()` | x |\n| c, d | y |\n",
        "Owner: none\nStatus: -\n",
        "Title: x\nDate: 2026-01-02\n",
        "# T\n\n## Usage\n\nRun it twice, then look at the log.\n\n## Setup\n\nSeason with cardamom at the end.\n",
        "# T\n\n## Ideas\n\n- one\n- two\n\n## Notes\n\n## Next\n",
        "# T\n\n- redis — a cache\n- qdrant - a store\n",
        "T\n\nsome  wide gap\n\nExample:\n\nfoo bar\n",
        "Title\n~~~~~\n\nText.\n",
    ],
)
def test_given_prose_code_or_nothing_when_read_then_there_is_no_field(text: str) -> None:
    assert fields(text) == []


def test_given_several_values_when_read_then_each_is_one_and_names_with_and_in_them_stay_too() -> None:
    text = "Owners: Ada, Bo；Eve\nTeam: Search and Ranking\nCost: 1,200 EUR\n负责人：张三、李四\n"
    assert fields(text) == [
        ("Owners", "Ada"), ("Owners", "Bo"), ("Owners", "Eve"), ("Team", "Search and Ranking"), ("Team", "Search"),
        ("Team", "Ranking"), ("Cost", "1,200 EUR"), ("负责人", "张三"), ("负责人", "李四"),
    ]  # fmt: skip


def test_given_a_day_with_commas_or_slashes_when_read_then_it_is_one_value() -> None:
    text = "Signed: July 21, 2026\nExpires: 2027/01/31\nSeen: 2026-01-02, 2026-03-04\n"
    assert fields(text) == [
        ("Signed", "July 21, 2026"), ("Expires", "2027/01/31"), ("Seen", "2026-01-02"), ("Seen", "2026-03-04"),
    ]  # fmt: skip


def test_given_a_note_behind_a_value_when_read_then_the_value_is_there_without_it_too() -> None:
    text = "Priority: high (customer waits)\nStatus: open - since May\n优先级：高（客户在等）\n"
    assert fields(text) == [
        ("Priority", "high (customer waits)"), ("Priority", "high"), ("Status", "open - since May"),
        ("Status", "open"), ("优先级", "高（客户在等）"), ("优先级", "高"),
    ]  # fmt: skip


def test_given_a_list_below_a_name_when_read_then_each_item_is_a_value() -> None:
    text = "# T\n\n## Attendees\n\n- Ada\n- Bo Chen\n\n## 参与人\n\n张三、李四\n\n## Notes\n\nText.\n"
    assert fields(text) == [("Attendees", "Ada"), ("Attendees", "Bo Chen"), ("参与人", "张三"), ("参与人", "李四")]


def test_given_a_field_below_the_head_when_read_then_the_head_goes_before_it() -> None:
    text = "---\nowner: Ada\n---\n# T\n\nText.\n\nOwner: Bo\nSeverity: sev1\n\nMore text.\n\nStatus: open\n"
    assert fields(text) == [("owner", "Ada"), ("Severity", "sev1"), ("Status", "open")]


def test_given_more_than_a_document_may_have_when_read_then_the_first_ones_are_kept() -> None:
    many = "\n".join(f"Key{chr(97 + number // 26)}{chr(97 + number % 26)}: value{number}" for number in range(300))
    assert len(fields(many)) == 48
    assert len(fields("Owners: " + ", ".join(f"p{number}" for number in range(40)))) == 16
    assert fields(f"{'a ' * 10}: x\n\nSummary: {'long' * 30}\n") == []
