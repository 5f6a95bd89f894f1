"""The checks of who does what to whom, and what comes of what. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from shared.grounding.alignment import Alignment
from shared.grounding.texts import Token, TokenKind, TokenText, stem_of
from shared.language import alternatives, derived

#: Tokens that what stands between two names has at most.
_FEW = 4
#: So many units make a subject that is another one; words of a script with spaces are longer than two characters.
_LEAST = 2
#: Subject, verb and object stand in one clause.
_SHARED = 3
#: A short form stands in brackets at most so many tokens behind the name.
_ALIAS = 10
#: From this share of a claim's own units on a clause says the same.
_SAME = 0.45
#: From this share on a claim's clauses stand in the passage as they are, and with them cause and effect.
_VERBATIM = 0.85


def roles(found: Alignment) -> str | None:
    """Who acts and who is acted on are those of the passage, or stand in the other order with the voice turned."""
    ours = _triples(found.claim)
    theirs = _triples(found.passage) if ours else set()
    for one, word, other in ours - theirs:
        if (other, word, one) in theirs:
            return f"“{one}” and “{other}” change places"
    return _other_subject(found) or _turned_round(found) or _caused(found)


def _triples(text: TokenText) -> set[tuple[str, str, str]]:
    """Pairs of names with one word of weight between them; in the passive voice, the one who acts comes first."""
    found = set()
    tokens = text.tokens
    capitals = [place for place, token in enumerate(tokens) if not token.plain and text.text[token.start].isupper()]
    for first, second in pairwise(capitals):
        between = tokens[first + 1 : second]
        weighty = [token for token in between if weighs(token)]
        if len(weighty) != 1 or weighty[0].kind is not TokenKind.WORD or len(between) > _FEW:
            continue
        turned = _passive().search(text.slice(first + 1, second)) is not None
        one, other = (second, first) if turned else (first, second)
        found.add((tokens[one].key, stem_of(weighty[0].key), tokens[other].key))
    return found


def _other_subject(found: Alignment) -> str | None:
    """No clause that says the rest of the claim has another subject, or the claim's as what is acted on."""
    if len(found.claim.clauses) > 1 and found.share >= _VERBATIM:
        return None
    for number in found.evidence:
        if reason := _subject_of(found, *found.passage.clauses[number]):
            return reason
    return None


def _subject_of(found: Alignment, first: int, last: int) -> str | None:
    passage, claim = found.passage, found.claim
    standing = set(passage.units[first:last])
    units = [(place, unit) for place, unit in enumerate(claim.units) if unit]
    rest = next((number for number, (_, unit) in enumerate(units) if unit in standing), 0)
    subject, predicate = [place for place, _ in units[:rest]], {unit for _, unit in units[rest:]}
    if not subject or len(predicate & standing) < max(_LEAST, _SAME * len(predicate)):
        return None
    if not all(claim.units[place] in passage.at or claim.tokens[place].kind is TokenKind.CJK for place in subject):
        return None
    start = next(place for place in range(first, last) if passage.units[place] in predicate)
    before = [place for place in range(first, start) if passage.units[place]]
    if not _is_subject(before, passage) or not _is_subject(subject, claim) or _is_topic(found, subject[0], first):
        return None
    if _other_voice(found, first, last) or _is_alias(passage, {claim.units[place] for place in subject}, before):
        return None
    ours = claim.text[claim.tokens[subject[0]].start : claim.tokens[subject[-1]].end]
    theirs = passage.text[passage.tokens[before[0]].start : passage.tokens[before[-1]].end]
    return f"“{ours}” stands where the passage has “{theirs}”"


def _is_topic(found: Alignment, subject: int, clause: int) -> bool:
    """Whether the sentence of a clause begins with the claim's subject: what follows may be about it all the way."""
    numbers = found.passage.sentence_numbers
    sentence = bisect_left(numbers, numbers[clause])
    return found.claim.units[subject] in found.passage.units[sentence : min(clause, sentence + _SHARED)]


def _turned_round(found: Alignment) -> str | None:
    """The one who acts in the claim is not who is acted on in the passage."""
    claim, passage = found.claim, found.passage
    if not claim.tokens or not (claim.tokens[0].name or weighs(claim.tokens[0])):
        return None
    units = [place for place, unit in enumerate(claim.units) if unit]
    for number in found.evidence:
        first, last = passage.clauses[number]
        where = {unit: place for place, unit in enumerate(passage.units[first:last]) if unit}
        shared = [place for place in units if claim.units[place] in where]
        if len(shared) < _SHARED or shared[0] != units[0] or _other_voice(found, first, last):
            continue
        places = [where[claim.units[place]] for place in shared]
        verbs = [place for place in shared[1:-1] if not claim.tokens[place].name and claim.tokens[place].value is None]
        if not verbs or not _is_subject(shared[:1], claim):
            continue
        if places[0] > max(where[claim.units[place]] for place in verbs) > places[-1]:
            return f"“{claim.text[claim.tokens[shared[0]].start : claim.tokens[shared[0]].end]}” changes its place"
    return None


def is_passive(low: str) -> bool:
    """Whether a text in lower case says who acts behind what is done."""
    return _passive().search(low) is not None


def _other_voice(found: Alignment, first: int, last: int) -> bool:
    """Whether one of claim and clause is in the passive voice and the other is not."""
    voices = [_passive().search(text) is not None for text in (found.claim.low, found.passage.slice(first, last))]
    return voices[0] != voices[1]


def _is_subject(places: Sequence[int], text: TokenText) -> bool:
    """Whether units before a predicate name one who acts: a name, or in a script without spaces several characters."""
    if places and text.tokens[places[0]].name:
        return True
    return sum(_width(text.tokens[place]) for place in places) >= _LEAST


def _width(token: Token) -> int:
    """How much a token of a script without spaces counts: a word of the tables as two characters."""
    if token.kind is TokenKind.CJK:
        return 1
    return 0 if token.key.isascii() else 2


def _is_alias(text: TokenText, subject: set[str], other: Sequence[int]) -> bool:
    """Whether the passage has one in brackets behind the other, as its short form."""
    names = {text.units[place] for place in other}
    for one, two in ((subject, names), (names, subject)):
        for place in text.bracketed:
            before = text.units[max(0, place - _ALIAS) : place]
            if text.units[place] in two and not one.isdisjoint(before):
                return True
    return False


def _caused(found: Alignment) -> str | None:
    """Cause and effect are those of the passage."""
    ours = _sides(found.claim.low)
    if ours is None or found.share >= _VERBATIM:
        return None
    effect, cause = (_units_between(found.claim, *side) for side in ours)
    together = False
    for sentence in found.passage.sentences:
        start, end = sentence[0].start, sentence[-1].end
        units = set(_units_between(found.passage, start, end))
        if effect & units and cause & units:
            together = True
        theirs = _sides(found.passage.low[start:end])
        if theirs is None or not (effect & units and cause & units):
            continue
        there = [_units_between(found.passage, start + one, start + other) for one, other in theirs]
        straight = len(effect & there[0]) + len(cause & there[1])
        crossed = len(effect & there[1]) + len(cause & there[0])
        if crossed > straight:
            return "cause and effect change places"
    return None if together or not (effect and cause) else "the passage does not say that one comes of the other"


def _units_between(text: TokenText, start: int, end: int) -> set[str]:
    return {unit for unit, token in zip(text.units, text.tokens, strict=True) if unit and start <= token.start < end}


def _sides(low: str) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Where effect and cause stand in a sentence that says what comes of what; None for one that does not."""
    if found := _because().search(low):
        if low[: found.start()].strip(" ,，") == "":
            cut = re.search(r"[,，]", low[found.end() :])
            end = found.end() + cut.start() if cut else len(low)
            return (end, len(low)), (found.end(), end)
        return (0, found.start()), (found.end(), len(low))
    if found := _therefore().search(low):
        return (found.end(), len(low)), (0, found.start())
    return None


def weighs(token: Token) -> bool:
    """Whether a token is a word that says something of its own."""
    return not token.plain and not token.denies and token.kind is not TokenKind.SIGN


@derived
def _passive() -> re.Pattern[str]:
    return re.compile(alternatives(lambda language: [language.claims.passive]))


@derived
def _because() -> re.Pattern[str]:
    return re.compile(alternatives(lambda language: [language.claims.because]))


@derived
def _therefore() -> re.Pattern[str]:
    return re.compile(alternatives(lambda language: [language.claims.therefore]))
