"""The form of a question in Chromium: sent once, measured, and kept where language or colours change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from orchestrator.client import Ramify
from shared.jobs import JobStore
from shared.jobs.dead_letters import DeadLetterStore
from shared.settings import Settings
from tests.fakes.walked_jobs import WalkedJob
from tests.orchestrator.retries.test_dead_letters import work as dead_letter
from tests.support.browser import browser, serious, tab
from tests.support.http_server import served

__all__ = ["browser"]


@pytest.fixture
def address(client: redis.Redis, settings: Settings) -> Iterator[str]:
    with served(settings) as address:
        yield address


def test_a_form_is_sent_once_is_kept_through_switches_and_says_when_it_is_too_long(
    browser: Any, address: str, ramify: Ramify
) -> None:
    with tab(browser, address) as page:
        page.goto("/")
        question = page.locator("#question")
        question.fill("x" * 4_100)
        page.get_by_text("The question has 4,100 characters; at most 4,000").wait_for()
        question.press("Control+Enter")
        assert page.url == f"{address}/"
        question.fill("Half a question")
        assert not page.locator("#length").is_visible()
        page.locator(".options summary").click()
        page.locator("[name=top_n]").fill("7")
        page.locator("[name=explain]").check()
        page.locator(".look .theme").click()
        page.get_by_role("link", name="中文").click()
        page.locator("html[lang=zh-Hans]").wait_for()
        assert question.input_value() == "Half a question"
        assert page.locator("[name=top_n]").input_value() == "7"
        assert page.locator("[name=explain]").is_checked()
        page.evaluate("for (const _ of [1, 2]) document.getElementById('ask').requestSubmit()")
        page.wait_for_url("**/jobs/*")
        assert len(list(ramify.jobs(5))) == 1


def test_dead_letters_are_tried_again_and_dropped_by_their_buttons(
    browser: Any, address: str, ramify: Ramify, store: JobStore
) -> None:
    walked = WalkedJob(store, ramify.submit("why?")).to("searching")
    walked.merging(failed=("0.1", "0.2"))
    walked.summarising()
    walked.done(partial=True)
    letters = DeadLetterStore(ramify.redis, ramify.settings)
    for item in ("0.1", "0.2"):
        letters.add(dead_letter(walked.id, item))
    with tab(browser, address) as page:
        page.goto("/operate")
        assert page.locator("tr[id^=dead-]").count() == 2
        assert serious(page) == []
        page.locator("tr[id^=dead-]").first.get_by_role("button", name="Drop").click()
        page.wait_for_url("**/operate")
        page.locator("tr[id^=dead-]").first.wait_for()
        assert (page.locator("tr[id^=dead-]").count(), letters.count()) == (1, 1)
        page.get_by_role("button", name="Replay").click()
        page.wait_for_url("**/jobs/*")
        assert page.url.endswith(str(ramify.status(walked.id).retried_as))
    assert letters.count() == 0


@pytest.mark.parametrize("width", [1280, 390])
def test_a_long_question_widens_no_table_and_is_no_page_of_its_own(
    browser: Any, address: str, ramify: Ramify, width: int
) -> None:
    ramify.submit("short?")
    batch = ramify.submit_many(["w" * 900])
    job_id = ramify.submit("Why did it slow down, and what then? " * 100)
    with tab(browser, address, width=width) as page:
        for path in ("/jobs", f"/batches/{batch.batch_id}"):
            page.goto(path)
            assert page.evaluate("document.querySelector('.scroll').scrollWidth") <= width
            assert all(row["height"] < 130 for one in page.locator("tbody tr").all() if (row := one.bounding_box()))
        page.goto(f"/jobs/{job_id}")
        assert (page.locator("h1").bounding_box() or {})["height"] < 120
        page.get_by_text("Show all of it").click()
        assert (page.locator("h1").bounding_box() or {})["height"] > 200
        assert serious(page) == []
        if width == 390:
            small = page.evaluate(
                "[...document.querySelectorAll('a:not(.skip), button')].filter((one) => one.offsetParent)"
                ".filter((one) => one.getBoundingClientRect().height < 24).map((one) => one.outerHTML)"
            )
            assert small == []


def test_a_file_of_questions_becomes_a_batch_of_its_name(browser: Any, address: str) -> None:
    with tab(browser, address) as page:
        page.goto("/batches")
        page.locator("[name=file]").set_input_files({"name": "mine.txt", "mimeType": "text/plain", "buffer": b"why?\n"})
        page.get_by_role("button", name="Ask all").click()
        page.wait_for_url("**/batches/*")
        assert page.locator("h1").inner_text() == "mine.txt"
