"""Whether a passage says what a question asks: of the thing that it names, the attribute that it asks for. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from shared.language import Language, derived, languages, question_language
from shared.language.answers import AnswerKind
from shared.language.names import names_of
from shared.language.subjects import subject_or_all
from shared.language.text import CJK, days_in, has_cjk, month_number, narrowed, term_set, terms
from workers.merge.asked_for import asked_for, label_of, own_part, without_days
from workers.merge.evidence import Pages, points_back
from workers.merge.identifiers import identifiers
from workers.merge.pieces import QuotableSentence

#: Share of the words for what is asked that a sentence has to have, and of those that name the thing.
_LEAST_SAID, _LEAST_NAMED, _LEAST_OF_ATTRIBUTE, _LEAST_OF_STATE, _LEAST_OF_THING = 0.34, 0.5, 0.5, 0.7, 0.45
#: A question with more words beside names, or in names, is put together of several statements: no sentence says it all.
_MOST_ASKED, _MOST_ASKED_CJK, _MOST_NAMED, _MOST_NAMED_CJK = 6, 14, 4, 8
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
#: Days and months with their year, and years alone.
_DATES = re.compile(
    r"(?:\d{1,2} )?(?:[A-Za-z]{3,9}\.? )?(?:\d{1,2},? )?(?:19|20)\d\d"
    rf"(?:[-/{CJK}] ?\d{{1,2}}(?:[-/{CJK}] ?\d{{1,2}}[{CJK}]?)?|[{CJK}])?"
)
#: A question of more words may be answered on a page that another one leads to; a longer title is a sentence.
_MOST_BRIDGED, _MOST_BRIDGED_CJK, _MOST_TITLE = 3, 6, 8
#: A stem that begins with another one of so many letters says the same: command, commander.
_MIN_PREFIX = 4
_RUN = re.compile(r"[\w.-]++(?:\(\))?+", re.ASCII)
#: In a run of such characters, names of code and numbers: with a dot, an underscore, a digit, or a capital inside.
_CODE = re.compile(r"(?=[A-Za-z_])_*+[^._]++[._]\w|[^\d]*+\d|\w++\(\)|[A-Za-z]*?[a-z][A-Z]|[A-Z]{2}", re.ASCII)


class AskedAttribute:
    """Which of the sentences of one pool say what a query asks. `unsure`: that cannot be told."""

    def __init__(
        self, query: str, question: str, pages: Pages, sentences: Sequence[QuotableSentence], *, by_words: bool = True
    ) -> None:
        about, asked = own_part(query)
        asked = subject_or_all(asked)
        self._need, self._pages = asked_for(query), pages
        language = question_language(asked) or languages()[0]
        self._for = _said_for(language)
        implied = frozenset[str]().union(*(_implied(language).get(kind, frozenset()) for kind in self._need.kinds))
        self._when = _qualifying_date(asked) if AnswerKind.DATE not in self._need.kinds else (0, 0)
        spans = _DATES.findall(asked) if any(self._when) else []
        dated = {
            term for span in spans for term in units(span) if has_cjk(term) or term.isdigit() or month_number(term)
        }
        now = frozenset(units(self._need.as_of_now)) if self._need.checked else frozenset[str]()
        said = [
            term
            for term in units(without_days(asked) if AnswerKind.DATE not in self._need.kinds else asked)
            if term not in implied and term not in language.words.alone and term not in dated and term not in now
        ]
        self._named = _named(asked) or _identified(about) or _identified(without_days(question))
        titles = (_split(words) for words, named in zip(pages.title_terms, pages.named, strict=True) if named)
        whole = frozenset(units(asked))
        generic = [frozenset(units(one)) for one in self._need.attributes]
        self._titles = frozenset(
            title
            for title in titles
            if title <= whole and len(title) <= _MOST_TITLE and not any(title <= one for one in generic)
        )
        if self._need.example:
            self._named &= frozenset(units(self._need.example))
        self._contexts = _contexts(sentences, pages)
        every = dict.fromkeys((*said, *self._named))
        self._weights = _weights(every, self._contexts.values())
        self._asked = frozenset(said) - self._named
        self._attributes = [kept for one in self._need.attributes if (kept := self._asked.intersection(units(one)))]
        self._pairs = frozenset(
            term for term in terms(asked) if has_cjk(term) and self._asked >= frozenset(_parts(term))
        )
        self.unsure = not by_words or self._composed(asked)

    def _composed(self, asked: str) -> bool:
        cjk = has_cjk(asked)
        language = question_language(asked)
        several = len(self._titles) > 1 or bool(language and language.steps(narrowed(asked)))
        rest = len(self._asked.difference(*self._titles))
        long = rest > (_MOST_BRIDGED_CJK if cjk else _MOST_BRIDGED)
        bridged = any(self._pages.reached) and (long or bool(self._need.needed))
        return (
            several
            or bridged
            or len(self._asked) > (_MOST_ASKED_CJK if cjk else _MOST_ASKED)
            or len(self._named) > (_MOST_NAMED_CJK if cjk else _MOST_NAMED)
        )

    def answered_by(self, sentences: Iterable[QuotableSentence]) -> bool:
        """True where one of them says it, or where that cannot be told."""
        return self.unsure or any(map(self.says, sentences))

    def of_state(self, one: QuotableSentence) -> bool:
        """True where it speaks of the thing whose present state is asked for."""
        wanted = frozenset(units(self._need.state_of)) & (self._asked | self._named)
        least = _LEAST_OF_STATE if AnswerKind.YES_NO in self._need.kinds else _LEAST_OF_THING
        return bool(wanted) and self._share(wanted, self._contexts.get(one) or _context(one, self._pages)) >= least

    def names_state(self, one: QuotableSentence) -> bool:
        """True where it has a word itself for the thing whose present state is asked for."""
        return not _split(one.words).isdisjoint(units(self._need.state_of))

    def exemplified(self, one: QuotableSentence) -> float:
        """The share, 0..1, of what a question for an example is about that a block of code, or its page, speaks of.

        0 for the code of another page.
        """
        wanted = units(self._need.example)
        about, inside = _context(one, self._pages), _split(one.words)
        held = sum(self._said(term, about) for term in wanted)
        within = sum(self._said(term, inside) for term in wanted)
        return (held + within) / (2 * len(wanted)) if wanted and held >= _LEAST_NAMED * len(wanted) else 0.0

    def touches(self, one: QuotableSentence) -> bool:
        """True where it has a word of what is asked, or where that cannot be told."""
        if self.unsure or self.says(one):
            return True
        if (
            self._named
            and self._share(self._named, self._contexts.get(one) or _context(one, self._pages)) < _LEAST_NAMED
        ):
            return False
        return self._share(self._asked, _split(one.words | one.lead)) > 0 and bool(self._asked)

    def says(self, one: QuotableSentence) -> bool:
        """True where it shows the kind of answer, and speaks of what is asked of the thing that is named.

        "When" asks for a condition as well: of what is said of it, no date is needed.
        """
        shown = self._need.answered_by(one.text, self._pages.titles[one.number - 1])
        return (shown or (self._need.condition and bool(self._asked))) and self.speaks(one)

    def speaks(self, one: QuotableSentence) -> bool:
        """True where it speaks of what is asked of the thing that is named."""
        at, words = one.number - 1, self._contexts.get(one) or _context(one, self._pages)
        section = self._need.section(self._pages.headings[at], one.text) > 0
        beside = self._passage(one.number) if section else words
        if self._named and not self._pages.reached[at] and self._share(self._named, beside) < _LEAST_NAMED:
            return False
        if any(needed.isdisjoint(one.words | one.lead) for needed in self._need.needed):
            return False
        if section:
            return True
        inside = _split(one.words | one.lead | term_set(self._pages.headings[at]))
        if any(self._share(wanted, inside) < _LEAST_OF_ATTRIBUTE for wanted in self._attributes):
            return False
        asked = self._asked - _split(self._pages.title_terms[at])
        least = _LEAST_OF_ATTRIBUTE if self._need.measures else _LEAST_SAID
        said = not asked or self._share(asked, words) >= least
        fits = said and self._of_thing(words, one) and self._of_column(one)
        return fits and self._of_date(one) and self._says_pairs(one)

    def _of_column(self, one: QuotableSentence) -> bool:
        """False for a table's row on the thing that is named, in which neither a word nor a unit is what is asked."""
        subject = _split(one.subject)
        wanted = self._asked | self._named
        rest = wanted - subject
        if not one.row or not rest or subject.isdisjoint(wanted) or self._need.typed(one.text):
            return True
        own = one.words | one.lead | self._pages.leads[one.number - 1]
        letters = frozenset(term for term in rest if term.isascii())
        pairs = frozenset(pair for pair in self._pairs if subject.isdisjoint(_parts(pair)))
        said = bool(letters) and self._share(letters, _split(own)) > 0
        return said or not pairs.isdisjoint(own) or self._need.related(own)

    def _says_pairs(self, one: QuotableSentence) -> bool:
        """True where it has two characters together of what is asked that its page's names have not, or says the same.

        Single characters stand in many words. Only where its kind of answer shows whether a sentence may answer.
        """
        pairs, own = self._pairs - self._pages.leads[one.number - 1], one.words | one.lead
        return not (self._need.checked and pairs and pairs.isdisjoint(own)) or self._need.related(own)

    def _of_thing(self, words: AbstractSet[str], one: QuotableSentence) -> bool:
        """True where the sentence, or what it stands below, names the page that the question names.

        Where the question asks for an attribute, it names half of what that is an attribute of.
        """
        if self._need.measures and not self._asked and not self._is_about(one):
            return False
        elsewhere = self._titles and not any(title <= words for title in self._titles)
        if elsewhere and not self._pages.reached[one.number - 1]:
            return False
        thing = (self._asked | self._named).difference(*self._attributes)
        if self._labelled(one) and not self._named and thing <= self._passage(one.number):
            return True
        return not (self._need.owned and thing) or self._share(thing, words) >= _LEAST_OF_ATTRIBUTE

    def _labelled(self, one: QuotableSentence) -> bool:
        """True for "Key: value" whose key is what is asked."""
        label = frozenset(units(label_of(one.text)))
        return bool(label) and any(wanted and wanted <= label for wanted in self._attributes)

    def _of_date(self, one: QuotableSentence) -> bool:
        """False where the question narrows down the year or the month, and the sentence or its page is of another."""
        year, month = self._when
        at = one.number - 1
        if not year or str(year) in one.words:
            return True
        if any(map(_YEAR.fullmatch, one.subject)):
            return False
        days = self._pages.days[at]
        return not days or any(y == year and (not month or not m or m == month) for y, m, _ in days)

    def _is_about(self, one: QuotableSentence) -> bool:
        """True where the sentence names the thing itself, or stands on a page or in a section that bears its name."""
        at = one.number - 1
        bears = (frozenset(units(name)) for name in (self._pages.titles[at], self._pages.headings[at]))
        own = _split(one.words | one.lead)
        return self._named <= own or any(name and name <= self._named for name in bears)

    def surely_says(self, one: QuotableSentence) -> bool:
        """True where it says it with every name and every word of what is asked: wherever it was found, it answers."""
        words = self._contexts.get(one) or _context(one, self._pages)
        wanted = self._asked | self._named
        counts = AnswerKind.NUMBER in self._need.kinds and not self._need.measures and not self._attributes
        sure = bool(self._need.checked) and not counts and len(wanted) > 1
        return sure and self._share(wanted, words) == 1.0 and self.says(one)

    def _passage(self, number: int) -> frozenset[str]:
        return frozenset[str]().union(*(words for one, words in self._contexts.items() if one.number == number))

    def _share(self, wanted: AbstractSet[str], words: AbstractSet[str]) -> float:
        total = sum(self._weights[term] for term in wanted)
        said = sum(self._weights[term] for term in wanted if self._said(term, words))
        return said / total if total else 1.0

    def _said(self, term: str, words: AbstractSet[str]) -> bool:
        if term in words or not self._for.get(term, frozenset()).isdisjoint(words):
            return True
        return term.isascii() and any(_same_stem(term, word) for word in words)


@derived
def _said_for(language: Language) -> Mapping[str, frozenset[str]]:
    """A term of a question -> the terms of sentences that speak of the same."""
    found: dict[str, frozenset[str]] = {}
    for one in language.answers.relations:
        said = _terms_of(one.said)
        for term in _terms_of(one.asked):
            found[term] = found.get(term, frozenset()) | said
    return found


@derived
def _implied(language: Language) -> Mapping[AnswerKind, frozenset[str]]:
    """The terms of a question that every answer of a kind says: "how many", "the price"."""
    return {kind: _terms_of(words) for kind, words in language.answers.implied.items()}


def _terms_of(words: Iterable[str]) -> frozenset[str]:
    return frozenset(unit for word in words for unit in units(word))


def _same_stem(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) >= _MIN_PREFIX and short.isalpha() and long.startswith(short)


def _named(text: str) -> frozenset[str]:
    """The terms of the names in a question: of people and products, of code, of tickets; months and years are none."""
    undated = without_days(_DATES.sub(" ", text))
    code = (run.removesuffix("()").strip(".") for run in _RUN.findall(undated) if _CODE.match(run))
    found = [units(name) for name in (*names_of("", undated), *code)]
    return frozenset(term for name in found if not all(map(_is_date, name)) for term in name if not month_number(term))


def _qualifying_date(asked: str) -> tuple[int, int]:
    """The year that a question names, and the month, 0 for none; (0, 0) where it names several years."""
    years = {int(year) for year in _YEAR.findall(asked)}
    months = {month for _, month, _ in days_in(asked)}
    return (max(years), max(months) if len(months) == 1 else 0) if len(years) == 1 else (0, 0)


def _is_date(term: str) -> bool:
    return bool(month_number(term) or _YEAR.fullmatch(term))


def _identified(text: str) -> frozenset[str]:
    return frozenset(term for name in identifiers(text) for term in units(name))


def _context(one: QuotableSentence, pages: Pages) -> frozenset[str]:
    return _split(one.words | one.lead | pages.leads[one.number - 1])


def _contexts(sentences: Sequence[QuotableSentence], pages: Pages) -> dict[QuotableSentence, frozenset[str]]:
    """What each sentence says of what; one that begins with "it" or "the cause" speaks of what the last one did."""
    found = dict[QuotableSentence, frozenset[str]]()
    last: QuotableSentence | None = None
    for one in sentences:
        words = _context(one, pages)
        follows = last is not None and (last.number, last.position + 1) == (one.number, one.position)
        if last and follows and not one.row and points_back(one.text):
            words |= found[last]
        found[one], last = words, one
    return found


def units(text: str) -> list[str]:
    """The content terms of a text, of CJK text the single characters: a pair may span two words."""
    return list(dict.fromkeys(char for term in terms(text) for char in _parts(term)))


def _split(words: AbstractSet[str]) -> frozenset[str]:
    return frozenset(char for term in words for char in _parts(term))


def _parts(term: str) -> str | tuple[str, ...]:
    return term if has_cjk(term) else (term,)


def _weights(wanted: Iterable[str], contexts: Iterable[AbstractSet[str]]) -> dict[str, float]:
    """The root of the IDF of each term; one that no sentence has weighs most."""
    every = list(contexts)
    counts = {term: sum(term in one for one in every) for term in wanted}
    return {term: math.sqrt(math.log(1 + (1 + len(every)) / (0.5 + count))) for term, count in counts.items()}
