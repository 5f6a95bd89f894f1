"""The same 100 notes as Markdown, Word, HTML, EPUB and PDF: whether a question finds the same passage in each form.

Run: pytest -m benchmark -s tests/benchmarks/bench_forms.py
Needs pandoc and LibreOffice (soffice) on PATH.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pypdfium2 as pdfium
import pytest
from docx import Document as Docx
from docx.shared import Mm

from shared.language.sentences import sentences
from shared.models import Filters, Hit, RawDocument
from shared.providers.rerankers import reranker
from shared.settings import Settings
from shared.tenants import DEFAULT_TENANT
from workers.index.pipeline import Indexer
from workers.search.leaf import LeafQuery, run_rerank_stages, run_search_stages
from workers.search.resources import SearchResources
from workers.search.state import Tools

NOTES = Path(__file__).parents[2] / "examples" / "notes"
DOCUMENTS, AT = 100, 10
FORMS = (".md", ".docx", ".html", ".epub", ".pdf")
WORSE_AT_MOST, RIGHT_PAGES = 0.03, 0.98
_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_WORD = re.compile(r"[a-z]{4,}|[\u4e00-\u9fff]{2}")
#: Letters by which a sentence is found on a page.
_BEGIN = 20
_LETTERS = re.compile(r"[^\w\u4e00-\u9fff]")

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        not shutil.which("pandoc") or not shutil.which("soffice"), reason="needs pandoc and LibreOffice"
    ),
]


class Asked(NamedTuple):
    """A question made of words of a sentence, and the sentence, of the document of this number."""

    document: int
    question: str
    sentence: str


def letters(text: str) -> str:
    """What every form has of a text: no blanks, breaks or marks."""
    return _LETTERS.sub("", text).lower()


def notes() -> list[str]:
    """Notes without front matter, the longest first: they have pages and sections to miss."""
    files = sorted(NOTES.rglob("*.md"), key=lambda file: (-file.stat().st_size, file))
    return [_FRONT.sub("", file.read_text(encoding="utf-8")) for file in files[:DOCUMENTS]]


def asked(texts: list[str]) -> list[Asked]:
    """Of each note one plain sentence of its middle; its question has the rarest half of the words."""
    seen = Counter(word for text in texts for word in set(_WORD.findall(text.lower())))
    found = []
    for number, text in enumerate(texts):
        prose = [line for line in text.split("\n") if line and not line.startswith(("#", "|", "-", "*", "`", " ", ">"))]
        plain = [
            one for line in prose for one in sentences(line) if not set(one) & set("*`[]_<>|$\\") and len(one) > 25
        ]
        if plain:
            sentence = plain[len(plain) // 2]
            words = sorted(dict.fromkeys(_WORD.findall(sentence.lower())), key=lambda word: (seen[word], word))
            found.append(Asked(number, " ".join(words[: max(2, len(words) // 2)]), sentence))
    return found


def made(folder: Path, texts: list[str]) -> None:
    """Every note in every form, as pandoc and LibreOffice write them."""
    for number, text in enumerate(texts):
        (folder / f"n{number}.md").write_text(text, encoding="utf-8")

    def convert(number: int) -> None:
        for form in (".docx", ".html", ".epub"):
            command = ["pandoc", "-s", f"n{number}.md", "-o", f"n{number}{form}", "--metadata", f"title=n{number}"]
            subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
        _on_small_pages(folder / f"n{number}.docx")

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(convert, range(len(texts))))
    office = ["soffice", f"-env:UserInstallation=file://{folder}/office", "--headless", "--convert-to", "pdf"]
    files = [f"n{number}.docx" for number in range(len(texts))]
    subprocess.run([*office, *files], cwd=folder, check=True, capture_output=True, timeout=900)


def _on_small_pages(file: Path) -> None:
    """A6, so that most notes have several pages."""
    document = Docx(file)
    for section in document.sections:
        section.page_width, section.page_height = Mm(105), Mm(148)
        section.left_margin = section.right_margin = section.top_margin = section.bottom_margin = Mm(10)
    document.save(str(file))


def hits_of(folder: Path, form: str, questions: list[Asked]) -> list[list[Hit]]:
    """The first hits of each question in a corpus of one form."""
    settings = Settings(data_dir=folder / f"data{form}")
    resources = SearchResources(settings)
    indexer = Indexer(resources.store(DEFAULT_TENANT), resources.dense(), settings)
    files = [folder / f"n{number}{form}" for number in range(DOCUMENTS)]
    raws = [
        RawDocument(source=str(folder), path=file.name, identity=str(file), suffix=form, content=file.read_bytes())
        for file in files
    ]
    for start in range(0, len(raws), 20):
        outcomes, _ = indexer.index(raws[start : start + 20])
        assert {outcome.status.value for outcome in outcomes} == {"added"}, outcomes
    indexer.finish()
    tools = Tools(settings=settings, reranker=reranker(settings), timeout_s=60)
    found = []
    for one in questions:
        leaf = LeafQuery(
            text=one.question, strategy=settings.search.strategy, filters=Filters(), tenant=DEFAULT_TENANT, wanted=50
        )
        first = run_search_stages(leaf, resources, None, 60)
        found.append(list(run_rerank_stages(leaf, first, tools).hits)[:AT])
    resources.close()
    return found


def test_given_the_same_notes_in_five_forms_then_the_same_passages_are_found_and_pages_are_right(
    tmp_path: Path,
) -> None:
    texts = notes()
    questions = asked(texts)
    made(tmp_path, texts)
    share: dict[str, float] = {}
    right = wrong = 0
    for form in FORMS:
        every = hits_of(tmp_path, form, questions)
        found = 0
        for one, hits in zip(questions, every, strict=True):
            own = [hit for hit in hits if hit.path.startswith(f"n{one.document}.")]
            holders = [hit for hit in own if letters(one.sentence) in letters(hit.text)]
            found += bool(holders)
            if form == ".pdf" and holders:
                is_right = _page_is_right(tmp_path / f"n{one.document}.pdf", holders[0], one.sentence)
                right, wrong = right + is_right, wrong + (not is_right)
                if not is_right:
                    print("wrong page:", holders[0].path, one.sentence, "|", holders[0].place_of(one.sentence))
        share[form] = found / len(questions)
        print(f"{form}: All@{AT} {share[form]:.3f} of {len(questions)} questions")
    print(f"pages: {right} right, {wrong} wrong")
    assert all(share[".md"] - share[form] <= WORSE_AT_MOST for form in FORMS), share
    assert right >= RIGHT_PAGES * (right + wrong)


def _page_is_right(file: Path, hit: Hit, sentence: str) -> bool:
    """Whether the place of the sentence is a page on which bare pdfium finds its beginning."""
    with pdfium.PdfDocument(file) as document:
        pages = [letters(page.get_textpage().get_text_bounded()) for page in document]
    begin = letters(sentence)[:_BEGIN]
    quote = next((one for one in sentences(hit.text) if begin in letters(one)), sentence)
    wanted = {number for number, text in enumerate(pages, 1) if begin in text}
    wanted = wanted or {number for number, two in enumerate(pairwise(pages), 1) if begin in "".join(two)}
    return hit.place_of(quote) in {f"p. {number}" for number in wanted}
