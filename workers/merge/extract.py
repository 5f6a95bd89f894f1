"""The summary without an LLM: the pool's own sentences, picked and cited. Pure; it never words a statement itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shared.models import Facet, MergedPool, Node, NodeKind, Summary
from shared.text import is_cjk_text
from workers.merge.display import one_line
from workers.merge.passages import Passage, citation
from workers.merge.picking import Picker

MOST_SENTENCES = 10
_DIRECT, _DIRECT_BROAD, _PER_GROUP = 3, 2, 2
#: Below this share of the question's terms, the best hit is no answer (Chinese terms are pairs of characters, and
#: half of those span two words) ...
_LEAST_COVERAGE = (0.34, 0.2)
#: ... unless a reranker that reads meaning, not words, gives it this score.
_TRUSTED_SCORE = 0.5
_READS_MEANING = ("endpoint:", "fastembed:")
_NOTHING = ("The corpus has nothing on this.", "语料中没有找到相关内容。")
_LABELS = {
    Facet.CORE: ("In short", "核心"),
    Facet.WHY: ("Why", "原因"),
    Facet.HOW: ("How", "方法"),
    Facet.CASE: ("Cases", "案例"),
    Facet.NOTE: ("Notes", "注意"),
}


def nothing_found(question: str) -> Summary:
    """The summary where nothing answers, in the question's language; it cites nothing."""
    return Summary(text=_NOTHING[is_cjk_text(question)], kind="extractive")


def extract(question: str, pool: MergedPool, nodes: Mapping[str, Node]) -> Summary:
    """At most 10 sentences of the pool that cover the question best, each followed by its citation.

    `[n]` is the n-th hit of the pool. A question of one leaf gets a direct answer of up to 3 sentences; one that
    branched gets 2, then a headed group per subquestion, headed in the question's language. Where no hit covers the
    question, the text says that the corpus has nothing on it, and nothing is cited.
    """
    chinese = is_cjk_text(question)
    groups = _groups(pool, nodes)
    picker = Picker(question, pool.hits, joined=len(groups) > 1)
    trusted = (pool.reranked_by or "").startswith(_READS_MEANING) and pool.hits[:1] != ()
    if not (trusted and pool.hits[0].score >= _TRUSTED_SCORE) and picker.best_coverage() < _LEAST_COVERAGE[chinese]:
        return nothing_found(question)
    text = "\n\n".join(_paragraphs(question, groups, picker, chinese=chinese))
    quotes: dict[int, str] = {}
    for passage in picker.picked:
        quotes.setdefault(passage.number, passage.quote)
    return Summary(
        text=text or _NOTHING[chinese],
        kind="extractive",
        citations=tuple(citation(number, pool.hits[number - 1], quotes[number]) for number in sorted(quotes)),
    )


def _paragraphs(question: str, groups: Sequence[Node], picker: Picker, *, chinese: bool) -> list[str]:
    direct = picker.pick(question, None, _DIRECT_BROAD if len(groups) > 1 else _DIRECT)
    found = [_written(direct)] if direct else []
    if len(groups) < 2:
        return found
    each = max(1, min(_PER_GROUP, (MOST_SENTENCES - _DIRECT_BROAD) // len(groups)))
    for node in groups:
        chosen = picker.pick(node.query, node.id, min(each, MOST_SENTENCES - len(picker.picked)))
        if chosen:
            found.append(f"### {_LABELS[node.facet][chinese]} · {one_line(node.query)}\n{_written(chosen)}")
    return found


def _groups(pool: MergedPool, nodes: Mapping[str, Node]) -> list[Node]:
    """The subquestions that found something, in the tree's order; the question's own leaf is the direct answer."""
    leaves = [
        node
        for node in nodes.values()
        if node.kind is NodeKind.LEAF and node.facet is not Facet.ORIGINAL and pool.per_leaf.get(node.id)
    ]
    return sorted(leaves, key=lambda node: [int(part) for part in node.id.split(".")])


def _written(chosen: Sequence[Passage]) -> str:
    return "\n".join(f"{passage.text} [{passage.number}]" for passage in chosen)
