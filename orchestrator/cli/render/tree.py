"""Draws a job's tree. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text
from rich.tree import Tree

from orchestrator.cli.text import counted, duration, plain
from orchestrator.growth import Growth, LeafView
from shared.models import ROOT_ID, Node, NodeKind

_GLYPHS = {
    "waiting": ("◌", "dim"),
    "pending": ("○", "dim"),
    "searched": ("◐", "yellow"),
    "done": ("●", "green"),
    "failed": ("✗", "red"),
    "branch": ("◇", "cyan"),
}
#: Of the states in which a job has ended.
STATE_STYLES = {
    "done": "green", "degraded": "yellow", "partial": "yellow", "failed": "red", "cancelled": "yellow",
    "expired": "red",
}  # fmt: skip
_FACET_COLUMNS = 8


def state_text(state: str, *, partial: bool = False) -> Text:
    """The state in its colour; a partial answer says so."""
    shown = plain(state, STATE_STYLES.get(state, "cyan"))
    return shown.append(" (partial)", "yellow") if partial else shown


def draw(growth: Growth, now_ms: float | None = None, notes: Mapping[str, Text] | None = None) -> Tree:
    """The whole tree. `now_ms` (Unix) makes open leaves count up; `notes` puts a line under a node, by its id."""
    tree = Tree(headline(growth, now_ms), guide_style="dim")
    _add_children(tree, growth, ROOT_ID, now_ms, notes or {})
    return tree


def compact(growth: Growth, now_ms: float | None = None) -> Text:
    """Two lines for screens that are too small for the tree: the headline and one glyph a leaf."""
    shown = headline(growth, now_ms).append("\n  ")
    for leaf in growth.leaves.values():
        shown.append(*_GLYPHS.get(leaf.status, ("?", "red"))).append(" ")
    return shown


def headline(growth: Growth, now_ms: float | None = None) -> Text:
    """Question, state, leaves settled, elapsed."""
    shown = plain(growth.question, "bold").append("  ").append(state_text(growth.state, partial=growth.partial))
    if growth.leaves:
        shown.append(f" · {growth.settled} of {len(growth.leaves)} leaves", "dim")
    if took := _elapsed(growth.began_ms, growth.ended_ms, now_ms):
        shown.append(f" · {took}", "dim")
    if growth.error:
        shown.append(" · ").append(plain(growth.error, "red"))
    return shown


def _add_children(branch: Tree, growth: Growth, node_id: str, now_ms: float | None, notes: Mapping[str, Text]) -> None:
    for node in growth.children(node_id):
        added = branch.add(_label(node, growth.leaves.get(node.id), now_ms))
        if note := notes.get(node.id):
            added.add(note)
        _add_children(added, growth, node.id, now_ms, notes)


def _label(node: Node, leaf: LeafView | None, now_ms: float | None) -> Text:
    if leaf is None:
        status = "branch" if node.kind is NodeKind.BRANCH else "pending"
        leaf = LeafView(status=status)
    shown = Text()
    shown.append(*_GLYPHS.get(leaf.status, ("?", "red"))).append(f" {node.id} ", "dim")
    shown.append(f"{node.facet.value:<{_FACET_COLUMNS}} ", "cyan").append(plain(node.query))
    if len(node.variants) > 1:
        shown.append(f" (and {counted(len(node.variants) - 1, 'other name')})", "dim")
    if node.gap is not None:
        shown.append(" · searched again for ", "dim").append(plain(node.gap.what, "dim"))
    if leaf.status == "waiting":
        shown.append(f" · waits for {', '.join(node.depends_on)}", "dim")
    if leaf.hits is not None:
        shown.append(f" · {counted(leaf.hits, 'hit')}", "dim")
    if took := _elapsed(leaf.since_ms, leaf.ended_ms, now_ms):
        shown.append(f" · {took}", "dim")
    if leaf.error:
        shown.append(" · ").append(plain(leaf.error, "red"))
    return shown


def _elapsed(since_ms: int, ended_ms: int, now_ms: float | None) -> str:
    """Empty while nothing is known; an answer's leaves have a duration only (`since_ms` 0)."""
    if ended_ms:
        return duration(max(0, ended_ms - since_ms))
    return duration(max(0.0, now_ms - since_ms)) if now_ms is not None and since_ms else ""
