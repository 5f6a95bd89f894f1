"""The checks of two halves that belong to different clauses, and of who does what is done. Pure.

"The one ran the mill, the other bought the farm": "the one bought the farm" joins two halves that are two facts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from shared.grounding.alignment import Alignment
from shared.grounding.numerals import number_joints
from shared.grounding.subjects import is_passive
from shared.grounding.texts import APART, TokenKind, TokenText
from shared.language import claim_pattern

#: Tokens of one who acts.
_ACTOR = 4
_HALVES = 2


class _Deed(NamedTuple):
    """Who does something, and what it is done to, as units."""

    agent: frozenset[str]
    patient: frozenset[str]


def other_half(found: Alignment) -> str | None:
    """The claim does not join how one clause of a sentence begins to how another one ends that has its own subject."""
    claim, passage = found.claim, found.passage
    compares = claim_pattern("more_than").search(claim.low) or claim_pattern("less_than").search(claim.low)
    if not found.deviations or compares:
        return None
    said = [unit for unit in claim.units if unit]
    clauses = [frozenset(passage.units[first:last]) for first, last in passage.clauses]
    places = {near for one in found.evidence for near in (one, *_beside(passage, one))}
    for one in sorted(places):
        for other in _beside(passage, one):
            first = [n for n, unit in enumerate(said) if unit in clauses[one] and unit not in clauses[other]]
            last = [n for n, unit in enumerate(said) if unit in clauses[other] and unit not in clauses[one]]
            if not first or not last or first[-1] > last[0] or not clauses[other].issuperset(said[last[0] :]):
                continue
            ends, begins = {said[n] for n in last}, {said[n] for n in first}
            if any(ends <= units and begins & units for units in clauses):
                continue
            ours = passage.units[slice(*passage.clauses[one])]
            rest = any(unit and unit not in said for unit in ours[ours.index(said[first[0]]) :])
            subject = _own_subject(passage, other, set(said), ends)
            if subject and (rest or claim_pattern("unlike").match(found.clause(one))):
                return f"the passage says it of “{subject}”"
    return None


def other_sentence(found: Alignment) -> str | None:
    """The claim does not end with how another sentence goes on, which has a subject of its own.

    Both halves stand there word for word: "X fell out, so that the pumps stopped", where it is Y that stopped them.
    """
    claim, passage = found.claim, found.passage
    if len(claim.clauses) < _HALVES or not found.deviations:
        return None
    (one, middle), (_, end) = claim.clauses[-2:]
    head, tail = _standing(claim, one, middle, passage), _standing(claim, middle, end, passage)
    numbers = passage.sentence_numbers
    sentences = {numbers[place] for place in head}
    if not head or not tail or any(numbers[place] in sentences for place in tail):
        return None
    if claim_pattern("determined").match(claim.slice(middle, end)) or claim.tokens[middle].name:
        return None
    subjects = [range(_part_start(passage, place), place) for place in tail]
    if all(_is_another(claim, passage, places) for places in subjects):
        return f"the passage says it of “{passage.slice(subjects[0].start, subjects[0].stop)}”"
    return None


def other_member(found: Alignment) -> str | None:
    """The claim does not join the first half of one member of a pair to the second half of the other.

    "40 % on signing and the rest on delivery": "40 % on delivery" leaves out what begins and ends alike, and a joint.
    """
    keys, joints = found.passage.keys, number_joints()
    for said, (start, end) in ((one.said, one.source) for one in found.deviations):
        places = [n for n in range(start, end) if keys[n] in joints] if said[0] == said[1] else []
        if not places or end >= len(keys) or not start:
            continue
        place = places[-1]
        before, behind = found.passage.units[start:place], found.passage.units[place + 1 : end]
        alike = keys[start] == keys[end] or keys[start - 1] == keys[end - 1]
        if alike and any(before) and any(unit and unit not in found.claim.at for unit in behind):
            return f"the passage says it of “{found.passage.slice(place + 1, end)}”"
    return None


def _standing(claim: TokenText, first: int, last: int, passage: TokenText) -> list[int]:
    """Where the passage has a clause of several words of weight word for word."""
    keys = claim.keys[first:last]
    if sum(1 for unit in claim.units[first:last] if unit) < _HALVES:
        return []
    return [n for n in passage.keyed.get(keys[0], ()) if passage.keys[n : n + len(keys)] == keys]


def _is_another(claim: TokenText, passage: TokenText, places: range) -> bool:
    """Whether what stands before a clause in its part of a sentence is a thing of which the claim says nothing."""
    units = [passage.units[place] for place in places if passage.units[place]]
    pronoun = any(place in passage.pronouns for place in places)
    return bool(units) and not pronoun and not any(unit in claim.at for unit in units)


def _beside(text: TokenText, clause: int) -> Iterator[int]:
    """The other clauses of a clause's sentence."""
    sentence = text.sentence_numbers[text.clauses[clause][0]]
    for other, (first, _) in enumerate(text.clauses):
        if other != clause and text.sentence_numbers[first] == sentence:
            yield other


def _own_subject(text: TokenText, clause: int, said: set[str], last: set[str]) -> str:
    """What a clause says of something else before the claim's last words: what it or another clause begins with."""
    first, end = text.clauses[clause]
    until = next(n for n in range(end - 1, first - 1, -1) if text.units[n] in last)
    if claim_pattern("others").match(text.slice(first, until)):
        return text.slice(first, until)
    starts = {text.units[n] for n in _starts(text) if not first <= n < end}
    for place in _unsaid(text, range(first, until), said):
        if place in text.pronouns:
            return ""
        begins = place == _first(text, first, end) and _begins(text, first, place)
        if begins or text.units[place] in starts:
            return text.slice(place, until)
    start = _part_start(text, first)
    named = [n for n in range(start, first) if text.tokens[n].name]
    return text.slice(start, first) if named and not any(text.units[n] in said for n in named) else ""


def _unsaid(text: TokenText, places: Sequence[int], said: set[str]) -> Iterator[int]:
    """The pronouns, and the words that the claim has not; no numbers, and no characters right behind one."""
    for place in places:
        token, before = text.tokens[place], text.tokens[place - 1] if place else None
        counted = token.kind is TokenKind.CJK and before is not None and before.value is not None
        if place in text.pronouns or (
            text.units[place] and text.units[place] not in said and token.value is None and not counted
        ):
            yield place


def _begins(text: TokenText, first: int, place: int) -> bool:
    """Whether a clause begins with a word as its subject: one may be left out behind a date, or before a verb."""
    if text.tokens[place].kind is TokenKind.CJK or not text.units[place].isascii():
        return all(token.value is None for token in text.tokens[first:place])
    named = any(token.name for token in text.tokens[first : place + 1])
    return (
        named
        or place == _part_start(text, place)
        or bool(claim_pattern("determined").match(text.slice(first, place + 1)))
    )


def _starts(text: TokenText) -> Iterator[int]:
    return (place for first, last in text.clauses if (place := _first(text, first, last)) < last)


def _first(text: TokenText, first: int, last: int) -> int:
    """The first word of weight of a clause."""
    return next((n for n in range(first, last) if text.units[n] and text.tokens[n].value is None), last)


def _part_start(text: TokenText, place: int) -> int:
    """Where the part of a sentence begins that holds a clause: behind a semicolon, or with the sentence."""
    numbers = text.sentence_numbers
    start = bisect_left(numbers, numbers[place])
    for n in range(start + 1, place + 1):
        if APART.search(text.low, text.tokens[n - 1].end, text.tokens[n].start):
            start = n
    return start


def other_agent(found: Alignment) -> str | None:
    """What somebody does in the claim, another one does not do in the passage, whatever the voice."""
    claim, passage = found.claim, found.passage
    if not found.deviations:
        return None
    for verb in {verb for text in (claim, passage) for verb, _ in _passives(text)}:
        theirs = list(_deeds(passage, verb))
        for ours in _deeds(claim, verb):
            same = [one.agent for one in theirs if not one.patient or not ours.patient or one.patient & ours.patient]
            acting = ours.agent.union(*same)
            named = any(claim.is_named(unit) or passage.is_named(unit) for unit in acting)
            if named and ours.agent and any(same) and all(agent.isdisjoint(ours.agent) for agent in same):
                return f"another one does it in the passage ({' '.join(sorted(next(filter(None, same))))})"
    return None


def _deeds(text: TokenText, verb: str) -> Iterator[_Deed]:
    passive = dict.fromkeys(_passives(text))
    for place in text.at.get(verb, ()):
        first, last = text.clauses[text.clause_of[place]]
        agent = next((agent for one, agent in passive if one == verb and first <= agent < last), None)
        before, behind = _of(text, first, place), _of(text, place + 1, last)
        if agent is None:
            if not any(first <= n < place for n in text.pronouns) and not is_passive(text.slice(first, last)):
                yield _Deed(before, behind)
        elif agent > place:
            known = not any(first <= n < place for n in text.pronouns)
            yield _Deed(_of(text, agent, min(last, agent + _ACTOR)), before if known else frozenset())
        else:
            yield _Deed(_of(text, agent, place), _of(text, first, agent))


def _of(text: TokenText, start: int, end: int) -> frozenset[str]:
    return frozenset(unit for unit in text.units[start:end] if unit)


def _passives(text: TokenText) -> Iterator[tuple[str, int]]:
    """What is done, and the place where it is said by whom: behind it, or before it in its clause."""
    for name, behind in (("agent", True), ("agent_before", False)):
        for word in claim_pattern(name).finditer(text.low):
            agent = bisect_left(text.tokens, word.end(), key=lambda token: token.start)
            if agent >= len(text.tokens) or text.tokens[agent].value is not None:
                continue
            first, last = text.clauses[text.clause_of[agent]]
            places = range(bisect_left(text.tokens, word.start(), key=lambda token: token.start) - 1, first - 1, -1)
            verbs = [n for n in (places if behind else range(last - 1, agent, -1)) if text.units[n]]
            if verbs and text.tokens[verbs[0]].value is None:
                yield text.units[verbs[0]], agent
