"""What a job found, made by hand, for the tests of the aggregators."""

from __future__ import annotations

from shared.errors import RamifyError
from shared.language.routing import route_by_rules
from shared.models import Facet, Hit, LeafResult, LeafStatus, MergedHit, MergedPool, Node, NodeKind, Source
from shared.providers.llm.client import Check, LLMReply, usable
from workers.merge.aggregators import Findings

#: Bound by names in `found`: 0.2 waited for 0.1.
NESTED = "Where was the founder of Northwind born?"


class Scripted:
    """Replies with `text`, or raises."""

    def __init__(self, text: str = "", error: RamifyError | None = None, calls: int = 1) -> None:
        self.text, self.error, self.prompts, self._calls = text, error, [], calls

    def complete(
        self, prompt: str, *, timeout_s: float, max_tokens: int | None = None, check: Check | None = None
    ) -> LLMReply:
        self.prompts.append(prompt)
        if self.error:
            raise self.error
        return usable(LLMReply(text=self.text, tokens_in=100, tokens_out=20, calls=self._calls), check)


def hit(number: int, text: str, *node_ids: str, title: str = "Notes", **fields: object) -> MergedHit:
    sources = tuple(
        Source(node_id=one, facet="original" if one == "0.0" else "core", rank=number, score=1 / number)
        for one in node_ids or ("0.0",)
    )
    return MergedHit(
        chunk_id=f"c{number}", doc_id=f"d{number}", path=f"n{number}.md", title=title, text=text, score=1 / number,
        sources=sources, **fields,
    )  # fmt: skip


def leaf(node_id: str, query: str, facet: Facet = Facet.CORE, **fields: object) -> Node:
    return Node(id=node_id, parent_id="0", level=1, facet=facet, query=query, **fields)


def found(question: str, nodes: list[Node], hits: list[MergedHit], *results: LeafResult, **fields: object) -> Findings:
    """Every leaf is done with its hits, but for those of `results`."""
    per_leaf: dict[str, list[str]] = {}
    for one in hits:
        for source in one.sources:
            per_leaf.setdefault(source.node_id, []).append(one.chunk_id)
    by_id = {one.chunk_id: Hit(**{k: v for k, v in dict(one).items() if k != "sources"}) for one in hits}
    own = [leaf("0.0", question, Facet.ORIGINAL), *nodes]
    known = {result.node_id: result for result in results}
    leaves = [
        known.get(node.id)
        or LeafResult(
            node_id=node.id, status=LeafStatus.DONE, hits=tuple(by_id[c] for c in per_leaf.get(node.id, ())),
            reranker="lexical:v1",
        )
        for node in own
    ]  # fmt: skip
    root = Node(id="0", level=0, facet=Facet.CORE, query=question, kind=NodeKind.BRANCH)
    return Findings(
        question=question,
        pool=MergedPool(
            hits=tuple(hits), per_leaf={k: tuple(v) for k, v in per_leaf.items()}, reranked_by="lexical:v1"
        ),
        nodes={node.id: node for node in (root, *own)},
        leaves=leaves,
        routed=route_by_rules(question),
        **fields,
    )


def nested(*results: LeafResult, **fields: object) -> Findings:
    """Two steps: who founded it, and where that one was born."""
    nodes = [
        leaf("0.1", "Who is the founder of Northwind?", needed_by=("0.2",)),
        leaf(
            "0.2", "Where was Ada Marsh born?", depends_on=("0.1",), asked="Where was #1 born?", bound_by="names",
            written={"0.1": ("Ada Marsh", "Leeds Works")},
            variants=("Where was Ada Marsh born?", "Where was Leeds Works born?"),
        ),
    ]  # fmt: skip
    hits = [
        hit(1, "The founder of Northwind is Ada Marsh. The office has blue chairs.", "0.0", "0.1", title="Northwind"),
        hit(2, "Ada Marsh was born in Whitby in 1961. She likes chess.", "0.2", title="Ada Marsh"),
        hit(3, "Northwind ships tea on Fridays.", "0.0", title="Shipping"),
    ]
    return found(NESTED, nodes, hits, *results, **fields)
