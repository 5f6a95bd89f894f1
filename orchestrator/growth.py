"""A job's tree, grown event by event or taken from an answer. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pydantic import ValidationError

from shared.models import ROOT_ID, Answer, JobEvent, LeafStatus, Node, NodeKind

_UNREADABLE = "A node of the tree came in a form that this release does not know: it is not shown."
_ENDED = frozenset({"done", "failed", "cancelled", "expired"})
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?([eE][+-]\d{1,2})?", re.ASCII)


@dataclass(frozen=True)
class LeafView:
    """One leaf as it is drawn. Times are Unix milliseconds; `ended_ms` 0: still open. `hits` None: not known yet.

    `score`: of its best hit, None where there is none, or it is not known.
    """

    status: str = LeafStatus.PENDING.value
    hits: int | None = None
    score: float | None = None
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
            score=leaf.hits[0].score if leaf.hits else None,
            error=leaf.error or "",
            ended_ms=round(sum(stage.ms for stage in leaf.stages)),
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
    partial, ended = data.get("partial") == "1", at if state in _ENDED else 0
    return replace(growth, state=state, partial=partial, error=data.get("error", ""), ended_ms=ended)


def _node(growth: Growth, raw: str, at: int, *, bound: bool) -> Growth:
    """A branch that was not refined comes again under its own id, as a leaf; a leaf that waited, with its query."""
    try:
        node = Node.of_record(raw)
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
    score = float(told) if _NUMBER.fullmatch(told := data.get("score", "")) else before.score
    now = replace(before, status=status, hits=hits, score=score, error=data.get("error", ""), ended_ms=ended)
    return replace(growth, leaves={**growth.leaves, node_id: now})


def _warn(growth: Growth, sentence: str) -> Growth:
    return growth if sentence in growth.warnings else replace(growth, warnings=(*growth.warnings, sentence))
