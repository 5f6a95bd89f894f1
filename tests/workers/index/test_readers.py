"""Files become documents; what cannot be read becomes one clear sentence."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.language.written_days import parse_date
from shared.models import DocumentOutcome, DocumentStatus, RawDocument
from shared.models.ingest import CODE_SUFFIXES
from workers.index.documents import Document, Markup, document_id
from workers.index.metadata import read_metadata
from workers.index.readers import READERS, read_documents

LIMIT = 10_000_000
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
NOTES = Path(__file__).parents[3] / "examples" / "notes"


def raw(content: str | bytes, name: str = "notes/a.md") -> RawDocument:
    data = content if isinstance(content, bytes) else content.encode()
    return RawDocument(
        source="/notes", path=name, identity=f"/{name}", suffix=Path(name).suffix, content=data, namespace="default"
    )


def read(content: str | bytes, name: str = "notes/a.md") -> Document:
    (document,) = read_documents(raw(content, name), LIMIT)
    assert isinstance(document, Document), document
    return document


def reason(content: str | bytes, name: str = "notes/a.md", limit: int = LIMIT) -> str:
    (outcome,) = read_documents(raw(content, name), limit)
    assert isinstance(outcome, DocumentOutcome), outcome
    assert outcome.status is DocumentStatus.FAILED
    assert outcome.path == name
    return outcome.reason


def test_given_front_matter_when_read_then_its_fields_are_the_documents() -> None:
    document = read("---\ntitle: 查询优化\ndate: 2026-05-18\ntags: 数据库, 性能，Redis\nkind: memory\n---\n\n正文\n")
    assert (document.title, document.date, document.kind) == ("查询优化", "2026-05-18", "memory")
    assert document.tags == ("数据库", "性能", "Redis")
    assert document.text.strip() == "正文"
    assert document.notes == ()


def test_given_values_that_yaml_would_retype_when_read_then_they_stay_text() -> None:
    document = read("---\ntitle: 1.10\ntags: [2026, no, '#x', no]\ncreated: 2026-05-18T10:00:00Z\ntype: Skill\n---\nb")
    assert (document.title, document.tags, document.date, document.kind) == (
        "1.10", ("2026", "no", "x"), "2026-05-18", "skill",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "title"),
    [("# *First*\n\n# Second", "First"), ("```\n# no\n```\n\nSetext\n===\n", "Setext"), ("## no\n\ntext", "a")],
)
def test_given_no_title_when_read_then_it_is_the_first_top_heading_or_the_file_name(text: str, title: str) -> None:
    assert read(text).title == title


def test_given_a_wrong_date_when_read_then_the_document_is_kept_and_says_so() -> None:
    document = read("---\ndate: 31.02.2026\ntags: {a: b}\nkind: a kind of five words\n---\nbody")
    assert (document.date, document.tags, document.kind) == (None, (), "")
    assert [note.partition(":")[0] for note in document.notes] == ["date", "tags", "kind"]
    assert "'31.02.2026' left out: write it as YYYY-MM-DD" in document.notes[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# SJ-5\n\n- 日期：2026.08.20\n- **原因**：漏电\n\n## 经过", ("2026-08-20", ())),
        ("# WO-7\n\nDate: July 21, 2026\nTags: rush, pump\n\nIt was done.", ("2026-07-21", ("rush", "pump"))),
        ("---\ndate: 2026-01-02\n---\n# WO-8\n\nDate: 2025-07-21\n", ("2026-01-02", ())),
        ("# WO-9\n\nIt was done.\n\n## Later\n\nIt went on.\n\nDate: 2025-07-21\n", (None, ())),
    ],
)
def test_given_lines_at_the_head_when_read_then_they_say_day_and_tags_where_the_front_matter_does_not(
    text: str, expected: tuple[str | None, tuple[str, ...]]
) -> None:
    document = read(text)
    assert (document.date, document.tags) == expected


def test_given_a_kind_of_several_words_when_read_then_it_is_one_kind() -> None:
    assert read("---\nkind: Pest  report\n---\nbody").kind == "pest-report"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-05-18", date(2026, 5, 18)), ("2026/5/8 10:00", date(2026, 5, 8)), ("20260518", date(2026, 5, 18)),
        ("2026年5月18日", date(2026, 5, 18)), ("18 May 2026", date(2026, 5, 18)), ("Sept. 3, 2026", date(2026, 9, 3)),
        ("05/06/2026", None), ("2026-13-01", None), ("2026-05", None), ("soon", None), ("18 Mai 2026", None),
        ("202605181", None), ("", None),
    ],
)  # fmt: skip
def test_given_a_date_as_people_write_it_when_parsed_then_it_is_a_day_or_none(text: str, expected: date | None) -> None:
    assert parse_date(text) == expected


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("title: a: b", "line 2: the front matter is not valid YAML"),
        ("title: ok\ntags: [a, b", "the front matter is not valid YAML"),
        ("a: &x 1\nb: *x", "line 2: the front matter has an anchor or alias"),
        ("- a\n- b", "line 2: the front matter is a list"),
        ("a: " + "[" * 2000, "line 2: the front matter is too large or too deep"),
        ("a: [" + "1," * 6000 + "]", "too large or too deep"),
        ("a: " + "x" * 70_000, "longer than 65536 characters"),
        ("a: \x07", "remove that character"),
        ("? [a]\n: b\n? {c: d}\n: e", "not valid YAML"),
    ],
)
def test_given_broken_or_hostile_front_matter_when_read_then_one_sentence_names_the_line(
    head: str, expected: str
) -> None:
    sentence = reason(f"---\n{head}\n---\nbody\n")
    assert expected in sentence
    assert "\n" not in sentence


def test_given_front_matter_that_is_never_closed_when_read_then_it_fails_and_a_rule_does_not() -> None:
    assert "never closed" in reason("---\ntitle: x\n\nbody")
    assert read("---\n\nbody\n\n---\n\nmore").text.startswith("---")
    assert read("---\njust prose\n---\nmore").text.startswith("---")
    assert read("---\n---\nbody").text == "body"


def test_given_a_python_tag_in_front_matter_when_read_then_nothing_is_built() -> None:
    assert read("---\ntitle: !!python/object/apply:os.getcwd []\n---\nbody").title == "a"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-8"])
def test_given_a_byte_order_mark_when_read_then_the_text_has_none(encoding: str) -> None:
    document = read("---\r\ntitle: 标题\r\n---\r\n正文\r\nb".encode(encoding))
    assert (document.title, document.text) == ("标题", "正文\nb")


@pytest.mark.parametrize(
    ("content", "name", "expected"),
    [
        ("数据库".encode("gb18030"), "a.md", "is not UTF-8 (byte 0xCA at position 0): convert it to UTF-8 with iconv"),
        ("数据库的索引可以加快查询速度。".encode("gb18030") * 5, "a.txt", "with iconv -f GB18030 -t UTF-8"),
        ("資料庫的索引可以加快查詢的速度。".encode("big5") * 5, "a.csv", "with iconv -f BIG5 -t UTF-8"),
        ("name,amount\nAda,5\n".encode("utf-16-le") * 5, "a.csv", "if it is UTF-16LE without its mark"),
        (b"\x89PNG\0\0", "a.txt", "holds NUL bytes: it is no text file"),
        (b" \n\n" * 50, "a.txt", "is empty"),
        (b"---\ntitle: x\n---\n\n", "a.md", "is empty"),
        (b"\n" * 100, "a.jsonl", "is empty"),
        (b"%PDF", "a.pdf", "is no PDF that can be read"),
        (b"x", "a", "no reader for a file without suffix"),
    ],
)
def test_given_a_file_that_is_no_text_when_read_then_the_outcome_says_what_to_do(
    content: bytes, name: str, expected: str
) -> None:
    assert expected in reason(content, name)


def test_given_a_file_beyond_the_limit_when_read_then_it_names_the_setting() -> None:
    assert "chunking.max_document_bytes" in reason(b"x" * 1001, limit=1000)


def test_given_plain_text_when_read_then_front_matter_means_nothing() -> None:
    document = read("---\ntitle: x\n---\n", "notes/lock cheatsheet.TXT")
    assert (document.title, document.markup) == ("lock cheatsheet", Markup.TEXT)
    assert document.text == "---\ntitle: x\n---\n"


def test_given_json_lines_when_read_then_each_is_a_document_and_a_bad_one_is_named() -> None:
    lines = [
        json.dumps({"id": 1, "title": "T", "text": "one", "tags": "a,b", "date": "2026-01-02", "extra": 1}),
        "{broken", "[1]", "", json.dumps({"id": "x"}), json.dumps({"text": "no id"}), "[" * 100_000,
        '{"id": "s", "text": "\\ud800"}', '{"id": "n", "text": "\\u0000"}',
        json.dumps({"_id": "b", "text": "two", "url": "https://example.org/b", "title": "\ud800t"}),
    ]  # fmt: skip
    items = read_documents(raw("\n".join(lines), "c.jsonl"), LIMIT)
    documents = [item for item in items if isinstance(item, Document)]
    unnamed = documents.pop(1)
    assert (unnamed.text, unnamed.title) == ("no id", "")
    assert unnamed.path.startswith("c.jsonl#")
    assert [(d.path, d.title, d.text, d.tags, d.date) for d in documents] == [
        ("c.jsonl#1", "T", "one", ("a", "b"), "2026-01-02"),
        ("https://example.org/b", "t", "two", (), None),
    ]
    assert documents[0].doc_id == document_id("/c.jsonl#1", "default", "default")
    failed = [item for item in items if isinstance(item, DocumentOutcome)]
    assert [item.reason.partition(":")[0] for item in failed] == [f"line {n}" for n in (2, 3, 5, 7, 8, 9)]
    assert failed[2].doc_id == document_id("/c.jsonl#x", "default", "default")
    assert all(item.path == "c.jsonl" for item in failed)


def test_given_one_line_that_is_not_utf8_when_read_then_the_others_are_taken() -> None:
    content = b'{"id": "a", "text": "x"}\r\n{"id": "b", "text": "\xff"}\n{"id": "c", "text": "y"}\n'
    items = read_documents(raw(content, "c.ndjson"), LIMIT)
    assert [type(item) for item in items] == [Document, DocumentOutcome, Document]


def test_given_two_namespaces_when_read_then_the_same_file_is_two_documents() -> None:
    one = raw("x")
    two = one.model_copy(update={"namespace": "team"})
    (first,), (second,) = read_documents(one, LIMIT), read_documents(two, LIMIT)
    assert isinstance(first, Document)
    assert isinstance(second, Document)
    assert first.doc_id != second.doc_id
    assert (first.source, second.source) == ("/notes", "team:/notes")


def test_given_untrusted_metadata_when_read_then_lines_are_clean_and_bounded() -> None:
    meta = read_metadata({"Title": "a\n\x1b[31mb" + "c" * 400, "标签": ["t"] * 3 + [str(n) for n in range(60)]})
    assert meta.title is not None
    assert meta.title.startswith("a [31mb")
    assert len(meta.title) == 300
    assert len(meta.tags) == 50
    assert len(meta.notes) == 2


@settings(deadline=None)
@given(st.binary(max_size=300), st.sampled_from(sorted(READERS)))
def test_given_any_bytes_when_read_then_there_is_an_outcome_and_no_exception(content: bytes, suffix: str) -> None:
    blank = not content.decode("utf-8-sig", "replace").strip()
    nothing = blank and (suffix in CODE_SUFFIXES or len(content) <= 64)
    assert read_documents(raw(content, f"a{suffix}"), LIMIT) or nothing or content in UTF16_MARKS


def test_given_a_small_page_without_text_when_read_then_it_is_no_failure_and_a_large_one_is() -> None:
    assert read_documents(raw(b"<script>go()</script>", "a.html"), LIMIT) == []
    (outcome,) = read_documents(raw(b"<script>go()</script>" * 300, "a.html"), LIMIT)
    assert isinstance(outcome, DocumentOutcome)
    assert outcome.reason == "has no text"


@pytest.mark.parametrize("content", [b"", b"\n", b" \r\n\t"])
@pytest.mark.parametrize("suffix", [".md", ".txt", ".jsonl", ".pdf", ".json", ".py"])
def test_given_a_file_with_nothing_when_read_then_it_is_no_failure(content: bytes, suffix: str) -> None:
    assert read_documents(raw(content, f"a{suffix}"), LIMIT) == []


@given(st.text(alphabet="a:-[]{}&*!|>'\"#%@`,? \n\t0~", max_size=120))
def test_given_any_front_matter_when_read_then_there_is_an_outcome_and_no_exception(head: str) -> None:
    assert read_documents(raw(f"---\n{head}\n---\nbody"), LIMIT)


def test_given_the_sample_notes_when_read_then_all_are_documents_without_complaint() -> None:
    files = [path for path in sorted(NOTES.rglob("*")) if path.suffix in READERS]
    if not files:
        pytest.skip("the sample corpus is not there")
    for path in files:
        for item in read_documents(raw(path.read_bytes(), str(path.relative_to(NOTES))), LIMIT):
            assert isinstance(item, Document), item
            assert item.notes == ()
            assert item.title
