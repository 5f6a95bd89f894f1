"""Boxes of mail, attachments, JSON, YAML, TOML and records: documents, rows, headings, and what is left out."""

from __future__ import annotations

import json
from email.message import EmailMessage
from pathlib import Path

import pytest

from shared.files.found import FoundFile
from shared.files.pieces import pieces
from shared.models import DocumentOutcome, RawDocument
from shared.settings import Settings
from tests.fakes.stores import in_place
from tests.support.pdf import pdf
from workers.formats.parsed import FormatError
from workers.formats.process import parsed
from workers.index.documents import Document
from workers.index.pipeline import Indexer
from workers.index.readers import read_documents

ROOT = Path("/c")


def documents(name: str, content: bytes, line_offset: int = 0) -> list[Document]:
    raw = RawDocument(
        source="/c",
        path=name,
        identity=f"/c/{name}",
        suffix=Path(name).suffix,
        content=content,
        line_offset=line_offset,
    )
    found = read_documents(raw, 10_000_000)
    assert all(isinstance(one, Document) for one in found), found
    return [one for one in found if isinstance(one, Document)]


def mail(subject: str, number: int, body: str = "It moves.") -> EmailMessage:
    message = EmailMessage()
    for name, value in (("From", "ada@example.org"), ("Subject", subject), ("Message-ID", f"<{number}@example.org>")):
        message[name] = value
    message.set_content(body)
    return message


def box(*messages: EmailMessage) -> bytes:
    return b"".join(b"From ada Tue Mar  3 10:00:00 2026\n" + message.as_bytes() + b"\n" for message in messages)


def test_given_a_box_when_read_then_each_message_is_a_document_of_its_thread() -> None:
    first, reply, chinese = documents(
        "a.mbox", box(mail("Budget", 1, ">From here on"), mail("Re: [list] Fwd: Budget", 2), mail("回复：冷库", 3))
    )
    assert (first.title, first.path) == ("Budget", "a.mbox#1@example.org")
    assert "\nFrom here on" in first.text
    assert len({first.doc_id, reply.doc_id, chinese.doc_id}) == 3
    assert [entry for entry in first.fields if "thread" in entry] == [
        entry for entry in reply.fields if "thread" in entry
    ]
    assert any("冷库" in entry and "回复" not in entry for entry in chinese.fields)


def test_given_a_broken_message_when_its_box_is_indexed_anew_then_what_the_store_has_of_it_stays(
    tmp_path: Path,
) -> None:
    def raw(content: bytes) -> RawDocument:
        named = {"source": "/c", "path": "a.mbox", "identity": "/c/a.mbox", "suffix": ".mbox"}
        return RawDocument(**named, content=content, whole=True)

    indexer = Indexer(in_place(tmp_path), None, Settings())
    indexer.index([raw(box(mail("Budget", 1), mail("Roof", 2)))])
    outcomes, _ = indexer.index([raw(box(mail("Budget", 1)) + b"From ada Tue Mar  3 10:00:00 2026\n\n\n")])
    assert [(one.status.value, one.reason) for one in outcomes] == [
        ("unchanged", ""), ("failed", "1 of its 2 messages cannot be read"),
    ]  # fmt: skip
    assert indexer.index([raw(box(mail("Budget", 1)))])[0][-1].status.value == "removed", "it came whole"


@pytest.mark.parametrize(
    ("name", "content", "note"),
    [
        ("a.yaml", "pumps:\n  - name: a\n b: [1, 2\n", "is no valid YAML (did not find expected key in line 3)"),
        ("a.toml", "[pumps]\nname = \n", "is no valid TOML (Invalid value (at line 2, column 8))"),
        ("b.yml", "pumps: &all [1, 2]\nmore: *all\n---\n{{ a }}: 1\n", ""),
        ("a.ini", "[pumps]\nname = \n", ""),
    ],
)
def test_given_data_that_is_not_valid_when_read_then_its_lines_are_found_and_a_note_says_so(
    name: str, content: str, note: str
) -> None:
    (document,) = documents(name, content.encode())
    assert "pumps" in document.text
    assert document.notes == ((f"{note}: read line by line",) if note else ())


def test_given_a_long_box_when_cut_into_pieces_then_no_message_is_torn_and_each_keeps_its_identity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = box(*(mail(f"Number {n}", n, "line\n" * 20) for n in range(40)))
    (tmp_path / "a.mbox").write_bytes(whole)
    monkeypatch.setattr("shared.files.pieces.PIECE_BYTES", 2_000)
    cut = list(pieces(FoundFile(tmp_path, tmp_path / "a.mbox"), 10_000))
    assert len(cut) > 5
    assert b"".join(piece.content for piece in cut) == whole
    assert [piece.line_offset for piece in cut] == [whole[: whole.index(piece.content)].count(b"\n") for piece in cut]
    parts = [one for piece in cut for one in documents("a.mbox", piece.content, piece.line_offset)]
    assert [one.doc_id for one in parts] == [one.doc_id for one in documents("a.mbox", whole)]
    huge = b"From ada Tue Mar  3 10:00:00 2026\nSubject: x\n\n" + b"y\n" * 10_000 + b"\n"
    (tmp_path / "a.mbox").write_bytes(box(mail("a", 1)) + huge + box(mail("b", 2)))
    found = list(pieces(FoundFile(tmp_path, tmp_path / "a.mbox"), 10_000))
    assert ["has more than" in piece.fault for piece in found] == [False, True, False]


def test_given_attachments_when_read_then_their_own_readers_read_them_and_the_others_are_named() -> None:
    message = mail("Report", 1)
    files = (
        ("x.csv", b"part,price\npump,7\n"), ("r.pdf", pdf([["Page one."], ["Page two."]])), ("s.bin", b"\0\1"),
        ("broken.docx", b"PK\3\4no"), ("n.md", b"# A note"), ("data.zip", b"PK\3\4"), ("wrong.docx", pdf([["A PDF."]])),
    )  # fmt: skip
    for name, content in files:
        message.add_attachment(content, maintype="application", subtype="octet-stream", filename=name)
    message.add_attachment(mail("Inner", 2, "Inside."))
    (document,) = documents("a.eml", message.as_bytes())
    for piece in ("| pump | 7 |", "Page two.", "# A note", "Inside.", "A PDF."):
        assert piece in document.text
    named = {place: document.text[start:] for start, place in document.places}
    assert named["attachment r.pdf, p. 2"].startswith("Page two.")
    assert named["attachment message/rfc822"].startswith("## Inner")
    (note,) = document.notes
    assert note == (
        "attachments were left out: s.bin (there is no reader for .bin), broken.docx (is no archive that can be opened "
        "(broken or truncated)), data.zip (there is no reader for .zip)"
    )


def test_given_mails_in_mails_in_mails_when_read_then_the_depth_is_bounded() -> None:
    message = mail("deepest", 0)
    for number in range(1, 30):
        outer = mail(f"level {number}", number)
        outer.add_attachment(message)
        message = outer
    (document,) = documents("a.eml", message.as_bytes())
    assert "level 27" in document.text
    assert "level 20" not in document.text
    assert "is nested too deeply" in document.notes[0]


def test_given_a_file_with_another_ones_name_when_read_then_it_is_read_as_what_it_is() -> None:
    (document,) = documents("a.docx", pdf([["A PDF."]]))
    assert document.text == "A PDF."
    assert document.notes == ("is a PDF, whatever its name says, and was read as one",)
    (page,) = documents("a.docx", b"<!DOCTYPE html><html><body><p>A page of text.</p></body></html>")
    assert page.text == "A page of text."
    for content, why in ((b"{\\rtf1 hello}", "is RTF: convert"), (b"\xd0\xcf\x11\xe0" + b"\0" * 600, "an old Office")):
        with pytest.raises(FormatError, match=why):
            parsed("docx", content, "a.docx")


YAML = """# Deploys the relay.
version: 3
services:
  web:
    image: nginx   # pinned
    ports:
      - "80:80"
    env:
      deep:
        key: 1
  db:
    run: |
      # start
      go: now
anchor: &a {b: *a}
"""


def test_given_yaml_and_toml_when_read_then_keys_are_headings_and_comments_stay() -> None:
    (found,) = documents("a.yaml", YAML.encode())
    assert "Deploys the relay.\nversion: 3\n\n# services\n\n## web\n\nimage: nginx   # pinned" in found.text
    assert "### env\n\ndeep.key: 1" in found.text
    assert "## db\n\nrun:\n\n```\n# start\ngo: now\n```\nanchor: &a {b: *a}" in found.text
    (found,) = documents("a.toml", b'# Why.\n[tool.x]\nlines = 3\ndoc = """\n[no]\n"""\n[["a b".c]]\nd = [\n 1,\n]\n')
    (ini,) = documents("setup.cfg", b"; Why.\n[flake8]\nmax-line = 99\n")
    assert ini.text == "Why.\n\n# flake8\n\nmax-line = 99"
    assert found.text.startswith('Why.\n\n## tool.x\n\nlines = 3\ndoc = """\n[no]\n"""\n\n## a b.c\n\nd = [')


def test_given_json_when_read_then_records_are_rows_and_keys_headings() -> None:
    value = {
        "name": "x",
        "servers": [{"host": f"h{n}", "port": n} for n in range(1, 31)],
        "deep": {"a": {"b": {"c": {"d": True}}}},
        "mixed": [{"id": "q", "sub": {"k": 1}}, {"id": "r"}],
    }
    (found,) = documents("a.json", json.dumps(value).encode())
    assert found.text.startswith("name: x\n\n# servers\n\n| host | port |\n| --- | --- |\n| h1 | 1 |")
    assert "### b\n\nc.d: true" in found.text
    assert "# mixed\n\n## q\n\nid: q\n\n### sub\n\nk: 1\n\n## r" in found.text
    assert [place for _, place in found.places if place] == ["servers, items 1-20", "servers, items 21-30"]
    with pytest.raises(RecursionError):
        parsed("structured", b'{"a":' * 500 + b"1" + b"}" * 500, "a.json")
    assert parsed("structured", b'{"a": 1} // why', "a.json")[0].text == '{"a": 1} // why'


def test_given_lines_of_records_when_read_then_they_are_rows_and_a_bad_one_is_named() -> None:
    lines = [json.dumps({"level": "warn", "msg": f"pump {n}"}) for n in range(60)]
    raw = RawDocument(
        source="/c", path="log.jsonl", identity="/c/log.jsonl", suffix=".jsonl",
        content="\n".join([*lines, "{nope"]).encode(), line_offset=100,
    )  # fmt: skip
    bad, found = read_documents(raw, 10_000_000)
    assert isinstance(bad, DocumentOutcome)
    assert bad.reason.startswith("line 161: is not valid JSON")
    assert isinstance(found, Document)
    assert "| level | msg |\n| --- | --- |\n| warn | pump 0 |" in found.text
    assert found.places[0][1] == "items 101-120"


def test_given_outputs_of_errors_and_pages_when_a_notebook_is_read_then_their_text_stands_in_it() -> None:
    error = {"output_type": "error", "ename": "KeyError", "evalue": "'Marabou'", "traceback": ["\x1b[31mTrace\x1b[0m"]}
    page = {"output_type": "display_data", "data": {"text/html": ["<b>Depot</b> 991"]}}
    cell = {"cell_type": "code", "source": "x", "outputs": [error, page]}
    book = json.dumps({"cells": [cell], "metadata": {"kernelspec": "odd"}})
    (found,) = documents("a.ipynb", book.encode())
    assert "Trace\nKeyError: 'Marabou'\nDepot 991" in found.text


def test_given_a_digest_when_read_then_its_messages_are() -> None:
    inner = "".join(f"--b\n\nSubject: Inner {n}\n\nbody {n}\n\n" for n in (1, 2))
    outer = "Subject: Outer\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=a\n\n--a\n\nhello\n\n"
    text = f"{outer}--a\nContent-Type: multipart/digest; boundary=b\n\n{inner}--b--\n--a--\n"
    (found,) = documents("a.eml", text.encode())
    assert all(line in found.text for line in ("Inner 1", "body 1", "Inner 2", "body 2"))
    assert not found.notes


@pytest.mark.parametrize(("name", "content"), [("a.json", '{"a": 1,,}'), ("a.csv", 'a,b\n1,"x\n2,y\n')])
def test_given_broken_data_when_read_then_a_note_says_so(name: str, content: str) -> None:
    (found,) = documents(name, content.encode())
    assert len(found.notes) == 1


def test_given_lines_with_text_but_no_id_when_read_then_their_content_names_them() -> None:
    one, two, again = (documents("a.jsonl", json.dumps({"text": text}).encode())[0] for text in ("x", "y", "x"))
    assert one.doc_id == again.doc_id != two.doc_id


def test_given_definitions_in_a_pages_doctype_when_read_then_they_are_no_text() -> None:
    (found,) = documents("a.xhtml", b'<!DOCTYPE html [\n<!ENTITY a "b">\n]>\n<html><body><p>Hi</p></body></html>')
    assert found.text == "Hi"
