"""Makes the sample notes that are no Markdown: a PDF, a Word file, a web page and a notebook.

Run from the project's root: python -m examples.make_documents
"""

import json
import textwrap
import zipfile
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

from docx import Document

from tests.support.pdf import pdf

NOTES = Path(__file__).parent / "notes" / "en"
REPORT = (
    """The order pipeline on RabbitMQ: report for January to June 2026

    Kofi Mensah, 3 July 2026. Page one says how it went, page two compares the pipeline with the time
    of Redis Streams, page three says what we do next.

    How it went

    The pipeline carried 1.6 million order events in six months. None was lost. The longest stop
    was 41 seconds, when a node was replaced in March; publishers waited and nothing was refused.
    The dead-letter queue received 1,204 messages, of which 1,190 were drained within a day.""",
    """Compared with Redis Streams

    In the last six months on Redis Streams, the order pipeline lost 331 events in three
    incidents; in the first six months of 2026 on RabbitMQ it lost none.
    For our order pipeline RabbitMQ costs three machines more than Redis Streams, about 110 euros a month.
    The person on call was woken eleven times by Redis Streams and twice by RabbitMQ.
    Our own retry code shrank from 640 lines to 85 lines of configuration.
    What we miss is the replay of history by id, which Redis Streams had for free. Since April the
    outbox table keeps 30 days of events, so that a consumer can be filled again from there.""",
    """What we do next

    The pipeline moves to the next minor version of RabbitMQ in September 2026. Before that, Jonas
    repeats the test in which the leader's power is pulled, with 100,000 numbered messages.
    Courier's queue gets a limit of 50,000 messages. Whoever is on call reads the runbook for
    draining dead letters first, and restarts nothing before it.""",
)
ROADMAP = (
    ("title", "Reading lists, project brief"),
    ("text", "Hana, 20 July 2026. For the second theme of the roadmap, finding without knowing."),
    ("heading", "Aim"),
    ("text", "Booksellers write reading lists, and customers find them by search. The first 40 lists go live on "
             "5 October 2026. The aim is that one session in twenty opens a list."),
    ("heading", "Costs"),
    ("table", (("Item", "Owner", "Days"), ("Editor for booksellers", "Hana", "12"),
               ("Index of lists", "Rafael", "8"), ("Moderation", "Sanna", "5"))),
    ("heading", "Open questions"),
    ("item", "Who answers for a list whose author has left?"),
    ("item", "Are lists translated, or written anew for each language?"),
)
PAGE = """<!DOCTYPE html>
<html lang="en"><head><title>Opening hours of the shop at Kirkegata</title>
<meta name="date" content="2026-06-01"></head>
<body><nav><a href="/">Home</a> <a href="/basket">Basket</a></nav><article>
<h1>Opening hours of the shop at Kirkegata</h1>
<p>The shop at Kirkegata is open from 10 to 19 on weekdays and from 10 to 17 on Saturdays. It is closed on Sundays, except
for the four Sundays before Christmas. Orders that are ready by 16 are kept at the counter for ten days.</p>
<table><tr><th>Day</th><th>Opens</th><th>Closes</th></tr><tr><td>Monday to Friday</td><td>10:00</td><td>19:00</td></tr>
<tr><td>Saturday</td><td>10:00</td><td>17:00</td></tr></table></article>
<footer>Lantern Books</footer></body></html>
"""
NOTEBOOK = (
    ("markdown", "# How long our queries are\n\nMei-Ling, 2 June 2026. 50,000 queries of May, without those of robots."),
    ("code", "lengths = {1: 11_350, 2: 17_900, 3: 12_050, 4: 5_200, 5: 3_500}\nsum(lengths.values())", "50000"),
    ("markdown", "## Words a query\n\nThe median query has two words. Queries of four words or more are 17 percent of "
                 "all, and find nothing three times as often as those of two words."),
    ("code", "round(100 * (lengths[4] + lengths[5]) / 50_000)", "17"),
)


def report() -> bytes:
    """Three pages of paragraphs."""
    pages = []
    for text in REPORT:
        lines = []
        for paragraph in textwrap.dedent("    " + text).split("\n\n"):
            lines += [*textwrap.wrap(" ".join(paragraph.split()), 90), ""]
        pages.append(lines)
    return pdf(pages, "The order pipeline on RabbitMQ: report for January to June 2026", "20260703")


def brief() -> bytes:
    """A Word file of the same bytes each time."""
    document = Document()
    about = document.core_properties
    about.title, about.author = ROADMAP[0][1], "Hana"
    about.created = about.modified = datetime(2026, 7, 20, 9, tzinfo=UTC)
    for kind, text in ROADMAP:
        if kind == "table":
            table = document.add_table(rows=0, cols=len(text[0]))
            for row in text:
                for cell, value in zip(table.add_row().cells, row, strict=True):
                    cell.text = value
        elif kind == "text":
            document.add_paragraph(text)
        elif kind == "item":
            document.add_paragraph(text, style="List Bullet")
        else:
            document.add_heading(text, 0 if kind == "title" else 1)
    made, kept = BytesIO(), BytesIO()
    document.save(made)
    with zipfile.ZipFile(made) as parts, zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in parts.namelist():
            archive.writestr(zipfile.ZipInfo(name), parts.read(name), zipfile.ZIP_DEFLATED)
    return kept.getvalue()


def notebook() -> bytes:
    """Cells with what they gave."""
    cells = []
    for number, (kind, source, *output) in enumerate(NOTEBOOK, 1):
        cell = {"cell_type": kind, "id": f"c{number}", "metadata": {}, "source": source.splitlines(keepends=True)}
        if kind == "code":
            shown = {"output_type": "execute_result", "execution_count": number, "metadata": {}}
            cell |= {"execution_count": number, "outputs": [shown | {"data": {"text/plain": output}}]}
        cells.append(cell)
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": about, "cells": cells}, indent=1).encode()


if __name__ == "__main__":
    for name, content in (
        ("queues/rabbitmq-report-2026-h1.pdf", report()), ("product/reading-lists-brief.docx", brief()),
        ("product/opening-hours.html", PAGE.encode()), ("search/query-lengths.ipynb", notebook()),
    ):
        (NOTES / name).write_bytes(content)
        print(f"{name}: {len(content):,} bytes")
