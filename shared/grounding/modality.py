"""The checks of what a claim leaves out or adds around a fact: doubt, plan, denial, condition, "all", "only". Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shared.grounding.alignment import NEAR, Alignment
from shared.grounding.texts import APART, TokenKind, TokenText
from shared.language import alternatives, claim_pattern, derived, languages

#: A hedge speaks of the word behind it, of so many pairs where characters are not parted by spaces.
_BEHIND = 3
#: So many words behind one that tells of a rumour may be what it is of.
_REACH = 3
#: Tokens before a word in which it may be denied.
_DENIED = 2
#: Of the words of a condition a claim that says it has one of so many.
_MOST_OF = 3


def withdrawn(found: Alignment) -> str | None:
    """The passage does not take back, doubt, or make conditional what the claim says as a fact."""
    for before in _before(found):
        for language in languages():
            table = language.claims
            if (word := table.withdrawal.search(before)) and not table.withdrawal.search(found.claim.low):
                return f"the passage says it with “{word[0]}”"
            if (word := table.condition.search(before)) and not claim_pattern("conditional").search(found.claim.low):
                return f"the passage says it under a condition (“{word[0].strip()}”)"
    return _exception(found) or _past(found)


def _past(found: Alignment) -> str | None:
    """What the claim says to be so is not what the passage says was so."""
    if claim_pattern("former").search(found.claim.low) or claim_pattern("past").search(found.claim.low):
        return None
    words = (_before_claim(found, number, claim_pattern("former")) for number in found.evidence)
    return next((f"the passage says it of the past (“{word[0].strip()}”)" for word in words if word), None)


def _before(found: Alignment) -> Iterator[str]:
    """What stands in the passage's sentence before the words that the claim repeats."""
    if found.share < NEAR or not found.passage.tokens:
        return
    place = found.passage.tokens[found.start].start
    yield found.passage.low[found.passage.sentence_start(place) : place]


def _exception(found: Alignment) -> str | None:
    """No clause beside the claim's begins with "unless" or "if" where the claim has no condition."""
    if claim_pattern("conditional").search(found.claim.low):
        return None
    if word := _bound(found):
        return f"the passage says it under a condition (“{word[0].strip()}”)"
    numbers, clauses = found.passage.sentence_numbers, found.passage.clauses
    for number in found.evidence[:1]:
        for other in (number - 1, number + 1):
            if not 0 <= other < len(clauses) or other in found.evidence:
                continue
            if numbers[clauses[other][0]] != numbers[clauses[number][0]] or _is_apart(found.passage, number, other):
                continue
            text = found.clause(other)
            for language in languages():
                if word := language.claims.condition.search(text):
                    return f"the passage says it under a condition (“{word[0].strip()}”)"
    return None


def _bound(found: Alignment) -> re.Match[str] | None:
    """What bounds the clause that says most of the claim, and is none of the claim's words: "only with consent"."""
    tokens = found.passage.tokens
    for first, last in (found.passage.clauses[number] for number in found.evidence[:2]):
        word = claim_pattern("bounds").search(found.passage.low, tokens[first].start, tokens[last - 1].end)
        if word is None:
            continue
        behind = [n for n in range(first, last) if tokens[n].start >= word.start() and found.passage.units[n]]
        before = [n for n in range(first, last) if tokens[n].start < word.start() and found.passage.units[n]]
        said = [sum(found.passage.units[n] in found.claim.at for n in places) for places in (before, behind)]
        if said[0] and behind and 2 * said[1] < len(behind):
            return word
    return None


def _is_apart(passage: TokenText, one: int, other: int) -> bool:
    """Whether more than a comma stands between two neighbouring clauses."""
    first, last = sorted((one, other))
    tokens, end = passage.tokens, passage.clauses[first][1]
    return bool(APART.search(passage.low, tokens[end - 1].end, tokens[passage.clauses[last][0]].start))


def denied_twice(found: Alignment) -> bool:
    """Whether one of claim and passage denies twice what the other says without a denial: "not without"."""
    sentences = found.passage.sentence_numbers
    for number in found.evidence[:1]:
        sentence = found.passage.sentences[sentences[found.passage.clauses[number][0]]]
        low = found.passage.low[sentence[0].start : sentence[-1].end]
        ours, theirs = (claim_pattern("twice").search(text) for text in (found.claim.low, low))
        if (ours is None) == (theirs is None) or any(one.denies for one in (sentence if ours else found.claim.tokens)):
            return False
        start = sentence[0].start
        return theirs is None or _says_condition(found, start + theirs.start(), start + theirs.end())
    return False


def _says_condition(found: Alignment, start: int, end: int) -> bool:
    """Whether the claim says what stands behind "without" in a double denial of the passage at these characters.

    "You may not enter without a badge": with a badge one may; "you may enter" leaves that out.
    """
    passage = found.passage
    tokens = [n for n, token in enumerate(passage.tokens) if token.end > start]
    behind = [n for n in tokens if passage.tokens[n].start >= end]
    last = [n for n in tokens if passage.tokens[n].start < end][-1]
    leads = behind and claim_pattern("conditional").fullmatch(passage.low, passage.tokens[last].start, end)
    first = behind[0] if leads else tokens[0]
    units = [passage.units[n] for n in tokens if n >= first and passage.clause_of[n] == passage.clause_of[first]]
    held = [unit for unit in units if unit and unit in found.claim.at]
    return _MOST_OF * len(held) >= sum(map(bool, units))


def denied_word(found: Alignment) -> str | None:
    """No word that the claim says is denied in the passage wherever it stands."""
    claim, passage = found.claim, found.passage
    if claim.denies or denied_twice(found):
        return None
    for place, unit in enumerate(claim.units):
        token = claim.tokens[place]
        if not unit or token.name or token.value is not None:
            continue
        standing = passage.at.get(unit, ())
        if standing and all(_is_denied(passage, one) for one in standing):
            return f"the passage denies it (“{passage.slice(max(0, standing[0] - _DENIED), standing[0] + 1)}”)"
    return None


def _is_denied(text: TokenText, place: int) -> bool:
    """Whether a denial stands right before a word, or with a plain word between them."""
    reach = 1 if text.tokens[place].kind is TokenKind.CJK else _DENIED
    before = text.tokens[max(0, place - reach) : place]
    last = next((n for n in range(len(before) - 1, -1, -1) if before[n].denies), None)
    return last is not None and all(token.plain or token.denies for token in before[last:])


def hedged(found: Alignment) -> str | None:
    """The claim is no surer than the passage."""
    if _any_hedge().search(found.claim.low):
        return None
    told = claim_pattern("attributed").search(found.claim.low)
    present = claim_pattern("present").sub(" ", found.claim.low)
    done = claim_pattern("done").search(present) and not claim_pattern("future").search(found.claim.low)
    for number in found.evidence:
        text = found.clause(number)
        if (word := _softened(found, number)) or (
            not told and (word := _before_claim(found, number, claim_pattern("rumours"), _REACH))
        ):
            return f"the passage says it with “{word[0].strip()}”"
        if done and (word := _planned(found, number) or claim_pattern("future").search(text)):
            return f"the passage says it with “{word[0].strip()}”, the claim as done"
    return None


def _planned(found: Alignment, number: int) -> re.Match[str] | None:
    """The word of a clause that says that something is wanted, unless all that is behind it is none of the claim's."""
    first, last = found.passage.clauses[number]
    tokens, units = found.passage.tokens, found.passage.units
    for word in claim_pattern("plans").finditer(found.passage.low, tokens[first].start, tokens[last - 1].end):
        behind = [units[n] for n in range(first, last) if tokens[n].start >= word.end() and units[n]]
        if not behind or any(unit in found.claim.at for unit in behind):
            return word
    return None


def _softened(found: Alignment, number: int) -> re.Match[str] | None:
    """The hedge of a clause right before words of the claim, or one with which the clause before it ends."""
    first = found.passage.clauses[number][0]
    tokens, numbers = found.passage.tokens, found.passage.sentence_numbers
    if number and numbers[first] == numbers[first - 1]:
        start = found.passage.clauses[number - 1][0]
        for word in claim_pattern("hedges").finditer(found.passage.low, tokens[start].start, tokens[first - 1].end):
            if word.end() == tokens[first - 1].end:
                return word
    return _before_claim(found, number, claim_pattern("hedges"))


def _before_claim(found: Alignment, number: int, words: re.Pattern[str], reach: int = 1) -> re.Match[str] | None:
    """One of some words that stands in a clause right before words of the claim."""
    first, last = found.passage.clauses[number]
    tokens = found.passage.tokens
    for word in words.finditer(found.passage.low, tokens[first].start, tokens[last - 1].end):
        behind = [
            place for place in range(first, last) if tokens[place].start >= word.end() and found.passage.units[place]
        ]
        near = _BEHIND if behind and tokens[behind[0]].kind is TokenKind.CJK else reach
        if any(found.passage.units[place] in found.claim.at for place in behind[:near]):
            return word
    return None


def quantified(found: Alignment) -> str | None:
    """The claim says "all", "only", "first" or "must" only of what the passage does."""
    if found.claim.denies:
        return None
    sentences = list(_sentences(found))
    for said, allowed in _quantities():
        word = said.search(found.claim.low)
        if word and not any(allowed.search(text) for text in sentences):
            return f"the passage does not say “{word[0]}”"
    return None


def quantities_in(low: str) -> frozenset[str]:
    """The words of a lower-case text that say "all", "only", "first", "must"."""
    return frozenset(word[0] for said, _ in _quantities() if (word := said.search(low)))


def _sentences(found: Alignment) -> Iterator[str]:
    """The sentences in which the claim's words stand."""
    numbers = {found.passage.sentence_numbers[found.passage.clauses[one][0]] for one in found.evidence}
    if found.share >= NEAR:
        numbers.update(found.passage.sentence_numbers[found.start : found.end])
    for number in numbers:
        tokens = found.passage.sentences[number]
        yield found.passage.low[tokens[0].start : tokens[-1].end]


@derived
def _quantities() -> list[tuple[re.Pattern[str], re.Pattern[str]]]:
    """Patterns of what a claim may say, each with that of what the passage then says."""
    rows = [row for language in languages() for row in language.claims.quantities]
    return [(re.compile(said), re.compile(f"{said}|{allowed}")) for said, allowed in rows]


@derived
def _any_hedge() -> re.Pattern[str]:
    return re.compile(
        alternatives(
            lambda language: [
                language.claims.hedges,
                language.claims.rumours,
                language.claims.plans,
                language.claims.modest,
            ]
        )
    )
