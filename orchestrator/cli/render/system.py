"""Draws what concerns the machine: doctor's checks, the running stack, settings, an ingest's counts. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.cli.render.tables import columns, pairs
from orchestrator.cli.render.text import plain

if TYPE_CHECKING:
    from orchestrator.cli.setting_rows import SettingRow
    from orchestrator.local.checks import Check
    from orchestrator.local.state import StackState

_SLOWEST = 3
_MARKS = {True: ("ok", "green"), False: ("FAULT", "red"), None: ("-", "dim")}


def draw_checks(checks: Sequence[Check]) -> Table:
    """One line a check; what to do about it stands under it."""
    table = columns("", "what", "finding")
    for column in table.columns[:2]:
        column.no_wrap = True
    for check in checks:
        finding = plain(check.detail)
        if check.fix:
            finding.append("\n→ ", "yellow").append(plain(check.fix))
        table.add_row(Text(*_MARKS[check.ok]), plain(check.name), finding)
    return table


def draw_stack(state: StackState, logs: Path) -> RenderableType:
    """Where everything of a running stack is."""
    rows = {
        "pools": ", ".join(child.name for child in state.children),
        "Redis": state.redis_url or "the one that redis.url names",
        "Flower": state.flower_url or "switched off (flower.enabled)",
        "logs": str(logs),
    }
    restarts = ", ".join(f"{child.name} {child.restarts}" for child in state.children if child.restarts)
    return pairs(rows | ({"restarts": restarts} if restarts else {}))


def draw_settings(rows: Sequence[SettingRow], file: str | None) -> RenderableType:
    """Every setting; a value that differs from its default is bold, and the default stands under it."""
    table = columns("setting", "value", "meaning")
    table.columns[0].no_wrap = True
    for row in rows:
        changed = row.value != row.default
        value = plain(_shown(row.value), "bold" if changed else "")
        if changed:
            value.append("\ndefault ", "dim").append(plain(_shown(row.default), "dim"))
        table.add_row(plain(row.name), value, plain(row.description, "dim"))
    return Group(table, plain(f"settings file: {file or 'none (./ramify.toml is not there)'}", "dim"))


def _shown(value: object) -> str:
    return "-" if value in (None, "") else str(value)


def draw_ingest(counts: Mapping[str, int]) -> Text:
    """One line: how many documents ended how, and how many chunks were written."""
    documents = ", ".join(f"{count} {name}" for name, count in counts.items() if count and name != "chunks")
    return plain(f"{documents or 'no documents'}; {counts.get('chunks', 0)} chunks written")


def draw_pace(files: int, seconds: float, parts: Mapping[str, float]) -> Text:
    """One line: files a second, and the parts that took most of the workers' time."""
    said = f"{files} files in {seconds:.1f} s, {files / seconds:.0f} files/s"
    total = sum(parts.values())
    slowest = sorted(parts.items(), key=lambda item: -item[1])[:_SLOWEST] if total > 0 else []
    shares = ", ".join(f"{name} {spent / total:.0%}" for name, spent in slowest)
    return plain(f"{said}; slowest: {shares}" if shares else said, "dim")
