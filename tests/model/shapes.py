"""What simulated jobs branch into, and the work that their steps do: none, but it may kill who does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from orchestrator.planning.tree import Grown
from shared.jobs import Job
from shared.models import Cost, Facet, Hit, Node, NodeKind, SearchResult
from shared.models.answer import Summary
from shared.models.plan import Shard
from shared.models.route import Intent, PlannerName, QueryType, Route
from workers.merge.aggregators import Aggregated


@dataclass(frozen=True)
class Shape:
    """`leaves` beside the question's own; `branches` that grow `children` each; `chain` leaves that wait in a row.

    `shards` of a list, whose `columns` the LLM reads.
    """

    leaves: int = 2
    branches: int = 0
    children: int = 2
    chain: int = 0
    searched: bool = True
    shards: int = 0
    columns: bool = False

    def first(self) -> tuple[Node, ...]:
        if not self.searched:
            return ()
        own = _node("0.0").model_copy(update={"facet": Facet.ORIGINAL})
        plain = [own, *(_node(f"0.{number}") for number in range(1, self.leaves + 1))]
        after = len(plain)
        grows = [_branch(f"0.{after + number}", self.children + 1) for number in range(self.branches)]
        waiting = _chain(after + self.branches, self.chain)
        read = [_shard(after + self.branches + len(waiting) + number) for number in range(self.shards)]
        return (*plain, *grows, *waiting, *read)

    def grown(self, branch: Node) -> tuple[Node, ...]:
        """A branch's children; those of the first level branch once more; one that has none comes back as a leaf."""
        if self.children < 2:
            return (branch.model_copy(update={"kind": NodeKind.LEAF, "budget": 1}),)
        make = _branch if branch.level == 1 and self.branches > 1 else _leaf
        first, *others = [_leaf(f"{branch.id}.{number}", 1) for number in range(1, self.children + 1)]
        return (make(first.id, 2), *others)


def _chain(start: int, length: int) -> tuple[Node, ...]:
    """Each waits for the one before it, and the first for the question's own leaf's neighbour, if there are any."""
    ids = [f"0.{start + number}" for number in range(length + 1)] if length else []
    found = []
    for place, node_id in enumerate(ids):
        before = (ids[place - 1],) if place else ()
        after = (ids[place + 1],) if place + 1 < len(ids) else ()
        query = f"who is #{ids[place - 1].rpartition('.')[2]}?" if place else "who?"
        node = _node(node_id).model_copy(update={"depends_on": before, "needed_by": after, "query": query})
        found.append(node)
    return tuple(found)


def _node(node_id: str) -> Node:
    return Node(id=node_id, parent_id="0", level=1, facet=Facet.CORE, query=f"what is {node_id}?")


def _shard(number: int) -> Node:
    return _node(f"0.{number}").model_copy(update={"shard": Shard(number=1, of=1)})


def _leaf(node_id: str, budget: int) -> Node:
    parent, level = node_id.rpartition(".")[0], node_id.count(".")
    return Node(id=node_id, parent_id=parent, level=level, facet=Facet.HOW, query=f"how {node_id}?", budget=budget)


def _branch(node_id: str, budget: int) -> Node:
    return _leaf(node_id, budget).model_copy(update={"kind": NodeKind.BRANCH})


class Labour:
    """What stands in the place of planning, searching, reranking and writing.

    `at` says which job and item the caller is at; `work(job id, item)` may not return.
    """

    def __init__(
        self, shape_of: Callable[[str], Shape], at: Callable[[], tuple[str, str]], work: Callable[[str, str], None]
    ) -> None:
        self._shape_of, self._at, self._work = shape_of, at, work

    # -- the planner's face ------------------------------------------------------------------------------------

    def by(self, *_: object) -> Labour:
        return self

    def route(self, job: Job) -> tuple[Route, Cost]:
        self._work(job.id, "plan.job")
        planner = PlannerName.DECOMPOSE if self._shape_of(job.id).searched else PlannerName.NONE
        kind = QueryType.SIMPLE_RULE if planner is PlannerName.DECOMPOSE else QueryType.NONE
        return Route(
            type=kind, intent=Intent.GENERAL, confidence=1.0, row="simple_rule",
            planner=planner, strategy="hybrid", aggregator="simple",
        ), Cost()  # fmt: skip

    def first(self, job: Job, route: Route) -> tuple[Grown, Cost]:
        return Grown(nodes=self._shape_of(job.id).first()), Cost()

    def refine(self, job: Job, branch: Node) -> tuple[Grown, Cost]:
        self._work(job.id, branch.id)
        return Grown(nodes=self._shape_of(job.id).grown(branch)), Cost()

    # -- the other pools' --------------------------------------------------------------------------------------

    def run_search_stages(self, ask: Any, *_: object) -> SearchResult:
        self._work(*self._at())
        hit = Hit(chunk_id=ask.text, doc_id=ask.text, path="a.md", title="Ada", text="Ada met Bo.", score=1.0)
        return SearchResult(hits=(hit,), mode="hybrid", candidates=1)

    def run_rerank_stages(self, ask: Any, found: SearchResult, tools: Any) -> SearchResult:
        self._work(*self._at())
        return found

    def read_shard(self, run: Any, *_: object) -> tuple[SearchResult, bool]:
        self._work(*self._at())
        return SearchResult(mode="enumeration"), self._shape_of(run.job.id).columns

    def fill_columns(self, *_: object) -> tuple[str, ...]:
        self._work(*self._at())
        return ()

    def run_aggregator(self, run: Any, pool: Any, leaves: Any, nodes: Any, **_: object) -> tuple[str, Aggregated]:
        self._work(run.job.id, "merge.summarise")
        return "simple", Aggregated(summary=Summary(text="so it is"))

    def merge_tree(self, real: Callable[..., Any], *args: Any) -> Any:
        self._work(self._at()[0], "merge.tree")
        return real(*args)

    def rerank_pool(self, real: Callable[..., Any], *args: Any) -> Any:
        self._work(self._at()[0], "rerank.root")
        return real(*args)
