"""PDF, office files, pages, books, mail, notebooks and tables: text, places, what is left out, and what is refused."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from io import BytesIO, StringIO
from pathlib import Path
from textwrap import dedent

import pytest
from docx import Document as Docx
from openpyxl import Workbook
from pptx import Presentation

from shared.models import DocumentOutcome, RawDocument
from shared.models.ingest import FORMATS
from shared.settings.sections import ChunkingSettings
from tests.support.offsets import assert_kept
from tests.support.pdf import pdf
from workers.formats.limits import memory_for
from workers.formats.parsed import FormatError, Parsed
from workers.formats.process import ParserPool
from workers.index.chunking import chunk_document
from workers.index.documents import Document
from workers.index.readers import read_documents


@pytest.fixture(scope="module")
def parser() -> Iterator[ParserPool]:
    made = ParserPool(1)
    yield made
    made.close()


def _zip(**parts: str) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name.replace("__", "/"), text)
    return file.getvalue()


def _saved(document: object) -> bytes:
    file = BytesIO()
    document.save(file)  # type: ignore[attr-defined]
    return file.getvalue()


def _docx() -> bytes:
    document = Docx()
    document.core_properties.title = "Relay handbook"
    document.add_heading("Storage", 1)
    document.add_paragraph("The relay keeps events.")
    document.add_paragraph("one", style="List Bullet")
    document.add_paragraph("two", style="List Number")
    table = document.add_table(rows=2, cols=2)
    for row, texts in zip(table.rows, (("Setting", "Default"), ("port|udp", "8443")), strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    document.add_heading("责任", 2)
    document.add_paragraph("负责人：沈若溪")
    return _saved(document)


def _pptx() -> bytes:
    slides = Presentation()
    first = slides.slides.add_slide(slides.slide_layouts[1])
    first.shapes.title.text = "Plan"
    first.placeholders[1].text = "Move the relay\nTest it"
    first.notes_slide.notes_text_frame.text = "Ada decides in May."
    second = slides.slides.add_slide(slides.slide_layouts[5])
    second.shapes.title.text = "Costs"
    return _saved(slides)


def _xlsx() -> bytes:
    book = Workbook()
    book.active.title = "Assets"
    book.active.append(["Name", "Owner"])
    for number in range(45):
        book.active.append([f"pump {number}", "Ada" if number % 2 else "Tom"])
    return _saved(book)


_ODF = "urn:oasis:names:tc:opendocument:xmlns"
_ODT = (
    f'<office:document-content xmlns:office="{_ODF}:office:1.0" xmlns:text="{_ODF}:text:1.0" '
    f'xmlns:table="{_ODF}:table:1.0"><office:body><office:text><text:h text:outline-level="2">Care</text:h>'
    "<text:p>Oil the<text:s/>hinge<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>See 4."
    '</text:p></text:note-body></text:note><office:annotation xmlns:dc="d"><dc:creator>Ada</dc:creator><text:p>Why?'
    "</text:p></office:annotation>.</text:p><text:list><text:list-item><text:p>one</text:p><text:list>"
    "<text:list-item><text:p>inner</text:p></text:list-item></text:list></text:list-item></text:list>"
    "<table:table><table:table-row><table:table-cell><text:p>Part</text:p></table:table-cell><table:table-cell>"
    "<text:p>Price</text:p></table:table-cell></table:table-row></table:table></office:text></office:body>"
    "</office:document-content>"
)
_EPUB = {
    "META-INF__container.xml": '<container><rootfiles><rootfile full-path="OEBPS/b.opf"/></rootfiles></container>',
    "OEBPS__b.opf": "<package><metadata><title>The book</title></metadata><manifest>"
    '<item id="z" href="2.xhtml"/><item id="a" href="1%20.xhtml"/></manifest>'
    '<spine><itemref idref="a"/><itemref idref="z"/></spine></package>',
    "OEBPS__1 .xhtml": "<html><head><title>One</title></head><body><p>It begins.</p></body></html>",
    "OEBPS__2.xhtml": "<html><body><h2>Two</h2><p>It ends.</p></body></html>",
}
_HTML = (
    "<html><head><title>Relay page</title><meta name='date' content='2026-03-04'></head><body><nav>Home</nav><article>"
    "<h2>Keeping</h2><p>The relay keeps its events for <b>30 days</b>, and after that it drops them one by one.</p>"
    "<table><tr><th>Key</th><th>Value</th></tr><tr><td>port</td><td>8443</td></tr></table></article>"
    "<script>steal()</script></body></html>"
)
_MAIL = "From: Ada <a@example.org>\nSubject: =?utf-8?b?5Ya35bqT?=\nDate: Tue, 3 Mar 2026 10:00:00 +0000\n\nIt moves.\n"
_NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "source": ["# Study\n", "Of pumps."]},
        {"cell_type": "code", "source": "print('```')", "outputs": [{"text": ["x" * 3000]}]},
    ]
}

#: Suffix -> the file, pieces of its text, and places that it has.
_FILES: dict[str, tuple[bytes, list[str], list[str]]] = {
    ".pdf": (
        pdf([["Of pumps", "Pump 1 was re-", "placed in May."], ["Of pumps", "Pump 2 stands."]]),
        ["Pump 1 was replaced in May.", "Pump 2 stands."],
        ["p. 1", "p. 2"],
    ),
    ".docx": (_docx(), ["# Storage", "- one\n- two", "| port\\|udp | 8443 |", "## 责任\n\n负责人：沈若溪"], []),
    ".pptx": (
        _pptx(),
        ["## Plan\n\n- Move the relay\n- Test it", "Ada decides in May.", "## Costs"],
        ["slide 1", "slide 2"],
    ),
    ".xlsx": (
        _xlsx(),
        ["## Assets\n\n| Name | Owner |", "| pump 44 | Tom |"],
        ["sheet Assets, rows 2-21", "sheet Assets, rows 22-41", "sheet Assets, rows 42-46"],
    ),
    ".html": (_HTML.encode(), ["keeps its events for **30 days**", "| port | 8443 |"], []),
    ".epub": (_zip(**_EPUB), ["It begins.\n\n## Two\n\nIt ends."], ["chapter 1 (One)", "chapter 2"]),
    ".odt": (
        _zip(**{"content.xml": _ODT}),
        ["## Care\n\nOil the hinge.\n\nSee 4.\n\n> Ada: Why?\n\n- one\n- inner\n\n| Part | Price |"],
        [],
    ),
    ".eml": (_MAIL.encode(), ["# 冷库\n\nFrom: Ada <a@example.org>", "It moves."], []),
    ".mbox": (
        "".join(f"From a@b Tue Mar  3 10:00:00 2026\n{_MAIL}\n" for _ in range(2)).encode(),
        ["# 冷库", "It moves."],
        [],
    ),
    ".ipynb": (
        json.dumps(_NOTEBOOK).encode(),
        ["# Study\nOf pumps.", "````\nprint('```')\n````", "… (output cut)"],
        ["cell 1", "cell 2"],
    ),
    ".csv": (b'name;owner\n"pump; big";Ada\n\nvalve;Tom\n', ["| pump; big | Ada |\n| valve | Tom |"], ["rows 2-4"]),
    ".tsv": (b"a\tb\n1\t2\n", ["| a | b |"], ["rows 2-2"]),
}


def test_given_the_day_of_a_library_s_template_when_parsed_then_the_file_has_none(parser: ParserPool) -> None:
    made, document = BytesIO(), Docx()
    document.add_paragraph("It moves.")
    document.save(made)
    assert _parsed(parser, ".docx", made.getvalue()).date == ""


def test_given_a_short_page_when_parsed_then_its_headings_items_and_rows_are_kept(parser: ParserPool) -> None:
    page = "<h1>桥</h1><p>The bridge opened in 1902.</p><table><tr><td>a</td></tr></table><ul><li>乙</li></ul>"
    found = _parsed(parser, ".html", f"<html><body>{page}</body></html>".encode())
    for piece in ("# 桥\n\nThe bridge opened in 1902.\n\n| a |", "\n\n- 乙"):
        assert piece in found.text


def _parsed(parser: ParserPool, suffix: str, content: bytes) -> Parsed:
    return parser.parse(FORMATS[suffix], content, f"file{suffix}")[0]


@pytest.mark.parametrize("suffix", _FILES)
def test_given_a_file_when_parsed_then_its_text_and_places_stand(parser: ParserPool, suffix: str) -> None:
    content, pieces, places = _FILES[suffix]
    found = _parsed(parser, suffix, content)
    for piece in pieces:
        assert piece in found.text
    assert [name for _, name in found.places] == places
    assert "steal" not in found.text
    assert [place for place, _ in found.places] == sorted({place for place, _ in found.places})


@pytest.mark.parametrize("suffix", _FILES)
def test_given_a_file_when_cut_then_its_chunks_stand_at_their_offsets(suffix: str) -> None:
    for document in _read(suffix, _FILES[suffix][0]):
        assert isinstance(document, Document)
        assert_kept(document, chunk_document(document, ChunkingSettings(target_chars=200, max_chars=400)))


@pytest.mark.parametrize("suffix", sorted({suffix for suffix in FORMATS if suffix not in {".csv", ".tsv"}}))
@pytest.mark.parametrize("content", [b"hello", b"\0\1\2" * 50, b"PK\3\4broken", b"%PDF-1.7\nbroken", b"{}"])
def test_given_what_is_no_such_file_when_parsed_then_one_sentence_or_its_text(
    parser: ParserPool, suffix: str, content: bytes
) -> None:
    try:
        said = _parsed(parser, suffix, content).text
    except FormatError as error:
        said = str(error)
        assert "\n" not in said
    assert 0 <= len(said) < 300


@pytest.mark.parametrize("suffix", [".docx", ".epub", ".odt", ".pdf", ".xlsx"])
def test_given_a_file_cut_anywhere_when_parsed_then_the_next_one_is_read_as_before(
    parser: ParserPool, suffix: str
) -> None:
    content, pieces, _ = _FILES[suffix]
    for part in range(1, 8):
        try:
            _parsed(parser, suffix, content[: len(content) * part // 8])
        except FormatError:
            continue
    assert pieces[0] in _parsed(parser, suffix, content).text


def test_given_a_bomb_when_parsed_then_it_is_named_before_it_is_unpacked(parser: ParserPool) -> None:
    bomb = _zip(**{"word__document.xml": "a" * 60_000_000})
    with pytest.raises(FormatError, match="unpacks to"):
        _parsed(parser, ".docx", bomb)


def test_given_pages_without_text_when_parsed_then_they_are_named(parser: ParserPool) -> None:
    found = _parsed(parser, ".pdf", pdf([["Words."], [], ["More."], []]))
    assert found.notes == ("needs OCR: 2 of 4 pages have no text (page 2, 4): pip install 'ramify[ocr]'",)
    with pytest.raises(FormatError, match="needs OCR: 2 of 2 pages have no text"):
        _parsed(parser, ".pdf", pdf([[], []]))
    blank = _parsed(parser, ".pdf", pdf([["Words."], None, ["More."]]))
    assert (blank.notes, [name for _, name in blank.places]) == ((), ["p. 1", "p. 3"])
    with pytest.raises(FormatError, match="has pages without text: leave it out"):
        _parsed(parser, ".pdf", pdf([None]))


_OCR = """
    class Result:
        def __init__(self, picture):
            assert picture.shape[2] == 3 and max(picture.shape) <= 2000
            self.txts = ("Seen on", "a picture.")

    class RapidOCR:
        def __init__(self, params):
            assert params["EngineConfig.onnxruntime.intra_op_num_threads"] == 1

        def __call__(self, picture):
            return Result(picture)
    """


def test_given_a_reader_of_pictures_when_pages_have_no_text_then_they_are_read_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("rapidocr", dedent(_OCR)), ("onnxruntime", "")):
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    made = ParserPool(1)
    try:
        found = _parsed(made, ".pdf", pdf([["Words."], []]))
    finally:
        made.close()
    assert found.text == "Words.\n\nSeen on a picture."
    assert found.notes == ("1 of 2 pages were read by OCR",)
    assert found.places[1][1] == "p. 2"


def test_given_bullets_on_a_page_when_parsed_then_they_are_items_with_their_boxes(parser: ParserPool) -> None:
    page = pdf([["It has:", "\x95 one pump", "\x95 two valves"]]).replace(
        b"/Helvetica", b"/Helvetica /Encoding /WinAnsiEncoding"
    )
    found = _parsed(parser, ".pdf", page)
    assert found.text == "It has:\n- one pump\n- two valves"
    assert len(found.boxes) == 3


def test_given_room_between_lines_when_parsed_then_a_heading_is_no_part_of_the_sentence_below_it(
    parser: ParserPool,
) -> None:
    found = _parsed(
        parser, ".pdf", pdf([["What it costs", "", "Pump 1 costs", "nine euros.", "It is dry.", "", "More"]])
    )
    assert found.text == "What it costs\n\nPump 1 costs nine euros.\nIt is dry.\n\nMore"


def test_given_a_sentence_over_two_pages_when_parsed_then_it_is_whole_and_its_page_that_of_its_beginning() -> None:
    (document,) = _read(
        ".pdf", pdf([["It was dry.", "Nine books "], ["had  ", "been sold twice.", "No more."], ["The end."]])
    )
    assert isinstance(document, Document)
    assert document.text.endswith("Nine books had been sold twice.\nNo more.\n\nThe end.")
    (chunk,) = chunk_document(document, ChunkingSettings())
    quotes = ("Nine books had been sold twice.", "No more.", "The end.")
    assert [chunk.place_of(quote) for quote in quotes] == ["p. 1", "p. 2", "p. 3"]


def test_given_a_page_that_is_broken_when_parsed_then_the_others_are_read_and_it_is_named(parser: ParserPool) -> None:
    content = pdf([["One."], ["Two."], ["Three."]])
    page = content.index(b"/Type /Page ", content.index(b"Two"))
    found = _parsed(parser, ".pdf", content[:page] + b"/Type /Gone " + content[page + 12 :])
    assert found.text == "One.\n\nThree."
    assert found.notes == ("1 of 3 pages are broken (page 2): save it anew",)


def test_given_heads_and_feet_of_every_page_when_parsed_then_they_are_left_out(parser: ParserPool) -> None:
    pages = [["Report 2026", f"Pump {n} is old.", f"page {n} of 6"] for n in range(1, 7)]
    found = _parsed(parser, ".pdf", pdf(pages, title="The report"))
    assert found.text == "\n\n".join(f"Pump {n} is old." for n in range(1, 7))
    assert (found.title, found.date) == ("The report", "2024-05-17")


def test_given_entities_of_xml_that_grow_when_parsed_then_they_are_refused(parser: ParserPool) -> None:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<!DOCTYPE x [<!ENTITY e0 "ha">{entities}]>' + _ODT.replace("Oil the", "&e11;")
    with pytest.raises(FormatError):
        _parsed(parser, ".odt", _zip(**{"content.xml": bomb}))


def test_given_time_that_is_too_short_when_parsed_then_that_is_said_and_the_next_file_is_read() -> None:
    many = StringIO()
    csv.writer(many).writerows([["x" * 50] * 40] * 3000)
    made = ParserPool(1)
    try:
        with pytest.raises(FormatError, match=r"takes more than 0\.01 s to read, too long for its 6,"):
            made.parse("tabular", many.getvalue().encode(), "a.csv", 0.01)
        assert made.parse("tabular", b"a,b\n1,2\n", "a.csv")[0].text
    finally:
        made.close()


@pytest.mark.parametrize("kills", [1, 2])
def test_given_a_parser_that_is_killed_when_it_reads_then_another_reads_and_twice_costs_that_file(kills: int) -> None:
    made, over = ParserPool(1), threading.Event()

    def kill() -> None:
        seen = {0}
        while len(seen) <= kills and not over.wait(0.002):
            process = made._all[0]._process
            if process is not None and process.pid not in seen:
                seen.add(process.pid)
                os.kill(process.pid, signal.SIGKILL)

    try:
        made.parse("tabular", b"a,b\n1,2\n", "a.csv")
        os.kill(made._all[0].pid, signal.SIGSTOP)  # it would be done before it is killed
        threading.Thread(target=kill).start()
        if kills == 1:
            assert made.parse("tabular", b"a,b\n1,2\n", "a.csv")[0].text
        else:
            with pytest.raises(FormatError, match="was ended by SIGKILL"):
                made.parse("tabular", b"a,b\n1,2\n", "a.csv")
        assert made.parse("tabular", b"a,b\n1,2\n", "a.csv")[0].text
    finally:
        over.set()
        made.close()


@pytest.mark.parametrize(
    ("deed", "named"),
    [
        ("import socket; socket.create_connection(('127.0.0.1', 9))", "PermissionError"),
        ("import subprocess; subprocess.run(['true'])", "PermissionError"),
        ("open('/tmp/ramify-parser-test', 'w')", "PermissionError"),
        ("bytearray(3 << 30)", "MemoryError"),
        ("[open('/dev/null') for _ in range(99)]", "OSError"),
    ],
)
def test_given_a_parser_that_is_taken_over_when_it_acts_then_it_is_refused(deed: str, named: str) -> None:
    program = f"from workers.formats.limits import confine\nconfine(1 << 30)\n{deed}"
    root = str(Path(__file__).parents[3])
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env={"PYTHONPATH": root}
    )
    assert ended.returncode != 0
    assert named in ended.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("own", "limit", "processes", "mib"),
    [
        ("4:memory:/x\n0::/\n", f"{2 << 30}", 2, 768),
        ("0::/system.slice/ramify@search.service\n", f"{5 << 30}", 2, 2048),
        ("0::/\n", f"{5 << 30}", 4, 1152),
        ("0::/\n", f"{1 << 30}", 4, 512),
        ("0::/\n", "max", 4, 2048),
        ("4:memory:/x\n", f"{1 << 30}", 4, 2048),
    ],
)
def test_given_the_limit_of_a_container_when_divided_then_all_parsers_fit_beside_the_worker(
    own: str, limit: str, processes: int, mib: int, tmp_path: Path
) -> None:
    (tmp_path / "own").write_text(own)
    group = tmp_path / "groups" / own.rpartition("::/")[2].strip()
    group.mkdir(parents=True)
    (group / "memory.max").write_text(f"{limit}\n")
    assert memory_for(processes, tmp_path / "own", tmp_path / "groups") == mib << 20


def test_given_secrets_in_the_environment_when_started_then_the_parser_has_none_and_its_share_of_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAMIFY_LLM_API_KEY", "sk-secret")
    monkeypatch.setattr("workers.formats.process.memory_for", lambda processes: (768 << 20) // processes)
    made = ParserPool(1)
    try:
        made.parse("tabular", b"a,b\n1,2\n", "a.csv")
        environment = Path(f"/proc/{made._all[0].pid}/environ").read_bytes()
        assert b"sk-secret" not in environment
        limits = Path(f"/proc/{made._all[0].pid}/limits").read_text()
        assert re.search(rf"^Max address space +{768 << 20} ", limits, re.MULTILINE)
    finally:
        made.close()


def _read(suffix: str, content: bytes) -> list[Document | DocumentOutcome]:
    raw = RawDocument(source="/c", path=f"c/file{suffix}", identity="/c/file", suffix=suffix, content=content)
    return read_documents(raw, 10_000_000)


def test_given_pages_when_cut_into_chunks_then_each_knows_where_its_sentences_stand() -> None:
    pages = [[f"Pump {n} of hall {n % 7} was seen by inspector {n}.", "It was dry." * 3] for n in range(1, 41)]
    (document,) = _read(".pdf", pdf(pages, title="Pumps"))
    assert isinstance(document, Document)
    chunks = chunk_document(document, ChunkingSettings())
    assert len(chunks) < len(pages), "chunks hold several pages, so that a place is that of a sentence"
    for number in range(1, 41):
        quote = f"Pump {number} of hall {number % 7} was seen by inspector {number}."
        (holder,) = (chunk for chunk in chunks if quote in chunk.text)
        assert holder.place_of(quote) == f"p. {number}"
        first = holder.text.index(quote)
        place = holder.place_at(first, first + len(quote))
        assert (place.page, place.name) == (number, f"p. {number}")
        left, bottom, right, top = place.box or (0, 0, 0, 0)
        assert 70 <= left <= 74, "72 points from the left"
        assert 774 <= bottom < 780 < top <= 792, "the first line stands at 780 points, in 12 points"
        assert 250 < right < 400


def test_given_a_sentence_over_two_lines_when_placed_then_its_box_holds_both() -> None:
    (document,) = _read(".pdf", pdf([["Pump 1 was re-", "placed in May and", "never again"], ["Other."]]))
    assert isinstance(document, Document)
    (chunk,) = chunk_document(document, ChunkingSettings())
    quote = "replaced in May"
    first = chunk.text.index(quote)
    place = chunk.place_at(first, first + len(quote))
    assert place.box is not None
    assert (place.box[1] // 10, place.box[3] // 10) == (75, 78), "from the second line, at 760, to the first, at 780"
    other = chunk.text.index("Other.")
    assert chunk.place_at(other, other + 6).page == 2


def test_given_rows_below_one_head_when_cut_then_each_part_knows_its_rows() -> None:
    (document,) = _read(".xlsx", _FILES[".xlsx"][0])
    assert isinstance(document, Document)
    chunks = chunk_document(document, ChunkingSettings(target_chars=200, max_chars=400))
    rows = {row: chunk.place_of(row) for chunk in chunks for row in chunk.text.splitlines() if "pump" in row}
    assert rows["| pump 0 | Tom |"] == "sheet Assets, rows 2-21"
    assert rows["| pump 20 | Tom |"] == "sheet Assets, rows 22-41"
    assert rows["| pump 44 | Tom |"] == "sheet Assets, rows 42-46"


def test_given_a_book_with_a_title_page_when_read_then_chapters_are_counted_behind_it() -> None:
    page = '<html><body epub:type="frontmatter"><section epub:type="titlepage"><h1>Book</h1></section></body></html>'
    (document,) = _read(".epub", _zip(**{**_EPUB, "OEBPS__1 .xhtml": page}))
    assert isinstance(document, Document)
    assert [place for _, place in document.places] == ["front matter (Book)", "chapter 1"]


def test_given_a_book_whose_chapters_are_titled_by_their_files_when_read_then_headings_name_them() -> None:
    page = "<html><head><title>2.xhtml</title></head><body><h2>Two</h2><p>It ends.</p></body></html>"
    (document,) = _read(".epub", _zip(**{**_EPUB, "OEBPS__2.xhtml": page}))
    assert isinstance(document, Document)
    assert [place for _, place in document.places] == ["chapter 1 (One)", "chapter 2 (Two)"]


@pytest.mark.parametrize("day", ["2024-99-99", "abcd-ef-gh", "0000-00-00"])
def test_given_a_day_that_is_none_when_read_then_it_is_left_out_and_told(day: str) -> None:
    (document,) = _read(
        ".epub",
        _zip(**{**_EPUB, "OEBPS__b.opf": _EPUB["OEBPS__b.opf"].replace("</title>", f"</title><date>{day}</date>")}),
    )
    assert isinstance(document, Document)
    assert (document.date, document.notes) == (None, ("its date is no day: left out",))


def test_given_cells_that_span_millions_of_columns_when_parsed_then_it_takes_no_time(parser: ParserPool) -> None:
    document = Docx(BytesIO(_docx()))
    for cell in document.tables[0]._tbl.iter_tcs():
        cell.grid_span = 9_000_000
    assert "| port\\|udp | 8443 |" in _parsed(parser, ".docx", _saved(document)).text


def test_given_a_sheet_with_one_row_at_its_end_when_parsed_then_the_rows_left_out_are_told(
    parser: ParserPool,
) -> None:
    book = Workbook()
    book.active.append(["Name"])
    book.active.cell(row=1_048_576, column=16_384, value="far")
    found = _parsed(parser, ".xlsx", _saved(book))
    assert "rows after 100,000 were left out" in found.notes[0]


def test_given_a_paragraph_that_begins_like_a_heading_when_parsed_then_it_is_none(parser: ParserPool) -> None:
    document = Docx()
    document.add_paragraph("# ip addr show")
    assert _parsed(parser, ".docx", _saved(document)).text == "`# ip addr show`"
