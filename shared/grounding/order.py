"""The checks of what stands on which side of a word: who acts, from what to what, which of two opposites. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise

from shared.grounding.alignment import Alignment
from shared.grounding.numerals import number_joints
from shared.grounding.opposites import Groups, opposed_words
from shared.grounding.relations import same_sides
from shared.grounding.roles import weighs
from shared.grounding.subjects import is_passive
from shared.grounding.texts import TokenKind, TokenText, stem_of
from shared.language import alternatives, claim_pattern, derived, derived_last

#: Tokens between a name and the word that says what it does.
_REACH = 8
#: Characters of a piece of a clause without spaces, and pieces of which the order is looked at.
_PIECE, _PIECES = 2, 12
#: From this share on a claim stands in the passage as it is; of this share of its clause, pieces tell the order.
_VERBATIM, _MOSTLY = 0.95, 0.5
#: Tokens on each side of an opposite that have to be the same.
_BESIDE = 2
#: Of so many passages the opposed words are kept.
_LAST = 32
_LEAST = 3


def reversed_order(found: Alignment) -> str | None:
    """What acts in the claim is not what is acted on in the passage, and a range goes the same way."""
    return _changed_sides(found) or _turned_pieces(found) or _turned_range(found)


def _changed_sides(found: Alignment) -> str | None:
    """Two names around one word stand around it in the other order."""
    claim, passage = found.claim, found.passage
    for (a, b), (c, d) in pairwise(_name_runs(claim)):
        between = claim.tokens[b:c]
        acts = {stem_of(one.key) for one in between if weighs(one) and one.value is None}
        if not acts or len(between) > _REACH or claim.clause_of[a] != claim.clause_of[c]:
            continue
        one, other = set(claim.keys[a:b]), set(claim.keys[c:d])
        if one & other:
            continue
        straight, crossed = _around(passage, acts, one, other), _around(passage, acts, other, one)
        turned = [span for span in crossed if is_passive(passage.slice(*span)) == is_passive(claim.slice(a, d))]
        if turned and not straight:
            names = (
                claim.text[claim.tokens[a].start : claim.tokens[b - 1].end],
                claim.text[claim.tokens[c].start : claim.tokens[d - 1].end],
            )
            return f"“{names[0]}” and “{names[1]}” change places"
    return None


def _around(text: TokenText, acts: set[str], before: set[str], behind: set[str]) -> list[tuple[int, int]]:
    """Where one of `acts` stands between a name of `before` and one of `behind`, in one sentence."""
    found = []
    for place, unit in enumerate(text.units):
        if unit not in acts:
            continue
        left = [n for n in range(max(0, place - _REACH), place) if text.keys[n] in before]
        right = [n for n in range(place + 1, min(len(text.keys), place + _REACH + 1)) if text.keys[n] in behind]
        numbers = text.sentence_numbers
        if left and right and numbers[left[-1]] == numbers[right[0]]:
            found.append((left[-1], right[0] + 1))
    return found


def _name_runs(text: TokenText) -> list[tuple[int, int]]:
    """Names as ranges of tokens; a capital at a sentence's start counts where a name follows."""
    runs: list[tuple[int, int]] = []
    for place, token in enumerate(text.tokens):
        capital = token.name or (place == 0 and not token.plain and text.text[token.start].isupper())
        if not capital or token.kind is not TokenKind.WORD:
            continue
        if runs and runs[-1][1] == place and text.low[text.tokens[place - 1].end : token.start] in {" ", ". ", "-"}:
            runs[-1] = runs[-1][0], place + 1
        else:
            runs.append((place, place + 1))
    return runs


def _turned_pieces(found: Alignment) -> str | None:
    """Three pieces of a clause in a script without spaces do not stand in the opposite order."""
    for said in found.claim.clauses if found.share < _VERBATIM else ():
        text = found.claim.slice(*said)
        for number in () if text.isascii() else found.evidence:
            clause = found.clause(number)
            if clause.isascii() or is_passive(text) != is_passive(clause):
                continue
            pieces = list(_pieces(text, clause))
            if sum(len(piece) for piece, _ in pieces) < _MOSTLY * len(text):
                continue
            for (one, a), (_, b), (other, c) in zip(pieces, pieces[1:], pieces[2:], strict=False):
                if c < b < a:
                    return f"“{one}” and “{other}” change places"
            for (one, a), (other, c) in pairwise(pieces):
                joint = text[text.find(one) + len(one) : text.find(other)]
                if c < a and claim_pattern("towards").fullmatch(joint) and clause[c + len(other) : a] == joint:
                    return f"“{one}” and “{other}” change places"
    return None


def _pieces(text: str, clause: str) -> Iterator[tuple[str, int]]:
    """The pieces of a clause that another one has too, each with its place there; numbers are no pieces."""
    place = count = 0
    while place < len(text) - 1 and count < _PIECES:
        size = _PIECE
        if text[place : place + size] not in clause or not _is_wide(text[place : place + size]):
            place += 1
            continue
        while place + size < len(text) and text[place : place + size + 1] in clause and _is_wide(text[place + size]):
            size += 1
        piece = text[place : place + size]
        if clause.count(piece) == text.count(piece) == 1:
            yield piece, clause.find(piece)
        place, count = place + size, count + 1


def _is_wide(text: str) -> bool:
    return all(char.isalpha() and not char.isascii() for char in text)


def _turned_range(found: Alignment) -> str | None:
    """“From 25 to 30” is not “from 30 to 25”."""
    ours, theirs = set(_ranges(found.claim)), set(_ranges(found.passage))
    for one, other in ours - theirs:
        if (other, one) in theirs:
            return f"{one:f} and {other:f} change places"
    return None


def _ranges(text: TokenText) -> Iterator[tuple[Decimal, Decimal]]:
    numbers = [place for place, token in enumerate(text.tokens) if token.value is not None]
    for one, other in pairwise(numbers):
        first, second = text.tokens[one], text.tokens[other]
        before = text.low[max(0, first.start - 6) : first.start]
        if first.value is None or second.value is None or not _from().search(before):
            continue
        if claim_pattern("goals").search(text.low, first.end, second.start):
            yield first.value, second.value


def opposite_beside(found: Alignment) -> str | None:
    """Beside the same word stands no opposite of what the passage has there."""
    ours = () if same_sides(found) else opposed_words(found.claim)
    rivals = _opposed_beside(found.passage) if ours else ()
    for word, places, groups in ours:
        if word in number_joints() or any(
            one.plain and len(word) < _LEAST for one in found.claim.tokens[slice(*places)]
        ):
            continue
        if any(one.denies for one in found.claim.tokens[max(0, places[0] - _BESIDE - 1) : places[0]]):
            continue
        beside = _beside(found.claim, places)
        for side in (0, 1):
            key = beside[side]
            if not key:
                continue
            same = [cells for _, near, cells in rivals if near[side] == key]
            if any(groups.get(group, set()) & cell for cells in same for group, cell in cells.items()):
                break
            for other, near, cells in rivals:
                if near[side] == key and any(group in groups for group in cells):
                    return f"“{word}” stands where the passage has “{other}”"
    return None


@derived_last(_LAST)
def _opposed_beside(text: TokenText) -> tuple[tuple[str, tuple[str, str], Groups], ...]:
    """The opposed words of a text, the units beside each, and its cells."""
    return tuple((word, _beside(text, at), cells) for word, at, cells in opposed_words(text))


def _beside(text: TokenText, places: tuple[int, int]) -> tuple[str, str]:
    """The next unit on each side of some tokens, in their clause."""
    first, last = places
    before = _next(text, range(first - 1, max(-1, first - 1 - _BESIDE), -1))
    return before, _next(text, range(last, min(len(text.units), last + _BESIDE)))


def _next(text: TokenText, places: range) -> str:
    return next((text.units[place] for place in places if text.units[place]), "")


@derived
def _from() -> re.Pattern[str]:
    return re.compile(rf"(?:{alternatives(lambda language: [language.claims.origins])})\W*$")
