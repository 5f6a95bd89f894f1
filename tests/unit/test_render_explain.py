"""What `--explain` shows of a hit that was reached from another one, and of a stage that has something to say."""

from __future__ import annotations

import io

from rich.console import Console

from orchestrator.cli.render.explain import draw_explained, draw_stages
from shared.models import Hit, Via
from shared.models.explain import Effect, StageTrace


def drawn(what: object) -> str:
    console = Console(width=120, file=io.StringIO())
    with console.capture() as capture:
        console.print(what)
    return capture.get()


def test_given_a_linked_hit_when_explained_then_its_way_is_shown() -> None:
    via = Via(chunk_id="a", bridge="tree.merge[red]", hop=2, how="called by")
    hit = Hit(
        chunk_id="b", doc_id="b", path="b.py", title="b", text="t", score=0.25, via=via,
        explain=(Effect(stage="edges", effect=0.25, detail={"hop": 2.0}),),
    )  # fmt: skip

    assert "called by tree.merge[red], hop 2" in drawn(draw_explained([hit]))
    assert "via" not in drawn(draw_explained([hit.model_copy(update={"via": None})]))


def test_given_a_stage_with_a_note_when_drawn_then_the_note_stands_beside_it() -> None:
    traces = [
        StageTrace(stage="edges", ms=1, hits=2, note="ambiguous names not followed: 3"),
        StageTrace(stage="truth", ms=1, hits=2, skipped="no page has compiled truth"),
    ]

    shown = drawn(draw_stages(traces))

    assert "ambiguous names not followed: 3" in shown
    assert "no page has compiled truth" in shown
