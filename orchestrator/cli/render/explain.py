"""Draws how each score came to be: one line a stage, its effect, and from what; the effects sum to the score."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.cli.render.text import plain
from shared.models import Hit
from shared.models.explain import Effect, StageTrace


def draw_explained(hits: Sequence[Hit]) -> RenderableType:
    """A small table per hit."""
    return Group(*(part for place, hit in enumerate(hits, 1) if hit.explain for part in _one(place, hit)))


def draw_stages(stages: Sequence[StageTrace]) -> RenderableType:
    """The stages in order: time, what was left, what one has to say; then the directories that one opened."""
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    for name in ("stage", "ms", "hits", "note"):
        table.add_column(name, justify="right" if name in {"ms", "hits"} else "left", overflow="fold")
    for trace in stages:
        table.add_row(plain(trace.stage), f"{trace.ms:.1f}", str(trace.hits), plain(trace.skipped or trace.note or ""))
    trails = [part for trace in stages if trace.trail or trace.stopped for part in _trail(trace)]
    return Group(table, *trails) if trails else table


def _trail(trace: StageTrace) -> tuple[Text, Table, Text]:
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    for name in ("round", "directory", "score", "own", "parent", "hits"):
        table.add_column(name, justify="left" if name == "directory" else "right", overflow="fold")
    for step in trace.trail:
        parent = "" if step.parent is None else f"{step.parent:.4f}"
        table.add_row(str(step.round), plain(step.path), f"{step.score:.4f}", f"{step.own:.4f}", parent, str(step.hits))
    return Text(f"\n{trace.stage}: directories in the order of opening"), table, plain(f"stopped: {trace.stopped}")


def _one(place: int, hit: Hit) -> tuple[Text, Table]:
    head = Text(f"{place}. ", "bold").append(plain(f"{hit.title} · {hit.path}")).append(f" = {hit.score:.4f}", "bold")
    table = Table(box=None, padding=(0, 1), pad_edge=False, show_header=False)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", style="dim")
    for effect in hit.explain:
        table.add_row(f"{effect.effect:+.4f}", plain(effect.stage), plain(_detail(effect)))
    if hit.via is not None:
        table.add_row("", "via", plain(f"{hit.via.how} {hit.via.bridge}, hop {hit.via.hop}"))
    return head, table


def _detail(effect: Effect) -> str:
    parts = []
    for name, value in effect.detail.items():
        shown = value if isinstance(value, str) else f"{value:g}" if value == int(value) else f"{value:.4f}"
        parts.append(f"{name} {shown}")
    return ", ".join(parts)
