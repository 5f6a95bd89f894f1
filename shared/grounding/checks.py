"""The checks of a claim against a passage, each a function with a name. Pure, no model.

Each takes the claim beside the passage and returns what is wrong, in a few words, or None. `CHECKS` is their order: the
first that objects gives the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from itertools import pairwise

from shared.grounding.alignment import Alignment, Deviation
from shared.grounding.tokens import CLAUSE_MARKS, Token, TokenKind, TokenText, cjk_pairs, is_scale, scaled, stem_of
from shared.language import alternatives, derived, languages

#: Group of opposed words -> cell -> the word of it that stands there.
Cells = dict[int, dict[int, str]]
Check = Callable[[Alignment], str | None]
#: From this share of a claim's tokens on it repeats its source, and each deviation is looked at by itself.
NEAR = 0.6
#: From this share on, a word that the passage does not have is a change of it even where it replaces none.
REPEATS = 0.72
#: Below this share of content words, a claim in words of its own is not what the passage says.
LEAST_COVERAGE = 0.55
#: Tokens that a hedge, or what stands between two names, has at most.
_FEW = 4
_CONTEXT = 2
#: From this share of a claim's words of weight on, a sentence speaks of the same matter.
_SAME_MATTER = 0.65


def numbers(found: Alignment) -> str | None:
    """Each number of the claim stands in the passage, and in the same place where the words around it do."""
    for token, values in _unseen_numbers(found):
        if not values & found.passage.values:
            return f"{found.claim.text[token.start : token.end]} is not in the passage"
    for deviation in _near(found):
        said = found.claim.values_in(*deviation.said)
        source = found.passage.values_in(*deviation.source)
        if source and (other := said - source):
            return f"{other.pop():f} stands where the passage has another number"
    return None


def names(found: Alignment) -> str | None:
    """Each name of the claim stands in the passage, and in the same place where the words around it do."""
    for token in found.claim.tokens:
        if token.name and not _is_known(token, found):
            return f"“{found.claim.text[token.start : token.end]}” is not in the passage"
    for deviation in _near(found):
        said = [token for token in found.said(deviation) if token.name]
        source = [token for token in found.source(deviation) if token.name]
        if said and source and not _initials(said, source) and {t.key for t in said}.isdisjoint(t.key for t in source):
            return f"“{_words(found, said)}” stands where the passage has another name"
    return None


def negation(found: Alignment) -> str | None:
    """Claim and passage deny the same."""
    if found.share < NEAR:
        return _polarity(found)
    for deviation in found.deviations:
        said, source = found.said(deviation), found.source(deviation)
        denied, denies = any(token.denies for token in said), any(token.denies for token in source)
        if denied and not denies:
            return f"the passage does not deny it (“{_words(found, said)}”)"
        if denies and not denied and _reaches_on(found, deviation):
            return f"the passage denies it (“{found.passage.slice(*deviation.source)}”)"
    return None


def withdrawn(found: Alignment) -> str | None:
    """The passage does not take back, doubt, or make conditional what the claim says as a fact."""
    if found.share < NEAR or not found.passage.tokens:
        return None
    place = found.passage.tokens[found.start].start
    before = found.passage.low[found.passage.sentence_start(place) : place]
    for language in languages():
        if (word := language.claims.withdrawal.search(before)) and not language.claims.withdrawal.search(
            found.claim.low
        ):
            return f"the passage says it with “{word[0]}”"
        if (word := language.claims.condition.search(before)) and not language.claims.condition.search(found.claim.low):
            return f"the passage says it under a condition (“{word[0].strip()}”)"
    return None


def opposed(found: Alignment) -> str | None:
    """No word of the claim stands where the passage has its opposite, another order, direction or quantity."""
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
    elif sentence := _closest(found):
        yield _cells(found.claim.low), _cells(found.passage.low[sentence[0].start : sentence[-1].end])


def hedged(found: Alignment) -> str | None:
    """The claim is no surer than the passage."""
    for deviation in _near(found):
        source, said = found.passage.slice(*deviation.source), found.claim.slice(*deviation.said)
        word = _hedge().search(source)
        if word and not _hedge().search(said) and deviation.source[1] - deviation.source[0] <= _FEW:
            return f"the passage says it with “{word[0]}”"
    return None


def roles(found: Alignment) -> str | None:
    """Two names with a word between them stand in the passage's order, or in the other one with its voice turned."""
    ours = _triples(found.claim)
    theirs = _triples(found.passage) if ours else set()
    for one, word, other in ours - theirs:
        if (other, word, one) in theirs:
            return f"“{one}” and “{other}” change places"
    return None


def changed(found: Alignment) -> str | None:
    """Between the passage's own words, no other word of weight takes a place."""
    for deviation in _near(found):
        said = [token for token in found.said(deviation) if _weighs(token)]
        source = [token for token in found.source(deviation) if _weighs(token)]
        if found.share < REPEATS and not source:
            continue
        for place, token in enumerate(said):
            if _stands(token, said[place + 1 : place + 2], found) or any(_same(token, other) for other in source):
                continue
            return f"“{found.claim.text[token.start : token.end]}” is not in the passage"
    return None


def coverage(found: Alignment) -> str | None:
    """Enough of the claim's words of weight stand in the passage."""
    units = content_units(found.claim.tokens)
    if not units:
        return None
    known = sum(unit in found.passage.stems or _synonyms(unit) & found.passage.stems != frozenset() for unit in units)
    share = known / len(units)
    if share < LEAST_COVERAGE:
        return f"only {known} of its {len(units)} words of weight are in the passage"
    return None


#: The order in which they are asked; the first that objects gives a verdict its kind.
CHECKS: dict[str, Check] = {
    "number": numbers,
    "name": names,
    "negation": negation,
    "withdrawn": withdrawn,
    "opposed": opposed,
    "roles": roles,
    "hedged": hedged,
    "changed": changed,
    "coverage": coverage,
}
#: What these object to, the passage says otherwise; the others only do not find it.
CONTRADICTING = frozenset({"number", "name", "negation", "opposed", "roles"})


def content_units(tokens: Sequence[Token]) -> list[str]:
    """What coverage counts: stems of words of weight, numbers, and pairs of neighbouring CJK characters."""
    words = [stem_of(token.key) for token in tokens if token.kind is not TokenKind.CJK and _weighs(token)]
    return words + list(cjk_pairs([token for token in tokens if not token.plain]))


def _unseen_numbers(found: Alignment) -> Iterator[tuple[Token, set[Decimal]]]:
    """The numbers of the claim that are not written so in the passage, and what each may be there."""
    tokens = found.claim.tokens
    for place, token in enumerate(tokens):
        behind = tokens[place + 1 : place + 2]
        if token.kind is not TokenKind.NUMBER or (
            token.key in found.passage.known and not (behind and is_scale(behind[0]))
        ):
            continue
        value = token.value
        if value == 1 and not found.claim.text[token.start].isdigit():
            continue
        yield token, set() if value is None else set(scaled(value, behind)) or {value}


def _near(found: Alignment) -> Sequence[Deviation]:
    return found.deviations if found.share >= NEAR else ()


def _is_known(token: Token, found: Alignment) -> bool:
    """Whether a name of the claim stands in the passage, by its letters, its stem, or its initials."""
    if token.key in found.passage.known or stem_of(token.key) in found.passage.stems:
        return True
    if _synonyms(stem_of(token.key)) & found.passage.stems:
        return True
    word = found.claim.text[token.start : token.end]
    short = word.removesuffix("s").lower()
    if not word.removesuffix("s").isupper() or len(short) < 2:
        return False
    explained = found.claim.text[: token.start].rstrip().endswith("(")
    return short in found.passage.stems or (
        (explained or len(short) > 2)
        and short in _initial_letters(found.claim.tokens if explained else found.passage.tokens)
    )


def _initial_letters(tokens: Sequence[Token]) -> str:
    return "".join(token.key[0] for token in tokens if token.kind is TokenKind.WORD)


def _initials(said: Sequence[Token], source: Sequence[Token]) -> bool:
    """Whether one is the other's initials."""
    short, long = sorted((said, source), key=len)
    return len(short) == 1 and short[0].key == "".join(token.key[0] for token in long)


def _words(found: Alignment, tokens: Sequence[Token]) -> str:
    return found.claim.text[tokens[0].start : tokens[-1].end]


def _reaches_on(found: Alignment, deviation: Deviation) -> bool:
    """Whether a negation that the claim leaves out speaks of the words that it keeps."""
    tokens = found.passage.tokens
    last = max(place for place in range(*deviation.source) if tokens[place].denies)
    end = tokens[deviation.source[1]].start if deviation.source[1] < len(tokens) else len(found.passage.low)
    between = found.passage.low[tokens[last].end : end]
    return not CLAUSE_MARKS.search(between) and not _contrast().search(between)


def _polarity(found: Alignment) -> str | None:
    """Where a claim is in words of its own: the sentence that has most of them denies as the claim does."""
    sentence = _closest(found)
    if sentence is None:
        return None
    denied = any(token.denies for token in found.claim.tokens)
    denies = [token for token in sentence if token.denies]
    if denied and not denies:
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
    pattern, cells = _opposed()
    found: Cells = {}
    for word in pattern.findall(text):
        for group, cell in cells[word]:
            found.setdefault(group, {}).setdefault(cell, word)
    return found


def _triples(text: TokenText) -> set[tuple[str, str, str]]:
    """Pairs of names with one word of weight between them; in the passive voice, the one who acts comes first."""
    found = set()
    tokens = text.tokens
    capitals = [place for place, token in enumerate(tokens) if not token.plain and text.text[token.start].isupper()]
    for first, second in pairwise(capitals):
        between = tokens[first + 1 : second]
        weighty = [token for token in between if _weighs(token)]
        if len(weighty) != 1 or weighty[0].kind is not TokenKind.WORD or len(between) > _FEW:
            continue
        turned = _passive().search(text.slice(first + 1, second)) is not None
        one, other = (second, first) if turned else (first, second)
        found.add((tokens[one].key, stem_of(weighty[0].key), tokens[other].key))
    return found


def _weighs(token: Token) -> bool:
    return not token.plain and not token.denies and token.kind is not TokenKind.SIGN


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
    if one == two or two in _synonyms(one):
        return True
    short, long = sorted((one, two), key=len)
    return len(short) >= 4 and long.startswith(short[: max(4, len(short) - 2)])


@derived
def _synonyms(stem: str) -> frozenset[str]:
    return frozenset(
        stem_of(word)
        for language in languages()
        for row in language.claims.same
        if stem in {stem_of(word) for word in row}
        for word in row
    )


@derived
def _opposed() -> tuple[re.Pattern[str], dict[str, list[tuple[int, int]]]]:
    cells: dict[str, list[tuple[int, int]]] = {}
    groups = [group for language in languages() for group in language.claims.opposed]
    for group, rows in enumerate(groups):
        for cell, words in enumerate(rows):
            for word in words:
                cells.setdefault(word, []).append((group, cell))
    ordered = sorted(cells, key=len, reverse=True)
    return re.compile("|".join(rf"\b{re.escape(w)}\b" if w.isascii() else re.escape(w) for w in ordered)), cells


@derived
def _hedge() -> re.Pattern[str]:
    return re.compile(alternatives(lambda language: [language.claims.hedges]))


@derived
def _passive() -> re.Pattern[str]:
    return re.compile(alternatives(lambda language: [language.claims.passive]))


@derived
def _contrast() -> re.Pattern[str]:
    return re.compile(alternatives(lambda language: [language.claims.contrasts]))
