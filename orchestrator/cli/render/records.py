"""Draws a manifest. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType, group
from rich.table import Table
from rich.text import Text

from orchestrator.cli.render.answer import cost_line, times_line
from orchestrator.cli.text import columns, heading, pair, plain, read_as, score, warnings
from orchestrator.diagnosis.wording import degraded_parts
from shared.models.manifest import Manifest, Record, RecordedResult

_PARTS = 5


@group()
def draw_manifest(found: Manifest) -> Iterator[RenderableType]:
    """All of it but the ids of passages, which `--json` has."""
    record = found.record
    yield plain(record.question, "bold")
    yield pair("Digest", found.digest)
    yield pair("Run", _run(found))
    for name, value in record.options.items():
        yield pair(name, str(value))
    if record.plan.route:
        yield pair("Read as", read_as(record.plan.route))
    yield from heading(f"Plan ({len(record.leaves)} leaves)")
    for node in record.plan.nodes:
        made = f"by {node.by}" if node.by else "as asked" if node.facet == "original" else "added for a gap"
        yield plain(f"{node.id}  {node.query}").append(f"  {made}", "dim")
    yield from heading("Settings")
    yield from _settings(record)
    yield from heading(f"Documents ({len(record.documents)})")
    yield _documents(record)
    yield from heading(f"Results ({len(record.results)})")
    yield _results(record.results)
    yield Text()
    yield pair("Answer", f"{record.answer.kind}, {record.answer.coverage}")
    if record.degraded:
        reasons = tuple(sorted({code for codes in record.degraded.values() for code in codes}))
        yield pair("Degraded", degraded_parts(reasons, record.degraded))
    yield pair("Cost", cost_line(found.run.cost))
    yield pair("Times", times_line(found.run.timings_ms))
    yield pair("Releases", ", ".join(f"{name} {version}" for name, version in record.releases.items()))
    yield from warnings(record.warnings)


def _run(found: Manifest) -> str:
    run = found.run
    parts = [f"job {run.job_id}", f"tenant {run.tenant}"]
    if run.index_versions:
        parts.append(f"index version {'-'.join(map(str, run.index_versions))}")
    if run.replayed_from:
        parts.append(f"replayed from {run.replayed_from} of {run.replay_of[:12]}")
    return ", ".join(parts)


def _settings(record: Record) -> Iterator[RenderableType]:
    for name, value in record.settings.values.items():
        yield plain(f"{name} = {value}")
    if not record.settings.values:
        yield Text("all as the release has them", "dim")
    for name, model in record.models.items():
        yield plain(f"{name}: {model.provider} {model.model}".rstrip()).append(f"  {model.digest}", "dim")
    if record.prompts:
        yield Text(f"{len(record.prompts)} prompts", "dim")


def _documents(record: Record) -> Table:
    table = columns("document", "version", "", whole=("version",))
    for document in record.documents:
        table.add_row(plain(document.path), document.version, Text("cited" if document.cited else "", "green"))
    return table


def _results(results: tuple[RecordedResult, ...]) -> Table:
    table = columns("#", "score", "document", "made of", right=("#", "score"), whole=("#", "score"))
    for number, one in enumerate(results, 1):
        parts = sorted(one.parts.items(), key=lambda part: -abs(part[1]))[:_PARTS]
        made = ", ".join(f"{name} {value:g}" for name, value in parts)
        table.add_row(str(number), score(one.score), plain(one.title), plain(made, "dim"))
    return table
