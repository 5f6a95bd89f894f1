"""How the rules take a question apart: only into parts that can be searched alone, else not at all.

A part that a rule made says what the whole question is about; what cannot be made to is not split.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from orchestrator.planning.lists.dates import spans
from shared.language import query_sentence, question_language
from shared.language.answers import AnswerKind
from shared.language.base import MAX_PART, MIN_PART, Language, Split, SplitKind, Subquestion
from shared.language.names import names_of
from shared.language.sentences import question_sentences
from shared.language.text import fold, narrowed, question_key, terms
from shared.models.plan import references

#: Questions for one fact: their facets ask for something else.
_LOOKUPS = frozenset({
    AnswerKind.PERSON, AnswerKind.DATE, AnswerKind.DURATION, AnswerKind.MONEY, AnswerKind.FREQUENCY, AnswerKind.VERSION,
    AnswerKind.NUMBER, AnswerKind.PLACE, AnswerKind.YES_NO,
})  # fmt: skip
#: Terms that make a part stand that names nothing and shares nothing with the others.
_OWN_TERMS = 2
#: How much of what was said before a question is repeated with each of its parts, in characters.
_MAX_SAID = 160
#: A thing by its number: "batch 213".
_NUMBERED = re.compile(r"\bw(?:as|ere) (?:\w+ ){1,3}\d+\b")
_ENDS = "?？.。!！ "


def split(question: str) -> Split:
    """How the rules read `question`. In a language without rules: simple, without parts."""
    text = narrowed(question)
    language = question_language(text)
    if language is None:
        return Split()
    found = language.split(text)
    measured = found.kind is SplitKind.COMPARISON and language.answers.asks_for_more(fold(text).strip(_ENDS))
    narrow = found.kind is SplitKind.BROAD and (_is_lookup(text, language) or _is_event(text, language))
    return Split() if measured or narrow else found


def _is_event(text: str, language: Language) -> bool:
    """True for a question why something happened at a time or to a numbered thing: what is usual is not asked."""
    asked = fold(text)
    today = date.today()  # noqa: DTZ011 - a span is looked for, whatever day it is
    why = language.answers.kind(asked.strip(_ENDS)) is AnswerKind.CAUSE
    return why and (spans(asked, today) != () or _NUMBERED.search(asked) is not None)


def _is_lookup(text: str, language: Language) -> bool:
    return language.answers.kind(fold(text).strip(_ENDS)) in _LOOKUPS


def nested(question: str) -> tuple[str, ...]:
    """The steps of a question whose parts wait for each other, with `#n` in them; none for any other one."""
    text = narrowed(question)
    language = question_language(text)
    return language.steps(text) if language and not references(text) else ()


def standing_parts(question: str) -> tuple[Subquestion, ...]:
    """The parts of `question`, each with what it is about; none where one of them cannot say that.

    What is stated before them goes with each of them.
    """
    found, standing = split(question), list[Subquestion]()
    parts = found.parts
    said = _said_before(question, parts)
    before, about, refined = "", said, set[str]()
    for part in parts:
        others = [one.query for one in standing]
        if not part.asked and _says_nothing(part.query):
            continue
        alone = _begins_sentence(part.query, question)
        item = found.kind is SplitKind.COMPARISON and not said  # what is compared says what is asked of it
        stands = not part.asked or (not part.leans and _stands(part.query, others, alone=alone))
        stands = item or (stands and not said)
        placed = (
            part if stands else _placed(part, _with_deed(said, before, part.query) if said and part.asked else about)
        )
        if placed is None or len(placed.query) < MIN_PART:
            return ()
        facets = {question_key(one.query) for one in split(placed.query).parts} if placed.broad else set[str]()
        broad = bool(facets) and refined.isdisjoint(facets)
        refined |= facets
        standing.append(placed.model_copy(update={"broad": broad}))
        before, about = part.query, (part.one_of or part.query) if stands else about
    return tuple(standing)


def _with_deed(said: str, before: str, query: str) -> str:
    """What was stated before, and the question before this one, where this asks of what that does or narrows down."""
    language = question_language(query)
    if language is None or not before:
        return said
    kinds = [language.answers.kind(fold(one).strip(_ENDS)) for one in (before, query)]
    of_said = not _own_terms(query, language).isdisjoint(_own_terms(said, language))
    deed = kinds[0] is AnswerKind.STEPS and kinds[1] in _LOOKUPS and not of_said
    narrowed_down = _names(before) and not any(map(str.isdigit, query))
    asked = _own_terms(before, language) - _own_terms(said, language)
    narrowed_down = narrowed_down or (_refers(query, language) and len(asked) >= _OWN_TERMS)
    return query_sentence("and_sentences", query, said, before.strip(_ENDS)) if deed or narrowed_down else said


def _stands(query: str, others: Sequence[str], *, alone: bool) -> bool:
    """True for a part that can be searched alone: it names something, or speaks of what was asked before without names.

    A question that only repeats a part of one before ("and how is X solved?") does not say what of it is meant, and one
    behind a comma that shares nothing with the question before leans on that.
    """
    language = question_language(query)
    if language is None:
        return True
    own = _own_terms(query, language)
    if not own or any(own < _own_terms(one, language) for one in others):
        return False
    if _names(query):
        return True
    if _refers(query, language):
        return False
    if any(not own.isdisjoint(terms(one)) for one in others):
        return not any(map(_names, others))
    return not others or (alone and len(own) >= _OWN_TERMS and not _is_lookup(query, language))


def _refers(query: str, language: Language) -> bool:
    """True where a word points at something that another part names."""
    text, topic = fold(query), language.words.topic
    return any(re.search(pattern, text) for pattern in topic.refers) and not any(
        re.search(pattern, text) for pattern in topic.dummy
    )


def _begins_sentence(query: str, question: str) -> bool:
    before = fold(question).partition(fold(query).strip(_ENDS))[0].rstrip()
    return not before or before.endswith(("?", "？", ".", "。", "!", "！", "\n"))


def _says_nothing(query: str) -> bool:
    language = question_language(query)
    return language is not None and not _own_terms(query, language)


def _own_terms(query: str, language: Language) -> frozenset[str]:
    return frozenset(term for term in terms(query) if not language.names_nothing(term))


def _names(query: str) -> bool:
    """True when something is named, as names of code, of products and of people are written."""
    return bool(names_of("", query)) or any("_" in word or any(map(str.isdigit, word)) for word in query.split())


def _placed(part: Subquestion, about: str) -> Subquestion | None:
    """The part with what it is about before it; None where there is nothing, or no room."""
    query = query_sentence("regarding", about, about.rstrip(_ENDS), part.query) if about else ""
    return part.model_copy(update={"query": query, "broad": False}) if 0 < len(query) <= MAX_PART else None


def _said_before(question: str, parts: Sequence[Subquestion]) -> str:
    """What is stated before the first part of the question, the end of it where it is long; "" for nothing."""
    first = next((part.query for part in parts if part.asked), "").strip(_ENDS)
    place = fold(question).find(fold(first)) if first else -1
    if place > 0:
        return _end(question_sentences(narrowed(question[:place])))
    language, said = question_language(question), list[str]()
    for sentence in question_sentences(narrowed(question)):
        if language is None or sentence.rstrip().endswith("?") or language.routing.asking.search(fold(sentence)):
            return _end(said)
        said.append(sentence)
    return ""


def _end(sentences: Sequence[str]) -> str:
    kept = [sentence.strip(f"{_ENDS},，;；:：") for sentence in sentences]
    while len(kept) > 1 and sum(map(len, kept)) > _MAX_SAID:
        kept.pop(0)
    return ". ".join(kept) if kept and len(kept[-1]) <= _MAX_SAID else ""
