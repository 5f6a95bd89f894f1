"""The checks of a claim against a passage, each a function with a name. Pure, no model.

Each takes the claim beside the passage and returns what is wrong, in a few words, or None. `CHECKS` is their order: the
first that objects gives the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from shared.grounding.alignment import NEAR, Alignment, Deviation
from shared.grounding.coverage import content_units, coverage, is_unit
from shared.grounding.frames import replaced
from shared.grounding.modality import denied_twice, denied_word, hedged, quantified, withdrawn
from shared.grounding.names import names
from shared.grounding.numbers import moved_numbers, numbers, older_value, other_measure
from shared.grounding.numerals import number_joints
from shared.grounding.opposites import either, opposed_table
from shared.grounding.order import opposite_beside, reversed_order
from shared.grounding.rates import other_rate
from shared.grounding.relations import changed_sides, dated_order, same_sides
from shared.grounding.roles import roles, weighs
from shared.grounding.segments import other_part
from shared.grounding.splices import other_agent, other_half, other_member, other_sentence
from shared.grounding.subjects import other_speaker
from shared.grounding.texts import CLAUSE_MARKS, Token, TokenKind, TokenText, cjk_pairs, light_words, stem_of
from shared.language import claim_pattern

#: Group of opposed words -> cell -> the word of it that stands there.
Cells = dict[int, dict[int, str]]
Check = Callable[[Alignment], str | None]
#: From this share on, a word that the passage does not have is a change of it even where it replaces none.
REPEATS = 0.72
_CONTEXT = 2
#: Words of weight behind a denial that it may speak of.
_SCOPE = 3
#: From this share of its words on a clause says little else than the claim.
_SAME_CLAUSE = 0.6
#: Characters of a name or word that takes the place of another one.
_NAME, _LONG_NAME = 4, 7
#: From this share of a claim's words of weight on, a sentence speaks of the same matter.
_SAME_MATTER = 0.65


def negation(found: Alignment) -> str | None:
    """Claim and passage deny the same; what is denied twice is said."""
    if denied_twice(found) or _by_opposite(found) or _by_implication(found):
        return None
    if reason := _denied(found):
        return reason
    if found.share < NEAR:
        return _polarity(found)
    if _same_denied(found):
        return None
    return _denied_between(found) or _denied_nowhere(found)


def _denied_nowhere(found: Alignment) -> str | None:
    """Where a claim repeats a sentence and denies, the sentence does: its denial may be half of a double one."""
    numbers, clauses = found.passage.sentence_numbers, found.passage.clauses
    own = {numbers[clauses[one][0]] for one in found.evidence} | set(numbers[found.start : found.end])
    denies = any(token.denies for number in own for token in found.passage.sentences[number])
    return None if denies or not found.claim.denies else "the passage does not deny it"


def _denied_between(found: Alignment) -> str | None:
    """Between the words that both have, one denies and the other does not."""
    for deviation in found.deviations:
        said, source = found.said(deviation), found.source(deviation)
        denied, denies = any(token.denies for token in said), any(token.denies for token in source)
        if denied and not denies:
            return f"the passage does not deny it (“{_words(found, said)}”)"
        if denies and not denied and _reaches_on(found, deviation):
            return f"the passage denies it (“{found.passage.slice(*deviation.source)}”)"
    return None


def opposed(found: Alignment) -> str | None:
    """No word of the claim stands where the passage has its opposite, another order, direction or quantity."""
    if same_sides(found) or _by_opposite(found):
        return None
    for ours, theirs in _compared(found):
        for group, cells in ours.items():
            others = theirs.get(group, {})
            if others and cells.keys().isdisjoint(others):
                return f"“{next(iter(cells.values()))}” stands where the passage has “{next(iter(others.values()))}”"
    return None


def _compared(found: Alignment) -> Iterator[tuple[Cells, Cells]]:
    """The opposed words of claim and passage where they differ; in words of its own, of the closest sentence."""
    if found.share >= NEAR:
        for deviation in found.deviations:
            said, source = deviation.said, deviation.source
            if said[0] < said[1] and source[0] < source[1]:
                yield _cells(_around(found, said, claim=True)), _cells(_around(found, source, claim=False))
    elif found.evidence and _closest(found) and not found.claim.denies:
        yield _cells(found.claim.low), _cells(" , ".join(found.clause(one) for one in found.evidence))


def changed(found: Alignment) -> str | None:
    """Between the passage's own words, no other word of weight takes a place."""
    if same_sides(found) or _by_opposite(found):
        return None
    for deviation in _near(found):
        said = [token for token in found.said(deviation) if weighs(token)]
        source = [token for token in found.source(deviation) if weighs(token)]
        if found.share < REPEATS and not source and not _adds(found, deviation):
            continue
        if _is_other_name(found, deviation, said, source):
            return f"“{found.claim.slice(*deviation.said)}” stands where the passage has another word"
        for place, token in enumerate(said):
            known = (
                token.key in light_words()
                or is_unit(token, found.claim)
                or _stands(token, said[place + 1 : place + 2], found)
            )
            if known or any(_same(token, other) for other in source):
                continue
            if token.kind is TokenKind.CJK and not (
                _is_other_word(said[place : place + 2], found) or _is_other_character(found, deviation)
            ):
                continue
            return f"“{found.claim.text[token.start : token.end]}” is not in the passage"
    return None


def _adds(found: Alignment, deviation: Deviation) -> bool:
    """Whether the claim adds something to a list: "lorries and buses"."""
    words = found.said(deviation)
    return bool(words) and deviation.said[0] > 0 and words[0].key in number_joints()


def _is_other_name(found: Alignment, deviation: Deviation, said: Sequence[Token], source: Sequence[Token]) -> bool:
    """Whether CJK characters have taken the place of others in the middle of the passage's words."""
    inside = deviation.said[0] > 0 and deviation.said[1] < len(found.claim.tokens)
    if not inside or not said or not source or any(token.kind is not TokenKind.CJK for token in (*said, *source)):
        return False
    if len(said) == len(found.said(deviation)) == 1:
        return found.share >= REPEATS and len(source) == len(found.source(deviation)) == 1
    same = {token.key for token in said} & {token.key for token in source}
    few = 2 * len(same) < len(said)
    return few and len(said) <= _NAME and len(source) <= _LONG_NAME and min(len(said), len(source)) > 1


def _is_other_character(found: Alignment, deviation: Deviation) -> bool:
    """Whether one CJK character that the passage has nowhere ends a clause where the passage has another one."""
    said, source = found.said(deviation), found.source(deviation)
    if len(said) != 1 or not source or found.share < REPEATS or said[0].key in found.passage.low:
        return False
    before = found.passage.tokens[deviation.source[0] - 1] if deviation.source[0] else source[0]
    joined = before.kind is source[0].kind is TokenKind.CJK and before.end == source[0].start
    return joined and not source[0].plain


def _is_other_word(tokens: Sequence[Token], found: Alignment) -> bool:
    """Whether two CJK characters side by side are a word of which the passage has nothing."""
    return len(list(cjk_pairs(tokens))) == 1 and not all(token.key in found.passage.known for token in tokens)


#: The order in which they are asked; the first that objects gives a verdict its kind.
CHECKS: tuple[tuple[str, Check], ...] = (
    ("number", numbers),
    ("name", names),
    ("number", moved_numbers),
    ("number", other_part),
    ("number", older_value),
    ("number", other_measure),
    ("number", other_rate),
    ("withdrawn", withdrawn),
    ("negation", negation),
    ("negation", denied_word),
    ("opposed", opposed),
    ("opposed", opposite_beside),
    ("roles", roles),
    ("roles", reversed_order),
    ("roles", changed_sides),
    ("roles", dated_order),
    ("roles", other_half),
    ("roles", other_sentence),
    ("roles", other_member),
    ("roles", other_agent),
    ("roles", other_speaker),
    ("hedged", hedged),
    ("quantity", quantified),
    ("changed", changed),
    ("replaced", replaced),
    ("coverage", coverage),
)
#: What these object to, the passage says otherwise; the others only do not find it.
CONTRADICTING = frozenset({"number", "name", "negation", "opposed", "roles"})


def _near(found: Alignment) -> Sequence[Deviation]:
    return found.deviations if found.share >= NEAR else ()


def _words(found: Alignment, tokens: Sequence[Token]) -> str:
    return found.claim.text[tokens[0].start : tokens[-1].end]


def _reaches_on(found: Alignment, deviation: Deviation) -> bool:
    """Whether a negation that the claim leaves out speaks of the words that it keeps."""
    tokens = found.passage.tokens
    last = max(place for place in range(*deviation.source) if tokens[place].denies)
    end = tokens[deviation.source[1]].start if deviation.source[1] < len(tokens) else len(found.passage.low)
    between = found.passage.low[tokens[last].end : end]
    return not CLAUSE_MARKS.search(between) and not claim_pattern("contrasts").search(between)


def _by_implication(found: Alignment) -> bool:
    """Whether one denies and the other has a word that implies it: "does not take part" and "is excluded"."""
    numbers = found.passage.sentence_numbers
    own = {numbers[found.passage.clauses[number][0]] for number in found.evidence[:1]}
    if not own:
        return False
    sentence = found.passage.sentences[own.pop()]
    low = found.passage.low[sentence[0].start : sentence[-1].end]
    ours, theirs = (any(token.denies for token in tokens) for tokens in (found.claim.tokens, sentence))
    if ours == theirs:
        return False
    implies, denying = (low, found.claim.low) if ours else (found.claim.low, low)
    return claim_pattern("implied").search(implies) is not None and claim_pattern("implied").search(denying) is None


def _by_opposite(found: Alignment) -> bool:
    """Whether one denies a word of which the other says the opposite: "not open" and "closed"."""
    if not found.claim.denies and not found.passage.denies:
        return False
    evidence = [place for number in found.evidence for place in range(*found.passage.clauses[number])]
    sides = ((found.claim, range(len(found.claim.tokens))), (found.passage, evidence))
    for (text, places), (other, others) in (sides, sides[::-1]):
        denied = {text.units[place] for place in places if text.units[place] and place in text.denied}
        said = [other.units[place] for place in others if other.units[place] and place not in other.denied]
        own = {text.units[place] for place in places}
        if any(either(one, two) for one in denied.difference(said) for two in said if two not in own):
            return True
    return False


def _same_denied(found: Alignment) -> bool:
    """Whether both deny once, and the same word."""
    numbers = found.passage.sentence_numbers
    own = {numbers[found.passage.clauses[number][0]] for number in found.evidence[:1]}
    evidence = [place for place, number in enumerate(numbers) if number in own]
    ours = [place for place in range(len(found.claim.tokens)) if found.claim.tokens[place].denies]
    theirs = [place for place in evidence if found.passage.tokens[place].denies]
    spans = [places[-1] - places[0] + 1 - len(places) if places else 1 for places in (ours, theirs)]
    if any(spans) or len(ours) > len(theirs) + 1:
        return False
    said = {unit for place, unit in enumerate(found.claim.units) if place in found.claim.denied}
    if _denied_whole(found.claim, found.passage, theirs) or _denied_whole(found.passage, found.claim, ours):
        return True
    return any(found.passage.units[n] in said for n in evidence if found.passage.units[n] and n in found.passage.denied)


def _denied_whole(text: TokenText, other: TokenText, denials: Sequence[int]) -> bool:
    """Whether the other text denies a clause with its first word, and has in it what this one denies: "no X was"."""
    for place in denials:
        first, last = other.clauses[other.clause_of[place]]
        own = {unit for unit in other.units[place + 1 : last] if unit}
        if place == first and own and own <= text.at.keys():
            return any(text.units[n] in own for n in text.denied if n < len(text.units))
    return False


def _denied(found: Alignment) -> str | None:
    """No clause that says little else than the claim denies it, where the claim denies nothing."""
    if found.claim.denies:
        return None
    for number in found.evidence:
        first, last = found.passage.clauses[number]
        units = [
            unit
            for unit, token in zip(found.passage.units[first:last], found.passage.tokens[first:last], strict=True)
            if unit and not token.denies
        ]
        if not units or sum(unit in found.claim.at for unit in units) < _SAME_CLAUSE * len(units):
            continue
        if denied := [found.passage.tokens[n] for n in range(first, last) if _denies_claim(found, n)]:
            return f"the passage denies it (“{found.passage.text[denied[0].start : denied[0].end]}”)"
    return None


def _denies_claim(found: Alignment, place: int) -> bool:
    """Whether a token of the passage denies, and denies something that the claim says."""
    passage = found.passage
    if not passage.tokens[place].denies:
        return False
    last = passage.clauses[passage.clause_of[place]][1]
    scope = [passage.units[n] for n in range(place + 1, last) if passage.units[n] and not passage.tokens[n].denies]
    return not scope or any(unit in found.claim.at for unit in scope[:_SCOPE])


def _polarity(found: Alignment) -> str | None:
    """Where a claim is in words of its own: the sentence that has most of them denies as the claim does."""
    sentence = _closest(found)
    if sentence is None:
        return None
    denied = found.claim.denies
    own = [found.passage.clauses[number] for number in found.evidence]
    denies = [found.passage.tokens[n] for clause in own for n in range(*clause) if _denies_claim(found, n)]
    units = {unit for unit in found.claim.units if unit}
    first, last = found.passage.clauses[found.evidence[0]] if found.evidence else (0, 0)
    same = len(units & set(found.passage.units[first:last])) >= _SAME_MATTER * len(units)
    within = found.passage.tokens[first:last] if same else sentence
    if denied and not any(token.denies for token in within):
        return "the passage does not deny it"
    if denies and not denied:
        return f"the passage denies it (“{found.passage.text[denies[0].start : denies[0].end]}”)"
    return None


def _closest(found: Alignment) -> Sequence[Token] | None:
    """The passage's sentence with most words of the claim; None where none has enough to speak of the same."""
    units = set(content_units(found.claim.tokens))
    best: Sequence[Token] = ()
    most = _SAME_MATTER * len(units)
    for sentence in found.passage.sentences:
        stands = len(units & (set(content_units(sentence))))
        if stands >= most and stands:
            best, most = sentence, stands
    return best or None


def _around(found: Alignment, span: tuple[int, int], *, claim: bool) -> str:
    text = found.claim if claim else found.passage
    if all(token.kind is not TokenKind.CJK for token in text.tokens[slice(*span)]):
        return text.slice(*span)
    return text.slice(max(0, span[0] - _CONTEXT), min(len(text.tokens), span[1] + _CONTEXT))


def _cells(text: str) -> Cells:
    """Group -> cell -> the word of it that stands in `text`."""
    pattern, cells = opposed_table()
    found: Cells = {}
    for word in pattern.findall(text):
        for group, cell in cells[word]:
            found.setdefault(group, {}).setdefault(cell, word)
    return found


def _stands(token: Token, behind: Sequence[Token], found: Alignment) -> bool:
    """Whether a word of the claim stands anywhere in the passage; a CJK character with its neighbour."""
    if token.kind is TokenKind.NUMBER:
        return True
    if token.kind is TokenKind.CJK:
        pair = next(cjk_pairs([token, *behind]), None)
        return (pair or token.key) in (found.passage.stems if pair else found.passage.known)
    return token.key in found.passage.known or stem_of(token.key) in found.passage.stems


def _same(token: Token, other: Token) -> bool:
    one, two = stem_of(token.key), stem_of(other.key)
    if one == two:
        return True
    short, long = sorted((one, two), key=len)
    return len(short) >= 4 and long.startswith(short[: max(4, len(short) - 2)])
