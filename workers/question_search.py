"""The search for one question in one process, as the tasks of a job make it: leaves, binding, gaps, merge, root rerank.

It runs no job and keeps nothing. Who has the store asks it: an evaluation, and the look ahead at a standing question.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from shared.models import Cost, Hit, JobRequest, LeafResult, MergedPool, Node, NodeKind, SearchResult
from shared.models.plan import node_order
from shared.providers.http_deadline import until
from workers.leaf_outcome import leaf_result
from workers.merge.answer import merged
from workers.merge.gaps import SearchedTree, round_of
from workers.merge.tree import apply_root_rerank, leaf_share, only_original_leaf
from workers.rerank.binding import Parent, bind
from workers.search.leaf import LeafQuery, leaf_query, run_rerank_stages, run_search_stages
from workers.search.resources import SearchResources
from workers.search.stages.rescoring import spent
from workers.search.state import Tools

Search = Callable[[LeafQuery], SearchResult]


def leaf_search(resources: SearchResources, tools: Tools) -> Search:
    """The whole strategy of a leaf, each call within `tools.timeout_s`. It raises what the store raises."""

    def search(query: LeafQuery) -> SearchResult:
        with until(time.monotonic() + tools.timeout_s):
            first = run_search_stages(query, resources, None, tools.timeout_s)
            found = run_rerank_stages(query, first, tools)
        return found.model_copy(update={"cost": first.cost + found.cost})

    return search


class QuestionSearch:
    """What the leaves of a question have found so far, what that cost, and what went wrong.

    `shown`: results of the answer; None: as the request says. `tools` have the reranker and, where steps may be read
    by it, the LLM.
    """

    def __init__(self, search: Search, tools: Tools, request: JobRequest, shown: int | None = None) -> None:
        self._search, self._tools, self._settings = search, tools, tools.settings
        self._request = request if shown is None else request.model_copy(update={"top_n": shown})
        self._asked = request
        self.nodes: dict[str, Node] = {}
        self.leaves: dict[str, LeafResult] = {}
        self.cost, self.warnings = Cost(), list[str]()

    def plan(self, nodes: Iterable[Node]) -> None:
        """Search the leaves of a plan, each behind those that it waits for."""
        left = [node for node in nodes if node.kind is NodeKind.LEAF]
        while ready := [node for node in left if self.leaves.keys() >= set(node.depends_on)]:
            for node in ready:
                self.leaf(node)
            left = [node for node in left if node not in ready]

    def leaf(self, node: Node) -> None:
        """Search a leaf; those that it depends on have been searched before it."""
        if node.depends_on and node.bound_by is None:
            parents = [Parent(self.nodes[other], self.leaves[other]) for other in node.depends_on]
            bound = bind(node, parents, self._asked.tenant, self._tools)
            self.cost += bound.cost
            self.warnings += bound.warnings
            node = bound.node
        found = self._search(leaf_query(self._asked, node, self._settings))
        self.cost += found.cost
        self.warnings += found.warnings
        self.nodes[node.id] = node
        self.leaves[node.id] = leaf_result(self._request, node, found, self._settings)

    def pool(self, room: int) -> MergedPool:
        """The results in their final order, behind one more round of searches for gaps with at most `room` leaves."""
        pool = self._merged()
        tree = SearchedTree(self._asked.question, self.nodes, self.leaves, pool.hits, self._settings.gaps)
        if added := round_of(tree, room):
            for node in added:
                self.leaf(node)
            pool = self._merged()
        if only_original_leaf(pool) or self._tools.reranker is None:
            return pool
        hits = [Hit(**{name: getattr(hit, name) for name in Hit.model_fields}) for hit in pool.hits]
        ranked = self._tools.reranker.rerank(self._asked.question, hits, self._tools.timeout_s)
        self.cost += spent(ranked)
        return apply_root_rerank(pool, ranked.hits, ranked.reranker, leaf_share=leaf_share(self._asked))

    def ordered(self) -> list[LeafResult]:
        """The leaves in the order of their tree."""
        return [self.leaves[name] for name in sorted(self.leaves, key=node_order)]

    def _merged(self) -> MergedPool:
        nodes = {name: self.nodes[name] for name in sorted(self.nodes, key=node_order)}
        return merged(self._request, self._settings, nodes, self.leaves)
