"""Answers with their sources as files: escaped, with keys that stay, and readable by what reads such files."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from orchestrator.out_formats import AnsweredLine
from orchestrator.records.export import KINDS, ExportFormat
from orchestrator.records.sources import bibtex, csl, source_key, sources_of
from shared.models import Answer, Citation, MergedHit, Summary

NASTY = r"C# & 100 % of {braces}, $x_1^2$ ~ \path <b>"
TEX = r"C\# \& 100 \% of \{braces\}, \$x\_1\textasciicircum{}2\$ \textasciitilde{} \textbackslash{}path <b>"


def hit(name: str, title: str, path: str, **more: object) -> MergedHit:
    fields = {"chunk_id": f"c-{name}", "doc_id": name, "path": path, "title": title, "text": "t", "score": 1.0}
    return MergedHit.model_validate({**fields, **more})


def cited(number: int, of: MergedHit, quote: str) -> Citation:
    return Citation(
        number=number, chunk_id=of.chunk_id, doc_id=of.doc_id, path=of.path, title=of.title, quote=quote, place="p. 3"
    )


FIRST = hit("d1", NASTY, "notes/c#-tips.md", date="2026-03-30", tags=("c#", "a&b"), version="00ff", namespace="n s")
SECOND = hit("d2", "缓存雪崩", "笔记/缓存雪崩.md")
ANSWER = Answer(
    job_id="job-1",
    question="缓存雪崩 <script>alert(1)</script>?",
    state="done",
    coverage="2 of 2 leaves answered",
    results=(FIRST, SECOND),
    summary=Summary(
        text="### 原因\n大量缓存同时过期。[2]\n- One <img src=x onerror=alert(1)>. [1]\n- Two. [1] [7]\nEnd. [3]",
        kind="extractive",
        citations=(cited(1, FIRST, "a < b & c"), cited(2, SECOND, "大量缓存同时过期。"), cited(3, FIRST, "again")),
    ),
    warnings=("a <warning>",),
)
LINES = (
    AnsweredLine(line=1, kind="enqueued", job_id="job-1", state="done", outcome="done", question="q1", answer=ANSWER),
    AnsweredLine(line=2, kind="rejected", question="<i>", error="it is empty"),
    AnsweredLine(line=3, kind="enqueued", job_id="job-1", state="done", outcome="done", question="q1", answer=ANSWER),
)


class Page(HTMLParser):
    """The tags, the anchors and where links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.ids, self.links, self.words = set[str](), list[str](), list[str](), ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.add(tag)
        self.ids += [given["id"]] if given.get("id") else []  # type: ignore[list-item]
        self.links += [given["href"]] if given.get("href") else []  # type: ignore[list-item]
        assert not {"src", "onerror", "srcset"} & given.keys()

    def handle_data(self, data: str) -> None:
        self.words += data


def whole(form: ExportFormat) -> str:
    return "".join(KINDS[form].batch("batch-1", LINES))


def test_the_page_is_self_contained_and_everything_in_it_is_escaped() -> None:
    page = Page(KINDS[ExportFormat.HTML].answer(ANSWER))
    assert not {"script", "img", "link", "iframe", "b:"} & page.tags
    assert set(page.links) == {"#s1", "#s2", "#s3"}, "a number without a citation leads nowhere"
    assert page.ids == ["s1", "s3", "s2"]
    for words in ("<script>alert(1)</script>?", "<img src=x onerror=alert(1)>", "a < b & c", "a <warning>", "[7]"):
        assert words in page.words
    assert "http://" not in page.words
    assert "h3" in page.tags
    assert "ul" in page.tags


def test_answers_on_one_page_keep_their_citations_apart() -> None:
    page = Page(whole(ExportFormat.HTML))
    assert len(page.ids) == len(set(page.ids))
    assert {"#s1-1", "#s3-2"} <= set(page.links) <= {f"#{name}" for name in page.ids}
    assert "it is empty" in page.words


def test_bibtex_escapes_what_tex_reads_and_every_brace_is_closed() -> None:
    written = bibtex(sources_of(ANSWER))
    assert f"title = {{{{{TEX}}}}}," in written
    assert "year = {2026},\n  month = mar," in written
    assert r"keywords = {c\#, a\&b}," in written
    assert "url = {ramify://n s/notes/c%23-tips.md}".replace("n s", "n%20s") in written
    assert "title = {{缓存雪崩}}," in written
    bare = re.sub(r"\\[{}]", "", written)
    depth = 0
    for c in bare:
        depth += {"{": 1, "}": -1}.get(c, 0)
        assert depth >= 0
    assert depth == 0
    assert len(re.findall(r"(?m)^@misc\{[a-z0-9-]+,$", written)) == 2, "each document once"


def test_a_key_is_the_same_in_every_export_and_another_for_another_document() -> None:
    other = ANSWER.model_copy(update={"question": "?", "results": (SECOND,), "job_id": "job-2"})
    assert {one.key for one in sources_of(ANSWER)} == {one.key for one in sources_of(other)}
    assert source_key("d1", "a/Über den Cache (2).md").startswith("uber-den-cache-2-")
    assert re.fullmatch(r"source-[0-9a-f]{8}", source_key("d2", "笔记/缓存雪崩.md"))
    assert source_key("d1", "a.md") != source_key("d2", "a.md")


def test_csl_has_an_item_for_each_document_with_what_it_knows() -> None:
    first, second = json.loads(csl(sources_of(ANSWER)))
    assert first["title"] == NASTY
    assert first["issued"] == {"date-parts": [[2026, 3, 30]]}
    assert (first["type"], first["version"]) == ("document", "00ff")
    assert second["title"] == "缓存雪崩"
    assert "issued" not in second


def test_markdown_has_footnotes_with_quotes_and_no_html() -> None:
    page = KINDS[ExportFormat.MARKDOWN].answer(ANSWER)
    assert page.startswith("# 缓存雪崩 &lt;script>alert(1)&lt;/script>?\n")
    assert "大量缓存同时过期。[^2]" in page
    assert "[^2]: 缓存雪崩 — 笔记/缓存雪崩.md, p. 3: “大量缓存同时过期。”" in page
    assert not re.search("<[a-z]", page)
    both = whole(ExportFormat.MARKDOWN)
    assert "[^1-2]: 缓存雪崩" in both
    assert "[^3-2]: 缓存雪崩" in both


@pytest.mark.parametrize("form", [ExportFormat.BIBTEX, ExportFormat.CSL])
def test_of_a_batch_each_document_stands_once(form: ExportFormat) -> None:
    assert whole(form).count("缓存雪崩") == KINDS[form].answer(ANSWER).count("缓存雪崩")


def test_json_reads_back_with_the_sources_of_each_answer() -> None:
    one = json.loads(KINDS[ExportFormat.JSON].answer(ANSWER))
    assert Answer.model_validate(one["answer"]) == ANSWER
    assert [source["doc_id"] for source in one["sources"]] == ["d1", "d2"]
    batch = json.loads(whole(ExportFormat.JSON))
    assert [line["line"] for line in batch["lines"]] == [1, 2, 3]
    assert batch["lines"][0]["sources"] == one["sources"]
    assert batch["lines"][1]["sources"] == []
    assert json.loads("".join(KINDS[ExportFormat.JSON].batch("b", ()))) == {"batch_id": "b", "lines": []}
