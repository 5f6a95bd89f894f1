"""The check that is left for a claim in words of its own: are enough of them in the passage? Pure, no model."""

from __future__ import annotations

from collections.abc import Sequence

from shared.grounding.alignment import Alignment
from shared.grounding.roles import weighs
from shared.grounding.texts import Token, TokenKind, TokenText, cjk_pairs, stem_of

#: Below this share of content words, a claim in words of its own is not what the passage says.
LEAST_COVERAGE = 0.55
#: Of a claim of so few words that speaks of each by itself, more has to be there.
_FEW_WORDS, _LEAST_OF_FEW = 3, 0.7
#: A clause of so many words of weight of which the passage has none is a statement of its own.
_INVENTED = 2
#: CJK characters of a unit.
_PAIR = 2


def coverage(found: Alignment) -> str | None:
    """Enough of the claim's words of weight stand in the passage."""
    units = content_units([token for token in found.claim.tokens if not is_unit(token, found.claim)])
    if not units:
        return None
    whole = {unit for unit in units if unit.startswith("#") or unit in found.passage.stems}
    known = sum(unit in whole or _joins(unit, whole, found) for unit in units)
    share = known / len(units)
    if invented := _invented(found, whole):
        return f"“{invented}” is not in the passage"
    if share < (LEAST_COVERAGE if len(units) > _FEW_WORDS else _LEAST_OF_FEW):
        return f"only {known} of its {len(units)} words of weight are in the passage"
    return None


def _invented(found: Alignment, whole: set[str]) -> str:
    """The clause of a claim of several of which the passage has nothing."""
    claim = found.claim
    for first, last in claim.clauses if len(claim.clauses) > 1 else ():
        units = content_units(claim.tokens[first:last])
        if len(units) >= _INVENTED and not any(unit in whole or _joins(unit, whole, found) for unit in units):
            return claim.slice(first, last)
    return ""


def _joins(unit: str, whole: set[str], found: Alignment) -> bool:
    """Whether two CJK characters are the end and the beginning of two words of which the passage has both."""
    if unit.isascii() or len(unit) != _PAIR or any(char not in found.passage.low for char in unit):
        return False
    return any(one != unit and (one[-1] == unit[0] or one[0] == unit[-1]) for one in whole)


def content_units(tokens: Sequence[Token]) -> list[str]:
    """What coverage counts: stems of words of weight, numbers, and pairs of neighbouring CJK characters."""
    words = [stem_of(token.key) for token in tokens if token.kind is not TokenKind.CJK and weighs(token)]
    return words + list(cjk_pairs([token for token in tokens if not token.plain]))


def is_unit(token: Token, text: TokenText) -> bool:
    """Whether a word is the unit of the number before it, which the check of the numbers has read."""
    return any(0 <= token.start - text.tokens[place].end <= 1 for place in text.counted)
