"""The page on a whole stack, in Chromium: each flow once, and a corpus that is made to run scripts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.client import Ramify
from tests.support.browser import browser, serious, tab
from tests.support.http_server import served
from tests.support.pdf import pdf
from tests.support.waiting import until

__all__ = ["browser"]
_BIDI = "\u202e"
_HARM = {
    "<img src=x onerror=alert(1)>.md": (
        "# <script>alert('title')</script>\n\nThe quokka guard <script>alert(1)</script> is \"><svg onload=alert(2)> "
        f"{_BIDI}Ada\u200b, see [it](javascript:alert(3)) and <a href=javascript:alert(4)>here</a>.\n"
    ),
    "'); alert(5); ('.md": (
        "# Quokka rules {{ 7 * 7 }}\n\nThe quokka rules say: ${alert(6)} <!-- --><iframe src=//evil.example>.\n"
    ),
}
_QUESTION = "Why did checkout slow down in the spring of 2026?"


@pytest.fixture(scope="module")
def corpus(ramify: Ramify, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a PDF and with documents that do harm, ingested apart from the notes."""
    folder = tmp_path_factory.mktemp("page") / "<b>corpus"
    folder.mkdir()
    for name, text in _HARM.items():
        (folder / name).write_text(text)
    pages = [["Ledger report 2026"], ["Backups", "The ledger is backed up to Glacier every Sunday at 02:00."]]
    (folder / "ledger.pdf").write_bytes(pdf(pages, title="Ledger report"))
    for _ in ramify.ingest(folder, namespace="page"):
        pass
    return folder


@pytest.fixture(scope="module")
def address(ramify: Ramify, corpus: Path) -> Iterator[str]:
    with served(ramify.settings) as address:
        yield address


def asked(page: Any, question: str, **options: str) -> None:
    """Ask over the form, and wait for the answer."""
    page.goto("/")
    page.get_by_label("What do you want to know?").fill(question)
    if options:
        page.get_by_text("Options").click()
        for name, value in options.items():
            page.locator(f"[name={name}]").fill(value)
    page.keyboard.press("Control+Enter") if not options else page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_url("**/jobs/*")
    page.locator(".text, .list-head").first.wait_for()


def closed(page: Any) -> None:
    """Close the panel, and wait until its entry of the history is gone, too."""
    page.keyboard.press("Escape")
    until(lambda: page.evaluate("!history.state?.panel"), 10)


def test_a_question_is_previewed_asked_and_answered_with_a_passage_that_opens(browser: Any, address: str) -> None:
    with tab(browser, address) as page:
        page.goto("/")
        assert serious(page) == []
        page.get_by_label("What do you want to know?").fill(_QUESTION)
        page.get_by_role("button", name="Preview plan and cost").click()
        page.locator(".plan .node").first.wait_for()
        assert page.get_by_label("What do you want to know?").input_value() == _QUESTION
        asked(page, _QUESTION)
        page.locator(".past[data-stage=done]").wait_for()
        assert page.locator(".node.s-done").count() >= 1
        assert page.evaluate("seen.shifts") == []
        assert serious(page) == []
        page.locator(".sources a").first.click()
        panel = page.locator("dialog[open]")
        panel.locator("mark").first.wait_for()
        quoted = re.sub(r"\W+", " ", page.locator(".sources q").first.inner_text())[:60].strip()
        assert quoted[:40] in re.sub(r"\W+", " ", panel.locator(".text").inner_text())
        assert serious(page) == []
        closed(page)
        panel.wait_for(state="detached")
        page.keyboard.press("g")
        page.keyboard.press("j")
        page.wait_for_url("**/jobs")
        page.keyboard.press("?")
        page.locator("dialog#keys[open]").wait_for()
        assert serious(page) == []


def test_a_pdf_is_shown_with_the_passage_framed(browser: Any, address: str) -> None:
    pytest.importorskip("pypdfium2")
    with tab(browser, address) as page:
        asked(page, "How often is the ledger backed up to Glacier?", namespace="page")
        page.locator(".text .cite").first.click()
        image = page.locator("dialog[open] .paper img")
        image.wait_for()
        until(lambda: page.evaluate("document.querySelector('.paper img').complete"), 10)
        assert image.evaluate("image => [image.naturalWidth, image.naturalHeight]") == [900, 1274]
        assert "every Sunday" in page.locator("dialog[open] mark").first.inner_text()
        closed(page)
        page.get_by_role("link", name="Ask again").click()
        assert page.locator("[name=namespace]").input_value() == "page"


def test_documents_and_file_names_that_do_harm_are_text(browser: Any, address: str, ramify: Ramify) -> None:
    documents = [one for one in ramify.corpus.documents("page") if "ledger" not in one.path]
    assert len(documents) == 2
    with tab(browser, address) as page:
        asked(page, "What is the quokka guard and what do the quokka rules say?", namespace="page")
        page.locator("details.more").first.locator("summary").click()
        assert serious(page) == []
        for link in page.locator(".sources a").all():
            link.click()
            page.locator("dialog[open] .text").wait_for()
            closed(page)
        for one in documents:
            page.goto(f"/corpus/documents/{one.doc_id}?whole=1")
            text = page.locator(".text").inner_text()
            assert "alert(" in text
            assert not re.search("[\u202e\u200b]", page.content())
        for path in (
            "/corpus?x=<script>",
            "/corpus/documents?namespaces=page&q=",
            "/jobs",
            "/corpus/documents?q=<script>alert(9)",
        ):
            page.goto(path)
            page.locator("h1").wait_for()
        page.goto("/corpus/documents?namespaces=page")
        assert "<img src=x onerror=alert(1)>.md" in page.locator("main").inner_text()
        assert page.locator("main iframe, main svg[onload], main img, a[href^=javascript]").count() == 0


def test_a_list_shows_its_rows_and_gives_them_as_files(browser: Any, address: str) -> None:
    with tab(browser, address) as page:
        asked(page, "List all notes tagged redis")
        assert page.locator(".rows tbody tr").count() > 3
        assert serious(page) == []
        with page.expect_download() as found:
            page.get_by_role("link", name="CSV").click()
        assert Path(found.value.path()).read_text().startswith('"number"')


def test_a_batch_is_posted_filtered_and_downloaded(browser: Any, address: str, tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text(
        '{"question": "How do we restore the orders database?", "id": "<b>7"}\n{"nonsense": 1}\nWhat is TTL jitter?\n'
    )
    with tab(browser, address) as page:
        page.goto("/batches")
        page.locator("input[type=file]").set_input_files(file)
        page.get_by_role("button", name="Ask all").click()
        page.wait_for_url("**/batches/*")
        page.locator(".tiles .s-done b", has_text="2").wait_for()
        assert page.locator("tr[data-row]").count() == 3
        page.locator(".tiles a", has_text="rejected").click()
        page.wait_for_url("**only=rejected")
        assert page.locator("tr[data-row]").count() == 1
        assert serious(page) == []
        with page.expect_download() as found:
            page.get_by_role("link", name="JSONL").click()
        lines = [json.loads(line) for line in Path(found.value.path()).read_text().splitlines()]
        assert [line["state"] for line in lines] == ["done", None, "done"]


def test_documents_are_uploaded_found_and_counted(browser: Any, address: str, tmp_path: Path) -> None:
    file = tmp_path / "<i>quolls.md"
    file.write_text("# Quolls\n\nA quoll sleeps until nine in the evening.\n")
    with tab(browser, address) as page:
        page.goto("/corpus")
        assert serious(page) == []
        page.locator("[name=file]").set_input_files(file)
        page.locator(".upload [name=namespace]").fill("page")
        page.get_by_role("button", name="Put them in").click()
        page.wait_for_url("**/jobs/*")
        page.locator(".past[data-stage=done]").wait_for()
        assert serious(page) == []
        page.goto("/corpus/documents?namespaces=page&q=quoll")
        page.get_by_role("link", name="Quolls").click()
        assert "sleeps until nine" in page.locator(".text").inner_text()


def test_pages_fit_a_phone_in_the_dark_in_chinese_and_look_as_they_are_asked_to(
    browser: Any, address: str, ramify: Ramify
) -> None:
    jobs = [job.job_id for job in ramify.jobs(9, state="done") if job.ingest is None]
    job = f"/jobs/{jobs[0]}"
    with tab(browser, address, width=390, color_scheme="dark", locale="zh-CN") as page:
        for path in ("/", "/jobs", job, "/operate", f"/compare?a={jobs[0]}&b={jobs[1]}", f"{job}/why"):
            page.goto(path)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
            assert serious(page) == [], path
        assert page.evaluate("document.documentElement.lang") == "zh-Hans"
        page.locator(".theme").click()
        page.locator("html[data-theme=light]").wait_for(state="attached")
        page.locator(".look a[hreflang]").click()
        page.locator("html[lang=en]").wait_for(state="attached")
