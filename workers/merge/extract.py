"""The summary without an LLM: the pool's own sentences, picked and cited. Pure; it never words a statement itself."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from shared.language import answer_language, reader_sentence
from shared.language.answers import AnswerKind
from shared.language.names import bare
from shared.language.text import flat, is_cjk_text, terms
from shared.models import Citation, Facet, Hit, MergedHit, MergedPool, Node, NodeKind, Summary
from shared.models.plan import node_order
from shared.settings.sections import reranker_traits
from workers.display import plain_line
from workers.merge.callers import of_symbol
from workers.merge.citations import citation
from workers.merge.evidence import FARTHEST, AskedFor, Pages, SentenceScorer, asked_parts, own_part
from workers.merge.identifiers import identifiers, named_numbers, names, unnamed, without
from workers.merge.pieces import QuotableSentence, quotable_sentences, quote_width

MAX_SENTENCES = 10
_DIRECT, _DIRECT_BROAD, _PER_GROUP = 8, 1, 2
#: Characters of a direct answer; a CJK one counts as two.
_DIRECT_WIDTH = 380
_OVER = 1.15  # a sentence may exceed the width by so much, and is not begun where less than this is left:
_LEFT = 0.15
_FLOOR = 0.1  # of the best hit's score: what scores less is not quoted
_FLOOR_NAMED = 0.05  # where the question names a page: others may answer that only the named one leads to
_MIN_OF_BEST = 0.5  # of the best sentence's score; what is weaker is left out
_LIST_OF_BEST = 0.65  # of the best sentence's score: a list with an item that good is the way that is asked for
_MAX_STEPS = 8
_GROUP_SHARE = 0.3  # of a subquestion's terms in each sentence that is quoted for it
_PART_OF_BEST = 0.6  # of the best sentence of a part
_PART_WIDTH = 180  # characters for a part of the question
_OWN_PART = 0.8  # of a subquestion's terms in the question: it is a part of that in so many words
_SAME_PAGE = 1.0  # what each further sentence of a page loses, so that several pages are heard
_ALIKE = 0.6  # Jaccard overlap of terms from which two sentences say the same
_SECTION = 2.0  # for the section of a page that an identifier names, whose heading says what is asked
_LONGEST_TITLE = 60
#: The best hit is an answer, however few of the question's terms it has, from this score of a trusted reranker.
_TRUSTED_SCORE = 0.5
#: The lexical reranker's calibrated score of a hit that shares a word with the question by chance.
_UNRELATED = 0.05
_LABELLED = frozenset({Facet.CORE, Facet.WHY, Facet.HOW, Facet.CASE, Facet.NOTE})


def best_quote(hit: Hit, claim: str) -> str:
    """The sentence of `hit` that shares most terms with `claim`; its first one when none does, "" without any."""
    asked = frozenset(terms(claim))
    sentences = quotable_sentences([hit])
    best = max(sentences, key=lambda p: (len(p.words & asked) / len(p.words | asked), -p.position), default=None)
    return best.quote if best else ""


class Picker:
    """Picks sentences query by query, and never the same statement twice.

    Where a query has an identifier that pages are named by, only these are quoted, or else sentences that name it.
    """

    def __init__(self, question: str, hits: Sequence[MergedHit]) -> None:
        pages, best = Pages(question, hits), max((hit.score for hit in hits), default=0.0)
        floor = _FLOOR_NAMED if pages.named_count else _FLOOR
        least = min(best, floor * best)
        near = {
            number for number, hit in enumerate(hits[:FARTHEST], start=1) if hit.score >= least or pages.far[number - 1]
        }
        self._hits = hits
        need, bound = AskedFor(question), named_numbers(question, hits)
        near |= bound
        every = quotable_sentences(hits[: max(FARTHEST, *bound)] if bound else hits[:FARTHEST])
        self._passages = [one for one in every if one.number in near or need.defines(one.text)]
        self._scorer = SentenceScorer(question, pages, self._passages)
        self._titles = pages.titles
        self._asked, self._cjk = flat(question), is_cjk_text(question)
        self._words = [frozenset(terms(f"{hit.title}\n{hit.heading}\n{hit.text}")) for hit in hits]
        self._nodes = [frozenset(source.node_id for source in hit.sources) for hit in hits]
        self.picked: list[QuotableSentence] = []

    def coverage(self, query: str, node_id: str | None = None) -> float:
        """Share, 0..1, of the query's terms in the hit that has most of them; 1 without terms.

        Looks at the hits of leaf `node_id` (None: all). Not weighted by the pool's IDF: in a pool that is all about the
        question, its own words would count nothing. Identifiers that no hit names are left out; where
        one names pages, these alone count.
        """
        asked = frozenset(terms(without(query, unnamed(query, self._hits))))
        hits = list(zip(self._words, self._nodes, strict=True))
        bound = named_numbers(query, self._hits)
        hits = [hits[number - 1] for number in bound] or hits
        shares = (len(asked & words) / len(asked) for words, ids in hits if node_id is None or node_id in ids)
        return max(shares, default=0.0) if asked else 1.0

    def pick(
        self, query: str, node_id: str | None, limit: int, containing: str = "", width: int | None = None
    ) -> list[QuotableSentence]:
        """Up to `limit` sentences for `query`, best first, from the hits of leaf `node_id` (None: of any leaf).

        `width`: the characters of all, about. Where some sentences have the words `containing`, from these alone.
        """
        need = AskedFor(query)
        left = self._quotable(need, node_id, containing)
        return self._chosen(need, query, node_id, left, limit, width, _MIN_OF_BEST)

    def _chosen(  # noqa: PLR0913, PLR0917 - what a choice is made by
        self,
        need: AskedFor,
        query: str,
        node_id: str | None,
        left: Sequence[QuotableSentence],
        limit: int,
        width: int | None,
        of_best: float,
    ) -> list[QuotableSentence]:
        bound = named_numbers(query, self._hits)
        left = self._of_named(bound, query, list(left))
        scores = self._scorer.scores(query, self._ranks(node_id), left)
        scores = {one: score + _SECTION * self._headed(one, query) * bool(bound) for one, score in scores.items()}
        chosen = self._steps(scores) if need.steps and limit > 1 else []
        used, least = sum(quote_width(one.text) for one in chosen), -math.inf
        for one in self._in_turn(scores):
            if len(chosen) >= limit or scores[one] < least or (width and used > (1 - _LEFT) * width):
                break
            if any(_repeats(one, other) for other in self.picked):
                continue
            if width and chosen and used + quote_width(one.text) > _OVER * width:
                continue
            least = max(least, of_best * scores[one]) if scores[one] > 0 else least
            used += quote_width(one.text)
            self.picked.append(one)
            chosen.append(replace(one, text=f"{self._title(one)}{one.text}"))
        return chosen

    def _quotable(self, need: AskedFor, node_id: str | None, containing: str) -> list[QuotableSentence]:
        left = [one for one in self._passages if need.code or not one.code]
        if node_id is not None:
            left = [one for one in left if node_id in self._nodes[one.number - 1]]
            own = self._cjk
            if self._hits and is_cjk_text(self._hits[0].text) == own:
                left = [one for one in left if is_cjk_text(one.text) == own]
        return [one for one in left if containing and flat(containing) in flat(one.quote)] or left

    @staticmethod
    def _of_named(bound: AbstractSet[int], query: str, left: list[QuotableSentence]) -> list[QuotableSentence]:
        """Those of the pages that the query's identifiers name, or that name one; all where no page is named so."""
        if not bound:
            return left
        own = [one for one in left if one.number in bound]
        return own or [one for one in left if any(names(one.quote, wanted) for wanted in identifiers(query))]

    def _headed(self, one: QuotableSentence, query: str) -> float:
        """The share, 0..1, of the words of its section's heading that the query has."""
        hit = self._hits[one.number - 1]
        heading = frozenset(terms(hit.heading)) - frozenset(terms(hit.title))
        return len(heading.intersection(terms(query))) / len(heading) if heading else 0.0

    def group(self, query: str, node_id: str, limit: int) -> list[QuotableSentence]:
        """As `pick`, of a subquestion that rules made: what it found may be about something else."""
        return self._scorer.sharing(query, self.pick(query, node_id, limit), _GROUP_SHARE)

    def part(self, query: str, node_id: str | None, limit: int, others: Sequence[str] = ()) -> list[QuotableSentence]:
        """Up to `limit` sentences for a part of the question; empty where none holds the kind of answer it asks for.

        Sentences that say more of one of the `others` are left to it. One that was picked before is picked once more
        where no other has the answer.
        """
        need = AskedFor(query)
        every = self._quotable(need, node_id, "")
        fit = [one for one in every if need.answered_by(one.text, self._titles[one.number - 1])]
        if AnswerKind.DATE in need.kinds:  # "when" asks for a condition as well
            fit = fit or every
        own, rivals = self._scorer.own_share, [(other, AskedFor(other)) for other in others]
        left = []
        for one in fit:
            title, held = self._titles[one.number - 1], own(query, one)
            better = (own(other, one) > held and asked.answered_by(one.text, title) for other, asked in rivals)
            if not any(better) and (held > 0 or AnswerKind.PERSON not in need.kinds):
                left.append(one)
        if chosen := self._chosen(need, query, node_id, left, limit, _PART_WIDTH, _PART_OF_BEST):
            return chosen
        again = [one for one in self.picked if one in fit and need.checked]
        return again[:1]

    def _steps(self, scores: Mapping[QuotableSentence, float]) -> list[QuotableSentence]:
        """The ordered list that answers, whole and in order, each step with its number; empty where none does."""
        best = max(scores, key=lambda one: scores[one], default=None)
        lists: dict[tuple[int, int], list[QuotableSentence]] = {}
        for one in scores:
            if one.series:
                lists.setdefault((one.number, one.series), []).append(one)
        held = {key: max(scores[one] for one in items) for key, items in lists.items() if len(items) > 1}
        key = max(held, key=lambda key: (held[key], -key[0], -key[1]), default=None)
        if best is None or key is None or held[key] < _LIST_OF_BEST * scores[best]:
            return []
        items = sorted(lists[key], key=lambda one: one.position)[:_MAX_STEPS]
        self.picked += items
        return [replace(one, text=f"{number}. {one.text}") for number, one in enumerate(items, 1)]

    def _in_turn(self, scores: Mapping[QuotableSentence, float]) -> Iterator[QuotableSentence]:
        """Sentences, best first; each further one of a page that has been quoted loses `_SAME_PAGE`."""
        quoted: Counter[str] = Counter()
        pages = {one: self._hits[one.number - 1].doc_id for one in scores}
        waiting = sorted(scores, key=lambda one: (-scores[one], one.number, one.position))
        while waiting:
            best = max(waiting, key=lambda one: scores[one] - _SAME_PAGE * quoted[pages[one]])
            waiting.remove(best)
            yield best
            if self.picked and self.picked[-1] is best:
                quoted[pages[best]] += 1

    def _title(self, one: QuotableSentence) -> str:
        """The title of the page of a sentence such as "He was born", where the question does not name it."""
        if not answer_language(one.text).answers.pointing_back.match(one.text):
            return ""
        title = plain_line(bare(self._hits[one.number - 1].title))
        name = flat(title)
        if not name.strip() or len(title) > _LONGEST_TITLE or name in self._asked or name in flat(one.text):
            return ""
        return reader_sentence("of_page", one.text, title)

    def _ranks(self, node_id: str | None) -> list[float]:
        """How well each hit did, 0..1: among the leaf's own results, or in the pool."""
        if node_id is None:
            return [max(0.0, 1 - at / FARTHEST) for at in range(len(self._hits))]
        scores = [max((s.score for s in hit.sources if s.node_id == node_id), default=0.0) for hit in self._hits]
        best = max(scores, default=0.0)
        return [score / best if best > 0 else 0.0 for score in scores]


def _repeats(one: QuotableSentence, other: QuotableSentence) -> bool:
    """True for passages with nearly the same terms."""
    return len(one.words & other.words) >= _ALIKE * len(one.words | other.words)


@dataclass(frozen=True, slots=True)
class Extract:
    """Sentences of a pool: those that answer the question, and those of each subquestion by the id of its node.

    `parts`: those of each part of a question that asks several things but was searched as one; `rest` goes behind them.
    """

    direct: Sequence[QuotableSentence] = ()
    groups: Mapping[str, Sequence[QuotableSentence]] | None = None
    parts: Mapping[str, Sequence[QuotableSentence]] | None = None
    rest: Sequence[QuotableSentence] = ()

    @property
    def passages(self) -> list[QuotableSentence]:
        """All of them."""
        groups = (*(self.parts or {}).values(), *(self.groups or {}).values())
        return [*self.direct, *(passage for group in groups for passage in group), *self.rest]


def nothing_found(question: str) -> Summary:
    """The summary where nothing answers, in the question's language; it cites nothing."""
    return Summary(text=reader_sentence("nothing_found", question), kind="extractive")


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
    picker = Picker(question, pool.hits)
    if not is_covered(picker, question, pool):
        return Extract()
    if sum(is_own_part(question, node) for node in groups) > 1:
        return Extract(groups=_by_part(picker, question, groups))
    if len(groups) < 2 and (parts := asked_parts(question)):
        found = {part: picker.part(part, None, 1, [other for other in parts if other != part]) for part in parts}
        if any(found.values()):
            rest = picker.pick(question, None, _PER_GROUP, width=_PART_WIDTH)
            return Extract(parts=found, rest=rest)
    if len(groups) < 2:
        return Extract(picker.pick(question, None, min(limit, _DIRECT), width=_DIRECT_WIDTH))
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
        limit = max(1, min(_MAX_STEPS if AskedFor(node.query).steps else _PER_GROUP, left))
        others = [other.query for other in own if other is not node]
        if node in own:
            picked[node.id] = picker.part(node.query, node.id, limit, others)
        else:
            picked[node.id] = picker.group(node.query, node.id, min(1, left))
    return {node.id: picked[node.id] for node in groups}


def is_covered(picker: Picker, query: str, pool: MergedPool, node_id: str | None = None) -> bool:
    """True when some hit (of leaf `node_id`; None: of any) has enough of `query` to answer it."""
    if reranker_traits(pool.reranked_by).trusted:
        scores = (hit.score for hit in pool.hits if node_id is None or any(s.node_id == node_id for s in hit.sources))
        if max(scores, default=0.0) >= _TRUSTED_SCORE:
            return True
    elif pool.hits and pool.reranked_by and pool.reranked_by.startswith("lexical") and not _scores_enough(pool):
        return False
    return picker.coverage(query, node_id) >= answer_language(query).least_coverage


def _scores_enough(pool: MergedPool) -> bool:
    """False where the best hit of the lexical reranker is as far from the question as from any other."""
    best = max(hit.score for hit in pool.hits)
    return not 0 <= best < _UNRELATED


def summary_of(question: str, found: Extract, pool: MergedPool, nodes: Mapping[str, Node]) -> Summary:
    """An extract as text: the direct sentences, then a headed group per subquestion."""
    if not found.passages:
        return nothing_found(question)
    parts = [written(found.direct)] if found.direct else []
    for part, group in (found.parts or {}).items():
        parts.append(written(group) or reader_sentence("missing", question, plain_line(part)))
    parts += [written(found.rest)] if found.rest else []
    for node, group in ((nodes[node_id], group) for node_id, group in (found.groups or {}).items()):
        asked = plain_line(own_part(node.query)[1])
        if group:
            label = reader_sentence(node.facet.value, question) if node.facet in _LABELLED else ""
            parts.append(f"### {label} · {plain_line(node.query)}\n{written(group)}")
        elif is_own_part(question, node):
            parts.append(reader_sentence("missing", question, asked))
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
