"""The summary without an LLM: the pool's own sentences, picked and cited. Pure; it never words a statement itself."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import zip_longest

from shared.language import answer_language, reader_sentence
from shared.language.sentences import BlockKind, sentence_spans
from shared.language.text import flat, is_cjk_text, terms
from shared.models import Citation, Facet, Hit, MergedHit, MergedPool, Node, NodeKind, Summary
from shared.models.plan import node_order
from shared.settings.sections import reranker_traits
from workers.display import has_controls, plain_line, without_links

MAX_SENTENCES = 10
_DIRECT, _DIRECT_BROAD, _PER_GROUP = 3, 2, 2
_MAX_QUOTE, _CLIPPED_QUOTE = 400, 300  # characters; a CJK one counts as two
_BREAKS = " ,;，；、"
_MIN_TERMS = 2
#: Weights in a sentence's score: of new terms, of the terms of title and heading, of its hit's rank, of its place.
_NOVELTY, _LEAD, _RANK, _PLACE = 0.5, 0.3, 0.6, 0.1
_FULL_TERMS = 6  # a shorter sentence rarely stands by itself, and counts in proportion
_OPENING_HITS = 2  # the first sentence of the best hits may answer in other words
_MIN_SHARE = 0.15
_MIN_OF_BEST = 0.55  # of the group's best sentence; what is weaker is left out
_ALIKE = 0.6  # Jaccard overlap of terms from which two sentences say the same
_CONTEXT = 0.5  # weight of the whole question's terms beside a subquestion's own
#: The best hit is an answer, however few of the question's terms it has, from this score of a trusted reranker.
_TRUSTED_SCORE = 0.5
_LABELLED = frozenset({Facet.CORE, Facet.WHY, Facet.HOW, Facet.CASE, Facet.NOTE})


@dataclass(frozen=True, slots=True)
class QuotableSentence:
    """One sentence, or two that follow each other, of the pool's hit `number` (from 1), the `position`-th (from 0)."""

    number: int
    position: int
    quote: str
    text: str
    words: frozenset[str]


def quotable_sentences(hits: Iterable[Hit], *, joined: bool = True) -> list[QuotableSentence]:
    """All quotable pieces of `hits`: sentences that state something, and table rows.

    `joined`: a sentence brings the next one of its paragraph along. Headings, code fences and table heads are left
    out, as are questions, lead-ins that end in a colon, and what holds control characters. Long sentences
    are clipped at a pause.
    """
    found: list[QuotableSentence] = []
    for number, hit in enumerate(hits, start=1):
        for position, (quote, shown) in enumerate(_pieces(hit.text, joined=joined)):
            text = plain_line(shown)
            words = frozenset(terms(without_links(quote)))
            if len(words) >= _MIN_TERMS and not text.endswith(("?", "？", ":", "：")):
                found.append(QuotableSentence(number, position, quote, text, words))
    return found


def citation(number: int, hit: Hit, quote: str) -> Citation:
    """`[number]` stands for `hit`; `quote` is a verbatim slice of its text."""
    path, title = plain_line(hit.path), plain_line(hit.title)
    return Citation(number=number, chunk_id=hit.chunk_id, path=path, title=title, quote=quote)


def best_quote(hit: Hit, claim: str) -> str:
    """The sentence of `hit` that shares most terms with `claim`; its first one when none does, "" without any."""
    asked = frozenset(terms(claim))
    sentences = quotable_sentences([hit], joined=False)
    best = max(sentences, key=lambda p: (len(p.words & asked) / len(p.words | asked), -p.position), default=None)
    return best.quote if best else ""


def _pieces(text: str, *, joined: bool) -> Iterator[tuple[str, str]]:
    """(verbatim slice, as it is shown) of every sentence and table row, in order."""
    spans = [span for span in sentence_spans(text) if span.kind in {BlockKind.PROSE, BlockKind.TABLE}]
    for span, following in zip_longest(spans, spans[1:]):
        if span.kind is BlockKind.TABLE:
            yield from _rows(text[span.start : span.end])
            continue
        quote = text[span.start : span.end]
        if has_controls(quote):
            continue
        if joined and following and following.kind is span.kind and _same_paragraph(text[span.end : following.start]):
            both = text[span.start : following.end]
            if _width(both) <= _MAX_QUOTE and not has_controls(both):
                quote = both
        yield (_clip(quote),) * 2


def _rows(table: str) -> Iterator[tuple[str, str]]:
    """The rows of a table without its head; the cells are shown with a dash between."""
    for row in table.splitlines()[2:]:
        cells = [cell.strip() for cell in row.strip().strip("|").split("|")]
        if len(row) <= _MAX_QUOTE and not has_controls(row):
            yield row.strip(), " – ".join(cell for cell in cells if cell)


def _same_paragraph(between: str) -> bool:
    """True when nothing but white space without a blank line stands between two sentences."""
    return not between.strip() and between.count("\n") < 2


def _width(text: str) -> int:
    return len(text) * (2 if is_cjk_text(text) else 1)


def _clip(quote: str) -> str:
    """The first part of an overlong sentence, up to a pause: still a verbatim slice."""
    if _width(quote) <= _MAX_QUOTE:
        return quote
    part = quote[: _CLIPPED_QUOTE * len(quote) // _width(quote)]
    pause = max(part.rfind(mark) for mark in _BREAKS)
    return part[:pause] if pause > len(part) // 2 else part


class Picker:
    """Picks sentences query by query, and never the same statement twice."""

    def __init__(self, question: str, hits: Sequence[MergedHit], *, joined: bool) -> None:
        """`joined`: a sentence brings the next one along."""
        self._question = terms(question)
        self._hits, self._passages = hits, quotable_sentences(hits, joined=joined)
        self._leads = [frozenset(terms(f"{hit.title}\n{hit.heading}")) for hit in hits]
        self._words = [lead | frozenset(terms(hit.text)) for lead, hit in zip(self._leads, hits, strict=True)]
        self._nodes = [frozenset(source.node_id for source in hit.sources) for hit in hits]
        self.picked: list[QuotableSentence] = []

    def coverage(self, query: str, node_id: str | None = None) -> float:
        """Share, 0..1, of the query's terms in the hit that has most of them; 1 without terms.

        Looks at the hits of leaf `node_id` (None: all). Not weighted by the pool's IDF: in a pool that is all about the
        question, its own words would count nothing.
        """
        asked = frozenset(terms(query))
        hits = zip(self._words, self._nodes, strict=True)
        shares = (len(asked & words) / len(asked) for words, ids in hits if node_id is None or node_id in ids)
        return max(shares, default=0.0) if asked else 1.0

    def pick(self, query: str, node_id: str | None, limit: int, containing: str = "") -> list[QuotableSentence]:
        """Up to `limit` sentences for `query`, best first, from the hits of leaf `node_id` (None: of any leaf).

        Where some sentences have the words `containing`, from these alone.
        """
        weights = self._weights(terms(query))
        for term, weight in self._weights(self._question).items():
            weights.setdefault(term, _CONTEXT * weight)
        left = [p for p in self._passages if node_id is None or node_id in self._nodes[p.number - 1]]
        holders = [p for p in left if flat(containing) in flat(p.quote)] if containing else []
        left = holders or [p for p in left if _share(weights, p.words) >= _MIN_SHARE or _opens(p)]
        ranks = self._ranks(node_id)
        fixed = {p: self._fixed_score(p, weights, ranks[p.number - 1]) for p in left}
        chosen: list[QuotableSentence] = []
        covered: set[str] = set()
        least = 0.0
        while len(chosen) < limit:
            left = [p for p in left if not any(_repeats(p, other) for other in self.picked)]
            scores = {p: fixed[p] + _NOVELTY * _share(weights, p.words - covered) for p in left}
            best = max(left, key=lambda p: (scores[p], -p.number, -p.position), default=None)
            if best is None or scores[best] < least:
                break
            least = least or _MIN_OF_BEST * scores[best]
            chosen.append(best)
            covered |= best.words
            self.picked.append(best)
        return chosen

    def _weights(self, asked: Sequence[str]) -> dict[str, float]:
        """Root of the IDF over sentences: all chunks hold the topic. Terms that no sentence holds are left out."""
        counts = Counter(term for passage in self._passages for term in passage.words.intersection(asked))
        return {term: math.sqrt(math.log(1 + len(self._passages) / count)) for term, count in counts.items()}

    def _ranks(self, node_id: str | None) -> list[float]:
        """How well each hit did, 0..1: among the leaf's own results, or in the pool."""
        if node_id is None:
            return [1 - at / len(self._hits) for at in range(len(self._hits))]
        scores = [max((s.score for s in hit.sources if s.node_id == node_id), default=0.0) for hit in self._hits]
        best = max(scores, default=0.0)
        return [score / best if best > 0 else 0.0 for score in scores]

    def _fixed_score(self, passage: QuotableSentence, weights: Mapping[str, float], rank: float) -> float:
        """A passage's score whatever else is picked; `rank` is how well its hit did."""
        own = _share(weights, passage.words) * min(1.0, len(passage.words) / _FULL_TERMS)
        lead = _share(weights, self._leads[passage.number - 1])
        return own + _LEAD * lead + _RANK * rank + _PLACE / (1 + passage.position)


def _share(weights: Mapping[str, float], present: AbstractSet[str]) -> float:
    """The weighted share, 0..1, of the terms in `weights` that are `present`."""
    total = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in present) / total if total > 0 else 0.0


def _repeats(one: QuotableSentence, other: QuotableSentence) -> bool:
    """True for passages with nearly the same terms, and for neighbours, which may share a sentence."""
    alike = len(one.words & other.words) >= _ALIKE * len(one.words | other.words)
    return alike or (one.number == other.number and abs(one.position - other.position) <= 1)


def _opens(passage: QuotableSentence) -> bool:
    return passage.position == 0 and passage.number <= _OPENING_HITS and len(passage.words) >= _FULL_TERMS


@dataclass(frozen=True, slots=True)
class Extract:
    """Sentences of a pool: those that answer the question, and those of each subquestion by the id of its node."""

    direct: Sequence[QuotableSentence] = ()
    groups: Mapping[str, Sequence[QuotableSentence]] | None = None

    @property
    def passages(self) -> list[QuotableSentence]:
        """All of them."""
        return [*self.direct, *(passage for group in (self.groups or {}).values() for passage in group)]


def nothing_found(question: str) -> Summary:
    """The summary where nothing answers, in the question's language; it cites nothing."""
    return Summary(text=reader_sentence("nothing_found", question), kind="extractive")


def extract(question: str, pool: MergedPool, nodes: Mapping[str, Node], limit: int = MAX_SENTENCES) -> Summary:
    """At most `limit` sentences of the pool that cover the question best, each followed by its citation.

    `[n]` is the n-th hit of the pool. A question of one leaf gets a direct answer of up to 3 sentences; one that
    branched gets 2, then a headed group per subquestion, headed in the question's language. Where no hit covers the
    question, the text says that the corpus has nothing on it, and nothing is cited.
    """
    return summary_of(question, extracted(question, pool, nodes, limit), pool, nodes)


def extracted(question: str, pool: MergedPool, nodes: Mapping[str, Node], limit: int = MAX_SENTENCES) -> Extract:
    """The sentences of `extract`; empty where no hit covers the question."""
    groups = [node for node in subquestions(nodes) if pool.per_leaf.get(node.id)]
    picker = Picker(question, pool.hits, joined=len(groups) > 1)
    if not is_covered(picker, question, pool):
        return Extract()
    direct = picker.pick(question, None, min(limit, _DIRECT_BROAD if len(groups) > 1 else _DIRECT))
    if len(groups) < 2:
        return Extract(direct)
    each = max(1, min(_PER_GROUP, (limit - _DIRECT_BROAD) // len(groups)))
    chosen = {
        node.id: picker.pick(node.query, node.id, max(0, min(each, limit - len(picker.picked)))) for node in groups
    }
    return Extract(direct, chosen)


def is_covered(picker: Picker, query: str, pool: MergedPool, node_id: str | None = None) -> bool:
    """True when some hit (of leaf `node_id`; None: of any) has enough of `query` to answer it."""
    if reranker_traits(pool.reranked_by).trusted:
        scores = (hit.score for hit in pool.hits if node_id is None or any(s.node_id == node_id for s in hit.sources))
        if max(scores, default=0.0) >= _TRUSTED_SCORE:
            return True
    return picker.coverage(query, node_id) >= answer_language(query).least_coverage


def summary_of(question: str, found: Extract, pool: MergedPool, nodes: Mapping[str, Node]) -> Summary:
    """An extract as text: the direct sentences, then a headed group per subquestion."""
    parts = [written(found.direct)] if found.direct else []
    for node, group in ((nodes[node_id], group) for node_id, group in (found.groups or {}).items() if group):
        label = reader_sentence(node.facet.value, question) if node.facet in _LABELLED else ""
        parts.append(f"### {label} · {plain_line(node.query)}\n{written(group)}")
    if not parts:
        return nothing_found(question)
    return Summary(text="\n\n".join(parts), kind="extractive", citations=citations(found.passages, pool.hits))


def subquestions(nodes: Mapping[str, Node]) -> list[Node]:
    """The leaves in the tree's order, without the question's own."""
    leaves = [node for node in nodes.values() if node.kind is NodeKind.LEAF and node.facet is not Facet.ORIGINAL]
    return sorted(leaves, key=lambda node: node_order(node.id))


def written(chosen: Sequence[QuotableSentence]) -> str:
    """A sentence a line, each with its citation."""
    return "\n".join(f"{passage.text} [{passage.number}]" for passage in chosen)


def citations(chosen: Iterable[QuotableSentence], hits: Sequence[Hit]) -> tuple[Citation, ...]:
    """One citation a source, by number, with the first passage of it as its quote."""
    quotes: dict[int, str] = {}
    for passage in chosen:
        quotes.setdefault(passage.number, passage.quote)
    return tuple(citation(number, hits[number - 1], quotes[number]) for number in sorted(quotes))
