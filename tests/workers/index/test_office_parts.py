"""What stands in an office file beside plain paragraphs and rows: forms, boxes, changes, notes, charts, diagrams."""

from __future__ import annotations

from datetime import date
from io import BytesIO

from docx import Document
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from openpyxl import Workbook
from openpyxl.chart import BarChart
from openpyxl.comments import Comment
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.opc.package import Part as SlidePart
from pptx.opc.packuri import PackURI as SlideURI
from pptx.oxml import parse_xml as parse_slide_xml
from pptx.presentation import Presentation as PresentationType
from pptx.slide import Slide
from pptx.util import Inches

from workers.formats import docx, pptx, xlsx

_W = nsdecls("w")
_BOX = "http://schemas.microsoft.com/office/word/2010/wordprocessingShape"
_MC = "http://schemas.openxmlformats.org/markup-compatibility/2006"
_CHART = "http://schemas.openxmlformats.org/drawingml/2006/chart"
_DIAGRAM = "http://schemas.openxmlformats.org/drawingml/2006/diagram"
_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def _run(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


def _blocks() -> list[str]:
    box = f"<w:txbxContent><w:p>{_run('In a box.')}</w:p></w:txbxContent>"
    drawn = (
        f'<mc:AlternateContent xmlns:mc="{_MC}"><mc:Choice Requires="wps"><wps:txbx xmlns:wps="{_BOX}">{box}</wps:txbx>'
        f"</mc:Choice><mc:Fallback><w:pict>{box}</w:pict></mc:Fallback></mc:AlternateContent>"
    )
    cell = f"<w:sdt><w:sdtContent><w:tc><w:p>{_run('8443')}</w:p></w:tc></w:sdtContent></w:sdt>"
    deleted = f"<w:del><w:r><w:delText>stood</w:delText></w:r></w:del><w:moveFrom>{_run('away')}</w:moveFrom>"
    year = f"<w:sdt><w:sdtContent>{_run(' to 2027.')}</w:sdtContent></w:sdt>"
    return [
        f"<w:sdt {_W}><w:sdtContent><w:p>{_run('In a form.')}</w:p></w:sdtContent></w:sdt>",
        f"<w:p {_W}>{_run('It ')}<w:ins>{_run('was moved')}</w:ins>{deleted}{year}</w:p>",
        f"<w:p {_W}>{_run('Beside it')}<w:r>{drawn}</w:r><w:r><w:footnoteReference w:id='2'/></w:r></w:p>",
        f"<w:tbl {_W}><w:tr><w:tc><w:p>{_run('port')}</w:p></w:tc>{cell}</w:tr></w:tbl>",
    ]


def test_given_forms_changes_boxes_and_notes_when_parsed_then_their_text_stands_once_and_no_deleted_one() -> None:
    document, saved = Document(), BytesIO()
    for block in _blocks():
        document.element.body.insert(len(document.element.body) - 1, parse_xml(block))
    notes = f"<w:footnotes {_W}><w:footnote w:id='2'><w:p>{_run('See the audit.')}</w:p></w:footnote></w:footnotes>"
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"
    part = Part(PackURI("/word/footnotes.xml"), kind, notes.encode(), document.part.package)
    document.part.relate_to(part, RELATIONSHIP_TYPE.FOOTNOTES)
    document.save(saved)
    assert docx.parse(saved.getvalue(), "a.docx").text.split("\n\n") == [
        "In a form.", "It was moved to 2027.", "Beside it", "In a box.", "See the audit.",
        "| port | 8443 |\n| --- | --- |",
    ]  # fmt: skip


def _chart_of_days() -> bytes:
    slide = Presentation().slides.add_slide(Presentation().slide_layouts[6])
    data = CategoryChartData()
    data.categories = [date(2026, 3, 31), date(2026, 4, 30)]
    data.add_series("Open", (7, 4))
    place = (Inches(1), Inches(1), Inches(4), Inches(3))
    return bytes(slide.shapes.add_chart(XL_CHART_TYPE.LINE, *place, data).chart.part.blob)


def test_given_comments_a_first_page_and_a_chart_when_parsed_then_they_stand_once_and_running_heads_do_not() -> None:
    document, saved = Document(), BytesIO()
    section = document.sections[0]
    section.different_first_page_header_footer = True
    section.first_page_header.paragraphs[0].text = "Northwind, 4 May 2026"
    section.header.paragraphs[0].text = "Confidential"
    document.add_comment(document.add_paragraph("Ships in June.").runs, "Still so?\nAsk Bo.", author="Ada")
    cell = document.add_table(1, 1).cell(0, 0).paragraphs[0]
    document.add_comment(cell.add_run("Rate"), "Per hour.", author="")
    kind = "application/vnd.openxmlformats-officedocument.drawingml.chart+xml"
    part = Part(PackURI("/word/charts/chart1.xml"), kind, _chart_of_days(), document.part.package)
    related = document.part.relate_to(part, f"{_RELATION}/chart")
    drawing = f"<w:drawing><c:chart xmlns:c='{_CHART}' xmlns:r='{_RELATION}' r:id='{related}'/></w:drawing>"
    document.element.body.insert(len(document.element.body) - 1, parse_xml(f"<w:p {_W}><w:r>{drawing}</w:r></w:p>"))
    document.save(saved)
    assert docx.parse(saved.getvalue(), "a.docx").text.split("\n\n") == [
        "Northwind, 4 May 2026", "Ships in June.", "> Ada: Still so?\n> Ask Bo.", "| Rate |\n| --- |", "> Per hour.",
        "|  | Open |\n| --- | --- |\n| 2026-03-31 | 7 |\n| 2026-04-30 | 4 |",
    ]  # fmt: skip


def test_given_a_chart_and_a_diagram_when_parsed_then_they_are_a_table_and_items() -> None:
    slides, saved = Presentation(), BytesIO()
    slide = slides.slides.add_slide(slides.slide_layouts[6])
    data = CategoryChartData()
    data.categories = ["North", "South"]
    data.add_series("Before", (400, 380.5))
    data.add_series("After", (90, None))
    place = (Inches(1), Inches(1), Inches(4), Inches(3))
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *place, data)
    points = "".join(
        f'<dgm:pt modelId="{n}"><dgm:t><a:p><a:r><a:t>{text}</a:t></a:r></a:p></dgm:t></dgm:pt>'
        for n, text in enumerate(("Plan", "Build", ""))
    )
    model = (
        f'<dgm:dataModel xmlns:dgm="{_DIAGRAM}" xmlns:a="{_DRAWING}"><dgm:ptLst>{points}</dgm:ptLst></dgm:dataModel>'
    )
    part = SlidePart(SlideURI("/ppt/diagrams/data1.xml"), "application/xml", slide.part.package, model.encode())
    related = slide.part.relate_to(part, f"{_RELATION}/diagramData")
    frame = parse_slide_xml(
        f'<p:graphicFrame xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:a="{_DRAWING}">'
        '<p:nvGraphicFramePr><p:cNvPr id="9" name="d"/><p:cNvGraphicFramePr/><p:nvPr/></p:nvGraphicFramePr>'
        '<p:xfrm><a:off x="0" y="0"/><a:ext cx="9" cy="9"/></p:xfrm>'
        f'<a:graphic><a:graphicData uri="{_DIAGRAM}"><dgm:relIds xmlns:dgm="{_DIAGRAM}" xmlns:r="{_RELATION}"'
        f' r:dm="{related}"/></a:graphicData></a:graphic></p:graphicFrame>'
    )
    slide.shapes._spTree.append(frame)
    _commented(slides, slide)
    slides.save(saved)
    text = pptx.parse(saved.getvalue(), "a.pptx").text
    assert "|  | Before | After |\n| --- | --- | --- |\n| North | 400 | 90 |\n| South | 380.5 |  |" in text
    assert "- Plan\n- Build" in text
    assert text.endswith("> Ada Okoye: Ask the\n> works council.\n\n> Ben: Done.")


def _commented(slides: PresentationType, slide: Slide) -> None:
    """One comment as PowerPoint kept them to 2019, and one as it does since."""
    older, newer = "http://schemas.openxmlformats.org/presentationml/2006/main", "urn:newer"
    package, word = slide.part.package, "application/xml"
    parts = {
        "commentAuthors": f'<p:cmAuthorLst xmlns:p="{older}"><p:cmAuthor id="0" name="Ada  Okoye"/></p:cmAuthorLst>',
        "authors": f'<n:authorLst xmlns:n="{newer}"><n:author id="{{7}}" name="Ben"/></n:authorLst>',
    }
    for name, xml in parts.items():
        part = SlidePart(SlideURI(f"/ppt/{name}.xml"), word, package, xml.encode())
        slides.part.relate_to(part, f"{_RELATION}/{name}")
    body = f'<n:txBody><a:p xmlns:a="{_DRAWING}"><a:r><a:t>Done.</a:t></a:r></a:p></n:txBody>'
    comments = (
        f'<p:cmLst xmlns:p="{older}"><p:cm authorId="0"><p:text>Ask the\nworks council.</p:text></p:cm></p:cmLst>',
        f'<n:cmLst xmlns:n="{newer}"><n:cm authorId="{{7}}">{body}</n:cm></n:cmLst>',
    )
    for number, xml in enumerate(comments):
        part = SlidePart(SlideURI(f"/ppt/comments/comment{number}.xml"), word, package, xml.encode())
        slide.part.relate_to(part, f"{_RELATION}/comments")


def test_given_comments_and_a_chart_in_a_sheet_when_parsed_then_they_stand_below_its_rows() -> None:
    book, saved = Workbook(), BytesIO()
    sheet = book.active
    assert sheet is not None
    sheet.append(["pump", "litres"])
    sheet["B1"].comment = Comment("By the\nold gauge.", "Ada Okoye")
    chart = BarChart()
    chart.title = "Litres a day"
    sheet.add_chart(chart, "D2")
    book.save(saved)
    found = xlsx.parse(saved.getvalue(), "a.xlsx")
    assert found.text.endswith("\n\nLitres a day\n\n> B1, Ada Okoye: By the\n> old gauge.")
    assert [place for _, place in found.places][1:] == ["sheet Sheet, chart", "sheet Sheet, comments"]
