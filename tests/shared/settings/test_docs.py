"""The reference pages say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from orchestrator.access.keys import AccessKeys
from orchestrator.cli.render.system import setting_rows
from shared.jobs.keys import AdmissionKeys, BatchKeys, IngestKeys, JobKeys, SessionKeys, TotalKeys, WebhookKeys
from shared.jobs.states import State
from shared.jobs.tables import TableKeys
from shared.settings import load_settings

DOCS = Path(__file__).parents[3] / "docs"


def settings_page() -> str:
    lines = [
        "# Settings",
        "",
        "Every setting with its default. Generated from the code (`tests/shared/settings/test_docs.py` holds it true).",
        "In the environment `search.strategy` is `RAMIFY_SEARCH__STRATEGY`; empty variables count as not set.",
        "",
        "| setting | default | meaning |",
        "| --- | --- | --- |",
    ]
    for row in setting_rows(load_settings()):
        default = "" if row.default in ("", None) else f"`{row.default}`"
        lines.append(f"| `{row.name}` | {default} | {row.description} |")
    return "\n".join(lines) + "\n"


def test_the_settings_page_lists_every_setting() -> None:
    assert (DOCS / "settings.md").read_text(encoding="utf-8") == settings_page()


def test_the_redis_page_names_every_key_and_state() -> None:
    page = (DOCS / "redis.md").read_text(encoding="utf-8")
    for keys in (
        JobKeys("ID"),
        TableKeys("ID"),
        BatchKeys("BATCH"),
        IngestKeys("ID"),
        SessionKeys("TENANT", "SESSION"),
        AdmissionKeys("LANE"),
    ):
        for key in vars(keys).values():
            assert f"`{key}" in page
    for holder in (AccessKeys, WebhookKeys, TotalKeys):
        names = [name for name in vars(holder) if not name.startswith("_") and name != "tag"]
        assert all(f"`{getattr(holder, name)}" in page for name in names)
    assert all(f"`{state.value}`" in page for state in State)


def test_links_between_the_pages_lead_somewhere() -> None:
    for page in [*DOCS.glob("*.md"), DOCS.parent / "README.md"]:
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_pages_for_engineers_name_files_and_classes_that_are_there() -> None:
    root = DOCS.parent
    rooms = ("ramify", "shared", "orchestrator", "workers")
    files = [
        path.relative_to(root).as_posix()
        for room in (*rooms, "tests", "docs", "deploy")
        for path in (root / room).rglob("*")
    ]
    known = "\n".join(("", *files, *(path.name for path in root.iterdir()), ""))
    code = {
        word
        for room in rooms
        for path in (root / room).rglob("*.py")
        for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))
    }
    for page in (DOCS / "architecture.md", root / "CONTRIBUTING.md"):
        named = set(re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8")))
        named = {name for name in named if "NAME" not in name and "XX" not in name}
        paths = {name.rstrip("/") for name in named if re.fullmatch(r"[\w./-]*\w(\.(py|lua|md|toml|yml)|/)", name)}
        assert [path for path in sorted(paths) if f"/{path}\n" not in known and f"\n{path}\n" not in known] == []
        classes = {name for name in named if re.fullmatch(r"[A-Z]\w*[a-z]\w*(\.\w+)?", name)}
        assert [name for name in sorted(classes) if not code.issuperset(name.split("."))] == []
