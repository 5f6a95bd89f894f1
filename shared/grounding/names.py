"""The check of a claim's names: each stands in the passage, beside the same words. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from shared.grounding.alignment import NEAR, Alignment
from shared.grounding.nearness import Fact, changed_places, surroundings
from shared.grounding.numerals import number_joints
from shared.grounding.opposites import opposed_table
from shared.grounding.subjects import other_voice
from shared.grounding.texts import Token, TokenKind, TokenText, month_of, stem_of

#: A pronoun may stand for a name of its own sentence or of so many before it.
_BACK = 3
_TWO = 2
#: So many more tokens than the claim's have no name in the place of the claim's.
_MORE = 4
_SHORT = 3
#: So much more like the claim's the surroundings of another name have to be: words are carried over from afar.
_FACTOR = 1.8


def names(found: Alignment) -> str | None:
    """Each name of the claim stands in the passage, beside the words that the claim has beside it."""
    for place, token in enumerate(found.claim.tokens):
        if token.name and place - 1 not in found.claim.counted and not _is_known(token, found):
            return f"“{found.claim.text[token.start : token.end]}” is not in the passage"
    return _replaced(found) or _moved(found)


def _replaced(found: Alignment) -> str | None:
    """Between the passage's own words stands no other name than there."""
    for deviation in found.deviations if found.share >= NEAR else ():
        if deviation.source[1] - deviation.source[0] > deviation.said[1] - deviation.said[0] + _MORE:
            continue
        said = [
            token
            for place, token in enumerate(found.said(deviation), deviation.said[0])
            if token.name and place - 1 not in found.claim.counted
        ]
        source = [token for token in found.source(deviation) if token.name and token.key not in opposed_table()[1]]
        if said and source and not _initials(said, source) and {t.key for t in said}.isdisjoint(t.key for t in source):
            words = found.claim.text[said[0].start : said[-1].end]
            return f"“{words}” stands where the passage has another name"
    return None


def _moved(found: Alignment) -> str | None:
    """No other name of the passage stands beside the words that the claim has beside its own."""
    passage, runs = found.passage, list(_runs(found.claim))
    theirs = [run for run in _runs(passage) if run[-1] not in passage.bracketed and _is_proper(passage, run)]
    if len(theirs) < _TWO:
        return None
    facts, others = [], []
    for run in runs:
        keys = {found.claim.tokens[place].key for place in run}
        own = _standing(found.passage, keys)
        if not own or not _is_proper(found.claim, run):
            continue
        facts.append(Fact(run[-1], tuple(own), surroundings(found.claim, run[-1], found.passage, names=False)))
        rivals = [one for one in theirs if not _is_with(passage, one, own)]
        others.append([one[-1] for one in rivals if keys.isdisjoint(passage.tokens[place].key for place in one)])
    if (moved := changed_places(facts, others, found, factor=_FACTOR)) is None:
        return None
    said, other = found.claim.tokens[moved[0].place], found.passage.tokens[moved[1]]
    if other.key in found.claim.known and _other_voice(found):
        return None
    words = found.claim.text[said.start : said.end], found.passage.text[other.start : other.end]
    return f"“{words[0]}” stands where the passage has “{words[1]}”"


def _is_with(text: TokenText, run: Sequence[int], own: Sequence[int]) -> bool:
    """Whether a name stands beside another one with nothing but "and" between them: the Klement brothers are both."""
    behind = run[-1] + 1
    joined = behind < len(text.tokens) and text.tokens[behind].key in number_joints()
    return joined and any(behind < place <= behind + _TWO for place in own)


def _other_voice(found: Alignment) -> bool:
    """Whether the claim's sentence is in the passive voice and the passage's is not, or the other way round."""
    clauses = (found.clause(number) for number in found.evidence[:1])
    return any(other_voice(found.claim.low, clause) for clause in clauses)


def _is_proper(text: TokenText, run: Sequence[int]) -> bool:
    """Whether a name is written as one of a person, place or work: no letters and digits of a formula."""
    word = text.text[text.tokens[run[-1]].start : text.tokens[run[-1]].end]
    return len(word) >= _SHORT and word.isalpha() and word[1:].islower()


def _standing(passage: TokenText, keys: set[str]) -> list[int]:
    """Where a name stands in the passage, and the pronouns that may stand for it."""
    own = sorted(place for key in keys for place in passage.keyed.get(key, ()))
    numbers = passage.sentence_numbers
    for place in passage.pronouns if own else ():
        before = bisect_left(own, place)
        if before and (numbers[place] - numbers[own[before - 1]] <= _BACK or not numbers[own[0]]):
            own.append(place)
    return own


def _runs(text: TokenText) -> Iterator[list[int]]:
    """The names of a text, each as the places of its words."""
    run: list[int] = []
    for place, token in enumerate(text.tokens):
        if run and not (token.name and text.low[text.tokens[run[-1]].end : token.start] in {" ", ". ", "-", "–"}):
            yield run
            run = []
        if token.name and not month_of(token.key):
            run.append(place)
    if run:
        yield run


def _is_known(token: Token, found: Alignment) -> bool:
    """Whether a name of the claim stands in the passage, by its letters, its stem, or its initials."""
    if token.key in found.passage.known or stem_of(token.key) in found.passage.stems:
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
