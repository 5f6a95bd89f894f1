"""A corpus that is looked at, shown and changed, through the tasks of the pools, on the embedded store."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from orchestrator.cli.documents import _CITED
from orchestrator.cli.render.documents import draw_document, draw_overview, draw_passage
from orchestrator.documents.corpus import Corpus
from shared.errors import InputError, NotFoundError, RamifyError
from shared.models import Answer, Citation, DocumentOutcome, Summary
from shared.models.answer import ReasoningStep
from shared.models.corpus import Passage
from shared.models.enumeration import ListRow, ListTable
from shared.models.ingest import DocumentStatus, IngestCounts, IngestResult
from shared.models.support import AnswerSentence, Quotation, SupportReport
from shared.settings import Settings
from tests.fakes.corpus_pools import Pools
from tests.support.pdf import pdf

_NOTE = (
    "# Pumps\n\nIntro.\n\n## Hall 4\n\nThe pump of hall 4 was\nreplaced in May. \x1b[31mIt took two hours.\n\n"
    "## Hall 5\n\nDry.\n"
)
_ZH = "# 泵房\n\n## 四号厅\n\n四号厅的泵在五月更换，用了两个小时。\n"


@pytest.fixture
def pools(settings: Settings) -> Iterator[Pools]:
    made = Pools(settings)
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "notes"
    (made / "old").mkdir(parents=True)
    (made / "pumps.md").write_text(_NOTE)
    (made / "old" / "pumps.md").write_text("# Old pumps\n\nOf 2019.")
    (made / "泵.md").write_text(_ZH)
    (made / "report.pdf").write_bytes(
        pdf([["Page one stands here."], ["The valve of hall 9", "was closed."]], "Report")
    )
    (made / "lines.jsonl").write_text(
        json.dumps({"id": "q1", "title": "Quote", "text": "It leaks.", "date": "2026-01-02"})
    )
    return made


def test_given_documents_when_counted_then_kinds_formats_and_freshness_stand(pools: Pools, folder: Path) -> None:
    pools.ingest(folder)
    newer = folder / "pumps.md"
    os.utime(newer, (2_000_000_000, 2_000_000_000))
    (folder / "report.pdf").unlink()
    seen: list[tuple[int, int]] = []
    found = pools.corpus().overview(seen=lambda *numbers: seen.append(numbers))
    assert (found.documents, seen) == (5, [(5, 5)])
    assert found.formats == {".md": 3, ".pdf": 1, ".jsonl": 1}
    assert found.namespaces == {"default": 5}
    assert found.folders == {"notes/": 4, "notes/old/": 1}
    assert found.languages["zh"] == 1
    assert found.years == {"none": 3, "2024": 1, "2026": 1}
    (source,) = found.sources
    assert (source.source, source.documents, source.changed, source.gone) == (str(folder), 5, 1, 1)
    assert source.ingested > 1_700_000_000


def test_given_an_ingest_with_failures_when_counted_then_their_sentences_are_shown(pools: Pools, folder: Path) -> None:
    pools.ingest(folder)
    bad = DocumentOutcome(path="notes/bad.pdf", status=DocumentStatus.FAILED, reason="is encrypted: save a copy")
    ingest = IngestResult(
        job_id="1234abcd", state="done", sources=("/notes",), counts=IngestCounts(failed=30), failures=(bad,) * 30
    )
    pools.ingests = [ingest, ingest.model_copy(update={"counts": IngestCounts()})]
    found = pools.corpus().overview()
    assert [(one.failed, one.documents[0].reason) for one in found.failures] == [(30, "is encrypted: save a copy")]
    shown = _drawn(draw_overview(found))
    assert "notes/bad.pdf: is encrypted: save a copy" in shown
    assert "18 more: ramify result 1234abcd" in shown
    assert pools.corpus().overview("other").failures == ()


def test_given_many_pages_when_listed_then_each_document_comes_once(
    pools: Pools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Corpus.page, "__defaults__", ("", 7))
    many = tmp_path / "many"
    many.mkdir()
    lines = [json.dumps({"id": str(number), "text": f"Note {number}."}) for number in range(30)]
    (many / "all.jsonl").write_text("\n".join(lines))
    pools.ingest(many)
    pages = list(pools.corpus().pages())
    assert [len(page.documents) for page in pages] == [7, 7, 7, 7, 2]
    assert pages[0].total == 30
    assert len({one.doc_id for page in pages for one in page.documents}) == 30
    assert pools.corpus().page(pages[1].following, 2).documents == pages[2].documents[:2]


@pytest.mark.parametrize("name", ["notes/report.pdf", "Report", "report.pdf", "epor"])
def test_given_a_path_a_title_or_a_part_when_named_then_that_document_is_meant(
    pools: Pools, folder: Path, name: str
) -> None:
    pools.ingest(folder)
    found = pools.corpus().document(name)
    assert found.path == "notes/report.pdf"
    assert pools.corpus().document(found.doc_id) == found


def test_given_several_or_none_when_named_then_the_error_says_so(pools: Pools, folder: Path) -> None:
    with pytest.raises(NotFoundError):
        pools.corpus().document("anything")
    pools.ingest(folder)
    with pytest.raises(InputError, match=r"notes/old/pumps\.md, notes/pumps\.md"):
        pools.corpus().document("ump")
    assert pools.corpus().document("notes/pumps.md").title == "Pumps"
    assert pools.corpus().document("old/pumps.md").title == "Old pumps"


def test_given_a_quote_when_shown_then_exactly_its_characters_are_marked(pools: Pools, folder: Path) -> None:
    pools.ingest(folder)
    passage = pools.corpus().passage("notes/pumps.md", quote="pump of hall 4 was replaced", around=10)
    (mark,) = passage.marks
    assert _NOTE[mark.start : mark.end] == "pump of hall 4 was\nreplaced"
    assert passage.text == _NOTE[passage.start : passage.end]
    assert (passage.place.heading, passage.characters) == (("Hall 4",), len(_NOTE))
    assert pools.corpus().text("notes/pumps.md") == _NOTE
    chinese = pools.corpus().passage("泵.md", quote="用了两个小时")
    assert _ZH[chinese.marks[0].start : chinese.marks[0].end] == "用了两个小时"
    with pytest.raises(InputError, match="does not say so"):
        pools.corpus().passage("notes/pumps.md", quote="never")


def test_given_a_page_when_shown_then_it_is_that_page_and_a_quote_there_has_its_box(pools: Pools, folder: Path) -> None:
    pools.ingest(folder)
    page = pools.corpus().passage("report.pdf", page=2)
    assert (page.text, page.place.page, page.place.box) == ("The valve of hall 9 was closed.", 2, None)
    passage = pools.corpus().passage("report.pdf", quote="was closed")
    assert (passage.place.page, passage.place.name) == (2, "p. 2")
    assert passage.place.box is not None
    with pytest.raises(InputError, match=r"p\. 1 to p\. 2"):
        pools.corpus().passage("report.pdf", page=3)
    with pytest.raises(InputError, match="no pages"):
        pools.corpus().passage("notes/pumps.md", page=1)


def test_given_a_citation_when_shown_then_its_quote_is_marked_also_where_its_chunk_is_gone(
    pools: Pools, folder: Path
) -> None:
    pools.ingest(folder)
    hit = next(hit for page in pools.store("default").scroll(None) for hit in page if "two hours" in hit.text)
    for number, chunk_id in enumerate((hit.chunk_id, "0659f9e0-0000-0000-0000-000000000000")):
        cited = Citation(
            number=1, chunk_id=chunk_id, doc_id=hit.doc_id, path=hit.path, title=hit.title, quote="It took two hours."
        )
        answer = Answer(job_id="j", question="?", state="done", coverage="", summary=Summary(citations=(cited,)))
        pools.answers[f"job{number}"] = answer
        (mark,) = pools.corpus().cited(f"job{number}", 1).marks
        assert _NOTE[mark.start : mark.end] == "It took two hours."
    _each_sentence_has_its_quote(pools, cited)
    with pytest.raises(NotFoundError, match="its answer has 1"):
        pools.corpus().cited("job0", 2)
    list(pools.corpus().remove([pools.corpus().document(hit.doc_id)]))
    with pytest.raises(NotFoundError, match=f"its document {hit.path} has been removed since"):
        pools.corpus().cited("job0", 1)
    pools.ingest(folder)
    rows = tuple(
        ListRow(doc_id=hit.doc_id, title=hit.title, path=hit.path, uri="", sentence=sentence)
        for sentence in ("It took two hours.", "Not as it stands there.")
    )
    table = ListTable(understood="", rows=rows)
    pools.answers["list1"] = Answer(job_id="j", question="?", state="done", coverage="", table=table)
    (mark,) = pools.corpus().cited("list1", 1).marks
    assert _NOTE[mark.start : mark.end] == "It took two hours."
    assert pools.corpus().cited("list1", 2).marks == ()
    with pytest.raises(NotFoundError, match="rows 1 to 2"):
        pools.corpus().cited("list1", 3)


def _each_sentence_has_its_quote(pools: Pools, cited: Citation) -> None:
    """Two sentences cite one number; a third has no quote and gets the citation's; a word that stands twice its own."""
    second = _NOTE.rindex("Hall")
    quotes = (Quotation(number=1, text="Hall", start=second, end=second + 4), Quotation(number=1, text="two hours"))
    spans = tuple(AnswerSentence(start=at, end=at + 5, quotes=(one,)) for at, one in enumerate(quotes))
    support = SupportReport(sentences=2, supported=2, repaired=0, spans=(*spans, AnswerSentence(start=9, end=10)))
    summary = Summary(citations=(cited,), support=support)
    step = ReasoningStep(number=3, kind="fact", node_id="0.1", facet="core", question="?", spans=spans[1:])
    pools.answers["job2"] = Answer(job_id="j", question="?", state="done", coverage="", summary=summary, steps=(step,))
    (mark,) = pools.corpus().cited("job2", 1, sentence=1, step=3).marks
    assert _NOTE[mark.start : mark.end] == "two hours"
    (mark,) = pools.corpus().cited("job2", 1, sentence=0, step=3).marks
    assert _NOTE[mark.start : mark.end] == "It took two hours.", "the step has no sentence there"
    found = {at: pools.corpus().cited("job2", 1, sentence=at).marks[0] for at in (0, 1, 9)}
    assert (found[0].start, found[0].end) == (second, second + 4)
    assert [_NOTE[found[at].start : found[at].end] for at in (1, 9)] == ["two hours", "It took two hours."]


def test_given_another_tenants_documents_when_looked_at_then_they_are_not_there(pools: Pools, folder: Path) -> None:
    pools.ingest(folder, "acme")
    document = pools.corpus("acme").document("report.pdf")
    assert pools.corpus().overview().documents == 0
    with pytest.raises(NotFoundError):
        pools.corpus().passage(document.doc_id)
    assert list(pools.corpus().remove([document])) == []
    assert pools.corpus("acme").overview().documents == 5


def test_given_a_folder_when_removed_then_its_documents_are_gone_and_the_others_stay(
    pools: Pools, folder: Path
) -> None:
    pools.ingest(folder)
    chosen = pools.corpus().chosen(["notes/old", "notes/lines.jsonl"])
    assert sorted(one.path for one in chosen) == ["notes/lines.jsonl#q1", "notes/old/pumps.md"]
    assert [one.path for one in pools.corpus().chosen(["Report"])] == ["notes/report.pdf"]
    assert {outcome.path for outcome in pools.corpus().remove(chosen)} == {one.path for one in chosen}
    assert set(pools.checked.values()) == {one.path for one in chosen}, "kept answers are held against them"
    assert pools.corpus().overview().documents == 3
    with pytest.raises(NotFoundError):
        pools.corpus().document("notes/old/pumps.md")


def test_given_an_export_when_ingested_again_then_the_same_texts_are_there(
    pools: Pools, folder: Path, tmp_path: Path
) -> None:
    pools.ingest(folder)
    written = {one.path: pools.corpus().text(one.doc_id) for one in pools.corpus().export(tmp_path / "out")}
    assert len(written) == 5
    pools.ingest(tmp_path / "out", "acme")
    again = pools.corpus("acme")
    assert {one.path: again.text(one.doc_id) for one in again.documents()} == written
    assert again.document("notes/lines.jsonl#q1").date == "2026-01-02"
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["corpus.jsonl"]


def test_given_a_changed_document_when_ingested_then_its_text_is_the_new_one(pools: Pools, folder: Path) -> None:
    pools.ingest(folder)
    (folder / "pumps.md").write_text("# Pumps\n\nIntro.\n\nNothing else.")
    pools.ingest(folder)
    assert pools.corpus().text("notes/pumps.md") == "# Pumps\n\nIntro.\n\nNothing else."


def test_given_chunks_of_an_older_release_when_shown_then_it_is_said(pools: Pools, folder: Path) -> None:
    pools.ingest(folder)
    store = pools.store("default")
    ids = [hit.chunk_id for page in store.scroll(None) for hit in page if hit.path == "notes/pumps.md"]
    store.set_payloads({chunk_id: {"start": None} for chunk_id in ids})
    with pytest.raises(RamifyError, match="older release"):
        pools.corpus().text("notes/pumps.md")


def _drawn(what: Any) -> str:
    file = io.StringIO()
    Console(file=file, width=100, markup=False, highlight=False, emoji=False).print(what)
    return file.getvalue()


def test_given_a_passage_when_drawn_then_marks_stand_and_no_escape_of_the_document(pools: Pools, folder: Path) -> None:
    pools.ingest(folder)
    passage: Passage = pools.corpus().passage("notes/pumps.md", quote="It took two hours.", around=5)
    shown = _drawn(draw_passage(passage, styled=False))
    assert "»It took two hours.«" in shown
    assert "Hall 4" in shown
    assert "\x1b" not in shown
    assert "»" not in _drawn(draw_passage(passage, styled=True))
    assert "notes/pumps.md" in _drawn(draw_document(passage.document))
    assert "5 documents" in _drawn(draw_overview(pools.corpus().overview()))


def test_given_names_when_read_then_only_a_job_with_a_number_is_a_citation() -> None:
    assert _CITED.fullmatch("660e8aefc39a9c4874b3d#12") is not None
    assert _CITED.fullmatch("notes/lines.jsonl#1") is None
    assert _CITED.fullmatch("660e8aefc39a9c4874b3d") is None
