"""The tree that a question branches into, and what holds for any plan of a caller's: its links, `#1` in its texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from pydantic import Field

from shared.models.base import Model
from shared.models.gaps import Gap

ROOT_ID = "0"
#: `Node.bound_by`: the LLM's answer read off the passages, names found in them, or neither.
BOUND_BY_ANSWER, BOUND_BY_NAMES, BOUND_BY_NOTHING = "answer", "names", "nothing"
#: A number sign that opens a word: C#1, &#39; and #1st are none.
_REFERENCE = re.compile(r"(?<![0-9A-Za-z_#&])#([1-9][0-9]?)(?![0-9A-Za-z_])")
_LEFT_OVER = re.compile(r"[ \t]+(?=[,.;:?!)，。；：？！）])|(?<=[ \t])[ \t]+")


class Facet(StrEnum):
    """The five search facets; `original` marks the leaf that searches the question as asked, `gap` one added later."""

    CORE = "core"
    WHY = "why"
    HOW = "how"
    CASE = "case"
    NOTE = "note"
    ORIGINAL = "original"
    GAP = "gap"

    @property
    def planned(self) -> bool:
        """True for the facet of a subquestion: not the question as asked, nor what was searched again."""
        return self not in {Facet.ORIGINAL, Facet.GAP}

    @property
    def stored(self) -> str:
        """The storage facet of memories that answers it; empty where there is none."""
        return _STORED.get(self.value, "")


_STORED = {"core": "context", "why": "intent", "how": "action", "case": "result", "note": "insight"}


class NodeKind(StrEnum):
    """A leaf is searched and reranked; a branch is refined into children."""

    LEAF = "leaf"
    BRANCH = "branch"


class Shard(Model):
    """The documents whose first chunk has an id from `start` on and before `stop` (both empty: no bound).

    `number` counts from 1 to `of`.
    """

    number: int = Field(ge=1)
    of: int = Field(ge=1)
    start: str = ""
    stop: str = ""


class Node(Model):
    """One subquestion. Ids are paths: the root is "0", its second child "0.2", that one's first "0.2.1".

    `budget` is the number of leaves that the node may grow to, itself included if it stays one.
    `depends_on` names the nodes whose answers must be known first, `needed_by` those that wait for this one.
    Once they are known, `asked` keeps the query as it was planned (with its `#1`), `query` has the answer or the best
    name written in, `bound_by` says which: answer, names or nothing; `written` has them by the node that found them.
    `variants` are the queries of all names, the first is `query`; empty where there is only one. `kinds` narrows the
    search to kinds of documents. `strategy` is the one that the question's type asks for; the request's own
    goes before it. `gap` is what a leaf was added for after all others had ended.
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
    by: str = Field(default="", description="llm, rules or request, as the decomposition that it is of")
    shard: Shard | None = Field(default=None, description="set: the leaf reads this slice of the corpus")
    gap: Gap | None = None

    @property
    def unbound(self) -> Node:
        """The node as it was planned, before what it waited for was written in."""
        if self.asked is None:
            return self
        planned: dict[str, object] = {
            "query": self.asked,
            "asked": None,
            "bound_by": None,
            "written": {},
            "variants": (),
        }
        return self.model_copy(update=planned)


def node_order(node_id: str) -> tuple[int, ...]:
    """The sort key of a node id, in the tree's order: "0.2" before "0.10"."""
    return tuple(int(part) if part.isdigit() else -1 for part in node_id.split("."))


def holding(nodes: Mapping[str, Node], done: Iterable[str]) -> set[str]:
    """Of these leaves those whose outcome holds, where the others run again: they waited for none of the others."""
    left = {name for name in done if name in nodes}
    while lost := {name for name in left if not left.issuperset(nodes[name].depends_on)}:
        left -= lost
    return left


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


class PlanFaultError(ValueError):
    """An entry that cannot stand as it is; its text is `sentence`."""

    def __init__(self, number: int, field: str, value: object, fix: str) -> None:
        self.number, self.field, self.value, self.fix = number, field, value, fix
        super().__init__(f"entry {number}, {field}: {value} cannot be used: {fix}")


@dataclass(frozen=True, slots=True)
class Links:
    """What one entry says of others: those that it waits for, and the one that it refines."""

    depends_on: tuple[int, ...] = ()
    under: int | None = None


def check_links(plan: Mapping[int, Links]) -> None:
    """Every entry, by its number, must lead to entries that are there, beside it, and not back to itself.

    Raises: PlanFaultError.
    """
    branches = {links.under for links in plan.values() if links.under is not None}
    for number, links in plan.items():
        if links.under is not None:
            _check_known(number, "under", links.under, plan)
        for other in links.depends_on:
            _check_known(number, "depends_on", other, plan)
            if plan[other].under != links.under:
                raise PlanFaultError(number, "depends_on", other, "it waits only for entries under the same one")
            if other in branches:
                fix = "that entry is refined and has no answer of its own: wait for one of those under it"
                raise PlanFaultError(number, "depends_on", other, fix)
        if number in branches and links.depends_on:
            fix = "entries under it refine it, so it cannot wait: let these wait, or leave them out"
            raise PlanFaultError(number, "depends_on", links.depends_on[0], fix)
    in_order(plan)


def in_order(plan: Mapping[int, Links]) -> list[int]:
    """The numbers, each behind those that it waits for and the one that it refines, else in the order given.

    Raises: PlanFaultError naming one entry of a circle.
    """
    left, done = list(plan), dict[int, None]()
    while left:
        ready = next((n for n in left if all(other in done for other in _before(plan[n]))), None)
        if ready is None:
            raise _circle(plan, left)
        left.remove(ready)
        done[ready] = None
    return list(done)


def _before(links: Links) -> tuple[int, ...]:
    return links.depends_on if links.under is None else (*links.depends_on, links.under)


def _circle(plan: Mapping[int, Links], left: list[int]) -> PlanFaultError:
    """Walk back from any entry that is left until one comes twice."""
    path = [left[0]]
    while (other := next(n for n in _before(plan[path[-1]]) if n in left)) not in path:
        path.append(other)
    circle = [*path[path.index(other) :], other]
    number = circle[0]
    field = "under" if plan[number].under == circle[1] else "depends_on"
    named = " -> ".join(map(str, circle))
    return PlanFaultError(number, field, circle[1], f"the entries wait in a circle ({named}): break it")


def _check_known(number: int, field: str, other: int, plan: Mapping[int, Links]) -> None:
    if other == number:
        raise PlanFaultError(number, field, other, "an entry cannot stand under itself or wait for itself")
    if other not in plan:
        known = ", ".join(map(str, plan))
        raise PlanFaultError(number, field, other, f"there is no entry of that number: use one of {known}")


def references(text: str) -> tuple[int, ...]:
    """The numbers referred to, each once, in order of their size."""
    return tuple(sorted({int(number) for number in _REFERENCE.findall(text)}))


def with_answers(text: str, values: Mapping[int, str]) -> str:
    """`text` with each `#n` that `values` knows replaced, in one pass: a `#2` inside a value stays text.

    An empty value takes its reference out, with the white space that would be left over.
    """

    def value(reference: re.Match[str]) -> str:
        return values.get(int(reference[1]), reference[0])

    return _LEFT_OVER.sub("", _REFERENCE.sub(value, text)).strip()


def renumbered(text: str, number: Callable[[int], int | None]) -> str:
    """`text` with every `#n` as `#number(n)`; where `number` gives None, it stays as it is."""

    def again(reference: re.Match[str]) -> str:
        new = number(int(reference[1]))
        return reference[0] if new is None else f"#{new}"

    return _REFERENCE.sub(again, text)
