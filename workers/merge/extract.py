"""The summary without an LLM: the pool's own sentences, picked and cited. Pure; it never words a statement itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shared.language import answer_language, reader_sentence
from shared.language.text import terms
from shared.models import Citation, Facet, Hit, MergedPool, Node, NodeKind, Summary
from shared.models.answer import MissingFact, MissingReason
from shared.models.plan import node_order
from shared.settings.sections import reranker_traits
from workers.display import plain_line
from workers.merge.asked_for import asked_for, asked_parts, own_part
from workers.merge.callers import of_symbol
from workers.merge.citations import citation
from workers.merge.picker import MAX_STEPS, PART_WIDTH, Picker
from workers.merge.pieces import QuotableSentence

MAX_SENTENCES = 10
_DIRECT, _DIRECT_BROAD, _PER_GROUP = 8, 1, 2
#: Characters of a direct answer; a CJK one counts as two.
_DIRECT_WIDTH = 380
_OWN_PART = 0.8  # of a subquestion's terms in the question: it is a part of that in so many words
#: The best hit is an answer, however few of the question's terms it has, from this score of a trusted reranker.
_TRUSTED_SCORE = 0.5
#: The lexical reranker's calibrated score of a hit that shares a word with the question by chance.
_UNRELATED = 0.05
_LABELLED = frozenset({Facet.CORE, Facet.WHY, Facet.HOW, Facet.CASE, Facet.NOTE})


@dataclass(frozen=True, slots=True)
class Extract:
    """Sentences of a pool: those that answer the question, and those of each subquestion by the id of its node.

    `parts`: those of each part of a question that asks several things but was searched as one; `rest` goes behind them.
    `unsaid`: `direct` is the nearest that was found, and does not say what is asked. `steps_left_out`: numbers of steps
    between those of `direct` that were not found.
    """

    direct: Sequence[QuotableSentence] = ()
    groups: Mapping[str, Sequence[QuotableSentence]] | None = None
    parts: Mapping[str, Sequence[QuotableSentence]] | None = None
    rest: Sequence[QuotableSentence] = ()
    unsaid: bool = False
    steps_left_out: Sequence[int] = ()

    @property
    def passages(self) -> list[QuotableSentence]:
        """All of them."""
        groups = (*(self.parts or {}).values(), *(self.groups or {}).values())
        return [*self.direct, *(passage for group in groups for passage in group), *self.rest]


def nothing_found(question: str, mark: float = 0.0, best: float = 0.0) -> Summary:
    """The summary where nothing answers, in the question's language; it cites nothing.

    `mark`: the `rerank.min_relevance` that no passage reaches, with the `best` score; 0: another reason.
    """
    missing = (MissingFact(asked=plain_line(question), reason=MissingReason.NOTHING_FOUND),)
    held = reader_sentence("nothing_reaches", question, f"{best:.2g}", f"{mark:g}") if mark else ""
    text = reader_sentence("nothing_found", question)
    return Summary(text=f"{text}\n{held}" if held else text, kind="extractive", missing=missing)


def extract(question: str, pool: MergedPool, nodes: Mapping[str, Node], limit: int = MAX_SENTENCES) -> Summary:
    """At most `limit` sentences of the pool that cover the question best, each followed by its citation.

    `[n]` is the n-th hit of the pool. A question of one leaf gets a direct answer of up to 3 sentences; one that
    branched gets 2, then a headed group per subquestion, headed in the question's language. Where no hit covers the
    question, the text says that the corpus has nothing on it, and nothing is cited. Where the search started
    from a named symbol, the text is its definition and callers.
    """
    symbol = of_symbol(question, pool.hits)
    return symbol or summary_of(question, extracted(question, pool, nodes, limit), pool, nodes)


def extracted(question: str, pool: MergedPool, nodes: Mapping[str, Node], limit: int = MAX_SENTENCES) -> Extract:
    """The sentences of `extract`; empty where no hit covers the question."""
    groups = [node for node in subquestions(nodes) if pool.per_leaf.get(node.id)]
    picker = Picker(question, pool.hits, by_words=not _read_by_meaning(pool))
    own = [node.query for node in groups if is_own_part(question, node)]
    if not any(is_covered(picker, query, pool) for query in (question, *own)):
        return Extract()
    if len(own) > 1:
        parts = Extract(groups=_by_part(picker, question, groups))
        return (
            parts if parts.passages else Extract(picker.pick(question, None, _PER_GROUP, width=PART_WIDTH), unsaid=True)
        )
    if len(groups) < 2 and (asked := asked_parts(question)):
        found = {part: picker.part(part, None, 1, [other for other in asked if other != part]) for part in asked}
        if any(found.values()):
            rest = picker.pick(question, None, _PER_GROUP, width=PART_WIDTH)
            return Extract(parts=found, rest=rest)
    if len(groups) < 2:
        direct, said = picker.answer(question, min(limit, _DIRECT), _DIRECT_WIDTH)
        return Extract(direct, unsaid=not said, steps_left_out=picker.steps_left_out)
    direct = picker.pick(question, None, min(limit, _DIRECT_BROAD))
    each = max(1, min(_PER_GROUP, (limit - _DIRECT_BROAD) // len(groups)))
    chosen = {
        node.id: picker.group(node.query, node.id, max(0, min(each, limit - len(picker.picked)))) for node in groups
    }
    return Extract(direct, chosen)


def is_own_part(question: str, node: Node) -> bool:
    """True where a subquestion is a part of what was asked in so many words."""
    asked = frozenset(terms(own_part(node.query)[1]))
    return bool(asked) and len(asked & frozenset(terms(question))) >= _OWN_PART * len(asked)


def _by_part(picker: Picker, question: str, groups: Sequence[Node]) -> dict[str, Sequence[QuotableSentence]]:
    """The sentences of each subquestion; the parts of the question choose before those that rules added."""
    own = [node for node in groups if is_own_part(question, node)]
    ordered = [*own, *(node for node in groups if node not in own)]
    picked: dict[str, Sequence[QuotableSentence]] = {}
    for node in ordered:
        left = max(0, MAX_SENTENCES - len(picker.picked))
        limit = max(1, min(MAX_STEPS if asked_for(node.query).steps else _PER_GROUP, left))
        others = [other.query for other in own if other is not node]
        if node in own:
            picked[node.id] = picker.part(node.query, node.id, limit, others)
        else:
            picked[node.id] = picker.group(node.query, node.id, min(1, left))
    return {node.id: picked[node.id] for node in groups}


def is_covered(picker: Picker, query: str, pool: MergedPool, node_id: str | None = None) -> bool:
    """True when some hit (of leaf `node_id`; None: of any) has enough of `query` to answer it."""
    if _read_by_meaning(pool, node_id):
        return True
    trusted = reranker_traits(pool.reranked_by).trusted
    if (
        not trusted
        and pool.hits
        and pool.reranked_by
        and pool.reranked_by.startswith("lexical")
        and not _scores_enough(pool)
    ):
        return False
    return picker.coverage(query, node_id) >= answer_language(query).least_coverage


def _read_by_meaning(pool: MergedPool, node_id: str | None = None) -> bool:
    """True where a reranker that reads meaning is sure of a hit (of leaf `node_id`; None: of any)."""
    scores = (hit.score for hit in pool.hits if node_id is None or any(s.node_id == node_id for s in hit.sources))
    return reranker_traits(pool.reranked_by).trusted and max(scores, default=0.0) >= _TRUSTED_SCORE


def _scores_enough(pool: MergedPool) -> bool:
    """False where the best hit of the lexical reranker is as far from the question as from any other."""
    best = max(hit.score for hit in pool.hits)
    return not 0 <= best < _UNRELATED


def summary_of(question: str, found: Extract, pool: MergedPool, nodes: Mapping[str, Node]) -> Summary:
    """An extract as text: the direct sentences, then a headed group per subquestion."""
    if not found.passages:
        return nothing_found(question)
    parts, missing = [written(found.direct)] if found.direct else [], list[str]()
    if found.unsaid:
        parts = [_missing_line(question, question), f"{reader_sentence('nearest', question)}\n{parts[0]}"]
        missing.append(question)
    for number in found.steps_left_out:
        missing.append(reader_sentence("step", question, str(number)))
        parts.append(_missing_line(question, missing[-1]))
    for part, group in (found.parts or {}).items():
        parts.append(written(group) or _missing_line(question, part))
        missing += [] if group else [part]
    parts += [written(found.rest)] if found.rest else []
    for node, group in ((nodes[node_id], group) for node_id, group in (found.groups or {}).items()):
        if group:
            label = reader_sentence(node.facet.value, question) if node.facet in _LABELLED else ""
            parts.append(f"### {label} · {plain_line(node.query)}\n{written(group)}")
        elif is_own_part(question, node):
            parts.append(_missing_line(question, own_part(node.query)[1]))
            missing.append(own_part(node.query)[1])
    return Summary(
        text="\n\n".join(parts), kind="extractive", citations=citations(found.passages, pool.hits),
        missing=tuple(MissingFact(asked=plain_line(one), reason=MissingReason.UNSAID) for one in missing),
    )  # fmt: skip


def _missing_line(question: str, asked: str) -> str:
    return reader_sentence("missing", question, plain_line(asked))


def subquestions(nodes: Mapping[str, Node]) -> list[Node]:
    """The planned leaves in the tree's order."""
    leaves = [node for node in nodes.values() if node.kind is NodeKind.LEAF and node.facet.planned]
    return sorted(leaves, key=lambda node: node_order(node.id))


def written(chosen: Sequence[QuotableSentence]) -> str:
    """A sentence a line, each with its citation; that of a block of code stands in the line below it."""
    gaps = ("\n" if passage.text.endswith("```") else " " for passage in chosen)
    return "\n".join(f"{passage.text}{gap}[{passage.number}]" for passage, gap in zip(chosen, gaps, strict=True))


def citations(chosen: Iterable[QuotableSentence], hits: Sequence[Hit]) -> tuple[Citation, ...]:
    """One citation a source, by number, with the first passage of it as its quote."""
    quotes: dict[int, str] = {}
    for passage in chosen:
        quotes.setdefault(passage.number, passage.quote)
    return tuple(citation(number, hits[number - 1], quotes[number]) for number in sorted(quotes))
