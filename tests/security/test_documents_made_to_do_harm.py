"""Documents that nest, repeat, refer outwards or lie about themselves: one sentence or their text, soon."""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Iterator
from io import BytesIO

import pytest

from workers.formats.limits import seconds_for
from workers.formats.parsed import FormatError
from workers.formats.process import ParserPool


@pytest.fixture(scope="module")
def parser() -> Iterator[ParserPool]:
    made = ParserPool(1)
    yield made
    made.close()


def _zip(**parts: str | bytes) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name.replace("__", "/"), content)
    return file.getvalue()


_INNER = _zip(**{"a.txt": "x" * 1_000_000})
_SYSTEM = '<!DOCTYPE l [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
_CONTENT = '<o:x xmlns:o="urn:oasis:names:tc:opendocument:xmlns:office:1.0"><o:body><o:text>&e;</o:text></o:body></o:x>'
_PARTS = b"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n"
_ROUND = b"".join(
    (
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj ",
        b"2 0 obj<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2000000000>>endobj trailer<</Root 1 0 R>>",
    )
)
#: Format, bytes, and what is said, or "" for text.
_FILES: dict[str, tuple[str, bytes, str]] = {
    "a zip of zips": ("docx", _zip(**{"b.zip": _INNER, "c.zip": _zip(**{"d.zip": _INNER})}), "is no Word document"),
    "a zip of zips, as a book": ("epub", _zip(**{"b.zip": _INNER}), "cannot be read"),
    "an entity of another file": ("odf", _zip(**{"content.xml": _SYSTEM + _CONTENT}), "cannot be read"),
    "an entity of another file, in a page": (
        "html",
        f"{_SYSTEM}<html><body><p>&e; text</p></body></html>".encode(),
        "",
    ),
    "elements in each other": ("html", b"<div>" * 200_000 + b"x", "has no text"),
    "lists in each other": ("structured", b"[" * 200_000 + b"]" * 200_000, "is nested too deeply"),
    "a number without end": ("structured", b'{"a":' + b"9" * 400_000 + b"}", ""),
    "keys in each other": ("structured", b"".join(b" " * depth + b"a:\n" for depth in range(1_000)), ""),
    "quotes": ("tabular", b'"' * 500_000, ""),
    "a formula": ("tabular", b"a,b\n=cmd|'/c calc'!A1,1\n", ""),
    "backticks": ("notebook", json.dumps({"cells": [{"cell_type": "code", "source": "`" * 200_000}]}).encode(), ""),
    "headers": ("mail", b"".join(b"X-%d: y\n" % number for number in range(30_000)) + b"\nbody", ""),
    "attachments": ("mail", _PARTS + b"--b\nContent-Type: text/plain\n\nx\n" * 3_000 + b"--b--", ""),
    "a locked workbook": ("xlsx", b"\xd0\xcf\x11\xe0" + b"\0" * 2_000, "of an old Office, or encrypted"),
    "pages that hold themselves": (
        "pdf",
        _ROUND,
        "is no PDF that can be read",
    ),
}


@pytest.mark.parametrize("name", _FILES)
def test_given_a_file_made_to_do_harm_when_parsed_then_it_is_told_in_one_sentence_or_read(
    parser: ParserPool, name: str
) -> None:
    declared, content, sentence = _FILES[name]
    text = told = ""
    try:
        found = parser.parse(declared, content, "a.yaml" if name.startswith("keys") else "a.json")
        text = "".join(document.text for document in found)
    except FormatError as error:
        told = str(error)
    assert (sentence in told) if sentence else (text and not told), told
    assert "\n" not in told
    assert "root:" not in text
    assert name != "a formula" or "=cmd" in text


def test_given_a_small_file_when_it_takes_long_then_its_time_is_that_of_its_size(parser: ParserPool) -> None:
    assert seconds_for(1_000) < 9 < seconds_for(5_000_000) < seconds_for(100_000_000) == 60
    parser.parse("tabular", b"a,b\n1,2\n", "a.csv")
    began = time.monotonic()
    with pytest.raises(FormatError, match=r"takes more than 0\.5 s to read, too long for its 750,000 bytes"):
        parser.parse("html", b"<p>a</p>" * 93_750, "a.html", 0.5)
    assert time.monotonic() - began < 60
    assert parser.parse("tabular", b"a,b\n1,2\n", "a.csv")[0].text
