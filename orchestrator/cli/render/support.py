"""Draws what the sentences of an answer rest on, and which of them were changed or left out. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from orchestrator.cli.text import counted, pair, plain
from orchestrator.text_lines import one_line
from shared.models import Summary


def draw_support(summary: Summary) -> Iterator[Text]:
    """Of a text by an LLM the counts, then each sentence that was removed, with the check that objected and why."""
    if (found := summary.support) is None or summary.kind != "llm":
        return
    parts = [f"{found.supported} supported", f"{found.repaired} repaired", f"{len(found.removed)} removed"]
    parts += [f"{found.unsupported} marked"] if found.unsupported else []
    parts += [f"{found.unchecked} in another language than their sources"] if found.unchecked else []
    yield pair("Support", f"{counted(found.sentences, 'sentence')}: {', '.join(parts)}")
    for gone in found.removed:
        why = one_line(f"{gone.kind}: {gone.reason}")
        yield Text("  removed: ", "yellow").append(plain(one_line(gone.text), "dim strike")).append(f"  {why}", "dim")
