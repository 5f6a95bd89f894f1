"""The checks of who does what to whom, and what comes of what. Pure."""

from __future__ import annotations

import re
from itertools import pairwise

from shared.grounding.alignment import Alignment
from shared.grounding.subjects import is_passive, is_subject, other_subject, other_voice
from shared.grounding.texts import Token, TokenKind, TokenText, stem_of
from shared.language import claim_pattern

#: Tokens that what stands between two names has at most.
_FEW = 4
#: Subject, verb and object stand in one clause.
_SHARED = 3
#: From this share on a claim's clauses stand in the passage as they are, and with them cause and effect.
_VERBATIM = 0.85


def roles(found: Alignment) -> str | None:
    """Who acts and who is acted on are those of the passage, or stand in the other order with the voice turned."""
    ours = _triples(found.claim)
    theirs = _triples(found.passage) if ours else set()
    for one, word, other in ours - theirs:
        if (other, word, one) in theirs:
            return f"“{one}” and “{other}” change places"
    return other_subject(found) or _turned_round(found) or _caused(found)


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
        turned = is_passive(text.slice(first + 1, second))
        owns = text.low[tokens[first].start : tokens[first].end].replace("’", "'").endswith("'s")
        one, other = (second, first) if turned != owns else (first, second)
        found.add((tokens[one].key, stem_of(weighty[0].key), tokens[other].key))
    return found


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
        if len(shared) < _SHARED or shared[0] != units[0] or other_voice(found.claim.low, passage.slice(first, last)):
            continue
        places = [where[claim.units[place]] for place in shared]
        verbs = [place for place in shared[1:-1] if not claim.tokens[place].name and claim.tokens[place].value is None]
        if not verbs or not is_subject(shared[:1], claim):
            continue
        if places[0] > max(where[claim.units[place]] for place in verbs) > places[-1]:
            return f"“{claim.text[claim.tokens[shared[0]].start : claim.tokens[shared[0]].end]}” changes its place"
    return None


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
    if found := claim_pattern("because").search(low):
        if low[: found.start()].strip(" ,，") == "":
            cut = re.search(r"[,，]", low[found.end() :])
            end = found.end() + cut.start() if cut else len(low)
            return (end, len(low)), (found.end(), end)
        return (0, found.start()), (found.end(), len(low))
    if found := claim_pattern("therefore").search(low):
        return (found.end(), len(low)), (0, found.start())
    return None


def weighs(token: Token) -> bool:
    """Whether a token is a word that says something of its own."""
    return not token.plain and not token.denies and token.kind is not TokenKind.SIGN
