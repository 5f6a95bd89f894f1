"""Draws ingests: how many documents ended how, how fast, and what failed. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.cli.render.tree import state_text
from orchestrator.cli.text import pairs, plain, warnings
from shared.models import DocumentStatus
from shared.models.ingest import IngestCounts, IngestResult

_SLOWEST, _MOST_FAILURES = 3, 50


def draw_ingest(counts: Mapping[str, int]) -> Text:
    """One line: how many documents ended how, and how many chunks were written."""
    documents = ", ".join(f"{count} {name}" for name, count in counts.items() if count and name != "chunks")
    return plain(f"{documents or 'no documents'}; {counts.get('chunks', 0)} chunks written")


def draw_pace(files: int, seconds: float, parts: Mapping[str, float]) -> Text:
    """One line: files a second, and the parts that took most of the workers' time."""
    pace = f"{files} files in {seconds:.1f} s, {files / seconds:.0f} files/s"
    total = sum(parts.values())
    slowest = sorted(parts.items(), key=lambda item: -item[1])[:_SLOWEST] if total > 0 else []
    shares = ", ".join(f"{name} {spent / total:.0%}" for name, spent in slowest)
    return plain(f"{pace}; slowest: {shares}" if shares else pace, "dim")


def by_status(counts: IngestCounts) -> dict[str, int]:
    """The documents by what became of them, and the chunks."""
    return {name: getattr(counts, name) for name in (*(status.value for status in DocumentStatus), "chunks")}


def draw_ingest_result(found: IngestResult) -> RenderableType:
    """What became of an ingest, with what failed."""
    rows: dict[str, RenderableType | str] = {
        "job": found.job_id,
        "ingest": ", ".join(found.sources),
        "state": state_text(found.state, partial=found.partial),
        "files": f"{found.counts.read:,} of {found.counts.files:,} read",
        "documents": draw_ingest(by_status(found.counts)),
        "answers": f"{found.counts.stale:,} stale by it: `ramify jobs --stale`" if found.counts.stale else "",
        "error": plain(found.error or "", "red"),
    }
    failed = [plain(f"{one.path}: {one.reason}", "red") for one in found.failures[:_MOST_FAILURES]]
    if (more := found.counts.failed - len(failed)) > 0 and failed:
        failed.append(plain(f"{more:,} more failed: --json has up to a thousand", "dim"))
    passed = [f"passed over: {sentence}" for sentence in found.passed_over]
    pace = (
        [draw_pace(found.counts.read, found.seconds, found.counts.parts)] if found.seconds and found.counts.read else []
    )
    return Group(pairs(rows), *failed, *warnings((*passed, *found.warnings)), *pace)
