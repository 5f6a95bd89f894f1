"""`python -m tests.screenshots`: the pictures in docs/page/, taken in Chromium on a stack of its own. Takes a minute.

Chinese needs a font on the machine (fonts-wqy-microhei, fonts-noto-cjk).
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from orchestrator.client import Ramify
from orchestrator.local.background import down, start
from shared.settings import load_settings
from tests.fakes.openai_server import FakeOpenAI
from tests.support.http_server import served
from tests.support.pdf import pdf

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "page"
_COLOURS = 160
_WHY = "Why did checkout slow down in the spring of 2026, and what did we change afterwards?"
_ZH = "缓存穿透、击穿和雪崩有什么区别，各怎么处理？"
_LEDGER = [
    ["Ledger report 2026", "This report tells how the ledger service was moved.", "The move took three weeks."],
    [
        "Backups", "The ledger is backed up to Glacier every Sunday at 02:00.",
        "Restoring it takes forty minutes from the nightly snapshot.", "Mika Sato owns the restore drill.",
    ],
]  # fmt: skip


def main() -> int:
    """Take all of them."""
    program = shutil.which("chromium")
    if program is None:
        sys.stderr.write("there is no chromium on this machine\n")
        return 1
    with tempfile.TemporaryDirectory() as name, FakeOpenAI() as fake:
        folder = Path(name)
        (folder / "reports").mkdir()
        (folder / "reports" / "ledger.pdf").write_bytes(pdf(_LEDGER, title="Ledger report"))
        options: dict[str, Any] = {"flower": {"enabled": False}, "server": {"enabled": False}}
        settings = load_settings(
            data_dir=folder / "data", llm_base_url=fake.url, llm_model="fake", llm_timeout_s=5, **options
        )
        start(settings, bound=True)
        try:
            with Ramify(settings) as client, served(settings) as address, sync_playwright() as playwright:
                for _ in client.ingest([ROOT / "examples" / "notes", folder / "reports"]):
                    pass
                browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
                _take_all(browser, address, client)
                browser.close()
        finally:
            down(settings)
    return 0


def _take_all(browser: Any, address: str, client: Ramify) -> None:
    PICTURES.mkdir(exist_ok=True)
    light = _page(browser, address)
    light.goto("/")
    light.fill("#question", _WHY)
    light.click("[data-preview]")
    light.locator(".plan .node").nth(2).wait_for()
    light.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    _take(light, "ask")
    job = _asked(light, _WHY)
    light.locator(".node").nth(1).click()
    _take(light, "job")
    _asked(light, "How often is the ledger backed up to Glacier?")
    light.locator(".text .cite").first.click()
    light.locator("dialog[open] .paper img").wait_for()
    light.wait_for_function("document.querySelector('.paper img').complete")
    _take(light, "source")
    other = client.submit(_WHY, strategy="bm25_only", summary=False)
    client.wait(other, 60)
    light.goto(f"/compare?a={job}&b={other}")
    _take(light, "compare")
    made = client.submit_many(
        [
            "How do we restore the orders database from backup?", "What is TTL jitter?", _ZH, {"nonsense": 1},
            {"question": "Who owns checkout?", "deadline_s": 0.001}, "List all notes tagged redis",
        ]
    )  # fmt: skip
    for job_id in made.job_ids:
        client.wait(job_id, 60)
    light.goto(f"/batches/{made.batch_id}")
    _take(light, "batch")
    light.goto("/corpus")
    _take(light, "corpus")
    phone = _page(browser, address, width=390, height=844, color_scheme="dark", locale="zh-CN")
    _asked(phone, _ZH)
    _take(phone, "phone")


def _page(browser: Any, address: str, *, width: int = 1180, height: int = 820, **options: Any) -> Any:
    given = {"locale": "en-US", "viewport": {"width": width, "height": height}, **options}
    page = browser.new_context(base_url=address, **given).new_page()
    page.set_default_timeout(60_000)
    return page


def _asked(page: Any, question: str) -> str:
    """Ask, wait for the answer, and load the page anew; returns the job's id."""
    page.goto("/")
    page.fill("#question", question)
    page.click("form.ask button.main")
    page.wait_for_url("**/jobs/*")
    page.locator(".text, .list-head").first.wait_for()
    page.reload()
    return str(page.url).rpartition("/")[2]


def _take(page: Any, name: str) -> None:
    """What is seen, with few colours: that is a third of the bytes."""
    seen = Image.open(io.BytesIO(page.screenshot(animations="disabled", caret="hide"))).convert("RGB")
    seen.quantize(_COLOURS, dither=Image.Dither.NONE).save(PICTURES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    sys.exit(main())
