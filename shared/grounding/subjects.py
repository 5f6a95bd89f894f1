"""The check of a claim's subject: the clause that says the rest of it has no other one. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from shared.grounding.alignment import Alignment
from shared.grounding.texts import APART, TokenKind, TokenText
from shared.language import claim_pattern

#: A predicate has so many units in common with a clause; so many characters make a subject without spaces.
_LEAST = 2
#: Tokens from the start of a sentence in which its topic stands.
_TOPIC = 3
#: A short form stands in brackets at most so many tokens behind the name.
_ALIAS = 10
#: From this share of a claim's own units on a clause says the same; one that speaks of another common noun has more.
_SAME, _MOST = 0.45, 0.6
#: From this share on a claim's clauses stand in the passage as they are.
_VERBATIM = 0.85


class _Sides(NamedTuple):
    """The places of a claim's subject, and the units of what it says of it."""

    subject: list[int]
    predicate: set[str]


def other_subject(found: Alignment) -> str | None:
    """No clause that says the rest of the claim has another subject, or the claim's as what is acted on."""
    if len(found.claim.clauses) > 1 and found.share >= _VERBATIM:
        return None
    claim = found.claim.with_names(found.passage.names)
    for number in found.evidence:
        if reason := _subject_of(claim, found.passage, *found.passage.clauses[number]):
            return reason
    return None


def other_speaker(found: Alignment) -> str | None:
    """What somebody says in the claim is not said by another one in the passage."""
    ours = next(_said(found.claim), None) if found.deviations else None
    if ours is None or not ours.predicate or not ours.subject:
        return None
    own, nearest = {found.claim.units[place] for place in ours.subject}, (0.0, "")
    for other in _said(found.passage):
        share = len(ours.predicate & other.predicate) / len(ours.predicate)
        theirs = {found.passage.units[place] for place in other.subject}
        if theirs and share >= _MOST and share > nearest[0]:
            first, last = (found.passage.tokens[other.subject[place]] for place in (0, -1))
            nearest = share, "" if own & theirs else found.passage.text[first.start : last.end]
    return f"“{nearest[1]}” says it in the passage" if nearest[1] else None


def _said(text: TokenText) -> Iterator[_Sides]:
    """Who says something, and the units of what is said, up to the next one who does or the sentence's end."""
    verbs = list(claim_pattern("saying").finditer(text.low))
    for verb, following in zip_longest(verbs, verbs[1:]):
        before = [n for n, token in enumerate(text.tokens) if token.end <= verb.start()]
        behind = [n for n, token in enumerate(text.tokens) if token.start >= verb.end()]
        if not before or not behind:
            continue
        clause, sentence = text.clause_of[before[-1]], text.sentence_numbers[before[-1]]
        until = following.start() if following else len(text.low)
        said = [n for n in behind if text.tokens[n].start < until and text.sentence_numbers[n] == sentence]
        speaker = [n for n in before if text.clause_of[n] == clause and text.units[n]]
        yield _Sides(speaker, {text.units[n] for n in said if text.units[n]})


def _subject_of(claim: TokenText, passage: TokenText, first: int, last: int) -> str | None:
    standing = set(passage.units[first:last])
    subject, predicate = _sides(claim, standing)
    own = {claim.units[place] for place in subject}
    known = all(claim.units[place] in passage.at or claim.tokens[place].kind is TokenKind.CJK for place in subject)
    least = max(min(_LEAST, len(predicate)), _SAME * len(predicate))
    pronoun = any(first < place < last for place in passage.pronouns)
    if not subject or not known or len(predicate & standing) + pronoun < least or predicate.isdisjoint(standing):
        return None
    if _is_whole(claim, own, passage):
        return None
    start = next(place for place in range(first, last) if passage.units[place] in predicate)
    before = [place for place in range(first, start) if passage.units[place]] or _clause_before(passage, first, own)
    ours = claim.text[claim.tokens[subject[0]].start : claim.tokens[subject[-1]].end]
    if not before:
        later = _is_named_later(claim, subject, passage, first)
        return f"“{ours}” is spoken of only later in the passage" if later else None
    share = len(predicate & standing) / (len(subject) + len(predicate))
    if (
        _is_topic(own, passage, first)
        or other_voice(claim.low, passage.slice(first, last))
        or _is_alias(passage, own, before)
        or not _is_other(claim, subject, passage, before, own if share >= _MOST else set())
    ):
        return None
    theirs = passage.text[passage.tokens[before[0]].start : passage.tokens[before[-1]].end]
    return f"“{ours}” stands where the passage has “{theirs}”"


def _is_whole(claim: TokenText, subject: set[str], passage: TokenText) -> bool:
    """Whether one clause has the claim's subject and all of its numbers: what else it says may be left out there."""
    numbers = {unit for unit in claim.units if unit.startswith("#")}
    return bool(numbers) and any(numbers | subject <= set(passage.units[slice(*one)]) for one in passage.clauses)


def _sides(claim: TokenText, standing: set[str]) -> _Sides:
    """What stands before the first word that a clause has too; numbers before it, as of a date, belong behind it."""
    places = [place for place, unit in enumerate(claim.units) if unit]
    dated = next((n for n, place in enumerate(places) if not claim.units[place].startswith("#")), len(places))
    rest = next((n for n in range(dated, len(places)) if claim.units[places[n]] in standing), dated)
    predicate = {claim.units[place] for place in (*places[:dated], *places[rest:])}
    return _Sides(places[dated:rest], predicate)


def _is_other(
    claim: TokenText, subject: Sequence[int], passage: TokenText, before: Sequence[int], own: set[str]
) -> bool:
    """Whether two subjects are two things: names, or nouns of which the passage speaks of its own elsewhere too.

    A common noun may stand for what has a name. What is named for the first time may be a part of what the claim names:
    "the main span" of a bridge.
    """
    if _is_bare(claim, subject) and (_is_bare(passage, before) or _stand_apart(claim, subject, passage, before)):
        return True
    named = is_subject(subject, claim), is_subject(before, passage)
    if all(named):
        return True
    wide = not claim.units[subject[0]].isascii() and not passage.units[before[0]].isascii()
    if (any(named) and not wide) or own.isdisjoint(passage.at) or own & {passage.units[place] for place in before}:
        return False
    clause = passage.clause_of[before[-1]]
    return any(passage.clause_of[place] != clause for place in passage.at[passage.units[before[-1]]])


def _stand_apart(claim: TokenText, subject: Sequence[int], passage: TokenText, before: Sequence[int]) -> bool:
    """Whether one sentence of the passage has both as subjects, parted by a semicolon."""
    numbers = passage.sentence_numbers
    start = bisect_left(numbers, numbers[before[0]])
    topic = claim.units[subject[0]] in passage.units[start : start + _TOPIC]
    return topic and APART.search(passage.low, passage.tokens[start].start, passage.tokens[before[0]].start) is not None


def _is_named_later(claim: TokenText, subject: Sequence[int], passage: TokenText, first: int) -> bool:
    """Whether a clause begins with a pronoun, which cannot stand for what is named only behind it."""
    standing = [place for one in subject for place in passage.at.get(claim.units[one], ())]
    return first in passage.pronouns and bool(standing) and min(standing) > first


def _clause_before(text: TokenText, first: int, own: set[str]) -> list[int]:
    """The subject that a clause without one may have from a short one before it: "Its library, destroyed in 1903".

    What is said of it in between, as "who was not involved", is passed over.
    """
    numbers = text.sentence_numbers
    while first and numbers[first] == numbers[first - 1]:
        first, end = text.clauses[text.clause_of[first - 1]]
        if first in text.pronouns:
            continue
        before = [place for place in range(first, end) if text.units[place]]
        sentence = set(text.units[bisect_left(numbers, numbers[first]) : end])
        return before if len(before) <= _TOPIC and 2 * len(own & sentence) < len(own) else []
    return []


def _is_topic(own: set[str], passage: TokenText, clause: int) -> bool:
    """Whether the sentence of a clause begins with the claim's subject: what follows may be about it all the way.

    A clause behind a semicolon has a subject of its own.
    """
    if clause and APART.search(passage.low, passage.tokens[clause - 1].end, passage.tokens[clause].start):
        return False
    numbers = passage.sentence_numbers
    sentence = bisect_left(numbers, numbers[clause])
    topic = own.intersection(passage.units[sentence : min(clause, sentence + _TOPIC)])
    return bool(topic) and 2 * len(topic) >= min(len(own), _TOPIC)


def _is_bare(text: TokenText, places: Sequence[int]) -> bool:
    """Whether a sentence begins with one word that has no article: a name, or a thing by itself."""
    token = text.tokens[places[0]]
    return (
        len(places) == 1
        and places[0] == bisect_left(text.sentence_numbers, text.sentence_numbers[places[0]])
        and text.text[token.start].isupper()
    )


def is_subject(places: Sequence[int], text: TokenText) -> bool:
    """Whether units before a predicate name one who acts: a name, or in a script without spaces several characters."""
    if any(text.tokens[place].name for place in places[:_LEAST]):
        return True
    return sum(_width(text, place) for place in places) >= _LEAST


def _width(text: TokenText, place: int) -> int:
    """How much a unit of a script without spaces counts: a word of the tables as two characters."""
    if text.tokens[place].kind is TokenKind.CJK:
        return 1
    return 0 if text.units[place].isascii() else 2


def other_voice(one: str, other: str) -> bool:
    """Whether one of two texts is in the passive voice and the other is not."""
    return is_passive(one) != is_passive(other)


def is_passive(low: str) -> bool:
    """Whether a text in lower case says who acts behind what is done."""
    return claim_pattern("passive").search(low) is not None


def _is_alias(text: TokenText, subject: set[str], other: Sequence[int]) -> bool:
    """Whether the passage has one in brackets behind the other, as its short form."""
    names = {text.units[place] for place in other}
    for one, two in ((subject, names), (names, subject)):
        for place in text.bracketed:
            before = text.units[max(0, place - _ALIAS) : place]
            if text.units[place] in two and not one.isdisjoint(before):
                return True
    return False
