"""The tokens of a text with their places: words, numbers by their value, single CJK characters. Pure, linear."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

from shared.grounding.numerals import (
    fraction_mark,
    fraction_of,
    measured_by,
    number_joints,
    number_of,
    number_words,
    numeral_characters,
    numeral_of,
    ordinals,
    parts,
    scales,
    sign_before,
    sums,
    unit_behind,
    wholes,
    written,
)
from shared.grounding.opposites import opposed_table
from shared.grounding.texts import Token, TokenKind, TokenText, sentence_ends
from shared.language import alternatives, claim_pattern, derived, languages
from shared.language.text import CJK, normalised, without_accents

_TENS = range(20, 100, 10)
_TEN, _HUNDRED = 10, 100
_CHARACTERS = 8192
#: A token is made for each word of a passage: without the call by which a named tuple is made otherwise.
_made = tuple.__new__
_KINDS = {
    "fraction": TokenKind.CJK,
    "numeral": TokenKind.CJK,
    "number": TokenKind.NUMBER,
    "cjk": TokenKind.CJK,
    "word": TokenKind.WORD,
    "sign": TokenKind.SIGN,
}


@lru_cache(maxsize=512)
def tokens_of(text: str) -> TokenText:
    """The tokens of `text`. The passages of an answer are read once for all of its sentences."""
    low = _lower(text)
    denied = _denied(low)
    starts, plain = _starts(text), _plain()
    below = {found.end() for found in claim_pattern("negative").finditer(low)}
    halves = {found.start(): found.end() for found in claim_pattern("half").finditer(low)}
    tokens: list[Token] = []
    words, spelt, read = _lexemes(), number_words(), 0
    for found in _token().finditer(low):
        start, end = found.span()
        if start < read:
            continue
        group, said = found.lastgroup, found[0]
        denies = bool(denied) and not denied.isdisjoint(range(start, end))
        if start in halves:
            read = halves[start]
            tokens += _share(Decimal(50), start, read, denies=denies)
        elif group == "word":
            key, kind, light, value = _word(said)
            name = text[start].isupper() and start not in starts
            tokens.append(_made(Token, (key, start, end, kind, light and not name, name, denies, value)))
        elif group == "cjk" and low.startswith(words.get(said, ()), start):
            word = next(one for one in words[said] if low.startswith(one, start))
            read = start + len(word)
            tokens.append(Token(word, start, read, TokenKind.WORD, word in plain, denies=denies))
        elif group == "cjk" and said not in spelt:
            tokens.append(_made(Token, (said, start, end, TokenKind.CJK, said in plain, False, denies, None)))
        elif group == "fraction" and (share := fraction_of(said)) is not None:
            tokens += _share(share, start, end, denies=denies)
        elif group is not None and group != "ending":
            value = _value_of(said, group)
            value = -value if value is not None and start in below else value
            one = Token(said, start, end, _KINDS[group], said in plain, denies=denies)
            tokens.append(one if value is None else _number(value, start, end, denies=denies))
    named = frozenset(token.key for token in tokens if token.name)
    return TokenText(text, low, tuple(_whole_numbers(tokens, low))).with_names(named)


def _denied(low: str) -> set[int]:
    """The places of all characters of negations."""
    found = (word for language in languages() for word in language.claims.negation.finditer(low))
    return {place for word in found for place in range(*word.span())}


def _number(value: Decimal, start: int, end: int, *, denies: bool) -> Token:
    return Token(written(value), start, end, TokenKind.NUMBER, denies=denies, value=value)


def _share(value: Decimal, start: int, end: int, *, denies: bool) -> list[Token]:
    """The percentage that a word is, as a number and its sign."""
    return [_number(value, start, end - 1, denies=denies), Token("%", end - 1, end, TokenKind.SIGN, denies=denies)]


def _value_of(text: str, group: str) -> Decimal | None:
    if group == "number":
        return number_of(text)
    return numeral_of(text) if group in {"numeral", "cjk"} else None


@derived
def _word(text: str) -> tuple[str, TokenKind, bool, Decimal | None]:
    """The key and the kind of a word, whether it says nothing of its own, and its value if it is a number's."""
    key = without_accents(text.replace("’", "'")).removesuffix("'s")
    value = number_words().get(key, ordinals().get(key))
    if value is None:
        return key, TokenKind.WORD, key in _plain(), None
    return f"#{value}", TokenKind.NUMBER, False, Decimal(value)


def _whole_numbers(tokens: Sequence[Token], low: str) -> list[Token]:
    """The tokens, those that write one number together as one: twenty-four, 3.2 million, 8000万, a tenth of."""
    found, read, articles = list[Token](), 0, _articles()
    for place in [n for n, token in enumerate(tokens) if token.value is not None or token.key in articles]:
        token = tokens[place]
        article = token.key in articles and _is_part(tokens, place + 1, low)
        if place < read or (token.value is None and not article):
            continue
        found += tokens[read:place]
        value, read = (Decimal(1), place + 1) if article else _number_from(tokens, place, low)
        last = tokens[read - 1]
        if _is_part(tokens, read, low):
            share = value * parts()[low[tokens[read].start : tokens[read].end]]
            found.append(_number(share, token.start, token.end, denies=token.denies))
            found.append(Token("%", tokens[read].start, tokens[read].end, TokenKind.SIGN, denies=tokens[read].denies))
            read += 1
        else:
            found.append(token if read == place + 1 else _number(value, token.start, last.end, denies=token.denies))
    return [*found, *tokens[read:]]


def _is_part(tokens: Sequence[Token], place: int, low: str) -> bool:
    """Whether a word behind a number divides the whole: a third of, two thirds, 一成."""
    if place >= len(tokens):
        return False
    token = tokens[place]
    if low[token.start : token.end] not in parts() or token.start - tokens[place - 1].end > 1:
        return False
    if token.kind is TokenKind.CJK:
        return not any(one.start == token.end and one.kind is TokenKind.CJK for one in tokens[place + 1 : place + 2])
    before = low[: tokens[place - 1].start].rstrip().endswith(measured_by())
    return before or low.startswith(wholes(), token.end + 1) or low[token.end - 1] == "s"


def _number_from(tokens: Sequence[Token], place: int, low: str) -> tuple[Decimal, int]:
    """The number that the tokens from `place` on write together, and where they end."""
    total = last = tokens[place].value or Decimal(0)
    spelt = not low[tokens[place].start].isdigit()
    after = place + 1
    while after < len(tokens) and _is_next(tokens, after, low):
        token = tokens[after]
        factor = scales().get(token.key)
        if factor and unit_behind(low, tokens[after - 1].end):
            factor = None
        if after == place + 1 and token.key in sums() and sign_before(low, tokens[place].start):
            factor = sums()[token.key]
        if factor:
            more = total * factor if factor > total else total + last * (factor - 1)
            total, last = more, more if factor > total else last * factor
        elif spelt and _is_added(last, token, low):
            total, last = total + (token.value or 0), token.value or last
        elif not (spelt and last >= _HUNDRED and token.key in number_joints() and _adds_next(tokens, after, last, low)):
            break
        after += 1
    return total, after


def _adds_next(tokens: Sequence[Token], place: int, last: Decimal, low: str) -> bool:
    """Whether the number goes on behind an "and"."""
    behind = place + 1
    return behind < len(tokens) and _is_next(tokens, behind, low) and _is_added(last, tokens[behind], low)


def _is_added(last: Decimal, token: Token, low: str) -> bool:
    """Whether a number word is added to the one before it: twenty-four, two hundred five."""
    if token.value is None or low[token.start].isdigit():
        return False
    return (last in _TENS and 0 < token.value < _TEN) or (last >= _HUNDRED and token.value < last)


def _is_next(tokens: Sequence[Token], place: int, low: str) -> bool:
    return low[tokens[place - 1].end : tokens[place].start] in {"", " ", "-"}


def _lower(text: str) -> str:
    """Lower case, narrow digits and letters, tables' spelling; of the same length, so that places are the same."""
    if text.isascii():
        return text.lower()
    folded = text.translate(_low_characters)
    spelt = normalised(folded)
    return spelt if len(spelt) == len(text) else folded


class _LowCharacters(dict[int, int]):
    """Code of a character -> that of its narrow lower-case form, where this is one character."""

    def __missing__(self, code: int) -> int:
        """Work it out, and keep the last few thousand."""
        if len(self) >= _CHARACTERS:
            self.clear()
        low = unicodedata.normalize("NFKC", chr(code)).lower()
        found = self[code] = ord(low) if len(low) == 1 else code
        return found


_low_characters = _LowCharacters()


def _starts(text: str) -> frozenset[int]:
    """The places of words that have a capital because a sentence or a quotation begins there."""
    places = {len(text) - len(text.lstrip(" \t\n\"'“‘(["))}
    for end in sentence_ends(text):
        behind = text[end : end + 8]
        places.add(end + len(behind) - len(behind.lstrip(" \t\n\"'“‘([")))
    return frozenset(place for place in places if _is_known_word(text, place))


def _is_known_word(text: str, place: int) -> bool:
    """A capital at a sentence's start is that of a name all the same where another one follows, or a capital in it."""
    found = _token().match(text, place)
    if found is None:
        return False
    behind = text[found.end() : found.end() + 2].lstrip(" -")
    common = found[0].lower() in _plain() or found[0].lower() in opposed_table()[1]
    return common or not (behind[:1].isupper() or found[0][1:] != found[0][1:].lower())


@derived
def _plain() -> frozenset[str]:
    found: set[str] = set()
    for language in languages():
        plain = language.claims.plain
        found.update(plain.split() if " " in plain else plain)
        found.update(language.words.stop)
    return frozenset(found - {"not", "no", "nor", "s"})


@derived
def _token() -> re.Pattern[str]:
    """Letters before digits are one word (CD4, v2); digits before letters are a number and its unit (5km, 6th)."""
    endings = alternatives(lambda language: [language.claims.endings])
    numerals = numeral_characters() or "\\0"
    return re.compile(
        rf"(?P<ending>(?<=\d)(?:{endings}))|(?P<word>[^\W\d_{CJK}]+(?:['’][^\W\d_{CJK}]+|\d[^\W_{CJK}]*)*)"
        rf"|(?P<fraction>[{numerals}]{{1,8}}(?:{fraction_mark()})(?:[{numerals}]{{1,8}}|\d{{1,9}}(?:\.\d{{1,9}})?))"
        rf"|(?P<numeral>[{numerals}]{{2,12}})|(?P<number>\d+(?:[.,:]\d+)*)"
        rf"|(?P<cjk>[{CJK}])"
        rf"|(?P<sign>[%$€£¥℃°])"
    )


@derived
def _lexemes() -> dict[str, tuple[str, ...]]:
    """First character -> the words of the tables without spaces that begin with it, the longest first."""
    found: dict[str, list[str]] = {}
    same = {word for language in languages() for row in language.claims.same for word in row}
    for word in sorted(
        (word for word in same | _plain() if len(word) > 1 and not word.isascii()), key=len, reverse=True
    ):
        found.setdefault(word[0], []).append(word)
    return {first: tuple(own) for first, own in found.items()}


@derived
def _articles() -> frozenset[str]:
    return frozenset(word for language in languages() for word in language.claims.articles)
