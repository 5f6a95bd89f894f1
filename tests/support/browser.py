"""The machine's Chromium, driven by Playwright; tests that need it are skipped where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

#: Notes what must not happen on any page: layout shifts that nobody caused, violations of the policy, dialogs.
_WATCH = """
window.seen = {shifts: [], violations: [], at: {}};
new PerformanceObserver((list) => { for (const entry of list.getEntries()) if (!entry.hadRecentInput)
  seen.shifts.push([entry.value, entry.sources.map((source) => source.node?.className || source.node?.nodeName)]); })
  .observe({type: "layout-shift", buffered: true});
document.addEventListener("securitypolicyviolation", (event) => seen.violations.push(event.violatedDirective));
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One headless Chromium for a module: while it runs, this thread has an event loop, which others may not want."""
    program = next((found for name in ("chromium", "chromium-browser") if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("there is no Chromium on this machine")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield found
        found.close()


@contextmanager
def tab(browser: Any, address: str, *, width: int = 1280, **options: Any) -> Iterator[Any]:
    """A tab of its own cookies. When it closes, it must have run no script but ours, and raised no error."""
    given = {"viewport": {"width": width, "height": 900}, "locale": "en-US", "base_url": address, **options}
    context = browser.new_context(**given)
    context.add_init_script(_WATCH)
    page = context.new_page()
    page.set_default_timeout(15_000)
    faults = list[str]()
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: (faults.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: None if request.url.startswith(address) else faults.append(request.url))
    try:
        yield page
        assert faults == []
        assert page.evaluate("seen.violations") == []
    finally:
        context.close()


def serious(page: Any) -> list[str]:
    """What axe-core finds that keeps people out: findings of impact serious or critical."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found if one["impact"] in {"serious", "critical"}
    ]


def screenshot(page: Any, file: Path) -> None:
    """What is seen now, as a small PNG."""
    page.screenshot(path=str(file), animations="disabled", caret="hide")
