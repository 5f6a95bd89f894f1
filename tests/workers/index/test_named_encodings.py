"""Pages and mails that name an encoding: what that does not have costs a character, never the text behind it."""

from __future__ import annotations

import base64

import pytest

from shared.models import RawDocument
from workers.formats import html, mail, mbox
from workers.formats.encodings import decoded_as
from workers.formats.parsed import FormatError, Parsed
from workers.formats.sniffing import format_of
from workers.index.documents import Document
from workers.index.readers.formats import read_format

CHINESE = "朱镕基在北京说：缓存雪崩发生在夜里。"


@pytest.mark.parametrize(
    ("named", "written", "text"),
    [
        ("gb2312", "gbk", CHINESE),
        ("GB2312", "utf-8", CHINESE),
        ("shift_jis", "cp932", "①株式会社㈱の冷蔵庫は止まった。"),
        ("iso-8859-1", "cp1252", "He said “enough” – the café closed."),
        ("iso-2022-jp", "iso-2022-jp", "冷蔵庫は止まった。"),
        ("big5", "big5hkscs", "冷庫停了三小時，㗎。"),
    ],
)
def test_given_a_page_with_more_than_its_encoding_has_when_read_then_all_of_it_is_there(
    named: str, written: str, text: str
) -> None:
    page = f'<html><head><meta charset="{named}"><title>t</title></head><body><p>{text}</p><p>{text}</p></body></html>'
    assert html.parse(page.encode(written), "a.html").text.count(text) == 2
    quoted = f'<html><head><meta http-equiv=Content-Type content="text/html; charset={named}"></head><body>{text}'
    assert text in html.parse(quoted.encode(written), "a.html").text


def test_given_a_byte_that_is_broken_when_read_then_the_text_behind_it_stays() -> None:
    page = (
        b'<html><head><meta charset="utf-8"></head><body><p>The pump \xff stopped.</p><p>It is warm.</p></body></html>'
    )
    assert "It is warm." in html.parse(page, "a.html").text
    assert decoded_as(b"\xc1\xaa\xcd\xa8", "gb2312") == "联通", "which is UTF-8, too"
    assert decoded_as("café".encode(), "no such") == decoded_as(b"caf\xe9", "base64") == "café"


@pytest.mark.parametrize(("named", "written"), [("gb2312", "gbk"), ("us-ascii", "utf-8"), ("gb2312", "utf-8")])
def test_given_a_mail_with_more_than_its_encoding_has_when_read_then_subject_and_body_are_whole(
    named: str, written: str
) -> None:
    subject = base64.b64encode(CHINESE.encode(written)).decode()
    head = f"From: a@b\nSubject: =?{'gb2312' if written == 'gbk' else 'utf-8'}?B?{subject}?=\nMIME-Version: 1.0\n"
    said = f"Content-Type: text/plain; charset={named}\nContent-Transfer-Encoding: 8bit\n\n"
    found = mail.parse((head + said).encode() + CHINESE.encode(written), "a.eml")
    assert found.title == CHINESE
    assert found.text.count(CHINESE) == 2


def test_given_a_report_of_delivery_when_read_then_its_headers_are_text_and_other_files_are_named() -> None:
    kinds = {
        "message/delivery-status": "Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; bo@example.org\nStatus: 5.1.1\n",
        "message/rfc822-headers": "Subject: Budget of the pumps\n",
        'application/octet-stream; name="Minutes no. 5 of the board"': "x",
    }  # fmt: skip
    parts = "".join(
        f"--B\nContent-Type: {kind}\nContent-Disposition: attachment\n\n{body}\n" for kind, body in kinds.items()
    )
    found = mail.parse(f"Subject: x\nContent-Type: multipart/mixed; boundary=B\n\n{parts}--B--\n".encode(), "a.eml")
    assert "Status: 5.1.1" in found.text
    assert "Budget of the pumps" in found.text
    assert found.notes == ("attachments were left out: Minutes no. 5 of the board (there is no reader for it)",)


def test_given_a_sentence_that_begins_with_from_when_a_box_is_read_then_it_is_no_message() -> None:
    begins = b"From ada@example.org Tue Mar  3 10:00:00 2026\nSubject: x\n\nIt was late.\n\n"
    (found,) = mbox.parse(begins + b"From the board, 2026, nobody came.\n", "a.mbox")
    assert "nobody came" in found.text


@pytest.mark.parametrize(
    ("stream", "said"), [("__substg1.0_", "message of Outlook"), ("EncryptedPackage", "encrypted")]
)
def test_given_the_container_of_an_old_office_when_read_then_what_it_holds_is_said(stream: str, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        format_of(b"\xd0\xcf\x11\xe0" + bytes(600) + stream.encode("utf-16-le"), "mail")


@pytest.mark.parametrize(
    ("given", "title"),
    [("Microsoft Word - Budget 2026.docx", "Budget 2026"), ("Unknown Title", "plan"), ("未命名", "plan"), ("A", "A")],
)
def test_given_a_title_that_a_program_made_when_read_then_the_file_s_name_counts(given: str, title: str) -> None:
    raw = RawDocument(source="/c", path="c/plan.pdf", identity="/c/plan.pdf", suffix=".pdf", content=b"x")
    (document,) = read_format(raw, lambda *_: [Parsed("The pump stopped.", title=given)])
    assert isinstance(document, Document)
    assert document.title == title
