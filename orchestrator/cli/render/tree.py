"""A job's tree, grown event by event or taken from an answer, and how it is drawn. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pydantic import ValidationError
from rich.text import Text
from rich.tree import Tree

from orchestrator.cli.text import counted, duration, plain
from shared.models import ROOT_ID, Answer, JobEvent, LeafStatus, Node, NodeKind

_UNREADABLE = "A node of the tree came in a form that this release does not know: it is not shown."
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


@dataclass(frozen=True)
class LeafView:
    """One leaf as it is drawn. Times are Unix milliseconds; `ended_ms` 0: still open. `hits` None: not known yet."""

    status: str = LeafStatus.PENDING.value
    hits: int | None = None
    error: str = ""
    since_ms: int = 0
    ended_ms: int = 0


@dataclass(frozen=True)
class Growth:
    """One job's tree at a moment. `nodes` and `leaves` are keyed by node id; the root "0" is the question itself."""

    question: str
    state: str = "queued"
    partial: bool = False
    error: str = ""
    nodes: Mapping[str, Node] = field(default_factory=dict)
    leaves: Mapping[str, LeafView] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    began_ms: int = 0
    ended_ms: int = 0

    @property
    def settled(self) -> int:
        """Leaves that have ended, well or not."""
        return sum(leaf.status in {LeafStatus.DONE, LeafStatus.FAILED} for leaf in self.leaves.values())

    def children(self, node_id: str = ROOT_ID) -> list[Node]:
        """The node's children in order of their ids."""
        found = [node for node in self.nodes.values() if node.id.rpartition(".")[0] == node_id]
        return sorted(found, key=lambda node: int(node.id.rpartition(".")[2]))


def apply(growth: Growth, event: JobEvent) -> Growth:
    """The tree after one event of the job's stream. Events of unknown types change nothing."""
    first = event.id.partition("-")[0]  # the clock of Redis
    at = int(first) if first.isdecimal() else 0
    growth = replace(growth, began_ms=growth.began_ms or at)
    match event.type:
        case "state":
            return _state(growth, event.data, at)
        case "node" | "bound":
            return _node(growth, event.data.get("node", ""), at, bound=event.type == "bound")
        case "leaf":
            return _leaf(growth, event.data, at)
        case "warning":
            return _warn(growth, event.data.get("text", ""))
        case _:
            return growth


def of_answer(answer: Answer) -> Growth:
    """The finished tree of an answer."""
    leaves = {
        leaf.node_id: LeafView(
            status=leaf.status.value,
            hits=len(leaf.hits),
            error=leaf.error or "",
            ended_ms=round(leaf.timings_ms.get("total", sum(leaf.timings_ms.values()))),
        )
        for leaf in answer.leaves
    }
    return Growth(
        question=answer.question,
        state=answer.state,
        partial=answer.partial,
        nodes={node.id: node for node in answer.tree},
        leaves=leaves,
        warnings=answer.warnings,
        ended_ms=round(answer.timings_ms.get("total", 0)),
    )


def replay(question: str, events: Iterable[JobEvent]) -> Growth:
    """The tree after all these events."""
    growth = Growth(question=question)
    for event in events:
        growth = apply(growth, event)
    return growth


def _state(growth: Growth, data: Mapping[str, str], at: int) -> Growth:
    state = data.get("state", growth.state)
    partial, ended = data.get("partial") == "1", at if state in STATE_STYLES else 0
    return replace(growth, state=state, partial=partial, error=data.get("error", ""), ended_ms=ended)


def _node(growth: Growth, raw: str, at: int, *, bound: bool) -> Growth:
    """A branch that was not refined comes again under its own id, as a leaf; a leaf that waited, with its query."""
    try:
        node = Node.model_validate_json(raw)
    except ValidationError:
        return _warn(growth, _UNREADABLE)
    leaves = dict(growth.leaves)
    if node.kind is NodeKind.LEAF:
        waits = node.depends_on and not bound
        leaves[node.id] = LeafView(status=LeafStatus.WAITING.value if waits else LeafStatus.PENDING.value, since_ms=at)
    return replace(growth, nodes={**growth.nodes, node.id: node}, leaves=leaves)


def _leaf(growth: Growth, data: Mapping[str, str], at: int) -> Growth:
    node_id, status = data.get("id", ""), data.get("status", "")
    before = growth.leaves.get(node_id, LeafView(since_ms=at))
    hits = int(data["hits"]) if data.get("hits", "").isdecimal() else before.hits
    ended = at if status in {LeafStatus.DONE, LeafStatus.FAILED} else 0
    now = replace(before, status=status, hits=hits, error=data.get("error", ""), ended_ms=ended)
    return replace(growth, leaves={**growth.leaves, node_id: now})


def _warn(growth: Growth, sentence: str) -> Growth:
    return growth if sentence in growth.warnings else replace(growth, warnings=(*growth.warnings, sentence))


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
