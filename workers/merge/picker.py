"""Picks the sentences of one pool that answer a query, and never the same statement twice. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import accumulate

from shared.language import answer_language, reader_sentence
from shared.language.answers import AnswerKind
from shared.language.names import bare
from shared.language.subjects import subject_or_all
from shared.language.text import flat, is_cjk_text, term_set, terms
from shared.models import MergedHit
from workers.display import plain_line
from workers.merge.asked_for import AskedFor, asked_for, own_part
from workers.merge.attributes import AskedAttribute
from workers.merge.dated import Days, iso
from workers.merge.evidence import FARTHEST, Pages, SentenceScorer, points_back
from workers.merge.identifiers import identifiers, named_numbers, names, unnamed, without
from workers.merge.numbered_sections import steps_of_page
from workers.merge.pieces import QuotableSentence, code_blocks, quotable_sentences, quote_width

MAX_STEPS = 8
_OVER = 1.15  # a sentence may exceed the width by so much, and is not begun where less than this is left:
_LEFT = 0.15
_FLOOR = 0.1  # of the best hit's score: what scores less is not quoted
_FLOOR_NAMED = 0.05  # where the question names a page: others may answer that only the named one leads to
_MIN_OF_BEST = 0.5  # of the best sentence's score; what is weaker is left out
_LIST_OF_BEST = 0.65  # of the best sentence's score: a list with an item that good is the way that is asked for
_LIST_ELSEWHERE = 0.85  # the same, of a list in another passage, below a heading without a word of the question
_GROUP_SHARE = 0.3  # of a subquestion's terms in each sentence that is quoted for it
_PART_OF_BEST = 0.6  # of the best sentence of a part
PART_WIDTH = 180  # characters for a part of the question
_SAME_PAGE = 1.0  # what each further sentence of a page loses, so that several pages are heard
_ALIKE = 0.6  # Jaccard overlap of terms from which two sentences say the same
_LONGEST_TITLE = 60
_BESIDE_CODE, _BESIDE_WIDTH = 2, 180
#: A line of a page's head, such as its date or its status.
_FIELD = re.compile(r"[^:：]{1,24}[:：]\s*\S")
#: Sentences that are quoted though none says what is asked; where any kind of answer would do, one may in other words.
_NEAREST, _NEAREST_OF_ANY = 4, 5


class Picker:
    """Picks sentences query by query, and never the same statement twice.

    Where a query has an identifier that pages are named by, only these are quoted, or else sentences that name it.
    `by_words`: a sentence that has no word of what is asked says nothing of it.
    """

    def __init__(self, question: str, hits: Sequence[MergedHit], *, by_words: bool = True) -> None:
        pages, best = Pages(question, hits), max((hit.score for hit in hits), default=0.0)
        floor = _FLOOR_NAMED if pages.named_count else _FLOOR
        least = min(best, floor * best)
        near = {
            number for number, hit in enumerate(hits[:FARTHEST], start=1) if hit.score >= least or pages.far[number - 1]
        }
        self._hits, self._question, self._pages = hits, question, pages
        need, bound = asked_for(question), named_numbers(question, hits)
        near |= bound
        if need.state_of:  # what changed it stands in another section of a page, perhaps
            docs = {hits[number - 1].doc_id for number in near}
            near |= {number for number, hit in enumerate(hits[:FARTHEST], start=1) if hit.doc_id in docs}
        self._days = Days(hits)
        near |= self._days.successors(near)
        every = quotable_sentences(hits[: max(FARTHEST, *bound)] if bound else hits[:FARTHEST])
        self._passages = [one for one in every if one.number in near or need.defines(one.text)]
        self._far = [one for one in every if one.number not in near]
        self._scorer = SentenceScorer(question, pages, self._passages)
        self._titles, self._by_words = pages.titles, by_words
        self._asked, self._cjk = flat(question), is_cjk_text(question)
        self._nodes = [frozenset(source.node_id for source in hit.sources) for hit in hits]
        self.picked: list[QuotableSentence] = []
        #: Of the steps that were picked: the numbers of those between them that were not found.
        self.steps_left_out: list[int] = []

    def coverage(self, query: str, node_id: str | None = None) -> float:
        """Share, 0..1, of the query's terms in the hit that has most of them; 1 without terms.

        Looks at the hits of leaf `node_id` (None: all). Not weighted by the pool's IDF: in a pool that is all about the
        question, its own words would count nothing. Identifiers that no hit names are left out; where
        one names pages, these alone count.
        """
        asked = frozenset(terms(without(subject_or_all(query), unnamed(query, self._hits))))
        hits = list(zip(self._pages.words, self._nodes, strict=True))
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
        need = asked_for(query)
        left = self._quotable(need, query, node_id, containing)
        return self._chosen(need, query, node_id, left, limit, width, _MIN_OF_BEST)

    def answer(self, query: str, limit: int, width: int) -> tuple[list[QuotableSentence], bool]:
        """As `pick`, of all leaves, and whether these sentences say what is asked; only a few that do not.

        Where they do, those that have no word of it are left out.
        """
        need = asked_for(query)
        if need.example and (code := self._example(query)):
            return [code, *self.pick(query, None, _BESIDE_CODE, width=_BESIDE_WIDTH)], True
        if need.steps:
            steps, self.steps_left_out = steps_of_page(term_set(query), self._hits)
            if steps:
                self.picked += steps
                return steps, True
        if latest := self._latest_page(need.latest_of):
            return [latest], True
        chosen, asked = self.pick(query, None, limit, width=width), self._asked_attribute(query)
        if not asked.answered_by(chosen) and not self._versions(query, chosen):
            left = self._of_named(named_numbers(query, self._hits), query, self._quotable(need, query, None, ""))
            said = [one for one in left if asked.says(one)] or [
                one for one in self._keyed(query, self._far) if asked.surely_says(one)
            ]
            if not said:
                self.picked = []
                nearest = _NEAREST if need.checked else _NEAREST_OF_ANY
                return self._days.newest_first(query, self.pick(query, None, nearest, width=width), None), False
            scores = self._scorer.scores(query, self._ranks(None), said)
            chosen = [max(scores, key=lambda one: scores[one]), *chosen]
        versions = self._versions(query, chosen)
        kept = versions or [one for one in chosen if one.series or asked.touches(one)]
        if need.checked and not asked.unsure and not versions:
            kept.sort(key=lambda one: not asked.says(one))
        kept = self._with_cause(query, asked, kept)
        if kept and kept[0].code and (block := self._block_of(kept[0])):
            kept = [block, *(one for one in kept if one.quote not in block.quote)]
        latest = self._latest(query, asked)
        beside = [one for one in self._beside(latest, query, asked) if one not in kept] if latest else []
        return self._days.newest_first(query, [*kept, *beside], latest), True

    def _latest_page(self, wanted: Collection[str]) -> QuotableSentence | None:
        """How the latest of the pages begins whose titles hold all of `wanted`, behind its title and day."""
        pages = [at for at, terms_of in enumerate(self._pages.title_terms) if wanted and terms_of >= frozenset(wanted)]
        dated = {one: day for one in self._passages if one.number - 1 in pages and (day := self._days.of_page(one))}
        latest = max(
            dated, key=lambda one: (dated[one], -self._hits[one.number - 1].ordinal, -one.position), default=None
        )
        if latest is None:
            return None
        self.picked.append(latest)
        title = f"{plain_line(bare(self._hits[latest.number - 1].title))} ({iso(dated[latest])})"
        return replace(latest, text=f"{reader_sentence('of_page', latest.text, title)}{latest.text}")

    def _with_cause(
        self, query: str, asked: AskedAttribute, kept: Sequence[QuotableSentence]
    ) -> list[QuotableSentence]:
        """Where a cause is asked for and none is quoted: with the sentence behind one that is quoted that gives it.

        Below a heading that asks why, the one behind the best gives it in any words.
        """
        need = asked_for(query)
        if not kept or need.kinds != (AnswerKind.CAUSE,) or any(need.explained_by(one.text) for one in kept):
            return [*kept]
        places = {(one.number, one.position + 1) for one in kept}
        after = [one for one in self._passages if (one.number, one.position) in places]
        back = (one for one in after if points_back(one.text) and need.explained_by(one.text) and asked.says(one))
        if (cause := next(back, None)) is not None:
            return [cause, *(one for one in kept if one != cause)]
        best = kept[0]
        if AnswerKind.CAUSE not in asked_for(self._pages.headings[best.number - 1]).kinds:
            return [*kept]
        nearest = [one for one in after if (one.number, one.position) == (best.number, best.position + 1)]
        return [best, *nearest, *(one for one in kept[1:] if one not in nearest)]

    def _beside(self, latest: QuotableSentence, query: str, asked: AskedAttribute) -> list[QuotableSentence]:
        """What is quoted with the latest statement, where "yes or no" is asked: how its section begins.

        Where it begins with that, but does not name the thing itself, the next one.
        """
        if AnswerKind.YES_NO not in asked_for(query).kinds:
            return []
        own = [
            one
            for one in self._passages
            if one.number == latest.number and not one.code and not _FIELD.match(one.text)
            and self._days.day(one) == self._days.day(latest)
        ]  # fmt: skip
        return own[:1] if own and own[0] != latest else [] if asked.names_state(latest) else own[1:2]

    def _latest(self, query: str, asked: AskedAttribute) -> QuotableSentence | None:
        """The best of the latest statements about the thing whose present state is asked for, else None.

        What stands below a heading for changes comes before what was so until then.
        """
        need, days = asked_for(query), {one: self._days.day(one) for one in self._passages if asked.of_state(one)}
        last = max((day for day in days.values() if day), default=None)
        about = [one for one in days if days[one] == last and (last or need.state_of)]
        changes = [one for one in about if need.is_change(self._pages.headings[one.number - 1])]
        scores = self._scorer.scores(query, self._ranks(None), changes or about) if about else {}
        return max(scores, key=lambda one: scores[one], default=None)

    def _example(self, query: str) -> QuotableSentence | None:
        """The block of code that shows most of what the query names; None where none does."""
        asked, ranks = self._asked_attribute(query), self._ranks(None)
        fit = {one: asked.exemplified(one) for one in code_blocks(self._hits[:FARTHEST])}
        own = [one for one in fit if is_cjk_text(self._hits[one.number - 1].text) == self._cjk]
        left = [one for one in own or fit if fit[one] > 0]
        best = max(left, key=lambda one: (fit[one] + ranks[one.number - 1], -one.position), default=None)
        if best:
            self.picked += [one for one in self._passages if one.code and one.quote in best.quote]
        return best

    def _block_of(self, line: QuotableSentence) -> QuotableSentence | None:
        """The block of code that this line is one of; None where it stands alone."""
        blocks = (one for one in code_blocks(self._hits[: line.number]) if one.number == line.number)
        return next((one for one in blocks if line.quote in one.quote and "\n" in one.quote), None)

    def _asked_attribute(self, query: str) -> AskedAttribute:
        return AskedAttribute(query, self._question, self._pages, self._passages, by_words=self._by_words)

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
        chosen = self._steps(query, scores) if need.steps and limit > 1 else []
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

    def _quotable(self, need: AskedFor, query: str, node_id: str | None, containing: str) -> list[QuotableSentence]:
        code = need.code
        left = [one for one in self._passages if code or not one.code] or self._passages
        if node_id is not None:
            left = [one for one in left if node_id in self._nodes[one.number - 1]]
            own = self._cjk
            if self._hits and is_cjk_text(self._hits[0].text) == own:
                left = [one for one in left if one.series or one.code or is_cjk_text(one.text) == own]
        left = self._keyed(query, left)
        return [one for one in left if containing and flat(containing) in flat(one.quote)] or left

    @staticmethod
    def _versions(query: str, chosen: Sequence[QuotableSentence]) -> list[QuotableSentence]:
        """The rows of one table that the query names by their first cells, in its order, where these are several."""
        order = terms(query)
        keyed = [one for one in chosen if one.subject and one.subject <= frozenset(order)]
        rows = [one for one in keyed if (one.number, one.lead) == (keyed[0].number, keyed[0].lead)]
        rows.sort(key=lambda one: min(order.index(term) for term in one.subject))
        return rows if len(rows) > 1 else []

    @staticmethod
    def _keyed(query: str, left: list[QuotableSentence]) -> list[QuotableSentence]:
        """Without the rows of a table of which the query names another one by its first cell."""
        asked = term_set(query)
        keyed = {(one.number, one.lead) for one in left if one.subject and one.subject <= asked}
        return [one for one in left if not one.subject or (one.number, one.lead) not in keyed or one.subject <= asked]

    @staticmethod
    def _of_named(bound: AbstractSet[int], query: str, left: list[QuotableSentence]) -> list[QuotableSentence]:
        """Those of the pages that the query's identifiers name, or that name one; all where no page is named so."""
        if not bound:
            return left
        own = [one for one in left if one.number in bound]
        return own or [one for one in left if any(names(one.quote, wanted) for wanted in identifiers(query))]

    def group(self, query: str, node_id: str, limit: int) -> list[QuotableSentence]:
        """As `pick`, of a subquestion that rules made: what it found may be about something else."""
        picked = self.pick(query, node_id, limit)
        kept = self._scorer.sharing(query, picked, _GROUP_SHARE)
        listed = any(one.series for one in kept)  # a list is quoted whole or not at all
        return [one for one in picked if one in kept or (listed and one.series)]

    def part(self, query: str, node_id: str | None, limit: int, others: Sequence[str] = ()) -> list[QuotableSentence]:
        """Up to `limit` sentences for a part of the question; empty where none holds the kind of answer it asks for.

        Sentences that say more of one of the `others` are left to it. One that was picked before is picked once more
        where no other has the answer.
        """
        need, asked = asked_for(query), self._asked_attribute(query)
        every = self._quotable(need, query, node_id, "")
        if rows := self._versions(query, every):
            return rows
        fit = [one for one in every if asked.says(one)]
        own, rivals = self._scorer.own_share, [(other, asked_for(other)) for other in others]
        about = query
        if not terms(own_part(query)[1]):  # "and when?" is asked of what the whole question is about
            about, rivals = self._question, []
        left = []
        for one in fit:
            title, held = self._titles[one.number - 1], own(about, one)
            better = (own(other, one) > held and rival.answered_by(one.text, title) for other, rival in rivals)
            if not any(better):
                left.append(one)
        if need.steps:  # one of its steps says what is asked: the list is quoted whole
            lists = {(one.number, one.series) for one in fit if one.series}
            left = [one for one in every if one in left or (one.series and (one.number, one.series) in lists)]
        again = max((one for one in self.picked if one in fit), key=lambda one: own(about, one), default=None)
        chosen = self._chosen(need, query, node_id, left or fit, limit, PART_WIDTH, _PART_OF_BEST)
        if any(one.series for one in chosen):
            return chosen
        if again and all(own(about, again) > own(about, one) for one in chosen):
            return [again]
        return self._days.newest_first(query, chosen, self._latest(query, asked))[:limit]

    def _steps(self, query: str, scores: Mapping[QuotableSentence, float]) -> list[QuotableSentence]:
        """The ordered list that answers, whole and in order, each step with number and code; empty where none does."""
        best = max(scores, key=lambda one: scores[one], default=None)
        lists: dict[tuple[int, int], list[QuotableSentence]] = {}
        for one in scores:
            if one.series:
                lists.setdefault((one.number, one.series), []).append(one)
        held = {key: max(scores[one] for one in items) for key, items in lists.items() if len(items) > 1}
        key = max(held, key=lambda key: (held[key], -key[0], -key[1]), default=None)
        if best is None or key is None:
            return []
        named = best.number == key[0] or not term_set(query).isdisjoint(term_set(self._pages.headings[key[0] - 1]))
        if held[key] < (_LIST_OF_BEST if named else _LIST_ELSEWHERE) * scores[best]:
            return []
        items = sorted(lists[key], key=lambda one: one.position)
        numbers = list(accumulate(int(not one.code) for one in items))
        items = [one for one, number in zip(items, numbers, strict=True) if number <= MAX_STEPS]
        self.picked += items
        return [
            one if one.code else replace(one, text=f"{number}. {one.text}")
            for one, number in zip(items, numbers, strict=False)
        ]

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
        """The section or page of a sentence such as "He was born" that names whom, where the question does not."""
        if not answer_language(one.text).answers.pointing_back.match(one.text):
            return ""
        hit = self._hits[one.number - 1]
        heading = hit.heading if term_set(hit.heading) and term_set(hit.heading) <= term_set(hit.text) else ""
        title = plain_line(bare(heading or hit.title))
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
    """True for passages with nearly the same terms; rows with other values are versions."""
    if one.subject and one.subject == other.subject and one.number != other.number:
        return one.words == other.words
    return len(one.words & other.words) >= _ALIKE * len(one.words | other.words)
