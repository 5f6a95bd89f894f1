"""The page in Chromium over one Redis, without pools: forms, tables and buttons, and the tree while it grows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from orchestrator.client import Ramify
from shared.jobs import JobStore
from shared.jobs.dead_letters import DeadLetterStore
from shared.models import Facet, Hit, LeafResult, LeafStatus, MergedPool, Node, NodeKind
from shared.settings import Settings
from tests.fakes.walked_jobs import WalkedJob, answer, route
from tests.orchestrator.retries.test_dead_letters import work as dead_letter
from tests.support.browser import browser, serious, tab
from tests.support.http_server import served
from tests.support.waiting import until

__all__ = ["browser"]
_HOSTILE = "<img src=x onerror=alert(1)>\u202e & why?"
#: No row is on its way to its place; what turns for ever does not count.
_AT_REST = "document.getAnimations().every(one => one.effect.getComputedTiming().endTime === Infinity)"
#: From a write into Redis to the row on the screen; 300 ms is the aim, and this machine may be busy with other tests.
_SEEN_S = 5.0


@pytest.fixture
def address(client: redis.Redis, settings: Settings) -> Iterator[str]:
    with served(settings) as address:
        yield address


def node(node_id: str, **more: Any) -> Node:
    values = {"id": node_id, "parent_id": node_id.rpartition(".")[0], "level": node_id.count("."), "facet": Facet.WHY}
    return Node.model_validate({**values, "query": f"What of {node_id}? {_HOSTILE} {'long ' * 20}", **more})


def leaf(node_id: str, score: float) -> LeafResult:
    hit = Hit(chunk_id="c", doc_id="d", path="p", title="t", text="x", score=score)
    return LeafResult(node_id=node_id, status=LeafStatus.DONE, hits=(hit,))


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


@pytest.mark.parametrize("width", [1280, 390])
def test_a_tree_is_drawn_as_it_grows_and_shifts_nothing(
    browser: Any, address: str, ramify: Ramify, store: JobStore, width: int
) -> None:
    job_id = ramify.submit("Why did it slow down?")
    walked = WalkedJob(store, job_id)
    assert walked.planning()
    with tab(browser, address, width=width) as page:
        page.goto(f"/jobs/{job_id}")
        page.evaluate(
            "new MutationObserver(() => { for (const row of document.querySelectorAll('.node'))"
            " seen.at[row.dataset.id] ??= performance.timeOrigin + performance.now(); })"
            ".observe(document.querySelector('.tree'), {childList: true})"
        )
        page.wait_for_timeout(300)  # the stream of events is open
        store.route(job_id, route())
        assert store.start_searching(job_id, [node("0.0"), node("0.1", kind=NodeKind.BRANCH), node("0.2")])
        rows = page.locator(".node")
        rows.nth(2).wait_for()
        assert store.grow(job_id, "0.1", [node("0.1.1"), node("0.1.2")])
        rows.nth(4).wait_for()
        assert [row.get_attribute("data-id") for row in rows.all()] == ["0.0", "0.1", "0.1.1", "0.1.2", "0.2"]
        store.record_leaf(job_id, leaf("0.2", 0.875))
        row = page.locator('.node[data-id="0.2"]')
        row.get_by_text("0.875").wait_for()
        assert "s-done" in (row.get_attribute("class") or "")
        assert row.locator("[data-slot=hits]").inner_text() == "1 hit"
        assert row.locator("[data-slot=query]").inner_text().startswith("What of 0.2? <img src=x onerror=alert(1)> &")
        until(lambda: page.evaluate(_AT_REST), 10)
        tops = [box["y"] for one in rows.all() if (box := one.bounding_box())]
        assert tops == sorted(tops)
        assert page.evaluate("seen.shifts.filter(([share]) => share > 0.01)") == [], "a line's height is more than that"
        written = next(event.id for event in ramify.stream(job_id, 0.1) if event.type == "node")
        assert page.evaluate("seen.at['0.0']") / 1000 - int(written.partition("-")[0]) / 1000 < _SEEN_S
        assert serious(page) == []
        row.click()
        assert "What of 0.2?" in page.locator("#node-detail").inner_text()
        page.keyboard.press("ArrowUp")
        assert page.locator(".node[aria-selected=true]").get_attribute("data-id") == "0.1.2"


def test_the_end_of_a_job_brings_its_answer_without_a_reload(
    browser: Any, address: str, ramify: Ramify, store: JobStore
) -> None:
    job_id = ramify.submit("why?")
    walked = WalkedJob(store, job_id).to("merging")
    with tab(browser, address) as page:
        page.goto(f"/jobs/{job_id}")
        page.evaluate("window.kept = true")
        page.locator("[data-stage=merging].now").wait_for()
        assert store.start_summarising(job_id, MergedPool())
        page.locator("[data-stage=summarising].now").wait_for()
        found = answer(walked.job).model_copy(update={"warnings": ("Something was left out.",)})
        assert store.finish(walked.job, found)
        page.get_by_text("Something was left out.").wait_for()
        assert page.locator("#state").inner_text() == "done"
        assert page.evaluate("window.kept"), "the same page"
        assert page.evaluate("seen.shifts") == []
        page.get_by_role("link", name="Why?").click()
        page.locator("dialog[open] .lead").wait_for()
        page.go_back()
        page.locator("dialog[open]").wait_for(state="detached")
        assert page.evaluate("[location.pathname, window.kept]") == [f"/jobs/{job_id}", True]
        page.get_by_role("link", name="Why?").click()
        page.locator("dialog[open] .lead").wait_for()
        page.keyboard.press("Escape")
        until(lambda: page.evaluate("history.state === null"), 10)
        assert page.evaluate("window.kept")


def test_without_events_the_state_is_asked_for_again_and_again(
    browser: Any, address: str, ramify: Ramify, store: JobStore
) -> None:
    job_id = ramify.submit("why?")
    with tab(browser, address) as page:
        page.route("**/events*", lambda route: route.abort())
        page.goto(f"/jobs/{job_id}")
        WalkedJob(store, job_id).to("searching")
        page.locator(".node").nth(2).wait_for()
        page.route("**/state", lambda route: route.fulfill(status=503))
        page.get_by_text("Connection lost").wait_for()
        page.unroute("**/state")
        page.locator("#lost").wait_for(state="hidden")
        ramify.cancel(job_id)
        page.get_by_role("button", name="Try again").wait_for()
