"""The summary without an LLM: the pool's own sentences, picked and cited. Pure; it never words a statement itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shared.language import answer_language, said
from shared.models import Citation, Facet, Hit, MergedPool, Node, NodeKind, Summary
from shared.models.plan import node_order
from workers.merge.display import plain_line
from workers.merge.passages import Passage, citation
from workers.merge.picking import Picker

MOST_SENTENCES = 10
_DIRECT, _DIRECT_BROAD, _PER_GROUP = 3, 2, 2
#: The best hit is an answer, however few of the question's terms it has, from this score of a reranker that reads
#: meaning, not words.
_TRUSTED_SCORE = 0.5
_READS_MEANING = ("endpoint:", "fastembed:")
_LABELLED = frozenset({Facet.CORE, Facet.WHY, Facet.HOW, Facet.CASE, Facet.NOTE})


@dataclass(frozen=True, slots=True)
class Extract:
    """Sentences of a pool: those that answer the question, and those of each subquestion by the id of its node."""

    direct: Sequence[Passage] = ()
    groups: Mapping[str, Sequence[Passage]] | None = None

    @property
    def passages(self) -> list[Passage]:
        """All of them."""
        return [*self.direct, *(passage for group in (self.groups or {}).values() for passage in group)]


def nothing_found(question: str) -> Summary:
    """The summary where nothing answers, in the question's language; it cites nothing."""
    return Summary(text=said("nothing_found", question), kind="extractive")


def extract(question: str, pool: MergedPool, nodes: Mapping[str, Node], most: int = MOST_SENTENCES) -> Summary:
    """At most `most` sentences of the pool that cover the question best, each followed by its citation.

    `[n]` is the n-th hit of the pool. A question of one leaf gets a direct answer of up to 3 sentences; one that
    branched gets 2, then a headed group per subquestion, headed in the question's language. Where no hit covers the
    question, the text says that the corpus has nothing on it, and nothing is cited.
    """
    return summary_of(question, extracted(question, pool, nodes, most), pool, nodes)


def extracted(question: str, pool: MergedPool, nodes: Mapping[str, Node], most: int = MOST_SENTENCES) -> Extract:
    """The sentences of `extract`; empty where no hit covers the question."""
    groups = grouped(pool, nodes)
    picker = Picker(question, pool.hits, joined=len(groups) > 1)
    if not is_covered(picker, question, pool):
        return Extract()
    direct = picker.pick(question, None, min(most, _DIRECT_BROAD if len(groups) > 1 else _DIRECT))
    if len(groups) < 2:
        return Extract(direct)
    each = max(1, min(_PER_GROUP, (most - _DIRECT_BROAD) // len(groups)))
    chosen = {
        node.id: picker.pick(node.query, node.id, max(0, min(each, most - len(picker.picked)))) for node in groups
    }
    return Extract(direct, chosen)


def is_covered(picker: Picker, query: str, pool: MergedPool, node_id: str | None = None) -> bool:
    """True when some hit (of leaf `node_id`; None: of any) has enough of `query` to answer it."""
    if (pool.reranked_by or "").startswith(_READS_MEANING):
        scores = (hit.score for hit in pool.hits if node_id is None or any(s.node_id == node_id for s in hit.sources))
        if max(scores, default=0.0) >= _TRUSTED_SCORE:
            return True
    return picker.coverage(query, node_id) >= answer_language(query).least_coverage


def summary_of(question: str, found: Extract, pool: MergedPool, nodes: Mapping[str, Node]) -> Summary:
    """An extract as it is read: the direct sentences, then a headed group per subquestion."""
    parts = [written(found.direct)] if found.direct else []
    parts += [
        f"### {label(nodes[node_id].facet, question)} · {plain_line(nodes[node_id].query)}\n{written(group)}"
        for node_id, group in (found.groups or {}).items()
        if group
    ]
    if not parts:
        return nothing_found(question)
    return Summary(text="\n\n".join(parts), kind="extractive", citations=citations(found.passages, pool.hits))


def grouped(pool: MergedPool, nodes: Mapping[str, Node]) -> list[Node]:
    """The subquestions that found something, in the tree's order; the question's own leaf is the direct answer."""
    return [node for node in subquestions(nodes) if pool.per_leaf.get(node.id)]


def subquestions(nodes: Mapping[str, Node]) -> list[Node]:
    """The leaves in the tree's order, without the question's own."""
    leaves = [node for node in nodes.values() if node.kind is NodeKind.LEAF and node.facet is not Facet.ORIGINAL]
    return sorted(leaves, key=lambda node: node_order(node.id))


def label(facet: Facet, question: str) -> str:
    """What a group is headed with, in the question's language."""
    return said(facet.value, question) if facet in _LABELLED else ""


def written(chosen: Sequence[Passage]) -> str:
    """A sentence a line, each with its citation."""
    return "\n".join(f"{passage.text} [{passage.number}]" for passage in chosen)


def citations(chosen: Iterable[Passage], hits: Sequence[Hit]) -> tuple[Citation, ...]:
    """One citation a source, by number, with the first passage of it as its quote."""
    quotes: dict[int, str] = {}
    for passage in chosen:
        quotes.setdefault(passage.number, passage.quote)
    return tuple(citation(number, hits[number - 1], quotes[number]) for number in sorted(quotes))
