"""The tree that a question branches into."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from shared.models.base import Model
from shared.models.shard import Shard

ROOT_ID = "0"


class Facet(StrEnum):
    """The five search facets; `original` marks the leaf that searches the question as asked."""

    CORE = "core"
    WHY = "why"
    HOW = "how"
    CASE = "case"
    NOTE = "note"
    ORIGINAL = "original"

    @property
    def stored(self) -> str:
        """The storage facet of memories that answers it; empty where there is none."""
        return _STORED.get(self.value, "")


_STORED = {"core": "context", "why": "intent", "how": "action", "case": "result", "note": "insight"}


class NodeKind(StrEnum):
    """A leaf is searched and reranked; a branch is refined into children."""

    LEAF = "leaf"
    BRANCH = "branch"


class Node(Model):
    """One subquestion. Ids are paths: the root is "0", its second child "0.2", that one's first "0.2.1".

    `budget` is the number of leaves that the node may grow to, itself included if it stays one.
    `depends_on` names the nodes whose answers must be known first, `needed_by` those that wait for this one.
    Once they are known, `asked` keeps the query as it was planned (with its `#1`), `query` has the answer or the best
    name written in, `bound_by` says which: answer, names or nothing; `written` has them by the node that found them.
    `variants` are the queries of all names, the first is `query`; empty where there is only one. `kinds` narrows the
    search to kinds of documents. `strategy` is the one that the question's type asks for; the request's own
    goes before it.
    """

    id: str = Field(pattern=r"^0(\.\d{1,2})*$")
    parent_id: str | None = None
    level: int = Field(ge=0)
    facet: Facet
    query: str = Field(min_length=1)
    kind: NodeKind = NodeKind.LEAF
    budget: int = Field(default=1, ge=1)
    depends_on: tuple[str, ...] = ()
    needed_by: tuple[str, ...] = ()
    asked: str | None = None
    bound_by: str | None = None
    written: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    variants: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    strategy: str | None = None
    shard: Shard | None = Field(default=None, description="set: the leaf reads this slice of the corpus")


def node_order(node_id: str) -> tuple[int, ...]:
    """The sort key of a node id, in the tree's order: "0.2" before "0.10"."""
    return tuple(int(part) if part.isdigit() else -1 for part in node_id.split("."))


class SubQuery(Model):
    """One entry of a decomposition, by an LLM, by the rules or by the caller.

    `depends_on` holds 1-based positions in the decomposition, earlier ones only.
    """

    dimension: Facet
    query: str = Field(min_length=1)
    needs_refinement: bool = False
    depends_on: tuple[int, ...] = ()


class Decomposition(Model):
    """What a decomposer says of a question: its subqueries, by whom, and what went wrong on the way."""

    subqueries: tuple[SubQuery, ...] = ()
    by: str = Field(description="llm, rules or request")
    warnings: tuple[str, ...] = ()
