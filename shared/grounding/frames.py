"""The check of what stands between the same words: in "born in X in 1903" the X is the passage's. Pure.

A frame is the words right before and behind a place of the claim. Where the passage has the same frame, and another
name, number or word in it each time, that one has been replaced, however different the rest of the sentence is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from shared.grounding.alignment import Alignment
from shared.grounding.relations import same_sides
from shared.grounding.segments import belongs, is_part_of
from shared.grounding.subjects import other_voice
from shared.grounding.texts import Token, TokenKind, TokenText, light_words, stem_of
from shared.language import derived, languages

#: Tokens of what stands in a frame: in the claim, and in the passage, where attributes may stand with it.
_SAID, _SAID_CJK, _SOURCE, _SOURCE_CJK = 2, 5, 3, 9
#: Tokens of a frame on one side.
_SIDE = 4
_PAIR = 2
#: What the words of a frame weigh: one that says nothing of its own, and the same of CJK characters.
_WORD, _PLAIN, _CHARACTER, _PLAIN_CHARACTER = 1.0, 0.5, 0.5, 0.25
#: What a frame weighs at least: of a name or number of the passage, of a word that it has not; on one side alone.
_KNOWN, _FOREIGN, _ALONE, _ALONE_CJK, _NEXT = 1.25, 1.5, 1.5, 2.0, 1.0
_FOREIGN_CJK = 2.0
#: A number stands beside its unit in any case.
_NEXT_NUMBER, _NEXT_UNIT = 2.0, 1.5
#: Places of a frame that are looked at.
_PLACES = 16
#: A word of English that acts is told in other words more often than one that names.
_ACTING = re.compile(r"[a-z]+(?:ed|ing|ly|ise|ize|ate|ify|ised|ized)")


class _Run(NamedTuple):
    """The tokens `start`..`end` of a text."""

    start: int
    end: int


def replaced(found: Alignment) -> str | None:
    """Between the words that stand around a place of the claim, the passage has the same."""
    if not found.deviations or same_sides(found):
        return None
    claim, passage = found.claim, found.passage
    for said in _runs(claim):
        others = [run for run in islice(_framed(claim, said, passage), _PLACES) if _is_like(claim, said, passage, run)]
        if not others or any(_is_same(claim, said, passage, other) for other in others):
            continue
        voices = claim.tokens[said.start].name and other_voice(claim.low, _sentence(passage, others[0].start))
        value = claim.tokens[said.start].value
        own = passage.valued.get(value, ()) if value is not None else ()
        if (
            not voices
            and not belongs(found, said.start)
            and not any(is_part_of(passage, n, others[0].start) for n in own)
        ):
            words = claim.text[claim.tokens[said.start].start : claim.tokens[said.end - 1].end]
            return f"“{words}” stands where the passage has “{passage.slice(*others[0])}”"
    return None


def _sentence(text: TokenText, place: int) -> str:
    tokens = text.sentences[text.sentence_numbers[place]]
    return text.low[tokens[0].start : tokens[-1].end]


def _runs(claim: TokenText) -> Iterator[_Run]:
    """What may be a name, a number or a word of weight."""
    for start, first in enumerate(claim.tokens):
        wide = first.kind is TokenKind.CJK
        if (first.plain and not wide) or first.denies or first.kind is TokenKind.SIGN:
            continue
        for end in range(start + 1, min(len(claim.tokens), start + (_SAID_CJK if wide else _SAID)) + 1):
            last = claim.tokens[end - 1]
            like = last.kind is first.kind and last.name == first.name and not last.denies
            if end > start + 1 and (not like or _parted(claim, end - 2) or (not wide and not first.name)):
                break
            if wide and any(token.plain for token in (first, last)) and end - start < _PAIR:
                continue
            if not all(token.plain for token in claim.tokens[start:end]) and (
                not wide or start - 1 not in claim.counted
            ):
                yield _Run(start, end)


def _framed(claim: TokenText, said: _Run, passage: TokenText) -> Iterator[_Run]:
    """What the passage has where the same words stand around it; nothing where what the claim has stands so too."""
    first = claim.tokens[said.start]
    wide = first.kind is TokenKind.CJK
    known = _is_known(claim, said, passage)
    if not _may_be_replaced(claim, said, known=known) or (not known and not wide and _lacking(claim, passage) > 1):
        return
    least = _KNOWN if known or first.name else _FOREIGN_CJK if wide else _FOREIGN
    before = said.start - 1
    if _stands_so(claim, said, passage):
        return
    if before >= 0 and not _parted(claim, before):
        for place in passage.keyed.get(claim.tokens[before].key, ()):
            left = _weight_of(claim, before, passage, place, -1)
            if (run := _up_to(claim, said, passage, place, least - left)) is not None:
                yield run
            elif left >= (_ALONE_CJK if wide else _ALONE) and _ends(claim, said.end) and (known or not wide):
                run = _Run(place + 1, min(len(passage.tokens), place + 1 + said.end - said.start))
                if run.start < run.end and not _parted(passage, place) and (wide or _ends(passage, run.end)):
                    yield run
    yield from _before_it(claim, said, passage)


def _lacking(claim: TokenText, passage: TokenText) -> int:
    """How many words of weight of the claim the passage has not."""
    return sum(bool(unit) and unit not in passage.at for unit in claim.units)


def _is_known(claim: TokenText, said: _Run, passage: TokenText) -> bool:
    """Whether the passage has it too, of a script without spaces in one piece."""
    if claim.tokens[said.start].kind is TokenKind.CJK:
        return said.end - said.start > 1 and claim.slice(*said) in passage.low
    return all(token.key in passage.known or stem_of(token.key) in passage.stems for token in _of(claim, said))


def _may_be_replaced(claim: TokenText, said: _Run, *, known: bool) -> bool:
    """A name, a number of the passage, CJK characters, or a word that the passage has not and that does not act."""
    first = claim.tokens[said.start]
    if first.name or first.kind is TokenKind.CJK:
        return True
    if first.value is not None:
        return known
    if known or _ACTING.fullmatch(first.key) or said.start - 1 in claim.counted:
        return False
    before = claim.tokens[said.start - 1] if said.start else None
    return before is not None and not before.name and before.key not in _joints()


def _stands_so(claim: TokenText, said: _Run, passage: TokenText) -> bool:
    """Whether it stands in the passage beside words of the claim, too."""
    size = said.end - said.start
    for place in passage.keyed.get(claim.tokens[said.start].key, ()):
        if passage.keys[place : place + size] == claim.keys[said.start : said.end]:
            left = (
                0.0
                if _begins(claim, said.start) or _begins(passage, place)
                else (_weight_of(claim, said.start - 1, passage, place - 1, -1))
            )
            right = (
                0.0
                if _ends(claim, said.end) or _ends(passage, place + size)
                else (_weight_of(claim, said.end, passage, place + size, 1))
            )
            if left + right >= (_NEXT if claim.tokens[said.start].value is None else _NEXT_NUMBER):
                return True
    return False


def _before_it(claim: TokenText, said: _Run, passage: TokenText) -> Iterator[_Run]:
    """What stands right before the words that stand behind a place of the claim."""
    behind, first = said.end, claim.tokens[said.start]
    if behind >= len(claim.tokens) or _parted(claim, behind - 1):
        return
    wide = first.kind is TokenKind.CJK
    counted = first.value is not None or (not wide and _owns(claim, said))
    if not counted and not (wide and _begins(claim, said.start)):
        return
    for place in passage.keyed.get(claim.tokens[behind].key, ()):
        size = said.end - said.start
        while wide and size < _SOURCE_CJK and size < place and not _parted(passage, place - size - 1):
            size += 1
        run = _Run(max(0, place - size), place)
        right = _weight_of(claim, behind, passage, place, 1)
        least = _NEXT_UNIT if said.end - 1 in claim.counted else _NEXT if counted else _ALONE_CJK
        if right < least or not place or _parted(passage, place - 1):
            continue
        own = first.value is not None or (_owns(passage, run) if counted else _begins(passage, run.start))
        if own and not passage.tokens[run.start].plain:
            yield run


def _owns(text: TokenText, run: _Run) -> bool:
    """Whether a name owns what stands behind it: Northfield's captain."""
    last = text.tokens[run.end - 1]
    return last.name and text.low[last.start : last.end].replace("’", "'").endswith("'s")


def _up_to(claim: TokenText, said: _Run, passage: TokenText, place: int, least: float) -> _Run | None:
    """What stands in the passage between `place` and the words behind a place of the claim."""
    behind, most = said.end, _SOURCE_CJK if claim.tokens[said.start].kind is TokenKind.CJK else _SOURCE
    if behind >= len(claim.tokens) or _parted(claim, behind - 1):
        return None
    for end in range(place + 2, min(len(passage.tokens), place + 2 + most)):
        if _parted(passage, end - 2):
            return None
        if passage.tokens[end].key == claim.tokens[behind].key and not _parted(passage, end - 1):
            fits = _weight_of(claim, behind, passage, end, 1) >= least
            return _Run(place + 1, end) if fits else None
    return None


def _weight_of(claim: TokenText, place: int, passage: TokenText, other: int, step: int) -> float:
    """What the words weigh that both texts have from these places on, in one direction."""
    weight = 0.0
    for _ in range(_SIDE):
        if not (0 <= place < len(claim.tokens) and 0 <= other < len(passage.tokens)):
            break
        token = claim.tokens[place]
        if token.key != passage.tokens[other].key:
            break
        weight += _weight(token)
        if _parted(claim, min(place, place + step)) or _parted(passage, min(other, other + step)):
            break
        place, other = place + step, other + step
    return weight


def _weight(token: Token) -> float:
    if token.kind is TokenKind.CJK:
        return _PLAIN_CHARACTER if token.plain else _CHARACTER
    return _PLAIN if token.plain or token.kind is TokenKind.SIGN else _WORD


def _parted(text: TokenText, place: int) -> bool:
    """Whether a clause ends behind a token."""
    return not 0 <= place < len(text.tokens) or text.parted[place]


def _begins(text: TokenText, place: int) -> bool:
    return place == 0 or _parted(text, place - 1)


def _ends(text: TokenText, end: int) -> bool:
    return end >= len(text.tokens) or _parted(text, end - 1)


def _of(text: TokenText, run: _Run) -> tuple[Token, ...]:
    return text.tokens[run.start : run.end]


def _is_like(claim: TokenText, said: _Run, passage: TokenText, other: _Run) -> bool:
    """Whether what stands in the passage is of the kind of what the claim has there."""
    ours, theirs = _of(claim, said), _of(passage, other)
    if not theirs or all(token.plain for token in theirs):
        return False
    if (ours[0].value is None) != all(token.value is None for token in theirs):
        return False
    if ours[0].kind is TokenKind.CJK:
        return _is_known(claim, said, passage) or len(claim.slice(*said)) == len(passage.slice(*other))
    if ours[0].name:
        return any(token.name or token.key in _pronouns() for token in theirs)
    weighty = [token for token in theirs if not token.plain]
    return ours[0].value is not None or (len(weighty) == 1 and not _ACTING.fullmatch(weighty[0].key))


def _is_same(claim: TokenText, said: _Run, passage: TokenText, other: _Run) -> bool:
    """Whether it may be the same, in other words."""
    ours, theirs = _of(claim, said), _of(passage, other)
    if any(token.denies or token.key in _pronouns() for token in theirs):
        return True
    if all(token.key in light_words() for token in ours):
        return True
    if ours[0].name and ours[0].kind is not TokenKind.CJK and _is_one_name(claim, said, passage, other):
        return True
    return not {stem_of(token.key) for token in ours}.isdisjoint(stem_of(token.key) for token in theirs)


def _is_one_name(claim: TokenText, said: _Run, passage: TokenText, other: _Run) -> bool:
    """Whether two names are parts of one, or one has the other's initials."""
    start, end = other
    while start and passage.tokens[start - 1].name and not _parted(passage, start - 1):
        start -= 1
    while end < len(passage.tokens) and passage.tokens[end].name and not _parted(passage, end - 1):
        end += 1
    own = {token.key for token in _of(claim, said)}
    if not own.isdisjoint(passage.keys[start:end]):
        return True
    first = said.start
    while first and claim.tokens[first - 1].name:
        first -= 1
    initials = "".join(key[0] for key in claim.keys[first : said.end])
    return any(
        key in {initials, "".join(k[0] for k in passage.keys[start:end])} for key in (*passage.keys[start:end], *own)
    )


@derived
def _joints() -> frozenset[str]:
    """Before a word that acts, rather than one that names."""
    words = (word for language in languages() for word in (*language.claims.pronouns, language.claims.joint))
    return frozenset(words)


@derived
def _pronouns() -> frozenset[str]:
    return frozenset(word for language in languages() for word in language.claims.pronouns)
